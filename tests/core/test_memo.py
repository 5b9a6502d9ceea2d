"""Totals stay exact while parts are replaced; sums in pairs do not mind portions."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.core.memo import Memo, PairwiseSum, add_up


@dataclass
class Counts:
    """The smallest summary: one number a group, and a report of the last pass."""

    sums: np.ndarray
    moved: int = 0

    def __iadd__(self, other):
        self.sums = self.sums + other.sums
        self.moved += other.moved
        return self

    def __isub__(self, other):
        self.sums = self.sums - other.sums
        return self

    def copy(self):
        return Counts(self.sums.copy(), self.moved)

    def begin_pass(self):
        self.moved = 0

    def regroup(self, old_to_new, K):
        out = np.zeros(K)
        np.add.at(out, old_to_new[old_to_new >= 0], self.sums[old_to_new >= 0])
        return Counts(out)


def counts(*sums):
    return Counts(np.array(sums, dtype=float))


def test_add_up_keeps_the_order_of_the_sum():
    parts = [counts(0.1), counts(0.2), counts(0.3)]
    assert add_up(iter(parts)).sums[0] == (0.1 + 0.2) + 0.3
    assert add_up([]) is None


whole = st.integers(-100, 100)


@given(st.lists(st.tuples(st.integers(0, 3), whole, whole), min_size=1, max_size=40))
def test_replace_keeps_the_total(steps):
    memo, latest = Memo(4), {}
    for group, a, b in steps:
        memo.replace(group, counts(a, b))
        latest[group] = np.array([a, b], dtype=float)
        np.testing.assert_array_equal(memo.total.sums, sum(latest.values()))
    memo.resum()
    np.testing.assert_array_equal(memo.total.sums, sum(latest.values()))


@given(st.lists(st.tuples(st.integers(0, 3), whole), min_size=1, max_size=40))
def test_adjust_adds_changes(steps):
    memo = Memo(4)
    for group, change in steps:
        memo.adjust(group, counts(change))
    assert memo.total.sums[0] == sum(change for _, change in steps)
    memo.resum()
    assert memo.total.sums[0] == sum(change for _, change in steps)


def test_resum_is_rid_of_drift():
    memo = Memo(2)
    memo.replace(0, counts(1.0))
    memo.replace(1, counts(1e16))
    memo.replace(1, counts(0.0))
    memo.resum()
    assert memo.total.sums[0] == 1.0


@pytest.mark.parametrize("n_groups", [1, 3])
def test_a_new_pass_forgets_the_report_only(n_groups):
    memo = Memo(n_groups)
    for group in range(n_groups):
        memo.replace(group, Counts(np.ones(2), moved=5))
    memo.begin_pass()
    assert memo.total.moved == 0
    np.testing.assert_array_equal(memo.total.sums, np.full(2, n_groups))
    for group in range(n_groups):
        memo.adjust(group, Counts(np.zeros(2), moved=1))
    assert memo.total.moved == n_groups


@pytest.mark.parametrize("n_groups", [1, 3])
def test_regroup_reaches_total_and_parts(n_groups):
    memo = Memo(n_groups)
    for group in range(n_groups):
        memo.replace(group, counts(1, 2, 4))
    memo.regroup(np.array([1, -1, 0]), 2)
    np.testing.assert_array_equal(memo.total.sums, np.array([4, 1]) * n_groups)
    memo.replace(0, counts(0, 0))
    expected = np.array([4, 1]) * (n_groups - 1)
    np.testing.assert_array_equal(memo.total.sums, expected)
    memo.resum()
    np.testing.assert_array_equal(memo.total.sums, expected)


def test_the_total_is_not_the_first_part():
    """Else adding the second part would change the first."""
    memo, first = Memo(2), counts(1.0)
    memo.replace(0, first)
    memo.replace(1, counts(2.0))
    assert first.sums[0] == 1.0
    assert memo.total.sums[0] == 3.0


# ----------------------------------------- earlier rows, provisional statistics


@pytest.mark.parametrize("n_groups", [1, 3])
def test_earlier_rows_count_and_stay(n_groups):
    memo, base = Memo(n_groups, counts(10, 20)), counts(10, 20)
    np.testing.assert_array_equal(memo.total.sums, base.sums)
    for group in range(n_groups):
        memo.replace(group, counts(1, 2))
    for group in range(n_groups):
        memo.replace(group, counts(3, 5))
    expected = np.array([10, 20]) + n_groups * np.array([3, 5])
    np.testing.assert_array_equal(memo.total.sums, expected)
    memo.resum()
    np.testing.assert_array_equal(memo.total.sums, expected)
    memo.regroup(np.array([1, 0]), 2)
    np.testing.assert_array_equal(memo.total.sums, expected[::-1])
    memo.resum()
    np.testing.assert_array_equal(memo.total.sums, expected[::-1])


def test_earlier_rows_are_not_changed():
    base = counts(10.0)
    memo = Memo(2, base)
    memo.replace(0, counts(1.0))
    memo.adjust(0, counts(1.0))
    memo.add_provisional(counts(5.0))
    memo.resum()
    assert memo.total.sums[0] == 12.0
    assert base.sums[0] == 10.0


@pytest.mark.parametrize("base", [None, 100.0])
def test_provisional_sums_last_until_the_total_is_added_up(base):
    memo = Memo(2, None if base is None else counts(base))
    memo.replace(0, counts(1.0))
    memo.replace(1, counts(2.0))
    memo.add_provisional(counts(0.5))
    memo.replace(0, counts(4.0))
    assert memo.total.sums[0] == (base or 0.0) + 6.5
    memo.resum()
    assert memo.total.sums[0] == (base or 0.0) + 6.0


def test_provisional_sums_do_not_reach_the_only_part():
    """With one group the total is its summary, which nothing reads before the next."""
    memo = Memo(1)
    memo.replace(0, counts(1.0))
    memo.add_provisional(counts(0.5))
    memo.resum()
    assert memo.total.sums[0] == 1.0


# ------------------------------------------------------------------ going back


@pytest.mark.parametrize("base", [None, 100.0])
@pytest.mark.parametrize("n_groups", [1, 3])
def test_going_back_to_a_snapshot(n_groups, base):
    """As the loop does it: renumber, pass over the rows, find that it did not pay."""
    memo = Memo(n_groups, None if base is None else counts(base, base))
    for group in range(n_groups):
        memo.replace(group, Counts(np.array([0.1 * group, 0.7]), moved=2))
    before, report = memo.total.sums.copy(), memo.total.moved
    snapshot = memo.snapshot()
    for _ in range(2):
        memo.regroup(np.array([0, -1]), 1)
        memo.begin_pass()
        for group in range(n_groups):
            memo.replace(group, counts(9.0))
        memo.adjust(0, counts(1.0))
        memo.resum()
        memo.restore(snapshot)
        np.testing.assert_array_equal(memo.total.sums, before)
        assert memo.total.moved == report
    memo.replace(0, counts(5.0, 5.0))
    memo.resum()
    rest = sum(np.array([0.1 * group, 0.7]) for group in range(1, n_groups))
    expected = rest + np.array([5.0, 5.0]) + (base or 0.0)
    np.testing.assert_allclose(memo.total.sums, expected, rtol=1e-14)


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
