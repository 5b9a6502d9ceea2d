"""Kernels: NaN is not compiled away; which run; numbers by seed and row."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kplus
from kplus.core.kernels_uniform import uniform, uniform_of_rows
from kplus.dp_means.kernels_sequential import tally_rows
from kplus.dp_means.kernels_split import split_cluster


def test_a_row_that_is_not_a_number_shows():
    Y = np.random.default_rng(0).normal(size=(12, 5))
    Y[3, 2] = np.nan
    labels = (np.arange(12) % 2).astype(np.int32)
    refs, sums, squares = np.zeros((2, 5)), np.zeros((2, 5)), np.zeros(2)
    tally_rows(
        Y,
        np.empty(0),
        labels,
        refs,
        np.zeros(2, int),
        np.zeros(2),
        sums,
        squares,
    )
    assert np.isnan(sums).tolist() == [[False] * 5, [d == 2 for d in range(5)]]
    assert np.isnan(squares).tolist() == [False, True]
    first, second = np.zeros(5), np.zeros(5)
    assert not split_cluster(Y, np.ones(12), 5, first, second) > 0.0


SHOW = """
import sys

from kplus.core import kernels_uniform
from kplus.core.compiled import level
from kplus.ibp import kernels_double_greedy  # which imports kernels_uniform from Cython

cimported = sys.modules.get("cython.cimports.kplus.core.kernels_uniform")
print(level(), kernels_uniform.__file__, cimported is kernels_uniform)
"""


def run(kernels):
    """What a new process runs when the environment asks for some kernels."""
    environment = {k: v for k, v in os.environ.items() if k != "KPLUS_KERNELS"}
    if kernels is not None:
        environment["KPLUS_KERNELS"] = kernels
    command = [sys.executable, "-c", SHOW]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_the_environment_chooses_the_kernels():
    name, file, cimported = run("python").stdout.split()
    assert (name, cimported) == ("python", "True")
    assert file.endswith("kernels_uniform.py")
    best, file, cimported = run(None).stdout.split()
    if best == "python":
        pytest.skip("kernels were not compiled")
    assert file.split(os.sep)[-4:-1] == ["_compiled", best, "core"]
    assert run(best).stdout.split() == [best, file, cimported] == [best, file, "False"]


def test_kernels_that_were_not_built_are_refused():
    refused = run("abacus")
    assert refused.returncode != 0
    assert "KPLUS_KERNELS is 'abacus'" in refused.stderr


def test_kernels_import_their_own_method_or_what_is_below():
    """`make layers` does not see what is imported from Cython."""
    sources = Path(kplus.__file__).parent
    below = {"features": {"core", "linear"}, "ibp": {"core", "linear"}}
    pattern = re.compile(r"^from (?:cython\.cimports\.)?kplus\.(\w+)", re.MULTILINE)
    for file in sources.rglob("kernels*.p[yx]*"):
        method = file.relative_to(sources).parts[0]
        imported = set(pattern.findall(file.read_text(encoding="utf-8")))
        assert imported <= {method} | below.get(method, {"core"}), file


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
