"""Quadratic forms and second moments of rows, gathered by component."""

import numba as nb
import numpy as np

__all__ = ["fill_quadratic", "gather_outer", "gather_scores"]


@nb.njit(nogil=True, cache=True)
def fill_quadratic(Y, offset, out):
    """out[n, offset:] = the products y_i y_j, j ≥ i, row by row of the triangle."""
    n_rows, D = Y.shape
    for n in range(n_rows):
        at = offset
        for i in range(D):
            y = Y[n, i]
            for j in range(i, D):
                out[n, at + j - i] = y * Y[n, j]
            at += D - i


@nb.njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _half_squares(Z):
    """Turn each row's first entry into half the sum of its squares."""
    n_rows, D = Z.shape
    for n in range(n_rows):
        total = 0.0
        for d in range(D):
            total += Z[n, d] * Z[n, d]
        Z[n, 0] = 0.5 * total


@nb.njit(nogil=True, cache=True)
def gather_scores(Y, starts, rows, slots, means, whiten, const, out):
    """out[n, slot] = const_k - ½ |(y_n - m_k) whiten_k|² for the pairs of each k.

    Pairs ``starts[k]:starts[k + 1]`` name the rows that ask for component k and where
    in their row of `out` the answer goes.
    """
    D, K = Y.shape[1], len(const)
    most = np.int64(0)
    for k in range(K):
        most = max(most, starts[k + 1] - starts[k])
    gathered, turned = np.empty((most, D)), np.empty((most, D))
    for k in range(K):
        start, size = starts[k], starts[k + 1] - starts[k]
        if size == 0:
            continue
        for i in range(size):
            n = rows[start + i]
            for d in range(D):
                gathered[i, d] = Y[n, d] - means[k, d]
        Z = turned[:size]
        np.dot(gathered[:size], whiten[k], Z)
        _half_squares(Z)
        for i in range(size):
            out[rows[start + i], slots[start + i]] = const[k] - Z[i, 0]


@nb.njit(nogil=True, cache=True)
def gather_outer(Y, starts, rows, weights, offset, out):
    """out[k] = [Σ w y (if `offset` is D)] and the triangle of Σ w y yᵀ, rows of k."""
    D = Y.shape[1]
    K = len(starts) - 1
    most = np.int64(0)
    for k in range(K):
        most = max(most, starts[k + 1] - starts[k])
    plain, heavy = np.empty((most, D)), np.empty((most, D))
    square = np.empty((D, D))
    for k in range(K):
        start, size = starts[k], starts[k + 1] - starts[k]
        if size == 0:
            continue
        for i in range(size):
            n, w = rows[start + i], weights[start + i]
            for d in range(D):
                plain[i, d] = Y[n, d]
                heavy[i, d] = w * Y[n, d]
        np.dot(heavy[:size].T, plain[:size], square)
        for i in range(size):
            for d in range(offset):
                out[k, d] += heavy[i, d]
        at = offset
        for d in range(D):
            for e in range(d, D):
                out[k, at + e - d] += square[d, e]
            at += D - d
