"""The memo: one cached summary a group of blocks, and their running total."""

from collections.abc import Iterable
from typing import Any

from kplus.core.types import IntArray

__all__ = ["Memo", "add_up"]


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
    sum over the whole data set.
    """

    def __init__(self, n_groups: int) -> None:
        self._groups: list[Any] = [None] * n_groups
        self.total: Any = None

    def begin_pass(self) -> None:
        """Forget what the last pass reported; keep the statistics."""
        for summary in (self.total, *self._groups):
            if summary is not None:
                summary.begin_pass()

    def replace(self, group: int, summary: Any) -> None:
        """Swap the cached summary of a group for a new one."""
        old = self._groups[group]
        self._groups[group] = summary
        if len(self._groups) == 1:
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
        if len(self._groups) > 1:
            self.total += change

    def resum(self) -> None:
        """Add the total up afresh, in group order, to be rid of rounding drift."""
        known = [summary for summary in self._groups if summary is not None]
        if len(known) > 1:
            self.total = known[0].copy()
            for summary in known[1:]:
                self.total += summary

    def regroup(self, into: IntArray, K: int) -> None:
        """Renumber the groups (clusters) inside every cached summary."""
        self._groups = [
            None if summary is None else summary.regroup(into, K)
            for summary in self._groups
        ]
        if len(self._groups) == 1:
            self.total = self._groups[0]
        elif self.total is not None:
            self.total = self.total.regroup(into, K)
