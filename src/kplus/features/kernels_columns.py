"""Columns of Z: the best A for them, and what it leaves of the rows."""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import (
    add_product,
    add_product_of_rows,
    add_product_of_transposed,
)

if cy.compiled:
    from cython.cimports.libc.math import sqrt
else:
    from numpy import sqrt

__all__ = ["Fit", "fit_to", "refit", "residuals", "subtract"]

RIDGE = 1e-8
_TILE = cy.declare(cy.Py_ssize_t, 120)  # rows that stay in the cache
_NEVER = cy.declare(cy.double, -float("inf"))


@cy.final
@cy.cclass
class Fit:
    """What follows from Z, and room for `fit_to`.

    H is (ZᵀWZ)⁻¹, A the best features, G = AAᵀ; S = ZᵀWZ, T = ZᵀWX, L its factor.
    """

    def __init__(self, K: cy.Py_ssize_t, D: cy.Py_ssize_t) -> None:
        self.H, self.G, self.S, self.L = np.zeros((4, K, K))
        self.A, self.T = np.zeros((2, K, D))
        self.Z, self.ZW = np.zeros((2, _TILE, K))


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _invert(K: cy.Py_ssize_t, fit: Fit) -> cy.bint:
    """H = S⁻¹ by Cholesky; False where S is singular (S = LLᵀ, H = L⁻ᵀL⁻¹)."""
    for i in range(K):
        for j in range(i + 1):
            total: cy.double = fit.S[i, j]
            for m in range(j):
                total -= fit.L[i, m] * fit.L[j, m]
            if i > j:
                fit.L[i, j] = total / fit.L[j, j]
            elif total <= 1e-9 * fit.S[i, i]:
                return False
            else:
                fit.L[i, i] = sqrt(total)
    for i in range(K):
        fit.L[i, i] = 1.0 / fit.L[i, i]
        for j in range(i):
            total = 0.0
            for m in range(j, i):
                total -= fit.L[i, m] * fit.L[m, j]
            fit.L[i, j] = total * fit.L[i, i]
    for i in range(K):
        for j in range(i + 1):
            fit.H[i, j] = 0.0
    for m in range(K):
        for i in range(m + 1):
            left: cy.double = fit.L[m, i]
            for j in range(i + 1):
                fit.H[i, j] += left * fit.L[m, j]
    for i in range(K):
        for j in range(i):
            fit.H[j, i] = fit.H[i, j]
    return True


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _add_up(
    x: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
    K: cy.Py_ssize_t,
    fit: Fit,
) -> cy.void:
    """S += ZᵀWZ and T += ZᵀWX of some rows."""
    m = x.shape[0]
    for n in range(m):
        weight: cy.double = weights[n]
        for k in range(K):
            fit.Z[n, k] = Z[n, k]
            fit.ZW[n, k] = weight * fit.Z[n, k]
    add_product_of_transposed(1.0, fit.ZW, fit.Z, K, K, m, 1.0, fit.S)
    add_product_of_transposed(1.0, fit.ZW, x, K, x.shape[1], m, 1.0, fit.T)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def fit_to(
    X: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
    K: cy.Py_ssize_t,
    fit: Fit,
) -> cy.double:
    """Fit A to Z: fill H = (ZᵀWZ)⁻¹, A and G = AAᵀ; return what A explains of ‖X‖².

    A = (ZᵀWZ)⁻¹ZᵀWX, step 2 of MAD-Bayes Algorithms 1 and 4. Only the first K columns
    of Z count. Minus infinity where they depend on each other.
    """
    N, D = X.shape[0], X.shape[1]
    for i in range(K):
        for j in range(K):
            fit.S[i, j] = 0.0
        for d in range(D):
            fit.T[i, d] = 0.0
    for t in range((N + _TILE - 1) // _TILE):
        start = t * _TILE
        stop = min(start + _TILE, N)
        _add_up(X[start:stop], weights[start:stop], Z[start:stop], K, fit)
    for i in range(K):
        fit.S[i, i] += RIDGE
    if not _invert(K, fit):
        return _NEVER
    add_product(1.0, fit.H, fit.T, K, D, K, 0.0, fit.A)
    add_product_of_rows(1.0, fit.A, fit.A, K, K, D, 0.0, fit.G)
    explained: cy.double = 0.0
    for i in range(K):
        along: cy.double = 0.0
        for d in range(D):
            along += fit.A[i, d] * fit.T[i, d]
        explained += along
    return explained


def refit(
    X: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
) -> tuple:
    """Fit A to Z, see `fit_to`: what A explains of ‖X‖², and H, A and G."""
    fit = Fit(Z.shape[1], X.shape[1])
    with cy.nogil:
        explained = fit_to(X, weights, Z, Z.shape[1], fit)
    return explained, np.asarray(fit.H), np.asarray(fit.A), np.asarray(fit.G)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _subtract_some(
    x: cy.const[cy.double][:, ::1],
    Z: cy.uchar[:, ::1],
    K: cy.Py_ssize_t,
    fit: Fit,
    r: cy.double[:, ::1],
) -> cy.void:
    """R = X − ZA for some rows."""
    for n in range(x.shape[0]):
        for d in range(x.shape[1]):
            r[n, d] = x[n, d]
        for k in range(K):
            fit.Z[n, k] = Z[n, k]
    add_product(-1.0, fit.Z, fit.A, x.shape[0], x.shape[1], K, 1.0, r)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def subtract(
    X: cy.const[cy.double][:, ::1],
    Z: cy.uchar[:, ::1],
    K: cy.Py_ssize_t,
    fit: Fit,
    R: cy.double[:, ::1],
) -> cy.void:
    """R = X − ZA, for the first K columns of Z."""
    N = X.shape[0]
    for t in range((N + _TILE - 1) // _TILE):
        start = t * _TILE
        stop = min(start + _TILE, N)
        _subtract_some(X[start:stop], Z[start:stop], K, fit, R[start:stop])


def residuals(
    X: cy.const[cy.double][:, ::1],
    Z: cy.uchar[:, ::1],
    A: cy.const[cy.double][:, ::1],
):
    """X − ZA."""
    fit = Fit(A.shape[0], A.shape[1])
    fit.A[:, :] = A
    R = np.empty(np.shape(X))
    out: cy.double[:, ::1] = R
    with cy.nogil:
        subtract(X, Z, A.shape[0], fit, out)
    return R
