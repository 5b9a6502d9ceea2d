"""Sums may be added up in any order, but NaN and infinities are never compiled away."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import kplus
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
