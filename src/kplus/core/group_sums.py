"""Summaries of which every statistic has an entry for each group."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from kplus.core.types import IntArray

__all__ = ["GroupSums"]


@dataclass
class GroupSums:
    """Arrays over groups that add, subtract and follow a renumbering.

    A subclass names its arrays: `statistics`, and `reports`, which only add and which
    `begin_pass` clears. What else it holds it looks after itself.
    """

    statistics: ClassVar[tuple[str, ...]] = ()
    reports: ClassVar[tuple[str, ...]] = ()

    @property
    def K(self) -> int:
        return len(getattr(self, self.statistics[0]))

    def begin_pass(self) -> None:
        for name in self.reports:
            setattr(self, name, np.zeros_like(getattr(self, name)))

    def __iadd__(self, other: Self) -> Self:
        for name in (*self.statistics, *self.reports):
            mine, theirs = getattr(self, name), getattr(other, name)
            mine[: len(theirs)] += theirs
        return self

    def __isub__(self, other: Self) -> Self:
        for name in self.statistics:
            mine, theirs = getattr(self, name), getattr(other, name)
            mine[: len(theirs)] -= theirs
        return self

    def copy(self) -> Self:
        names = (*self.statistics, *self.reports)
        arrays: dict[str, Any] = {name: getattr(self, name).copy() for name in names}
        return replace(self, **arrays)

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
        """Carry over to K groups; those with the same new number are added up."""
        kept = np.flatnonzero(old_to_new >= 0)
        goal, first = np.unique(old_to_new[kept], return_index=True)
        again = np.delete(kept, first)
        arrays: dict[str, Any] = {}
        for name in (*self.statistics, *self.reports):
            old = getattr(self, name)
            new = arrays[name] = np.zeros((K, *old.shape[1:]), old.dtype)
            new[goal] = old[kept[first]]
            np.add.at(new, old_to_new[again], old[again])
        return replace(self, **arrays)
