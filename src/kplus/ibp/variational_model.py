"""Mean-field inference for X = ZA + noise with an IBP prior, as a model of the loop.

Doshi-Velez, Miller, Van Gael and Teh (2009). q(Z) is a product of Bernoullis, q(A) a
Gaussian over the features of each column, with all covariances between them, and q(π)
is in `prior`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from kplus.core.memo import add_up
from kplus.core.types import Array, Block, IntArray
from kplus.ibp.factors import GaussianFactors, IBPSums
from kplus.ibp.kernels_marginals import ascend_rows, seed_rows
from kplus.ibp.prior import FiniteIBP, InfiniteIBP
from kplus.linear.gaps import Gaps, whole
from kplus.linear.sums import by_columns

__all__ = [
    "BernoulliSums",
    "MeanField",
    "Rotated",
    "VariationalModel",
    "expected_error",
]

_TILE = 2**20  # entries of the matrices that rows with gaps have of their own
_ROUNDS = 2  # of factors and scales, for the same sums


@dataclass(frozen=True)
class MeanField:
    """q(A), q(π) and the scales: all of q but q(Z).

    Attributes
    ----------
    noise, factor : float
        Variances of the noise and of the features.
    fresh : bool
        Whether rows also start from zeros, as rows of a new table do, and keep the
        better result.
    """

    factors: GaussianFactors
    ibp: FiniteIBP | InfiniteIBP
    noise: float
    factor: float
    fresh: bool = False

    @property
    def K(self) -> int:
        return len(self.factors.mean)


@dataclass
class BernoulliSums(IBPSums):
    """Expected sums over rows, of bits that have probabilities; with their entropy."""

    entropy: float = 0.0

    def _plus(self, other: Self, sign: float) -> Self:
        self.entropy += sign * other.entropy
        return super()._plus(other, sign)

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
        raise NotImplementedError("The number of features is the truncation.")


class Rotated:
    """q(A) for any variances, from one decomposition of each E[ZᵀZ]."""

    def __init__(self, total: BernoulliSums) -> None:
        values, self.vectors = np.linalg.eigh(total.S)
        self.values = np.maximum(values, 0.0)

    def with_factors(self, params: MeanField, total: BernoulliSums) -> MeanField:
        """The Gaussians with precision S/σ_X² + 1/σ_A² and the means that follow.

        The step from the present mean is solved for, not the mean: see `LinearSums`.
        """
        mean, group = params.factors.mean, total.group
        T = total.about(mean).T
        slope = T / params.noise - mean / params.factor
        inverse = 1.0 / (self.values / params.noise + 1.0 / params.factor)
        covs = (self.vectors * inverse[:, None, :]) @ self.vectors.transpose(0, 2, 1)
        step = by_columns(covs, group, slope)
        log_det = float(np.log(inverse).sum(axis=1)[group].sum())
        factors = GaussianFactors(mean + step, covs, group, log_det)
        return replace(params, factors=factors)


def expected_error(params: MeanField, total: BernoulliSums) -> float:
    """E‖X − ZA‖² over the observed entries."""
    factors = params.factors
    sums = total if total.A is factors.mean else total.about(factors.mean)
    return sums.error + factors.uncertainty(sums)


# ---------------------------------------------------------------------------- the model


@dataclass(frozen=True)
class VariationalModel:
    """The evidence bound, from sums, and its coordinate-wise maxima.

    Attributes
    ----------
    infer_alpha, infer_noise, infer_factor : bool
        Which of them follow the data.
    floor : float
        No inferred variance is less: without noise the bound has no maximum.
    most_sweeps : int
        Rounds over the features of a row in a pass.
    tol : float
        A row has converged when no probability changes by more.
    """

    infer_alpha: bool = True
    infer_noise: bool = True
    infer_factor: bool = True
    floor: float = 1e-12
    most_sweeps: int = 10
    tol: float = 1e-7
    incremental = False

    # ------------------------------------------------------------------- rows

    def summarize(
        self, params: MeanField, block: Block, local: Array | None
    ) -> tuple[BernoulliSums, Array]:
        X = np.ascontiguousarray(block.read(), dtype=np.float64)
        nu = np.zeros((len(X), params.K))
        parts = []
        for part, tile in _tiles(params, X):
            before = None if local is None else local[part]
            nu[part] = self._probabilities(tile, before)
            parts.append(tile.sums(nu[part]))
        return add_up(parts), nu

    def sums(self, params: MeanField, X: Array, nu: Array) -> BernoulliSums:
        """The sums of rows with given probabilities."""
        total: BernoulliSums = add_up(
            tile.sums(nu[part]) for part, tile in _tiles(params, X)
        )
        return total

    def _probabilities(self, tile: "_Tile", before: Array | None) -> Array:
        if before is None:
            return self._ascended(tile, tile.seed())
        nu = self._ascended(tile, before)
        if tile.params.fresh:
            other = self._ascended(tile, tile.seed())
            better = tile.bound(other) > tile.bound(nu)
            nu[better] = other[better]
        return nu

    def _ascended(self, tile: "_Tile", start: Array) -> Array:
        nu = start.copy()
        ascend_rows(
            tile.rest(nu), tile.gram, tile.pattern, tile.params.ibp.log_odds,
            1.0 / tile.params.noise, self.most_sweeps, self.tol, nu,
        )  # fmt: skip
        return nu

    # ------------------------------------------------------------- parameters

    def update(self, params: MeanField, total: BernoulliSums) -> MeanField:
        rotated = Rotated(total)
        for _ in range(_ROUNDS):
            params = self.with_scales(rotated.with_factors(params, total), total)
        params = rotated.with_factors(params, total)
        return self.with_ibp(params, total)

    def with_factors(self, params: MeanField, total: BernoulliSums) -> MeanField:
        """The best q(A)."""
        return Rotated(total).with_factors(params, total)

    def with_scales(self, params: MeanField, total: BernoulliSums) -> MeanField:
        """The best variances of noise and features, where they are inferred."""
        noise, factor = params.noise, params.factor
        if self.infer_noise:
            noise = max(expected_error(params, total) / total.observed, self.floor)
        if self.infer_factor:
            factor = max(params.factors.squares / params.factors.mean.size, self.floor)
        return replace(params, noise=noise, factor=factor)

    def with_ibp(self, params: MeanField, total: BernoulliSums) -> MeanField:
        """The best q(π), and α where it is inferred."""
        counts, N = total.counts, total.weight
        return replace(params, ibp=params.ibp.updated(counts, N, self.infer_alpha))

    def advance(
        self, params: MeanField, total: BernoulliSums, latest: BernoulliSums
    ) -> MeanField:
        return self.update(params, total)

    # ------------------------------------------------------------------ bound

    def bound(self, params: MeanField, total: BernoulliSums) -> float:
        """E[log p(X, Z, A, π)] plus the entropy of q: at most log p(X)."""
        likelihood = -0.5 * (
            total.observed * np.log(2.0 * np.pi * params.noise)
            + expected_error(params, total) / params.noise
        )
        counts, N = total.counts, total.weight
        features = params.ibp.bound(counts, N) + total.entropy
        return float(likelihood + params.factors.gain(params.factor) + features)

    def objective(self, params: MeanField, total: BernoulliSums) -> float:
        return -self.bound(params, total)

    def converged(self, total: BernoulliSums) -> bool:
        return False  # probabilities always change a little

    def regroup_local(self, local: Any, old_to_new: IntArray, K: int) -> Array:
        raise NotImplementedError("The number of features is the truncation.")


# ----------------------------------------------------------------------- a tile


@dataclass(frozen=True)
class _Tile:
    """Rows that are handled at once.

    Attributes
    ----------
    X : (n, D)
        Missing entries are 0.
    missing : (n, D) or None
        Which they are; None: there are none.
    gaps : Gaps
        The same by groups of columns and patterns of rows.
    spread, gram : (P, K, K)
        Covariances, and E[AAᵀ], added up over the columns of each pattern.
    """

    params: MeanField
    X: Array
    missing: NDArray[np.bool_] | None
    gaps: Gaps
    spread: Array
    gram: Array

    @classmethod
    def of(
        cls,
        params: MeanField,
        X: Array,
        missing: NDArray[np.bool_] | None,
        gaps: Gaps,
    ) -> Self:
        factors, n_groups, K = params.factors, gaps.known.shape[1], params.K
        spread, gram = (
            (gaps.known @ over(gaps.group, n_groups).reshape(n_groups, -1))
            .reshape(-1, K, K)
            for over in (factors.spreads, factors.grams)
        )  # fmt: skip
        return cls(params, X, missing, gaps, spread, gram)

    @property
    def pattern(self) -> IntArray:
        return self.gaps.pattern

    def residuals(self, nu: Array) -> Array:
        R: Array = self.X - nu @ self.params.factors.mean
        if self.missing is not None:
            np.copyto(R, 0.0, where=self.missing)
        return R

    def rest(self, nu: Array) -> Array:
        """b − Gν, by way of the residuals: large features cost no digits."""
        means = self.residuals(nu) @ self.params.factors.mean.T
        rest: Array = means - self._spread_times(nu)
        return rest

    def _spread_times(self, nu: Array) -> Array:
        if len(self.spread) == 1:
            product: Array = nu @ self.spread[0]
            return product
        products: Array = np.einsum("nij,nj->ni", self.spread[self.pattern], nu)
        return products

    def seed(self) -> Array:
        """Zeros and ones, by flips from zeros."""
        nu = np.zeros((len(self.X), self.params.K))
        odds, precision = self.params.ibp.log_odds, 1.0 / self.params.noise
        seed_rows(self.rest(nu), self.gram, self.pattern, odds, precision, nu)
        return nu

    def bound(self, nu: Array) -> Array:
        """Each row's part of the bound, up to a constant."""
        R = self.residuals(nu)
        errors = np.einsum("nd,nd->n", R, R)
        errors += np.einsum("nk,nk->n", nu, self._spread_times(nu))
        diagonal = np.diagonal(self.gram, axis1=1, axis2=2)[self.pattern]
        errors += np.sum(nu * (1.0 - nu) * diagonal, axis=1)
        prior = nu @ self.params.ibp.log_odds
        gains: Array = prior + _entropies(nu) - errors / (2.0 * self.params.noise)
        return gains

    def sums(self, nu: Array) -> BernoulliSums:
        R, M = self.residuals(nu), self.params.factors.mean
        known = self.gaps.known[self.pattern]  # (n, groups)
        own = (nu * (1.0 - nu)).T @ known  # variances of the bits
        V: Array = own[:, self.gaps.group]
        return BernoulliSums(
            A=M,
            S=_expected_gram(nu, known),
            group=self.gaps.group,
            T=nu.T @ R - V * M,
            error=float(np.vdot(R, R) + np.sum(V * M**2)),
            weight=float(len(nu)),
            counts=nu.sum(axis=0),
            observed=self.gaps.observed,
            entropy=float(_entropies(nu).sum()),
        )


def _tiles(params: MeanField, X: Array) -> Iterator[tuple[slice, _Tile]]:
    """Rows as one tile, or as many where entries are missing."""
    n, missing = len(X), np.isnan(X)
    if not missing.any():
        yield slice(0, n), _Tile.of(params, X, None, whole(*X.shape))
        return
    size = max(_TILE // params.K**2, 32)
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        gaps, filled = Gaps.of(missing[part]), np.where(missing[part], 0.0, X[part])
        yield part, _Tile.of(params, filled, missing[part], gaps)


def _expected_gram(nu: Array, known: Array) -> Array:
    """E[ZᵀZ] over the rows that have each group of columns, (groups, K, K)."""
    n, K = nu.shape
    if known.shape[1] == 1 and known.all():
        S: Array = nu.T @ nu
        np.fill_diagonal(S, nu.sum(axis=0))
        return S[None]
    pairs = nu[:, :, None] * nu[:, None, :]
    pairs[:, np.arange(K), np.arange(K)] = nu
    by_group: Array = (known.T @ pairs.reshape(n, -1)).reshape(-1, K, K)
    return by_group


def _entropies(nu: Array) -> NDArray[np.float64]:
    """Of each row."""
    sums: NDArray[np.float64] = np.sum(entr(nu) + entr(1.0 - nu), axis=1)
    return sums
