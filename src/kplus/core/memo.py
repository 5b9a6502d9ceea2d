"""Sums of summaries: the memo of groups of blocks, and sums in pairs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kplus.core.errors import CheckpointError
from kplus.core.types import IntArray

__all__ = [
    "Memo",
    "PairwiseSum",
    "add_up",
]


def add_up(summaries: Iterable[Any]) -> Any:
    """Sum summaries in the order given, which fixes the rounding."""
    total = None
    for summary in summaries:
        if total is None:
            total = summary
        else:
            total += summary
    return total


class Memo:
    """Cached summaries of groups of blocks with their exact total.

    With one group this is full-data inference; with many, each group's old
    summary is swapped for its new one (memoized inference) and the total stays a
    sum over the whole data set. `base` is a summary of rows seen earlier, which is
    never swapped.
    """

    def __init__(self, n_groups: int, base: Any = None) -> None:
        self._groups: list[Any] = [None] * n_groups
        self._base = base
        self.total: Any = None if base is None else base.copy()

    @property
    def _single(self) -> bool:
        """Whether the total is just the summary of the one group."""
        return len(self._groups) == 1 and self._base is None

    def begin_pass(self) -> None:
        """Forget what the last pass reported; keep the statistics."""
        for summary in (self.total, self._base, *self._groups):
            if summary is not None:
                summary.begin_pass()

    def replace(self, group: int, summary: Any) -> None:
        """Swap the cached summary of a group for a new one."""
        old = self._groups[group]
        self._groups[group] = summary
        if self._single:
            self.total = summary
        elif self.total is None:
            self.total = summary.copy()
        else:
            if old is not None:
                self.total -= old
            self.total += summary

    def adjust(self, group: int, change: Any) -> None:
        """Add a change to the cached summary of a group."""
        old = self._groups[group]
        if old is None:
            self.replace(group, change)
            return
        old += change
        if not self._single:
            self.total += change

    def add_provisional(self, provisional: Any) -> None:
        """Add to the total until it is next added up afresh."""
        if not self._single:
            self.total += provisional

    def resum(self) -> None:
        """Add the total up afresh, in group order, to be rid of rounding drift."""
        everything = (self._base, *self._groups)
        known = [summary for summary in everything if summary is not None]
        if not self._single and known:
            self.total = known[0].copy()
            for summary in known[1:]:
                self.total += summary

    def regroup(self, old_to_new: IntArray, K: int) -> None:
        """Renumber the groups (clusters) inside every cached summary."""
        self._groups = [
            None if summary is None else summary.regroup(old_to_new, K)
            for summary in self._groups
        ]
        if self._base is not None:
            self._base = self._base.regroup(old_to_new, K)
        if self._single:
            self.total = self._groups[0]
        elif self.total is not None:
            self.total = self.total.regroup(old_to_new, K)

    def snapshot(self) -> Any:
        """What `restore` needs; summaries are swapped, never changed in place."""
        return self._groups.copy(), self._base, self.total.copy()

    def check(self, snapshot: Any) -> None:
        """Refuse the snapshot of another number of groups, or with another base."""
        groups, base, _ = snapshot
        if len(groups) != len(self._groups) or groups[0] is None:
            raise CheckpointError(f"there are sums of {len(groups)} batches")
        if (base is None) != (self._base is None):
            raise CheckpointError("there are no sums, or other ones, of earlier rows")

    def restore(self, snapshot: Any) -> None:
        """Restore a snapshot."""
        groups, self._base, total = snapshot
        self._groups = groups.copy()
        self.total = self._groups[0] if self._single else total


@dataclass
class _Part:
    start: int
    size: int
    summary: Any


class PairwiseSum:
    """A sum of neighbours by two, of these by two, and so on, as their places have it.

    Whoever adds, in whichever portions, gets the same bits. Of n summaries no more than
    about 2 log n are ever held.

    Parameters
    ----------
    start : int
        The place of the first summary.

    Examples
    --------
    >>> whole, left, right = PairwiseSum(), PairwiseSum(), PairwiseSum(3)
    >>> for value in (0.1, 0.2, 0.3, 0.4, 0.5):
    ...     whole.add(value)
    >>> for value in (0.1, 0.2, 0.3):
    ...     left.add(value)
    >>> for value in (0.4, 0.5):
    ...     right.add(value)
    >>> left.portions, right.portions
    ([(2, 0.30000000000000004), (1, 0.3)], [(1, 0.4), (1, 0.5)])
    >>> for size, value in right.portions:
    ...     left.add(value, size)
    >>> whole.total() == left.total()
    True
    """

    def __init__(self, start: int = 0) -> None:
        self._place = start
        self._parts: list[_Part] = []

    def add(self, summary: Any, size: int = 1) -> None:
        """Add the next, or a portion of `size` of them; it may be changed in place."""
        self._parts.append(_Part(self._place, size, summary))
        self._place += size
        while len(self._parts) > 1 and self._is_pair(*self._parts[-2:]):
            last = self._parts.pop()
            self._parts[-1].summary += last.summary
            self._parts[-1].size *= 2

    @staticmethod
    def _is_pair(left: _Part, right: _Part) -> bool:
        return left.size == right.size and left.start % (2 * left.size) == 0

    @property
    def portions(self) -> list[tuple[int, Any]]:
        """What was added so far, as sizes and sums: as few as places allow."""
        return [(part.size, part.summary) for part in self._parts]

    def total(self) -> Any:
        """The sum of all; None if nothing was added. Add nothing more then."""
        return add_up(summary for _, summary in self.portions)
