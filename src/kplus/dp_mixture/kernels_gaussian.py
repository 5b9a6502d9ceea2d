"""Kernels of Gaussians with full covariances: t(y), scores, sums, shortlists.

Rows come in the units of the data, and are brought to those of their family, y = (x -
origin) · inv, some at a time.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import (
    product,
    product_of_transposed,
    single_product,
)

if cy.compiled:
    from cython.cimports.libc.math import INFINITY as INF
    from cython.cimports.libc.math import NAN, isfinite, log, sqrt
else:
    from numpy import inf as INF
    from numpy import isfinite, log, sqrt
    from numpy import nan as NAN

__all__ = [
    "fill_quadratic",
    "fill_scatter",
    "gather_outer",
    "gather_scores",
    "invert_factors",
    "log_determinants",
    "shortlist",
]

_CHUNK = cy.declare(cy.Py_ssize_t, 256)  # rows gathered at a time, to stay in the cache


def fill_quadratic(
    Y: cy.const[cy.double][:, ::1], offset: cy.Py_ssize_t, out: cy.double[:, ::1]
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


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Rough:
    """A tile of rows, t(y) and scores of its rows in float32; T rows."""

    Y: cy.float[:, ::1]  # (D, T)
    features: cy.float[:, ::1]  # (M, T)
    scores: cy.float[:, ::1]  # (K, T)
    squares: cy.double[::1]  # (T,) of y
    lowest: cy.double[::1]  # (T,) scores that are near the best


def shortlist(
    X: cy.const[cy.floating][:, ::1],
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
    offset: cy.Py_ssize_t,
    eta: cy.const[cy.float][:, ::1],
    bias: cy.const[cy.double][::1],
    error: cy.double,
    margin: cy.double,
) -> np.ndarray:
    """Components of each row whose rounded score comes near the best; -1 fills up.

    Not in the paper: {k : score_nk ≥ max_j score_nj − margin − rounding}, with the
    scores t(y)·eta + bias in float32. The rounding of a row is at most `error` · √(s +
    s²), with s the squares of its values. A row whose scores are no numbers gets every
    component.
    """
    n_rows, D, K, M = X.shape[0], X.shape[1], eta.shape[0], eta.shape[1]
    T: cy.Py_ssize_t = max(64, min(512, 32768 // max(M, 1)) // 16 * 16)
    floats = [np.zeros((m, T), np.float32) for m in (D, M, K)]
    tile = _Rough(*floats, np.empty(T), np.empty(T))
    near: cy.uchar[:, ::1] = np.empty((K, n_rows), np.uint8)
    count: cy.int[::1] = np.zeros(n_rows, np.int32)
    most: cy.Py_ssize_t = 1
    start: cy.Py_ssize_t = 0
    with cy.nogil:
        while start < n_rows:
            size = min(T, n_rows - start)
            _fill_tile(X, start, size, origin, inv, offset, tile)
            single_product(eta, tile.features, tile.scores)
            _find_lowest(tile, bias, error, margin)
            for k in range(K):
                for i in range(size):
                    near[k, start + i] = not tile.scores[k, i] < tile.lowest[i]
                    count[start + i] += near[k, start + i]
            start += size
        for n in range(n_rows):
            most = max(most, count[n])
            count[n] = 0
    found: cy.int[:, ::1] = (out := np.full((n_rows, most), -1, np.int32))
    with cy.nogil:
        for k in range(K):
            for n in range(n_rows):
                if near[k, n]:
                    found[n, count[n]] = k
                    count[n] += 1
    return out


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fill_tile(
    X: cy.const[cy.floating][:, ::1],
    start: cy.Py_ssize_t,
    size: cy.Py_ssize_t,
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
    offset: cy.Py_ssize_t,
    tile: _Rough,
) -> cy.void:
    """y, t(y) (Memoized Eq. 2) and squares of rows from `start` on."""
    D = X.shape[1]
    at: cy.Py_ssize_t = offset
    for i in range(tile.squares.shape[0]):
        tile.squares[i] = 0.0
    for d in range(D):
        for i in range(size):
            y: cy.double = (X[start + i, d] - origin[d]) * inv[d]
            tile.Y[d, i] = y
            tile.squares[i] += y * y
    for d in range(offset):
        for i in range(size):
            tile.features[d, i] = tile.Y[d, i]
    for d in range(D):
        for e in range(d, D):
            for i in range(size):
                tile.features[at, i] = tile.Y[d, i] * tile.Y[e, i]
            at += 1


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _find_lowest(
    tile: _Rough,
    bias: cy.const[cy.double][::1],
    error: cy.double,
    margin: cy.double,
) -> cy.void:
    """Add the bias to scores, and find which are near the best of their row."""
    T = tile.lowest.shape[0]
    for i in range(T):
        tile.lowest[i] = -INF
    for k in range(bias.shape[0]):
        for i in range(T):
            tile.scores[k, i] += bias[k]
            score: cy.double = tile.scores[k, i]
            tile.lowest[i] = score if score > tile.lowest[i] else tile.lowest[i]
    for i in range(T):
        s: cy.double = tile.squares[i]
        low: cy.double = tile.lowest[i] - margin - 2.0 * error * sqrt(s + s * s)
        tile.lowest[i] = low if isfinite(low) else -INF


def gather_scores(
    X: cy.const[cy.floating][:, ::1],
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
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
    D = X.shape[1]
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
                        y: cy.double = (X[n, d] - origin[d]) * inv[d]
                        gathered[i, d] = y - means[k, d]
                product(gathered, whiten[k], size, turned)
                for i in range(size):
                    total: cy.double = 0.0
                    for d in range(D):
                        total += turned[i, d] * turned[i, d]
                    out[rows[start + i], slots[start + i]] = const[k] - 0.5 * total
                start += size


def gather_outer(
    X: cy.const[cy.floating][:, ::1],
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
    starts: cy.const[cy.longlong][::1],
    rows: cy.const[cy.longlong][::1],
    weights: cy.const[cy.double][::1],
    offset: cy.Py_ssize_t,
    out: cy.double[:, ::1],
) -> None:
    """out[k] += [Σ w y (if `offset` is D)] and the triangle of Σ w y yᵀ, rows of k.

    Memoized Eq. 7, supplement Eq. 13.
    """
    D = X.shape[1]
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
                        y: cy.double = (X[n, d] - origin[d]) * inv[d]
                        plain[i, d] = y
                        heavy[i, d] = w * y
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


def fill_scatter(
    N: cy.const[cy.double][::1],
    S: cy.const[cy.double][:, ::1],
    offset: cy.Py_ssize_t,
    strength: cy.double,
    mean: cy.const[cy.double][::1],
    resolution: cy.const[cy.double][::1],
    prior: cy.const[cy.double][:, ::1],
    out: cy.double[:, :, ::1],
) -> None:
    """out[k] = B0 + Σ r y yᵀ + κ0 m0 m0ᵀ - κ m mᵀ + N diag(resolution).

    Memoized, supplement Eq. 18, with means if `offset` is D. Arranged so that nothing
    is left of an empty component.
    """
    D = prior.shape[0]
    at: cy.Py_ssize_t
    with cy.nogil:
        for k in range(N.shape[0]):
            at = offset
            share: cy.double = 1.0 / (strength + N[k]) if offset > 0 else 0.0
            for i in range(D):
                pull: cy.double = 0.0
                rest: cy.double = 0.0
                if offset > 0:
                    pull = share * (S[k, i] + strength * mean[i])
                    rest = share * strength * (S[k, i] - N[k] * mean[i])
                for j in range(D - i):
                    moved: cy.double = 0.0
                    if offset > 0:
                        moved = S[k, i + j] * pull + mean[i + j] * rest
                    value: cy.double = prior[i, i + j] + S[k, at + j] - moved
                    out[k, i, i + j] = value
                    out[k, i + j, i] = value
                out[k, i, i] += N[k] * resolution[i]
                at += D - i


def log_determinants(B: cy.const[cy.double][:, :, ::1], out: cy.double[::1]) -> None:
    """out[k] = log |B_k| by Cholesky's factors; NaN where B_k is not positive."""
    D = B.shape[1]
    L: cy.double[:, ::1] = np.empty((D, D))
    with cy.nogil:
        for k in range(B.shape[0]):
            total: cy.double = 0.0
            for i in range(D):
                for j in range(i):
                    rest: cy.double = 0.0
                    for m in range(j):
                        rest += L[i, m] * L[j, m]
                    L[i, j] = (B[k, i, j] - rest) * L[j, j]
                pivot: cy.double = 0.0
                for m in range(i):
                    pivot += L[i, m] * L[i, m]
                pivot = B[k, i, i] - pivot
                if not pivot > 0.0:
                    total = NAN
                    break
                total += log(pivot)
                L[i, i] = 1.0 / sqrt(pivot)
            out[k] = total
