"""What the two Gaussian families with full covariances share.

A symmetric matrix is kept as its upper triangle, row by row: D(D+1)/2 numbers.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import digamma, gammaln

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
from kplus.dp_mixture.families.learning import EMPTY, resolutions
from kplus.dp_mixture.families.wishart_learning import factor, log_gammas
from kplus.dp_mixture.kernels import gather_pairs
from kplus.dp_mixture.kernels_gaussian import (
    fill_quadratic,
    fill_scatter,
    gather_outer,
    gather_scores,
    invert_factors,
    log_determinants,
    shortlist,
)

__all__ = [
    "NormalWishart",
    "NormalWishartFamily",
    "Quadratic",
    "WishartPrior",
    "check_finite",
    "pack",
    "prior_scatter",
    "unpack",
]

_LOG_2PI = float(np.log(2.0 * np.pi))
_LOG_PI = float(np.log(np.pi))
_TILE_BYTES = 2**20  # t(y) of a tile stays in the cache
_ROUGH = 4.0 * float(np.finfo(np.float32).eps)


@lru_cache(maxsize=32)
def _triangle(D: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of the entries of a packed matrix."""
    return np.triu_indices(D)


def pack(matrices: Array) -> Array:
    rows, columns = _triangle(matrices.shape[-1])
    return matrices[..., rows, columns]


def unpack(packed: Array, D: int) -> Array:
    rows, columns = _triangle(D)
    out = np.empty((*packed.shape[:-1], D, D))
    out[..., rows, columns] = packed
    out[..., columns, rows] = packed
    return out


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


def _precision_factors(L: Array, scale: Array | None = None) -> Array:
    """L⁻ᵀ, so that |(y - m) L⁻ᵀ|² is the squared distance under L Lᵀ; maybe scaled."""
    flat = L.reshape(-1, *L.shape[-2:])
    out = np.empty(flat.shape)
    invert_factors(flat, np.ones(len(flat)) if scale is None else scale, out)
    return out.reshape(L.shape)


def _student_t(Y: Array, means: Array, shape: Array, dof: Array) -> Array:
    """Log densities of multivariate t distributions, (n, K)."""
    D = Y.shape[1]
    L, log_det = factor(shape)
    whiten = _precision_factors(L)
    out = np.empty((len(Y), len(means)))
    for k in range(len(means)):
        squares = np.sum(((Y - means[k]) @ whiten[k]) ** 2, axis=1)
        out[:, k] = -0.5 * (dof[k] + D) * np.log1p(squares / dof[k])
    const = (
        gammaln(0.5 * (dof + D)) - gammaln(0.5 * dof) - 0.5 * D * np.log(dof * np.pi)
    )
    out += const - 0.5 * log_det
    return out


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

    Those with a value missing or infinite, or so far out that its square overflows, in
    the units of the data or in others.
    """
    if scaling is not None and scaling.holds(X):
        return
    ends = np.stack([X.min(axis=0), X.max(axis=0)]).astype(np.float64)  # NaN if any is
    fine = np.abs(ends) <= LARGEST
    if scaling is not None and fine.all():
        fine = np.abs(scaling.transform(ends)) <= FARTHEST
    if not fine.all():
        raise NotFiniteError("A row")


def expected_covariances(B: Array, dof: Array, inv: Array) -> Array:
    """E[Σ] in the units of the data; B/ν where the expectation does not exist."""
    D = B.shape[-1]
    free = dof - D - 1.0
    out: Array = B / np.where(free > 0.0, free, dof)[:, None, None]
    return out / (inv[:, None] * inv)


class NormalWishart(NamedTuple):
    """A posterior: Λ ~ Wishart(ν, B⁻¹), and μ | Λ ~ Normal(m, (κ Λ)⁻¹)."""

    strength: Array  # κ (K,); infinite where the mean is known for sure
    dof: Array  # ν (K,)
    means: Array  # m (K, D)
    scatter: Array  # B (K, D, D)

    @property
    def free(self) -> Array:
        """Degrees of freedom of the predictive, a multivariate t."""
        out: Array = self.dof - self.means.shape[1] + 1.0
        return out

    @property
    def shape(self) -> Array:
        """Shape matrices of the predictive."""
        factors = (1.0 + 1.0 / self.strength) / self.free
        out: Array = self.scatter * factors[:, None, None]
        return out


@dataclass(frozen=True)
class Quadratic:
    """const_k - ½ |(y - mean_k) whiten_k|², the expected log-likelihood of a Gaussian.

    ``whiten whitenᵀ`` is the expected precision. `linear` says whether t(y) begins with
    y itself or is the triangle of y yᵀ alone.
    """

    shapes: ClassVar[dict[str, str]] = {"const": "K", "means": "K D", "whiten": "K D D"}

    const: Array  # (K,)
    means: Array  # (K, D)
    whiten: Array  # (K, D, D)
    linear: bool

    @cached_property
    def _natural(self) -> tuple[Array, Array]:
        D = self.means.shape[1]
        precision = self.whiten @ np.swapaxes(self.whiten, 1, 2)
        triangle_part = -pack(precision)
        rows, columns = _triangle(D)
        triangle_part[:, rows == columns] *= 0.5
        if not self.linear:
            return triangle_part, self.const
        pull = np.einsum("kij,kj->ki", precision, self.means)
        bias = self.const - 0.5 * np.einsum("ki,ki->k", pull, self.means)
        return np.concatenate([pull, triangle_part], axis=1), bias

    @cached_property
    def rough(self) -> tuple[Array, float]:
        """eta in float32, and how far off a product is for a t(y) of norm 1."""
        norms = np.sqrt(np.einsum("km,km->k", self.eta, self.eta))
        with np.errstate(over="ignore"):
            eta = np.ascontiguousarray(self.eta, dtype=np.float32)
            return eta, float(_ROUGH * norms.max())

    @property
    def eta(self) -> Array:
        return self._natural[0]

    @property
    def bias(self) -> Array:
        return self._natural[1]

    def total(self, N: Array, S: Array) -> Array:
        """See `Expected.total`."""
        out: Array = np.einsum("km,km->k", self.eta, S) + self.bias * N
        return out


class NormalWishartFamily:
    """What rows y with t(y) = [y (if `linear`), triangle of y yᵀ] have in common.

    A subclass has the posterior, and a dissimilarity.
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
        return _precision_factors(factor(self.scatter)[0])

    def check(self, X: Array) -> None:
        check_finite(X, self.scaling)

    def log_base(self, X: Array) -> Array:
        return np.full(len(X), self.scaling.log_inv.sum())

    def features(self, X: Array) -> Array:
        Y = self.scaling.transform(X)
        out = np.empty((len(Y), self.n_stats))
        fill_quadratic(Y, self._offset, out)
        return out

    def scores(
        self, expected: Quadratic, X: Array, candidates: IntArray | None = None
    ) -> Array:
        """All scores by a product of t(y), those of candidates by gathering rows."""
        scaling, K = self.scaling, len(expected.const)
        if candidates is None:
            out = np.empty((len(X), K))
            _product(scaling.transform(X), self._offset, expected.eta, out)
            out += expected.bias
            return out
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

    def sums(self, X: Array, members: ByComponent) -> Array:
        scaling = self.scaling
        out = np.zeros((len(members.starts) - 1, self.n_stats))
        gather_outer(
            contiguous(X), scaling.origin, scaling.inv, *members, self._offset, out
        )
        return out

    def _posterior(self, N: Array, S: Array) -> NormalWishart:
        raise NotImplementedError

    @property
    def _mean_part(self) -> tuple[float, Array]:
        """κ0 and m0."""
        raise NotImplementedError

    def _scatter(self, N: Array, S: Array) -> Array:
        """B of the posteriors (Eq. 18 of the supplement)."""
        D = self.n_columns
        out = np.empty((len(N), D, D))
        N, S = (np.ascontiguousarray(a, np.float64) for a in (N, S))
        resolution = self.resolution * np.ones(D)
        prior = np.ascontiguousarray(self.scatter)
        fill_scatter(N, S, self._offset, *self._mean_part, resolution, prior, out)
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
        """Of the matrices alone; to be added to where means are unknown, too."""
        D, dof = self.n_columns, self.dof + N
        log_dets = _log_dets(self._scatter(N, S))
        out: Array = _log_gamma_ratio(dof, self.dof, D) - 0.5 * D * _LOG_PI * N
        out += 0.5 * (self.dof * self._log_det0 - dof * log_dets)
        return out

    def expect(self, N: Array, S: Array) -> Quadratic:
        D, q = self.n_columns, self._posterior(N, S)
        L, log_det = factor(q.scatter)
        whiten = _precision_factors(L, np.sqrt(q.dof))
        rounding = np.einsum("kij,kij->ki", whiten, whiten) @ (
            self.resolution * np.ones(D)
        )
        const = mean_log_det(q.dof, log_det, D) - D * _LOG_2PI - D / q.strength
        const = 0.5 * (const - rounding)
        return Quadratic(const, q.means, whiten, linear=self.linear)

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        q = self._posterior(N, S)
        out = _student_t(self.scaling.transform(X), q.means, q.shape, q.free)
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

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        q = self._posterior(N, S)
        covariances = expected_covariances(q.scatter, q.dof, self.inv)
        return {
            "means_": self.scaling.inverse_transform(q.means),
            "covariances_": covariances,
            "precisions_cholesky_": _precision_factors(factor(covariances)[0]),
        }


def _product(Y: Array, offset: int, eta: Array, out: Array) -> None:
    """t(y) · eta, with t(y) made for some rows at a time: it is long."""
    tile = max(16, _TILE_BYTES // (eta.itemsize * eta.shape[1]))
    buffer = np.empty((min(tile, len(Y)), eta.shape[1]))
    for start in range(0, len(Y), tile):
        rows = Y[start : start + tile]
        part = buffer[: len(rows)]
        fill_quadratic(rows, offset, part)
        np.dot(part, eta.T, out=out[start : start + tile])
