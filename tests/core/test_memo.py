"""The memo: totals that stay exact while parts of them are replaced."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.core.memo import Memo, add_up


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

    def regroup(self, into, K):
        out = np.zeros(K)
        np.add.at(out, into[into >= 0], self.sums[into >= 0])
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
