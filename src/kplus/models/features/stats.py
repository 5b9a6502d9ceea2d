"""The sums over rows that features need."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.models.features.params import regroup_features

__all__ = ["MOST_CANDIDATES", "Candidates", "FeatureSums", "solve", "times"]

MOST_CANDIDATES = 32


@dataclass
class Candidates:
    """The costliest rows of a pass: their numbers, costs and residuals."""

    rows: IntArray
    costs: Array
    residuals: Array

    @classmethod
    def none(cls, n_columns: int) -> Self:
        return cls(np.empty(0, np.int64), np.empty(0), np.empty((0, n_columns)))

    def merge(self, other: Self) -> Self:
        """The costliest of both, ties by row number, in that order."""
        rows = np.concatenate([self.rows, other.rows])
        costs = np.concatenate([self.costs, other.costs])
        first = np.lexsort((rows, -costs))[:MOST_CANDIDATES]
        residuals = np.concatenate([self.residuals, other.residuals])
        return type(self)(rows[first], costs[first], residuals[first])


@dataclass
class FeatureSums:
    """ZᵀWZ, and ZᵀW(X − ZA) and ‖X − ZA‖² for some features A.

    Sums about features keep their digits where ZᵀX and ‖X‖² would not: a base
    feature may be a million times larger than what differs between rows. They can be
    had about any other features (`about`), exactly.

    Attributes
    ----------
    A : (K, D)
        The features about which the sums are taken.
    S : (K, K), or (D, K, K) where entries are missing
        Weight of the rows that have features i and j (and column d).
    T : (K, D)
        Weighted residuals of the rows with each feature.
    error : float
        Weighted squared residuals.
    weight : float
        Of the rows.
    counts : (K,)
        Weight of the rows with each feature.
    changed, candidates
        Report of the last pass: rows whose z changed, the costliest rows.
    """

    A: Array
    S: Array
    T: Array
    error: float
    weight: float
    counts: Array
    changed: int = 0
    candidates: Candidates = field(default_factory=lambda: Candidates.none(0))

    @property
    def K(self) -> int:
        return len(self.A)

    def begin_pass(self) -> None:
        self.changed = 0
        self.candidates = Candidates.none(self.A.shape[1])

    def __iadd__(self, other: Self) -> Self:
        return self._plus(other, 1.0)

    def __isub__(self, other: Self) -> Self:
        return self._plus(other, -1.0)

    def _plus(self, other: Self, sign: float) -> Self:
        if other.A is not self.A:
            other = other.about(self.A)
        mine, theirs = _same_form(self.S, other.S, self.A.shape[1])
        self.S = mine + sign * theirs
        self.T += sign * other.T
        self.error += sign * other.error
        self.weight += sign * other.weight
        self.counts += sign * other.counts
        self.changed += other.changed
        self.candidates = self.candidates.merge(other.candidates)
        return self

    def copy(self) -> Self:
        return replace(
            self, S=self.S.copy(), T=self.T.copy(), counts=self.counts.copy()
        )

    def about(self, A: Array) -> Self:
        """The same sums about other features."""
        step = A - self.A
        moved = times(self.S, step)
        error = self.error - 2.0 * np.vdot(step, self.T) + np.vdot(step, moved)
        return replace(self, A=A, T=self.T - moved, error=max(float(error), 0.0))

    def regroup(self, into: IntArray, K: int) -> Self:
        """Carry over to K features; those without a new number leave their rows."""
        gone = np.flatnonzero(into < 0)
        sums = self
        if len(gone):
            without = self.A.copy()
            without[gone] = 0.0  # with a zero feature z no longer matters
            sums = self.about(without)
        old = np.flatnonzero(into >= 0)
        new = into[old]
        keep, first = np.unique(new, return_index=True)
        pick = old[first]  # fused features have the same rows
        S = np.zeros((*self.S.shape[:-2], K, K))
        S[..., keep[:, None], keep] = sums.S[..., pick[:, None], pick]
        T, counts = np.zeros((K, self.T.shape[1])), np.zeros(K)
        T[keep], counts[keep] = sums.T[pick], sums.counts[pick]
        A = regroup_features(sums.A, into, K)
        return replace(
            sums, A=A, S=S, T=T, counts=counts, candidates=Candidates.none(A.shape[1])
        )


def times(S: Array, A: Array) -> Array:
    """SA, column by column where each column has its own S."""
    if S.ndim == 2:
        product: Array = S @ A
        return product
    columns: Array = np.einsum("dij,jd->id", S, A)
    return columns


def solve(S: Array, T: Array) -> Array:
    """The shortest solution of SΔ = T, however the features depend on each other."""
    if S.ndim == 2:
        return _solve_one(S, T)
    return np.stack([_solve_one(s, t) for s, t in zip(S, T.T, strict=True)], axis=1)


def _solve_one(S: Array, T: Array) -> Array:
    if not len(S):
        return np.zeros_like(T)
    values, vectors = np.linalg.eigh(S)
    useful = values > 1e-11 * max(float(values[-1]), 0.0)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=useful)
    left = vectors.T @ T
    scaled = left * (inverse if T.ndim == 1 else inverse[:, None])
    solution: Array = vectors @ scaled
    return solution


def _same_form(mine: Array, theirs: Array, D: int) -> tuple[Array, Array]:
    """Sums of complete rows count for every column where others have gaps."""
    if mine.ndim == theirs.ndim:
        return mine, theirs
    if mine.ndim == 2:
        return np.broadcast_to(mine, (D, *mine.shape)).copy(), theirs
    return mine, np.broadcast_to(theirs, (D, *theirs.shape))
