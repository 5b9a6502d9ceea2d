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
from kplus.dp_mixture.families.learning import (
    EMPTY,
    resolutions,
    rises,
    search_scale,
    worth,
)
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
    "WishartPrior",
    "check_finite",
    "pack",
    "prior_scatter",
    "unpack",
]

_LOG_2PI = float(np.log(2.0 * np.pi))
_TILE_BYTES = 2**20  # t(y) of a tile stays in the cache
_STEPS = 3  # by which the prior is improved after a pass ...
_COSTLY = 1e8  # ... or 1, where matrices have so many products in all
_FLOOR = 1e-8  # share of the guess below which no variance of a prior is learned
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
    before = gammaln(_halves(np.asarray(dof0), D)).sum(-1)
    out: Array = gammaln(_halves(dof, D)).sum(-1) - before
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
        return float(_factor(self.scatter)[1])

    @cached_property
    def _prior_whiten(self) -> Array:
        """Turns distances into those under the prior's E[Σ], up to a factor."""
        return _precision_factors(_factor(self.scatter)[0])

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
        family, N, S = self, N[some], S[some]
        value = before = worth(self, N, S)
        few = len(N) * self.n_columns**3 < _COSTLY
        for _ in range(_STEPS if few else 1):
            family, value = family._step(N, S, value)
        family = family._with_best_dof(N, S)
        return family if rises(worth(family, N, S), before) else self

    def _step(self, N: Array, S: Array, value: float) -> tuple[Self, float]:
        """A prior that suits q(φ) better, and what it is worth; `value` is this one's.

        A natural gradient of the covariance where that raises the bound, else a step of
        expectation maximisation, which always does but is slow where ν0 exceeds N_k.
        """
        q = self._posterior(N, S)
        whiten = _precision_factors(_factor(q.scatter)[0], np.sqrt(q.dof))
        precisions: Array = whiten @ np.swapaxes(whiten, -1, -2)
        family = replace(self, **self._best_mean(q, precisions))  # type: ignore[type-var]
        if "covariance" in self.learns:
            total = precisions.sum(axis=0)
            bold = replace(family, scatter=self._natural_step(total, N))  # type: ignore[type-var]
            reached = worth(bold, N, S)
            if rises(reached, value):
                return bold, reached
            best = self._best_scatter(total, len(N))
            family = replace(family, scatter=best)  # type: ignore[type-var]
        return family, worth(family, N, S)

    def _best_mean(self, q: NormalWishart, precisions: Array) -> dict[str, Any]:
        """What the prior of means becomes; none where they are known."""
        return {}

    def _natural_step(self, precisions: Array, N: Array) -> Array:
        """B0 = ν0 V, with V moved by its gradient over its Fisher information.

        In units of V the gradient is K ν0 + h - ν0 Σ E[Λ_k] - h C⁻¹, and the rows of a
        component are worth 1/(1/ν0 + 1/N_k); h and C are weight and guess of the
        hyperprior.
        """
        D, weight = self.n_columns, self.n_columns + 2.0
        pull = self.dof * precisions
        pull[np.diag_indices(D)] += weight / (self.guess * np.ones(D))
        L = _factor(self.scatter / self.dof)[0]
        values, axes = np.linalg.eigh(L.T @ pull @ L)
        worth = weight + np.sum(self.dof * N / (self.dof + N))
        steps = np.exp(
            np.clip((len(N) * self.dof + weight - values) / worth, -3.0, 3.0)
        )
        return self._above_floor((L @ (axes * steps)) @ (L @ axes).T)

    def _best_scatter(self, precisions: Array, K: int) -> Array:
        """B0 = ν0 V for which E_q[log p(Λ_1, ..., Λ_K, V)] is highest, given ν0.

        V is (K ν0 + h) (ν0 Σ E[Λ_k] + h C⁻¹)⁻¹, with weight h and guess C.
        """
        D, weight = self.n_columns, self.n_columns + 2.0
        P = self.dof * precisions
        P[np.diag_indices(D)] += weight / (self.guess * np.ones(D))
        return self._above_floor((K * self.dof + weight) * np.linalg.inv(P))

    def _above_floor(self, V: Array) -> Array:
        """ν0 V with no variance below a small share of the guess.

        Where V is the best of all matrices, this is the best of such: it has the same
        eigenvectors, in units of the least.
        """
        unit = np.sqrt(_FLOOR * self.guess * np.ones(self.n_columns))
        values, axes = np.linalg.eigh(0.5 * (V + V.T) / (unit[:, None] * unit))
        if values[0] < 1.0:
            V = (axes * np.maximum(values, 1.0)) @ axes.T * unit[:, None] * unit
        out: Array = 0.5 * self.dof * (V + V.T)
        return out

    def _with_best_dof(self, N: Array, S: Array) -> Self:
        """The ν0 with the highest evidence where B0 stays in proportion to it.

        With eigenvalues t of the components' own scatter in units of B0 at scale 1,
        log |B_k| = log |B0| + Σ log (f + t), whatever the scale f is.
        """
        if "dof" not in self.learns:
            return self
        D, less = self.n_columns, 0.0 if "covariance" in self.learns else 1.0
        less *= D + 1.0  # E[Σ] that is given stays: B0 = (ν0 - D - 1) E[Σ]
        whiten = self._prior_whiten * np.sqrt(self.dof - less)
        own = self._posterior(N, S).scatter - self.scatter
        t = np.maximum(np.linalg.eigvalsh(whiten.T @ own @ whiten), 0.0)

        def value(dof: Array) -> Array:
            f = dof - less
            out = _log_gamma_ratio(dof[:, None] + N, dof[:, None], D)
            out += 0.5 * D * (dof * np.log(f))[:, None]
            logs = np.log(f[:, None, None] + t).sum(axis=-1)
            out -= 0.5 * (dof[:, None] + N) * logs
            worth: Array = out.sum(axis=1) - 2.0 * np.log(dof)
            return worth

        dof = float(search_scale(value, D + 2.0, np.array(self.dof)))
        ratio = (dof - less) / (self.dof - less)
        return replace(self, dof=dof, scatter=self.scatter * ratio)  # type: ignore[type-var]

    # --------------------------------------------------------------- evidence

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
        L, _ = _factor(q.shape)
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
