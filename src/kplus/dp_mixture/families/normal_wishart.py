"""What the Gaussian families with full covariances share."""

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import digamma

from kplus.core.errors import NotFiniteError
from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import (
    FARTHEST,
    LARGEST,
    VARIANCE_SHARE,
    Scaling,
    contiguous,
)
from kplus.dp_mixture.families.family import ByComponent
from kplus.dp_mixture.families.gaps import (
    LOG_2PI,
    Gaps,
    fill_at_random,
    fill_with_means,
    mean_fill,
)
from kplus.dp_mixture.families.learning import EMPTY, resolutions
from kplus.dp_mixture.families.quadratic import (
    NormalWishart,
    Quadratic,
    precision_factors,
    student_t,
    triangle,
)
from kplus.dp_mixture.families.wishart_learning import factor, log_gammas
from kplus.dp_mixture.kernels import gather_pairs
from kplus.dp_mixture.kernels_gaussian import (
    fill_quadratic,
    fill_scatter,
    gather_outer,
    gather_scores,
    log_determinants,
    shortlist,
)

__all__ = [
    "NormalWishartFamily",
    "WishartPrior",
    "check_finite",
    "observed_share",
    "prior_scatter",
]

_LOG_PI = float(np.log(np.pi))
_TILE_BYTES = 2**20  # t(y) of a tile stays in the cache


def _halves(dof: Array, D: int) -> Array:
    return 0.5 * (np.asarray(dof)[..., None] - np.arange(D))


def mean_log_det(dof: Array, log_det: Array, D: int) -> Array:
    """E[log |Λ|] under a Wishart with scale matrix B⁻¹ and log |B| given (Eq. 20)."""
    out: Array = digamma(_halves(dof, D)).sum(-1) + D * np.log(2.0) - log_det
    return out


def _log_gamma_ratio(dof: Array, dof0: Array | float, D: int) -> Array:
    """log Γ_D(ν/2) - log Γ_D(ν0/2)."""
    return log_gammas(dof, D) - log_gammas(np.asarray(dof0), D)


def _log_dets(B: Array) -> Array:
    """log |B|; see `factor`, whose factors are not needed here."""
    out = np.empty(len(B))
    log_determinants(B, out)
    return factor(B)[1] if np.isnan(out).any() else out


def prior_scatter(covariance: Any, default: Array, dof: float, inv: Array) -> Array:
    """B0 = (ν0 - D - 1) E[Σ], in the units of the family."""
    D = len(default)
    if not dof > D - 1:
        raise ValueError(f"dof must exceed n_features - 1 = {D - 1}, not {dof}.")
    if covariance is None:
        expected = np.diag(default)
    else:
        given = np.asarray(covariance, np.float64)
        expected = given * np.eye(D) if given.ndim == 0 else given
    if expected.shape != (D, D):
        raise ValueError(
            f"covariance has shape {expected.shape}, X has {D} columns; give a number "
            f"or an array of shape ({D}, {D})."
        )
    scatter = max(dof - D - 1.0, 1.0) * expected * inv[:, None] * inv
    try:
        np.linalg.cholesky(scatter)
    except np.linalg.LinAlgError:
        raise ValueError(
            "covariance must be symmetric and positive definite."
        ) from None
    return scatter


class WishartPrior(NamedTuple):
    """The prior of a covariance that a user's choice begins with."""

    dof: float
    scatter: Array
    resolution: Array
    guess: Array
    learns: tuple[str, ...]

    @classmethod
    def of(cls, chosen: Any, variances: Array, inv: Array, sample: Array) -> Self:
        """From `Gaussian` or `ZeroMeanGaussian`, and the variances of columns."""
        D, share = len(inv), chosen.variance_share
        dof = float(D + 2 if chosen.dof is None else chosen.dof)
        guess = (VARIANCE_SHARE if share is None else share) * variances
        scatter = prior_scatter(chosen.covariance, guess, dof, inv)
        learns: tuple[str, ...] = ()
        resolution, square = np.zeros(D), inv * inv
        if chosen.learn and chosen.covariance is None and share is None:
            learns += ("covariance",)
            resolution = resolutions(sample) * square
        if chosen.learn and chosen.dof is None:
            learns += ("dof",)
        return cls(dof, scatter, resolution, guess * square, learns)


def check_finite(X: Array, scaling: Scaling | None = None) -> None:
    """Refuse rows that matrices of all columns have no use for.

    Those with an infinite value, or one so far out that its square overflows, in the
    units of the data or in others.
    """
    if scaling is not None and scaling.holds(X, gaps=True):
        return
    ends = np.stack([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])
    ends = ends.astype(np.float64)
    fine = ~(np.abs(ends) > LARGEST)
    if scaling is not None and fine.all():
        fine = ~(np.abs(scaling.transform(ends)) > FARTHEST)
    if not fine.all():
        raise NotFiniteError("A row")


def observed_share(Y: Array) -> Array:
    """Share of each row that is observed, at least one column; zeros fill the gaps."""
    missing = np.isnan(Y)
    Y[missing] = 0.0
    D = Y.shape[1]
    out: Array = np.maximum(D - missing.sum(axis=1), 1) / D
    return out


def expected_covariances(B: Array, dof: Array, inv: Array) -> Array:
    """E[Σ] in the units of the data; B/ν where the expectation does not exist."""
    D = B.shape[-1]
    free = dof - D - 1.0
    out: Array = B / np.where(free > 0.0, free, dof)[:, None, None]
    return out / (inv[:, None] * inv)


class NormalWishartFamily:
    """What rows y with t(y) = [y (if `linear`), triangle of y yᵀ, 0] have in common.

    Where values are missing, t(y) is its expectation, and ends with the entropy of what
    is missing. A subclass has the posterior, and a dissimilarity.
    """

    linear: ClassVar[bool]
    inv: Array
    dof: float
    scatter: Array  # B0, the inverse of the Wishart's scale matrix
    resolution: Array | float  # what rounding adds to the scatter of each row
    learns: tuple[str, ...]  # which of the prior's parameters are learned
    guess: Array | float  # what the hyperprior takes for the components' variances

    @property
    def scaling(self) -> Scaling:
        raise NotImplementedError

    @property
    def n_columns(self) -> int:
        return len(self.inv)

    @property
    def n_stats(self) -> int:
        return self.n_free + 1

    @property
    def n_free(self) -> int:
        D = self.n_columns
        return self._offset + D * (D + 1) // 2

    @property
    def _offset(self) -> int:
        return self.n_columns if self.linear else 0

    @cached_property
    def _log_det0(self) -> float:
        """log |B0|, in the way of `evidence`: an empty component has exactly 0."""
        return float(_log_dets(np.ascontiguousarray(self.scatter)[None])[0])

    @cached_property
    def _prior_whiten(self) -> Array:
        """Turns distances into those under the prior's E[Σ], up to a factor."""
        return precision_factors(factor(self.scatter)[0])

    def hides(self, S: Array) -> bool:
        return bool(np.any(S[:, self.n_free]))

    def check(self, X: Array) -> None:
        check_finite(X, self.scaling)

    def log_base(self, X: Array) -> Array:
        logs = self.scaling.log_inv
        gaps = Gaps.of(X, self.scaling)
        out = np.full(len(X), logs.sum())
        if gaps is not None:
            out[gaps.rows] -= np.isnan(gaps.Y) @ logs
        return out

    def features(self, X: Array) -> Array:
        """t(x) of rows in which nothing is missing."""
        Y = self.scaling.transform(X)
        out = np.zeros((len(Y), self.n_stats))
        fill_quadratic(Y, self._offset, out)
        return out

    def scores(
        self, expected: Quadratic, X: Array, candidates: IntArray | None = None
    ) -> Array:
        out = self._whole_scores(expected, X, candidates)
        gaps = Gaps.of(X, self.scaling)
        if gaps is not None:  # log ∫ exp E[log p(y | φ)] dy_m
            starts, rows, slots = gaps.pairs(candidates, len(expected.const))
            far, log_dets = gaps.distances(
                starts, rows, expected.means, expected.precision
            )
            const = np.repeat(expected.const, np.diff(starts))
            more = 0.5 * (gaps.n_missing[rows] * LOG_2PI - log_dets)
            out[gaps.rows[rows], slots] = const - 0.5 * far + more
        return out

    def _whole_scores(
        self, expected: Quadratic, X: Array, candidates: IntArray | None
    ) -> Array:
        """Scores of rows without gaps: all by a product of t(y), those of candidates by
        gathering rows."""
        scaling, K = self.scaling, len(expected.const)
        if candidates is None:
            out = np.empty((len(X), K))
            _product(scaling.transform(X), self._offset, expected.eta, out)
            out += expected.bias
        else:
            out = np.full(candidates.shape, -np.inf)
            starts, rows, slots = gather_pairs(candidates, K)
            gather_scores(
                contiguous(X), scaling.origin, scaling.inv, starts, rows, slots,
                expected.means, expected.whiten, expected.const, out,
            )  # fmt: skip
        return out

    def shortlist(
        self, expected: Quadratic, X: Array, log_weights: Array, margin: float
    ) -> IntArray | None:
        """Products in float32 cost half; they only rule components out."""
        scaling, (eta, error) = self.scaling, expected.rough
        bias = expected.bias + log_weights
        out: IntArray = shortlist(
            contiguous(X), scaling.origin, scaling.inv, self._offset,
            eta, bias, error, margin,
        )  # fmt: skip
        return out

    def sums(
        self, X: Array, members: ByComponent, expected: Quadratic | None = None
    ) -> Array:
        scaling, offset = self.scaling, self._offset
        out = np.zeros((len(members.starts) - 1, self.n_stats))
        gaps = Gaps.of(X, scaling)
        if gaps is None:
            gather_outer(
                contiguous(X), scaling.origin, scaling.inv, *members, offset, out
            )
            return out
        if expected is None:
            expected = self._first_guess(X, members)
        whole, short = gaps.split(members)
        gather_outer(contiguous(X), scaling.origin, scaling.inv, *whole, offset, out)
        known = expected.means, expected.precision
        gaps.outer(short, np.ones(len(short.rows)), *known, offset, out)
        _, log_dets = gaps.distances(short.starts, short.rows, *known)
        entropy = short.weights * gaps.entropy(short.rows, log_dets)
        out[:, self.n_free] = np.bincount(short.owners, entropy, len(out))
        return out

    def _first_guess(self, X: Array, members: ByComponent) -> Quadratic:
        """What is expected of components where gaps are filled with column means."""
        Y, lacking, alone = mean_fill(self.scaling.transform(X), members)
        D, offset = self.n_columns, self._offset
        S = np.zeros((len(lacking), self.n_stats))
        gather_outer(Y, np.zeros(D), np.ones(D), *alone, offset, S)
        rows, columns = triangle(D)
        S[:, offset : self.n_free][:, rows == columns] += lacking
        N = np.bincount(members.owners, members.weights, len(lacking)).astype(float)
        return self.expect(N, self._typical(S, N))

    def _typical(self, S: Array, N: Array) -> Array:
        """Sums of rows as they are, with what is typical of their hidden parts."""
        return S

    def filled(self, expected: Quadratic, X: Array, owners: IntArray) -> Array:
        """Rows in the units of the family, what is missing drawn given their owners."""
        Y = self.scaling.transform(X)
        fill_at_random(Y, owners, expected.means, expected.precision)
        return Y

    def _posterior(self, N: Array, S: Array) -> NormalWishart:
        raise NotImplementedError

    @property
    def _mean_part(self) -> tuple[float, Array]:
        """κ0 and m0."""
        raise NotImplementedError

    def _heft(self, N: Array, S: Array) -> Array:
        """How much the rows of components count for means and scatter."""
        return N

    def _scatter(self, N: Array, S: Array) -> Array:
        """B of the posteriors (Eq. 18 of the supplement)."""
        D = self.n_columns
        out = np.empty((len(N), D, D))
        W, S = (np.ascontiguousarray(a, np.float64) for a in (self._heft(N, S), S))
        resolution = self.resolution * np.ones(D)
        prior = np.ascontiguousarray(self.scatter)
        fill_scatter(W, S, self._offset, *self._mean_part, resolution, prior, out)
        return out

    # ------------------------------------------------------------------ prior

    @cached_property
    def log_hyperprior(self) -> float:
        """log density of what is learned, up to a constant.

        V = B0/ν0 has a Wishart density that is worth D + 2 degrees of freedom about the
        guess, ν0 one that falls with its square.
        """
        out, D = 0.0, self.n_columns
        if "covariance" in self.learns:
            ratio = np.diagonal(self.scatter) / (self.dof * self.guess)
            log_det = self._log_det0 - D * np.log(self.dof)
            log_det -= float(np.sum(np.log(self.guess * np.ones(D))))
            out += 0.5 * (D + 2.0) * (log_det - float(ratio.sum()))
        if "dof" in self.learns:
            out -= 2.0 * np.log(self.dof)
        return out

    def learned(self, N: Array, S: Array) -> Self:
        """The same with a prior that these components favour more."""
        some = N > EMPTY
        if not self.learns or not some.any():
            return self
        changes = self._learned(N[some], S[some])
        return self if changes is None else replace(self, **changes)  # type: ignore[type-var]

    def _learned(self, N: Array, S: Array) -> dict[str, Any] | None:
        """What becomes of the parameters; None if the bound stays."""
        raise NotImplementedError

    # --------------------------------------------------------------- evidence

    def evidence(self, N: Array, S: Array) -> Array:
        """Of matrices and gaps alone; to be added to where means are unknown, too."""
        D, dof = self.n_columns, self.dof + N
        log_dets = _log_dets(self._scatter(N, S))
        out: Array = _log_gamma_ratio(dof, self.dof, D) - 0.5 * D * _LOG_PI * N
        out += 0.5 * (self.dof * self._log_det0 - dof * log_dets) + S[:, self.n_free]
        return out

    def expect(self, N: Array, S: Array) -> Quadratic:
        D, q = self.n_columns, self._posterior(N, S)
        L, log_det = factor(q.scatter)
        whiten = precision_factors(L, np.sqrt(q.dof))
        rounding = np.einsum("kij,kij->ki", whiten, whiten) @ (
            self.resolution * np.ones(D)
        )
        const = mean_log_det(q.dof, log_det, D) - D * LOG_2PI - D / q.strength
        const = 0.5 * (const - rounding)
        return Quadratic(const, q.means, whiten, linear=self.linear)

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        q = self._posterior(N, S)
        out = student_t(self.scaling.transform(X), q.means, q.shape, q.free)
        return out + self.log_base(X)[:, None]

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        """Each row from parameters drawn for it alone: a multivariate t.

        That is a Gaussian divided by the root of a χ² over its degrees of freedom.
        """
        q = self._posterior(N, S)
        L, _ = factor(q.shape)
        parts = []
        for k, count in enumerate(counts):
            normal = rng.standard_normal((count, self.n_columns)) @ L[k].T
            wide = np.sqrt(q.free[k] / rng.chisquare(q.free[k], size=count))
            parts.append(q.means[k] + normal * wide[:, None])
        return self.scaling.inverse_transform(np.concatenate(parts))

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """E[y_m | y_o] = m_m - Λ_mm⁻¹ Λ_mo (y_o - m_o) of a multivariate t."""
        q, Y = self._posterior(N, S), self.scaling.transform(X)
        fill_with_means(Y, shares, q.means, q.precisions)
        return np.where(np.isnan(X), self.scaling.inverse_transform(Y), X)

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        Y = self.scaling.transform(X)
        self._posterior(N, S).draw_missing(Y, components, rng)
        return np.where(np.isnan(X), self.scaling.inverse_transform(Y), X)

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        q = self._posterior(N, S)
        covariances = expected_covariances(q.scatter, q.dof, self.inv)
        return {
            "means_": self.scaling.inverse_transform(q.means),
            "covariances_": covariances,
            "precisions_cholesky_": precision_factors(factor(covariances)[0]),
        }


def _product(Y: Array, offset: int, eta: Array, out: Array) -> None:
    """t(y) · eta, with t(y) made for some rows at a time: it is long."""
    tile = max(16, _TILE_BYTES // (eta.itemsize * eta.shape[1]))
    buffer = np.zeros((min(tile, len(Y)), eta.shape[1]))
    for start in range(0, len(Y), tile):
        rows = Y[start : start + tile]
        part = buffer[: len(rows)]
        fill_quadratic(rows, offset, part)
        np.dot(part, eta.T, out=out[start : start + tile])
