"""What the two Gaussian families with full covariances share.

A symmetric matrix is kept as its upper triangle, row by row: D(D+1)/2 numbers.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from kplus.core.errors import NotFiniteError
from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import FARTHEST, LARGEST, Units, contiguous
from kplus.dp_mixture.families.family import ByComponent
from kplus.dp_mixture.kernels import gather_pairs
from kplus.dp_mixture.kernels_gaussian import (
    fill_quadratic,
    gather_outer,
    gather_scores,
    invert_factors,
    shortlist,
)

__all__ = [
    "NormalWishart",
    "NormalWishartFamily",
    "Quadratic",
    "check_finite",
    "pack",
    "prior_scatter",
    "unpack",
]

_LOG_2PI = float(np.log(2.0 * np.pi))
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


def _log_gamma_ratio(dof: Array, dof0: float, D: int) -> Array:
    """log Γ_D(ν/2) - log Γ_D(ν0/2)."""
    out: Array = (gammaln(_halves(dof, D)) - gammaln(_halves(np.array(dof0), D))).sum(
        -1
    )
    return out


def _factor(B: Array) -> tuple[Array, Array]:
    """Lower Cholesky factors of positive matrices, and log determinants.

    A matrix that rounding has made indefinite gets what is missing on its diagonal.
    """
    try:
        L = np.linalg.cholesky(B)
    except np.linalg.LinAlgError:
        values, axes = np.linalg.eigh(B)
        floor = 2.0**-45 * values[..., -1:]
        mended = (axes * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(
            axes, -1, -2
        )
        L = np.linalg.cholesky(0.5 * (mended + np.swapaxes(mended, -1, -2)))
    diagonal = np.diagonal(L, axis1=-2, axis2=-1)
    return L, 2.0 * np.log(diagonal).sum(-1)


def _precision_factors(L: Array, scale: Array | None = None) -> Array:
    """L⁻ᵀ, so that |(y - m) L⁻ᵀ|² is the squared distance under L Lᵀ; maybe scaled."""
    flat = L.reshape(-1, *L.shape[-2:])
    out = np.empty(flat.shape)
    invert_factors(flat, np.ones(len(flat)) if scale is None else scale, out)
    return out.reshape(L.shape)


def _student_t(Y: Array, means: Array, shape: Array, dof: Array) -> Array:
    """Log densities of multivariate t distributions, (n, K)."""
    D = Y.shape[1]
    L, log_det = _factor(shape)
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


def prior_scatter(covariance: Any, default: Array, dof: float, units: Units) -> Array:
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
    scatter = max(dof - D - 1.0, 1.0) * expected * units.inv[:, None] * units.inv
    try:
        np.linalg.cholesky(scatter)
    except np.linalg.LinAlgError:
        raise ValueError(
            "covariance must be symmetric and positive definite."
        ) from None
    return scatter


def check_finite(X: Array, units: Units | None = None) -> None:
    """Refuse rows that matrices of all columns have no use for.

    Those with a value missing or infinite, or so far out that its square overflows, in
    the units of the data or in others.
    """
    if units is not None and units.holds(X):
        return
    ends = np.stack([X.min(axis=0), X.max(axis=0)]).astype(np.float64)  # NaN if any is
    fine = np.abs(ends) <= LARGEST
    if units is not None and fine.all():
        fine = np.abs(units.view(ends)) <= FARTHEST
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

    @property
    def units(self) -> Units:
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
        return float(_factor(self.scatter)[1])

    @cached_property
    def _prior_whiten(self) -> Array:
        """Turns distances into those under the prior's E[Σ], up to a factor."""
        return _precision_factors(_factor(self.scatter)[0])

    def check(self, X: Array) -> None:
        check_finite(X, self.units)

    def log_base(self, X: Array) -> Array:
        return np.full(len(X), self.units.log_inv.sum())

    def features(self, X: Array) -> Array:
        Y = self.units.view(X)
        out = np.empty((len(Y), self.n_stats))
        fill_quadratic(Y, self._offset, out)
        return out

    def scores(
        self, expected: Quadratic, X: Array, candidates: IntArray | None = None
    ) -> Array:
        """All scores by a product of t(y), those of candidates by gathering rows."""
        units, K = self.units, len(expected.const)
        if candidates is None:
            out = np.empty((len(X), K))
            _product(units.view(X), self._offset, expected.eta, out)
            out += expected.bias
            return out
        out = np.full(candidates.shape, -np.inf)
        starts, rows, slots = gather_pairs(candidates, K)
        gather_scores(
            contiguous(X), units.origin, units.inv, starts, rows, slots,
            expected.means, expected.whiten, expected.const, out,
        )  # fmt: skip
        return out

    def shortlist(
        self, expected: Quadratic, X: Array, log_weights: Array, margin: float
    ) -> IntArray | None:
        """Products in float32 cost half; they only rule components out."""
        units, (eta, error) = self.units, expected.rough
        bias = expected.bias + log_weights
        out: IntArray = shortlist(
            contiguous(X), units.origin, units.inv, self._offset,
            eta, bias, error, margin,
        )  # fmt: skip
        return out

    def sums(self, X: Array, members: ByComponent) -> Array:
        units = self.units
        out = np.zeros((len(members.starts) - 1, self.n_stats))
        gather_outer(
            contiguous(X), units.origin, units.inv, *members, self._offset, out
        )
        return out

    def _posterior(self, N: Array, S: Array) -> NormalWishart:
        raise NotImplementedError

    def evidence(self, N: Array, S: Array) -> Array:
        """Of the matrices alone; to be added to where means are unknown, too."""
        D, q = self.n_columns, self._posterior(N, S)
        out: Array = (
            -0.5 * D * np.log(np.pi) * N
            + _log_gamma_ratio(q.dof, self.dof, D)
            + 0.5 * (self.dof * self._log_det0 - q.dof * _factor(q.scatter)[1])
        )
        return out

    def expect(self, N: Array, S: Array) -> Quadratic:
        D, q = self.n_columns, self._posterior(N, S)
        L, log_det = _factor(q.scatter)
        const = 0.5 * (mean_log_det(q.dof, log_det, D) - D * _LOG_2PI - D / q.strength)
        whiten = _precision_factors(L, np.sqrt(q.dof))
        return Quadratic(const, q.means, whiten, linear=self.linear)

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        q = self._posterior(N, S)
        out = _student_t(self.units.view(X), q.means, q.shape, q.free)
        return out + self.log_base(X)[:, None]

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        """Each row from parameters drawn for it alone: a multivariate t.

        That is a Gaussian divided by the root of a χ² over its degrees of freedom.
        """
        q = self._posterior(N, S)
        L, _ = _factor(q.shape)
        parts = []
        for k, count in enumerate(counts):
            normal = rng.standard_normal((count, self.n_columns)) @ L[k].T
            wide = np.sqrt(q.free[k] / rng.chisquare(q.free[k], size=count))
            parts.append(q.means[k] + normal * wide[:, None])
        return self.units.back(np.concatenate(parts))

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        q = self._posterior(N, S)
        covariances = expected_covariances(q.scatter, q.dof, self.inv)
        return {
            "means_": self.units.back(q.means),
            "covariances_": covariances,
            "precisions_cholesky_": _precision_factors(_factor(covariances)[0]),
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
