"""Columns that miss the same rows: they share one ZᵀZ."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray
from kplus.linear.kernels_gaps import add_gaps

__all__ = ["Gaps", "Shorter", "columns_of", "common_groups", "whole"]


class Shorter(NamedTuple):
    """Of each pattern the groups that it lacks or, if they are fewer, those it has.

    Attributes
    ----------
    starts : (patterns + 1,)
        Pattern p has ``groups[starts[p]:starts[p + 1]]``.
    groups : (entries,)
    signs : (patterns,)
        -1.0 where groups that a pattern lacks are listed, or else 1.0.
    """

    starts: IntArray
    groups: IntArray
    signs: Array


@dataclass(frozen=True)
class Gaps:
    """Where the values of a block are missing.

    Columns with the same gaps form a group, rows with the same gaps a pattern: patterns
    are sets of groups.

    Attributes
    ----------
    group : (D,)
        Group of each column.
    pattern : (n,)
        Pattern of each row.
    known : (patterns, groups)
        1 where rows of the pattern have values in the columns of the group.
    """

    shapes: ClassVar[dict[str, str]] = {
        "known": "p g",
        "group": "D <g",
        "pattern": "N <p",
    }

    group: IntArray
    pattern: IntArray
    known: Array

    @classmethod
    def of(cls, missing: NDArray[np.bool_]) -> "Gaps":
        columns, group = _distinct(missing.T)
        rows, pattern = _distinct(missing[:, columns])
        known = ~missing[np.ix_(rows, columns)]
        return cls(group, pattern, known.astype(np.float64))

    @cached_property
    def observed(self) -> int:
        """Number of values."""
        widths = np.bincount(self.group)
        rows = np.bincount(self.pattern)
        return int(rows @ self.known @ widths)

    @cached_property
    def shorter(self) -> Shorter:
        """Where patterns differ from none or from all groups, as lists."""
        most = 2 * self.known.sum(axis=1) > self.known.shape[1]
        listed = self.known != most[:, None]
        starts = np.append(0, np.cumsum(np.count_nonzero(listed, axis=1)))
        groups = np.ascontiguousarray(np.nonzero(listed)[1])
        return Shorter(starts, groups, np.where(most, -1.0, 1.0))

    @cached_property
    def scattered(self) -> bool:
        """Whether lists are shorter than the table of patterns and groups.

        That of few patterns is small; in a small one nothing is to be gained.
        """
        lengths = np.diff(self.shorter.starts)
        entries = int(lengths[self.pattern].sum())
        return self.known.size > max(len(self.pattern), entries)

    def gram(self, Z: Array) -> Array:
        """ZᵀZ over the rows with values, for each group of columns."""
        if not self.scattered:
            each = [(Z * has[self.pattern, None]).T @ Z for has in self.known.T]
            return np.stack(each)
        Z = np.ascontiguousarray(Z)
        most = Z[self.shorter.signs[self.pattern] < 0.0]
        S = np.repeat((most.T @ most)[None], self.known.shape[1], axis=0)
        add_gaps(Z, self.pattern, *self.shorter, S)
        return S


def _distinct(bits: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """A row of each kind, and the kind of each row."""
    packed = np.ascontiguousarray(np.packbits(bits, axis=1))
    whole_rows = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    kinds: dict[bytes, int] = {}
    kind = np.array([kinds.setdefault(row, len(kinds)) for row in whole_rows])
    return np.unique(kind, return_index=True)[1], kind


def whole(n_rows: int, n_columns: int) -> Gaps:
    """A block without gaps."""
    zeros = np.zeros(max(n_rows, n_columns), np.int64)
    return Gaps(zeros[:n_columns], zeros[:n_rows], np.ones((1, 1)))


def common_groups(a: IntArray, b: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Groups of columns that are alike in two groupings.

    Returns the group of each column, and of each new group the old one in `a` and `b`.
    """
    pairs: NDArray[Any] = np.stack([a, b], axis=1)
    old, group = np.unique(pairs, axis=0, return_inverse=True)
    return group.reshape(-1), old[:, 0], old[:, 1]


def columns_of(group: IntArray, n_groups: int) -> list[IntArray]:
    """The columns of each group."""
    ends = np.cumsum(np.bincount(group, minlength=n_groups))
    return np.split(np.argsort(group, kind="stable"), ends[:-1])
