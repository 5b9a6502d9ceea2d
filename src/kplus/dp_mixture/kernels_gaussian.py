"""Quadratic forms and second moments of rows, gathered by component."""

import numpy as np

from kplus.core.kernels import fast_kernel, kernel

__all__ = [
    "fill_quadratic",
    "gather_outer",
    "gather_scores",
    "invert_factors",
    "near_best",
]

_CHUNK = 256  # rows gathered at a time, so that they stay in the cache


@kernel
def fill_quadratic(Y, offset, out):
    """out[n] = [y (if `offset` is D), the products y_i y_j with j ≥ i].

    t(x), Memoized Eq. 2.
    """
    n_rows, D = Y.shape
    for n in range(n_rows):
        for i in range(offset):
            out[n, i] = Y[n, i]
        at = offset
        for i in range(D):
            y, left, right = Y[n, i], out[n, at : at + D - i], Y[n, i:]
            for j in range(D - i):  # counted from 0, so that it is vectorised
                left[j] = y * right[j]
            at += D - i


@fast_kernel
def _half_squares(Z):
    """Turn each row's first entry into half the sum of its squares (½Σ_d z_d²)."""
    n_rows, D = Z.shape
    for n in range(n_rows):
        row, total = Z[n], 0.0
        for d in range(D):
            total += row[d] * row[d]
        row[0] = 0.5 * total


@kernel
def gather_scores(Y, starts, rows, slots, means, whiten, const, out):
    """out[n, slot] = const_k - ½ |(y_n - m_k) whiten_k|² for the pairs of each k.

    Memoized, supplement Eq. 19: E[log p(x | φ_k)] of a Gaussian. Pairs
    ``starts[k]:starts[k + 1]`` name the rows that ask for component k and where in
    their row of `out` the answer goes.
    """
    D = Y.shape[1]
    gathered, turned = np.empty((_CHUNK, D)), np.empty((_CHUNK, D))
    for k in range(len(const)):
        mean = means[k]
        for start in range(starts[k], starts[k + 1], _CHUNK):
            size = min(_CHUNK, starts[k + 1] - start)
            for i in range(size):
                goal, row = gathered[i], Y[rows[start + i]]
                for d in range(D):
                    goal[d] = row[d] - mean[d]
            Z = turned[:size]
            np.dot(gathered[:size], whiten[k], Z)
            _half_squares(Z)
            for i in range(size):
                out[rows[start + i], slots[start + i]] = const[k] - Z[i, 0]


@kernel
def gather_outer(Y, starts, rows, weights, offset, out):
    """out[k] = [Σ w y (if `offset` is D)] and the triangle of Σ w y yᵀ, rows of k.

    Memoized Eq. 7, supplement Eq. 13.
    """
    D = Y.shape[1]
    plain, heavy = np.empty((_CHUNK, D)), np.empty((_CHUNK, D))
    square = np.empty((D, D))
    for k in range(len(starts) - 1):
        for start in range(starts[k], starts[k + 1], _CHUNK):
            size = min(_CHUNK, starts[k + 1] - start)
            for i in range(size):
                row, w = Y[rows[start + i]], weights[start + i]
                same, weighted, sums = plain[i], heavy[i], out[k, :offset]
                for d in range(D):
                    same[d] = row[d]
                    weighted[d] = w * row[d]
                for d in range(offset):
                    sums[d] += weighted[d]
            np.dot(heavy[:size].T, plain[:size], square)
            at = offset
            for d in range(D):
                sums, line = out[k, at : at + D - d], square[d, d:]
                for e in range(D - d):
                    sums[e] += line[e]
                at += D - d


@kernel
def invert_factors(L, scale, out):
    """out[k] = scale[k] · (L_k⁻¹)ᵀ for lower triangular L_k, row by row."""
    K, D = L.shape[0], L.shape[1]
    inverse = np.empty((D, D))
    for k in range(K):
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


@kernel
def near_best(scores, log_weights, squares, error, margin):
    """Components of each row whose rounded score comes near the best; -1 fills up.

    Not in the paper: {k : score_nk ≥ max_j score_nj − margin − rounding}. The rounding
    of a row is at most `error` · √(s + s²), with s the squares of its values. A row
    whose scores are no numbers gets every component.
    """
    n_rows, K = scores.shape
    lowest = np.empty(n_rows)
    most = np.int64(1)
    for n in range(n_rows):
        best = -np.inf
        for k in range(K):
            scores[n, k] += log_weights[k]
            best = max(best, scores[n, k])
        lowest[n] = (
            best - margin - 2.0 * error * np.sqrt(squares[n] + squares[n] * squares[n])
        )
        if not np.isfinite(lowest[n]):
            lowest[n] = -np.inf
        count = np.int64(0)
        for k in range(K):
            count += not scores[n, k] < lowest[n]
        most = max(most, count)
    out = np.empty((n_rows, most), np.int32)
    out[:] = -1
    for n in range(n_rows):
        at = np.int64(0)
        for k in range(K):
            if not scores[n, k] < lowest[n]:
                out[n, at] = k
                at += 1
    return out
