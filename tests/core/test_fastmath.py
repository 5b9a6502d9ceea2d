"""Sums may be added up in any order, but NaN and infinities are never compiled away."""

import importlib
import pkgutil

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import kplus.core.kernels
from kplus.dp_means import kernels_sequential as sequential
from kplus.dp_means import kernels_split as split

MODULES = [m.name for m in pkgutil.iter_modules(kplus.kernels.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_no_kernel_assumes_that_all_numbers_are_finite(name):
    module = importlib.import_module(f"kplus.core.kernels.{name}")
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
