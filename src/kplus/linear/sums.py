"""The sums over rows that features need, also where entries are missing."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray
from kplus.linear.gaps import columns_of, common_groups

__all__ = ["LinearSums", "as_groups", "by_columns", "regroup_features", "solve"]

_SAME = 1e-9  # sums of the same rows differ by rounding at most
_RIDGE = 1e-10


@dataclass
class LinearSums:
    """ZᵀWZ, and ZᵀWR and ‖R‖² for the residuals R = X − ZA about some features A.

    Sums about features keep their digits where ZᵀX and ‖X‖² would not: a base
    feature may be a million times larger than what differs between rows. They can be
    had about any other features (`about`), exactly.

    Arrays are replaced, never changed in place.

    Attributes
    ----------
    A : (K, D)
        The features about which the sums are taken.
    S : (groups, K, K)
        Weight of the rows that have features i and j and values in the columns of a
        group.
    group : (D,)
        Group of each column; columns of one group miss the same rows.
    T : (K, D)
        Weighted residuals of the rows with each feature.
    error : float
        Weighted squared residuals.
    weight : float
        Of the rows.
    counts : (K,)
        Weight of the rows with each feature.
    changed : int
        Report of the last pass: rows whose features changed.
    """

    shapes: ClassVar[dict[str, str]] = {
        "A": "K D",
        "S": "g K K",
        "group": "D <g",
        "T": "K D",
        "counts": "K",
    }

    A: Array
    S: Array
    group: IntArray
    T: Array
    error: float
    weight: float
    counts: Array
    changed: int = 0

    @property
    def K(self) -> int:
        return len(self.A)

    def begin_pass(self) -> None:
        self.changed = 0

    def __iadd__(self, other: Self) -> Self:
        return self._plus(other, 1.0)

    def __isub__(self, other: Self) -> Self:
        return self._plus(other, -1.0)

    def _plus(self, other: Self, sign: float) -> Self:
        if other.A is not self.A:
            other = other.about(self.A)
        if len(self.S) == len(other.S) and np.array_equal(self.group, other.group):
            self.S = self.S + sign * other.S
        else:
            self.group, mine, theirs = common_groups(self.group, other.group)
            self.S = self.S[mine] + sign * other.S[theirs]
        self.T = self.T + sign * other.T
        self.error += sign * other.error
        self.weight += sign * other.weight
        self.counts = self.counts + sign * other.counts
        self.changed += other.changed
        return self

    def copy(self) -> Self:
        return replace(self)

    def about(self, A: Array) -> Self:
        """The same sums about other features."""
        step = A - self.A
        moved = by_columns(self.S, self.group, step)
        error = self.error - 2.0 * np.vdot(step, self.T) + np.vdot(step, moved)
        return replace(self, A=A, T=self.T - moved, error=max(float(error), 0.0))

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
        """Carry over to K features; those without a new number leave their rows."""
        gone = old_to_new < 0
        sums = self
        if gone.any():  # with a zero feature z no longer matters
            sums = self.about(np.where(gone[:, None], 0.0, self.A))
        old = np.flatnonzero(~gone)
        keep, first = np.unique(old_to_new[old], return_index=True)
        pick = old[first]  # fused features have the same rows
        S = np.zeros((len(self.S), K, K))
        S[:, keep[:, None], keep] = sums.S[:, pick[:, None], pick]
        T, counts = np.zeros((K, self.T.shape[1])), np.zeros(K)
        T[keep], counts[keep] = sums.T[pick], sums.counts[pick]
        A = regroup_features(sums.A, old_to_new, K)
        return replace(sums, A=A, S=S, T=T, counts=counts)

    def step(self) -> Array:
        """From A to the best features for these rows: the shortest Δ with SΔ = T."""
        step = np.empty_like(self.T)
        for S, columns in zip(self.S, columns_of(self.group, len(self.S)), strict=True):
            step[:, columns] = solve(S, self.T[:, columns])
        return step

    def by_column(self) -> Array:
        """S where all columns share it, (K, K), or else that of each, (D, K, K)."""
        S: Array = self.S[0] if len(self.S) == 1 else self.S[self.group]
        return S

    def product(self, others: Array, group: IntArray) -> float:
        """Σ ⟨S, M⟩ over columns, where M too is given for groups of columns."""
        common, mine, theirs = common_groups(self.group, group)
        each = np.einsum("gij,gij->g", self.S[mine], others[theirs])
        return float(np.bincount(common) @ each)

    def same_rows(self) -> NDArray[np.bool_]:
        """Which pairs of features have the same rows: as many jointly as alone."""
        own = np.diagonal(self.S, axis1=1, axis2=2)[:, None, :]
        joint = np.abs(self.S - own) <= _SAME * own
        both = (joint & joint.swapaxes(1, 2)).all(axis=0)
        same: NDArray[np.bool_] = both & (
            np.abs(self.counts[:, None] - self.counts) <= _SAME * self.counts
        )
        return same

    def inverses(self) -> Array:
        """S⁻¹ of each group; features that depend on others get a huge diagonal."""
        scales = np.trace(self.S, axis1=1, axis2=2) / self.K
        ridges = _RIDGE * np.maximum(scales, 1e-200)
        inverses: Array = np.linalg.inv(self.S + ridges[:, None, None] * np.eye(self.K))
        return inverses

    def losses(self, A: Array) -> Array:
        """How much the error rises if a feature of A goes and the others are refitted.

        That is ‖A_k‖²/[(ZᵀZ)⁻¹]_kk where A is the best for these rows.
        """
        own = np.diagonal(self.inverses(), axis1=1, axis2=2)[self.group].T
        losses: Array = np.sum(A * A / own, axis=1)
        return losses


def as_groups(S: Array, n_columns: int) -> tuple[Array, IntArray]:
    """S and groups of columns, from one matrix (K, K) or one per column (D, K, K)."""
    if S.ndim == 2:
        return S[None], np.zeros(n_columns, np.int64)
    return S, np.arange(n_columns)


def by_columns(S: Array, group: IntArray, A: Array) -> Array:
    """SA, where each group of columns has its own S."""
    product: Array
    if len(S) == 1:
        product = S[0] @ A
        return product
    if 2 * len(S) > len(group):  # hardly any columns share one
        product = np.einsum("dij,jd->id", S[group], A)
        return product
    product = np.empty_like(A)
    for matrix, columns in zip(S, columns_of(group, len(S)), strict=True):
        product[:, columns] = matrix @ A[:, columns]
    return product


def regroup_features(A: Array, old_to_new: IntArray, K: int) -> Array:
    """Features after a renumbering: those with the same new number are added."""
    new = np.zeros((K, A.shape[1]))
    np.add.at(new, old_to_new[old_to_new >= 0], A[old_to_new >= 0])
    return new


def solve(S: Array, T: Array) -> Array:
    """The shortest solution of SΔ = T, however the features depend on each other."""
    if not len(S):
        return np.zeros_like(T)
    values, vectors = np.linalg.eigh(S)
    useful = values > 1e-11 * max(float(values[-1]), 0.0)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=useful)
    solution: Array = vectors @ (inverse[:, None] * (vectors.T @ T))
    return solution
