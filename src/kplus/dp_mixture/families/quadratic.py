"""Gaussians with matrices: packed triangles, squared distances, what is expected.

A symmetric matrix is kept as its upper triangle, row by row: D(D+1)/2 numbers.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.gaps import Gaps
from kplus.dp_mixture.families.wishart_learning import factor
from kplus.dp_mixture.kernels_gaps import fill_gaps
from kplus.dp_mixture.kernels_gaussian import invert_factors

__all__ = [
    "NormalWishart",
    "Quadratic",
    "Squares",
    "pack",
    "precision_factors",
    "squares",
    "student_t",
    "triangle",
    "unpack",
]

_ROUGH = 4.0 * float(np.finfo(np.float32).eps)


@lru_cache(maxsize=32)
def triangle(D: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of the entries of a packed matrix."""
    return np.triu_indices(D)


def pack(matrices: Array) -> Array:
    rows, columns = triangle(matrices.shape[-1])
    return matrices[..., rows, columns]


def unpack(packed: Array, D: int) -> Array:
    rows, columns = triangle(D)
    out = np.empty((*packed.shape[:-1], D, D))
    out[..., rows, columns] = packed
    out[..., columns, rows] = packed
    return out


def precision_factors(L: Array, scale: Array | None = None) -> Array:
    """L⁻ᵀ, so that |(y - m) L⁻ᵀ|² is the squared distance under L Lᵀ; maybe scaled."""
    flat = L.reshape(-1, *L.shape[-2:])
    out = np.empty(flat.shape)
    invert_factors(flat, np.ones(len(flat)) if scale is None else scale, out)
    return out.reshape(L.shape)


class Squares(NamedTuple):
    """Squared distances of rows to components, of what is observed in them."""

    distances: Array  # (n, K)
    log_dets: Array  # of the matrices of what is observed, (n, K) or (K,)
    n_seen: Array  # columns that are observed, (n, 1)


def squares(Y: Array, means: Array, shape: Array) -> Squares:
    """Squared distances under matrices that each component has."""
    D = Y.shape[1]
    L, log_dets = factor(shape)
    whiten = precision_factors(L)
    out = np.empty((len(Y), len(means)))
    for k in range(len(means)):
        out[:, k] = np.sum(((Y - means[k]) @ whiten[k]) ** 2, axis=1)
    n_seen = D - np.isnan(Y).sum(axis=1)
    rows = np.flatnonzero(n_seen < D)
    if not len(rows):
        return Squares(out, log_dets, n_seen[:, None])
    gaps = Gaps(rows, np.ascontiguousarray(Y[rows]), D - n_seen[rows])
    starts, places, slots = gaps.pairs(None, len(means))
    precisions = whiten @ np.swapaxes(whiten, 1, 2)
    found, lost = gaps.distances(starts, places, means, precisions)
    out[rows[places], slots] = found
    # |Σ_oo| = |Σ| |Λ_mm|.
    dets = np.repeat(log_dets[None], len(Y), axis=0)
    dets[rows[places], slots] += lost
    return Squares(out, dets, n_seen[:, None])


def student_t(Y: Array, means: Array, shape: Array, dof: Array) -> Array:
    """Log densities of multivariate t distributions, (n, K), of what is observed."""
    found, log_dets, n_seen = squares(Y, means, shape)
    out: Array = gammaln(0.5 * (dof + n_seen)) - gammaln(0.5 * dof)
    out = out - 0.5 * n_seen * np.log(dof * np.pi) - 0.5 * log_dets
    out -= 0.5 * (dof + n_seen) * np.log1p(found / dof)
    return out


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

    @property
    def precisions(self) -> Array:
        """Their inverses."""
        whiten = precision_factors(factor(self.shape)[0])
        out: Array = whiten @ np.swapaxes(whiten, 1, 2)
        return out

    def draw_missing(self, Y: Array, k: IntArray, rng: np.random.Generator) -> None:
        """Draw what is missing in rows of components k from the predictive given y_o.

        A multivariate t, too: the farther y_o lies out, the wider it is. With d² the
        squared distance, Λ_mm⁻¹ (f + d²) / (f + D_o), with f + D_o degrees of freedom.
        """
        far, _, n_seen = squares(Y, self.means, self.shape)
        far, free = np.take_along_axis(far, k[:, None], 1), self.free[k, None]
        wide = np.sqrt((free + far) / rng.chisquare(free + n_seen))
        fill_gaps(
            Y, k, self.means, self.precisions, wide * rng.standard_normal(Y.shape)
        )


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
    def precision(self) -> Array:
        """E[Λ], (K, D, D)."""
        out: Array = self.whiten @ np.swapaxes(self.whiten, 1, 2)
        return out

    @cached_property
    def _natural(self) -> tuple[Array, Array]:
        K, D = self.means.shape
        triangle_part = -pack(self.precision)
        rows, columns = triangle(D)
        triangle_part[:, rows == columns] *= 0.5
        parts, hidden = [triangle_part], np.ones((K, 1))
        if not self.linear:
            return np.concatenate([*parts, hidden], axis=1), self.const
        pull = np.einsum("kij,kj->ki", self.precision, self.means)
        bias = self.const - 0.5 * np.einsum("ki,ki->k", pull, self.means)
        return np.concatenate([pull, *parts, hidden], axis=1), bias

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
