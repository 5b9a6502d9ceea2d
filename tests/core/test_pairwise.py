"""Sums in pairs: the same bits in whichever portions they are made."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.core.memo import PairwiseSum


def added(values, start=0):
    sums = PairwiseSum(start)
    for value in values:
        sums.add(value)
    return sums


@given(n=st.integers(1, 200), cuts=st.lists(st.integers(0, 200), max_size=12))
def test_portions_change_no_bit(n, cuts):
    values = np.random.default_rng(n).normal(size=n) * 10.0 ** (np.arange(n) % 17)
    edges = [0, *sorted(c for c in set(cuts) if 0 < c < n), n]
    sums = PairwiseSum()
    for start, stop in itertools.pairwise(edges):
        portions = added(values[start:stop], start).portions
        assert sum(size for size, _ in portions) == stop - start
        assert len(portions) <= 2 * max(1, (stop - start).bit_length())
        for size, value in portions:
            sums.add(value, size)
    assert sums.total() == added(values).total()
    np.testing.assert_allclose(sums.total(), values.sum(), rtol=1e-12, atol=1e-3)


def test_nothing_was_added():
    assert PairwiseSum().total() is None


def test_order_is_kept():
    """As for summaries that are lists: neighbours only are added up."""
    assert added([[i] for i in range(13)]).total() == list(range(13))


@pytest.mark.parametrize("n", [1, 2, 7, 64, 1000])
def test_few_are_held(n):
    sums = PairwiseSum()
    for i in range(n):
        sums.add(float(i))
        assert len(sums.portions) <= n.bit_length()
    assert sums.total() == n * (n - 1) / 2
