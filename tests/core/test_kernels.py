"""Kernels: no fastmath that assumes finite numbers; random numbers by seed and row."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import kplus
from kplus.core.kernels_uniform import uniform, uniform_of_rows
from kplus.dp_means import kernels_sequential as sequential
from kplus.dp_means import kernels_split as split

PACKAGE = Path(kplus.__file__).parent
MODULES = [
    ".".join(("kplus", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in sorted(PACKAGE.rglob("kernels*.py"))
]


@pytest.mark.parametrize("name", MODULES)
def test_no_kernel_assumes_that_all_numbers_are_finite(name):
    module = importlib.import_module(name)
    for function in vars(module).values():
        if isinstance(function, Dispatcher):
            flags = function.targetoptions.get("fastmath", False)
            assert flags is not True, function
            assert not flags or not {"fast", "nnan", "ninf"} & flags, function


def test_a_row_that_is_not_a_number_shows():
    Y = np.random.default_rng(0).normal(size=(12, 5))
    Y[3, 2] = np.nan
    means = np.zeros((2, 5))
    assert np.isnan(sequential._nearest(Y, 3, means, 2)[0])
    first, second = np.zeros(5), np.zeros(5)
    assert not split.split_cluster(Y, np.ones(12), 5, first, second) > 0.0


MASK = 2**64 - 1


def splitmix64(state):
    """As published by Vigna, in whole numbers."""
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return (z ^ (z >> 31)) >> 11


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_rows_have_numbers_of_their_own(seed):
    rows = np.array([0, 1, 7, 10**12])
    out = np.empty(4)
    uniform_of_rows(rows, seed, out)
    expected = [
        splitmix64((int(r) + seed * 0x9E3779B97F4A7C15) & MASK) * 2.0**-53 for r in rows
    ]
    assert out.tolist() == expected


def test_a_stream_is_splitmix64():
    """The first numbers of the reference implementation for the seed 1234567."""
    first = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    found = [uniform(np.uint64(1234567), k) for k in range(3)]
    assert found == [(z >> 11) * 2.0**-53 for z in first]
