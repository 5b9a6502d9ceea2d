"""Symmetric matrices, Wishart distributions and multivariate t distributions.

A symmetric matrix is kept as its upper triangle, row by row: D(D+1)/2 numbers.
"""

from functools import lru_cache

import numpy as np
from scipy.special import digamma, gammaln

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.kernels import invert_factors

__all__ = [
    "factor",
    "log_gamma_ratio",
    "mean_log_det",
    "pack",
    "precision_factors",
    "student_t",
    "triangle",
    "unpack",
]


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


def _halves(dof: Array, D: int) -> Array:
    return 0.5 * (np.asarray(dof)[..., None] - np.arange(D))


def mean_log_det(dof: Array, log_det: Array, D: int) -> Array:
    """E[log |Λ|] under a Wishart with scale matrix B⁻¹ and log |B| given (Eq. 20)."""
    out: Array = digamma(_halves(dof, D)).sum(-1) + D * np.log(2.0) - log_det
    return out


def log_gamma_ratio(dof: Array, dof0: float, D: int) -> Array:
    """log Γ_D(ν/2) - log Γ_D(ν0/2)."""
    out: Array = (gammaln(_halves(dof, D)) - gammaln(_halves(np.array(dof0), D))).sum(
        -1
    )
    return out


def factor(B: Array) -> tuple[Array, Array]:
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


def precision_factors(L: Array, scale: Array | None = None) -> Array:
    """L⁻ᵀ, so that |(y - m) L⁻ᵀ|² is the squared distance under L Lᵀ; maybe scaled."""
    flat = L.reshape(-1, *L.shape[-2:])
    out = np.empty(flat.shape)
    invert_factors(flat, np.ones(len(flat)) if scale is None else scale, out)
    return out.reshape(L.shape)


def student_t(Y: Array, means: Array, shape: Array, dof: Array) -> Array:
    """Log densities of multivariate t distributions, (n, K)."""
    D = Y.shape[1]
    L, log_det = factor(shape)
    whiten = precision_factors(L)
    out = np.empty((len(Y), len(means)))
    for k in range(len(means)):
        squares = np.sum(((Y - means[k]) @ whiten[k]) ** 2, axis=1)
        out[:, k] = -0.5 * (dof[k] + D) * np.log1p(squares / dof[k])
    const = (
        gammaln(0.5 * (dof + D)) - gammaln(0.5 * dof) - 0.5 * D * np.log(dof * np.pi)
    )
    out += const - 0.5 * log_det
    return out
