"""Kernels of Gaussians with full covariances: t(y), scores, sums, shortlists."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.kplus.core.kernels_blas import product, product_of_transposed
    from cython.cimports.libc.math import INFINITY as INF
    from cython.cimports.libc.math import isfinite, sqrt
else:
    from numpy import inf as INF
    from numpy import isfinite, sqrt

    from kplus.core.kernels_blas import product, product_of_transposed

__all__ = [
    "fill_quadratic",
    "gather_outer",
    "gather_scores",
    "invert_factors",
    "near_best",
]

_CHUNK = cy.declare(cy.Py_ssize_t, 256)  # rows gathered at a time, to stay in the cache


def fill_quadratic(
    Y: cy.const[cy.floating][:, ::1], offset: cy.Py_ssize_t, out: cy.floating[:, ::1]
) -> None:
    """out[n] = [y (if `offset` is D), the products y_i y_j with j ≥ i].

    t(x), Memoized Eq. 2.
    """
    D = Y.shape[1]
    at: cy.Py_ssize_t
    with cy.nogil:
        for n in range(Y.shape[0]):
            for i in range(offset):
                out[n, i] = Y[n, i]
            at = offset
            for i in range(D):
                for j in range(D - i):  # counted from 0, so that it is vectorised
                    out[n, at + j] = Y[n, i] * Y[n, i + j]
                at += D - i


def gather_scores(
    Y: cy.const[cy.double][:, ::1],
    starts: cy.const[cy.longlong][::1],
    rows: cy.const[cy.longlong][::1],
    slots: cy.const[cy.longlong][::1],
    means: cy.const[cy.double][:, ::1],
    whiten: cy.const[cy.double][:, :, ::1],
    const: cy.const[cy.double][::1],
    out: cy.double[:, ::1],
) -> None:
    """out[n, slot] = const_k - ½ |(y_n - m_k) whiten_k|² for the pairs of each k.

    Memoized, supplement Eq. 19: E[log p(x | φ_k)] of a Gaussian. Pairs
    ``starts[k]:starts[k + 1]`` name the rows that score component k and the slot
    of the score in their row of `out`.
    """
    D = Y.shape[1]
    gathered: cy.double[:, ::1] = np.empty((_CHUNK, D))
    turned: cy.double[:, ::1] = np.empty((_CHUNK, D))
    with cy.nogil:
        for k in range(const.shape[0]):
            start = starts[k]
            while start < starts[k + 1]:
                size = min(_CHUNK, starts[k + 1] - start)
                for i in range(size):
                    n = rows[start + i]
                    for d in range(D):
                        gathered[i, d] = Y[n, d] - means[k, d]
                product(gathered, whiten[k], size, turned)
                for i in range(size):
                    total: cy.double = 0.0
                    for d in range(D):
                        total += turned[i, d] * turned[i, d]
                    out[rows[start + i], slots[start + i]] = const[k] - 0.5 * total
                start += size


def gather_outer(
    Y: cy.const[cy.double][:, ::1],
    starts: cy.const[cy.longlong][::1],
    rows: cy.const[cy.longlong][::1],
    weights: cy.const[cy.double][::1],
    offset: cy.Py_ssize_t,
    out: cy.double[:, ::1],
) -> None:
    """out[k] += [Σ w y (if `offset` is D)] and the triangle of Σ w y yᵀ, rows of k.

    Memoized Eq. 7, supplement Eq. 13.
    """
    D = Y.shape[1]
    plain: cy.double[:, ::1] = np.empty((_CHUNK, D))
    heavy: cy.double[:, ::1] = np.empty((_CHUNK, D))
    square: cy.double[:, ::1] = np.empty((D, D))
    at: cy.Py_ssize_t
    with cy.nogil:
        for k in range(out.shape[0]):
            start = starts[k]
            while start < starts[k + 1]:
                size = min(_CHUNK, starts[k + 1] - start)
                for i in range(size):
                    n = rows[start + i]
                    w = weights[start + i]
                    for d in range(D):
                        plain[i, d] = Y[n, d]
                        heavy[i, d] = w * Y[n, d]
                    for d in range(offset):
                        out[k, d] += heavy[i, d]
                product_of_transposed(heavy, plain, size, square)
                at = offset
                for d in range(D):
                    for e in range(D - d):
                        out[k, at + e] += square[d, d + e]
                    at += D - d
                start += size


def invert_factors(
    L: cy.const[cy.double][:, :, ::1],
    scale: cy.const[cy.double][::1],
    out: cy.double[:, :, ::1],
) -> None:
    """out[k] = scale[k] · (L_k⁻¹)ᵀ for lower triangular L_k, row by row."""
    D = L.shape[1]
    inverse: cy.double[:, ::1] = np.empty((D, D))
    with cy.nogil:
        for k in range(L.shape[0]):
            for i in range(D):
                for j in range(D):
                    inverse[i, j] = 0.0
                for m in range(i):
                    factor = L[k, i, m]
                    for j in range(m + 1):
                        inverse[i, j] -= factor * inverse[m, j]
                inverse[i, i] = 1.0
                pivot = 1.0 / L[k, i, i]
                for j in range(i + 1):
                    inverse[i, j] *= pivot
            for i in range(D):
                for j in range(D):
                    out[k, j, i] = scale[k] * inverse[i, j]


def near_best(
    scores: cy.floating[:, ::1],
    log_weights: cy.const[cy.double][::1],
    squares: cy.const[cy.double][::1],
    error: cy.double,
    margin: cy.double,
) -> np.ndarray:
    """Components of each row whose rounded score comes near the best; -1 fills up.

    Not in the paper: {k : score_nk ≥ max_j score_nj − margin − rounding}. The rounding
    of a row is at most `error` · √(s + s²), with s the squares of its values. A row
    whose scores are no numbers gets every component.
    """
    n_rows, K = scores.shape[0], scores.shape[1]
    lowest: cy.double[::1] = np.empty(n_rows)
    most: cy.Py_ssize_t = 1
    count: cy.Py_ssize_t
    best: cy.double
    with cy.nogil:
        for n in range(n_rows):
            best = -INF
            for k in range(K):
                scores[n, k] += log_weights[k]
                best = scores[n, k] if scores[n, k] > best else best
            rounding: cy.double = error * sqrt(squares[n] + squares[n] * squares[n])
            lowest[n] = best - margin - 2.0 * rounding
            if not isfinite(lowest[n]):
                lowest[n] = -INF
            count = 0
            for k in range(K):
                count += not scores[n, k] < lowest[n]
            most = max(most, count)
    found: cy.int[:, ::1] = (out := np.full((n_rows, most), -1, np.int32))
    with cy.nogil:
        for n in range(n_rows):
            count = 0
            for k in range(K):
                if not scores[n, k] < lowest[n]:
                    found[n, count] = k
                    count += 1
    return out
