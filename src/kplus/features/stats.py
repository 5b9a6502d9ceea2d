"""The sums over rows that BP-means and K-features need."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.linear.sums import LinearSums

__all__ = ["MOST_CANDIDATES", "Candidates", "FeatureSums"]

MOST_CANDIDATES = 32


@dataclass
class Candidates:
    """The costliest rows of a pass: their numbers, costs and residuals."""

    shapes: ClassVar[dict[str, str]] = {
        "rows": "c",
        "costs": "c",
        "residuals": "c d",
    }

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
class FeatureSums(LinearSums):
    """Sums over rows, and the costliest rows of the last pass."""

    candidates: Candidates = field(default_factory=lambda: Candidates.none(0))

    def begin_pass(self) -> None:
        super().begin_pass()
        self.candidates = Candidates.none(self.A.shape[1])

    def _plus(self, other: Self, sign: float) -> Self:
        self.candidates = self.candidates.merge(other.candidates)
        return super()._plus(other, sign)

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
        none = Candidates.none(self.A.shape[1])
        return replace(super().regroup(old_to_new, K), candidates=none)
