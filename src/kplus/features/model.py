"""BP-means and K-features as a model of the loop: parameters, sums, objective."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import NotFiniteError
from kplus.core.types import Array, Block, IntArray
from kplus.features.kernels_allocate import Allocated, allocate_rows
from kplus.features.kernels_gaps import AllocatedGaps, allocate_gaps
from kplus.linear.bits import Allocation
from kplus.linear.sums import LinearSums, as_groups

__all__ = [
    "EXACT_FEATURES",
    "MOST_CANDIDATES",
    "Candidates",
    "FeatureModel",
    "FeatureSums",
    "Features",
]

EXACT_FEATURES = 25  # up to so many, the best z of all 2^K is found fast enough
MOST_CANDIDATES = 32
_ROUNDING = 1e-18


@dataclass(frozen=True)
class Features:
    """K features (rows of A), and what finding a row's z needs of them.

    Attributes
    ----------
    exact : bool
        Find the best z of all 2^K; otherwise flip single bits until none helps.
    most_steps : int
        Steps of that search allowed for a row; beyond, the best so far is taken. Only
        rows that many patterns fit about equally well need so many.
    """

    shapes: ClassVar[dict[str, str]] = {"A": "K D"}

    A: Array
    exact: bool = False
    most_steps: int = 10_000

    @property
    def K(self) -> int:
        return len(self.A)

    @cached_property
    def G(self) -> Array:
        """AAᵀ."""
        gram: Array = np.ascontiguousarray(self.A @ self.A.T)
        return gram


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


@dataclass(frozen=True)
class FeatureModel:
    """Rows as sums of features (Eq. 6 of MAD-Bayes; Eq. 14 with no penalty).

    Attributes
    ----------
    penalty : float
        λ², charged for each feature.
    most : int
        With fewer features than that, rows that cost more than λ² are noted as
        candidates for new ones.
    """

    penalty: float = 0.0
    most: int = 0
    incremental = False

    def summarize(
        self, params: Features, block: Block, local: Allocation | None
    ) -> tuple[FeatureSums, Allocation]:
        X = np.ascontiguousarray(block.read(), dtype=np.float64)
        n, D = X.shape
        Z = np.zeros((n, params.K), np.uint8) if local is None else local.unpack()
        weights = np.ones(n) if block.weights is None else block.weights
        errors, T = np.empty(n), np.zeros((params.K, D))
        if params.K == 0:
            S, changed = np.zeros((0, 0)), 0
            errors = np.nansum(X * X, axis=1)
        elif np.isnan(X).any():
            S = np.zeros((D, params.K, params.K))
            changed = allocate_gaps(
                X, weights, params.A, params.exact, params.most_steps,
                AllocatedGaps(Z, errors, S, T),
            )  # fmt: skip
        else:
            S = np.zeros((params.K, params.K))
            changed = allocate_rows(
                X, weights, params.A, params.G, params.exact, params.most_steps,
                Allocated(Z, errors, S, T),
            )  # fmt: skip
        error = float(errors @ weights)
        if not np.isfinite(error):
            raise NotFiniteError("A row")
        by_group, group = as_groups(S, D)
        sums = FeatureSums(
            A=params.A,
            S=by_group,
            group=group,
            T=T,
            error=error,
            weight=float(weights.sum()),
            counts=weights @ Z if S.ndim == 3 else np.diag(S).copy(),
            changed=n if local is None else changed,
            candidates=self._candidates(errors * weights, X, Z, params, block.start),
        )
        if local is not None and changed == 0:
            return sums, local
        return sums, Allocation.of(Z)

    def _candidates(
        self,
        costs: Array,
        X: Array,
        Z: NDArray[np.uint8],
        params: Features,
        start: int,
    ) -> Candidates:
        """The rows for which a feature of their own would pay."""
        if self.most <= params.K:
            return Candidates.none(X.shape[1])
        # What rounding leaves of a row does not count.
        least = _ROUNDING * np.einsum("nd,nd->n", X, X) if self.penalty == 0.0 else 0.0
        rows = np.flatnonzero(costs > self.penalty + least)
        if len(rows) > MOST_CANDIDATES:
            least = np.partition(costs[rows], -MOST_CANDIDATES)[-MOST_CANDIDATES]
            rows = rows[costs[rows] >= least]
        rows = rows[np.argsort(-costs[rows], kind="stable")[:MOST_CANDIDATES]]
        residuals = np.nan_to_num(X[rows] - Z[rows] @ params.A)
        return Candidates(rows + start, costs[rows], residuals)

    def update(self, params: Features, total: FeatureSums) -> Features:
        return replace(params, A=params.A + total.about(params.A).step())

    def advance(
        self, params: Features, total: FeatureSums, latest: FeatureSums
    ) -> Features:
        return self.update(params, total)

    def objective(self, params: Features, total: FeatureSums) -> float:
        error = total.error if total.A is params.A else total.about(params.A).error
        return error + self.penalty * params.K

    def converged(self, total: FeatureSums) -> bool:
        return total.changed == 0

    def regroup_local(
        self, local: Allocation, old_to_new: IntArray, K: int
    ) -> Allocation:
        return local.regroup(old_to_new, K)
