"""The sums over rows that the factors of an Indian buffet process need."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.models.ibp.columns import common_groups

__all__ = ["BuffetSums", "by_columns"]


@dataclass
class BuffetSums:
    """ZᵀZ, and ZᵀR and ‖R‖² for the residuals R = X − ZA about some features A.

    About features, since ZᵀX and ‖X‖² would lose the digits of what differs between
    rows with a large level in common. `about` moves them to other features, exactly.

    Attributes
    ----------
    A : (K, D)
        The features about which the sums are taken.
    S : (groups, K, K)
        Rows that have features i and j and values in the columns of a group.
    group : (D,)
        Columns of one group miss the same rows.
    T : (K, D)
        Residuals of the rows with each feature.
    error : float
        Squared residuals.
    observed : int
        Number of values.
    rows : int
    counts : (K,)
        Rows with each feature.
    changed : int
        Report of the last pass: rows whose features changed.
    """

    A: Array
    S: Array
    group: IntArray
    T: Array
    error: float
    observed: int
    rows: int
    counts: Array
    changed: int = 0

    @property
    def K(self) -> int:
        return len(self.A)

    def begin_pass(self) -> None:
        self.changed = 0

    def __iadd__(self, other: Self) -> Self:
        return self._plus(other, 1)

    def __isub__(self, other: Self) -> Self:
        return self._plus(other, -1)

    def _plus(self, other: Self, sign: int) -> Self:
        if other.A is not self.A:
            other = other.about(self.A)
        if len(self.S) == len(other.S) and np.array_equal(self.group, other.group):
            self.S = self.S + sign * other.S
        else:
            self.group, mine, theirs = common_groups(self.group, other.group)
            self.S = self.S[mine] + sign * other.S[theirs]
        self.T = self.T + sign * other.T
        self.error += sign * other.error
        self.observed += sign * other.observed
        self.rows += sign * other.rows
        self.counts = self.counts + sign * other.counts
        self.changed += other.changed
        return self

    def copy(self) -> Self:
        return replace(self)  # arrays are replaced, never changed in place

    def about(self, A: Array) -> Self:
        """The same sums about other features."""
        step = A - self.A
        moved = by_columns(self.S, self.group, step)
        error = self.error - 2.0 * np.vdot(step, self.T) + np.vdot(step, moved)
        return replace(self, A=A, T=self.T - moved, error=max(float(error), 0.0))

    def regroup(self, into: IntArray, K: int) -> Self:
        """Carry over to K features; those without a new number leave their rows."""
        gone = into < 0
        sums = self
        if gone.any():
            sums = self.about(np.where(gone[:, None], 0.0, self.A))
        old, new = np.flatnonzero(~gone), into[~gone]
        S = np.zeros((len(self.S), K, K))
        S[:, new[:, None], new] = sums.S[:, old[:, None], old]
        A, T = np.zeros((K, self.A.shape[1])), np.zeros((K, self.A.shape[1]))
        counts = np.zeros(K)
        A[new], T[new], counts[new] = sums.A[old], sums.T[old], sums.counts[old]
        return replace(sums, A=A, S=S, T=T, counts=counts)


def by_columns(S: Array, group: IntArray, A: Array) -> Array:
    """SA, where each group of columns has its own S."""
    if len(S) == 1:
        product: Array = S[0] @ A
        return product
    product = np.empty_like(A)
    for g, matrix in enumerate(S):
        columns = np.flatnonzero(group == g)
        product[:, columns] = matrix @ A[:, columns]
    return product
