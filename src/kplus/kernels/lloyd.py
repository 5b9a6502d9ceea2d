"""Nearest centres with Hamerly's bounds, and the statistics of rows that moved.

Rows are read as ``y = (x - origin) * inv``: centred, so that float32 products lose
nothing that matters, and scaled by a power of two, which costs no rounding.
Distances are first taken in float32 through BLAS; where the nearest and the second
nearest centre are closer than the rounding error allows to tell, the row is decided
in float64. Labels are therefore those of float64 differences, whatever the blocks.
"""

import numpy as np
from numba import njit

__all__ = ["screen_rows", "visit_rows"]

UP = 1.0 + 2.0**-22  # float32 bounds are rounded away from the safe side's edge
DOWN = 1.0 - 2.0**-22


@njit(nogil=True, cache=True, fastmath=True)
def _load(X, r, origin, inv, Y, Y32, t):
    """Centre row r into place t of the float64 and float32 tiles; return |y|²."""
    total = 0.0
    for d in range(X.shape[1]):
        v = (X[r, d] - origin[d]) * inv
        Y[t, d] = v
        Y32[t, d] = v
        total += v * v
    return total


@njit(nogil=True, cache=True, fastmath=True)
def _sq_dist(Y, t, C, k):
    """|y_t - c_k|²."""
    total = 0.0
    for d in range(Y.shape[1]):
        diff = Y[t, d] - C[k, d]
        total += diff * diff
    return total


@njit(nogil=True, cache=True, fastmath=True)
def _best_two(G, n, half, place, best, second):
    """For each row of scores: where ``score - half`` is largest, and the two largest."""
    K = half.shape[0]
    for t in range(n):
        for k in range(K):
            G[t, k] -= half[k]
        high = G[t, 0]
        for k in range(1, K):
            high = max(high, G[t, k])
        at = 0
        while at < K - 1 and G[t, at] != high:
            at += 1
        G[t, at] = np.float32(-3e38)
        low = G[t, 0]
        for k in range(1, K):
            low = max(low, G[t, k])
        G[t, at] = high
        place[t], best[t], second[t] = at, high, low


@njit(nogil=True, cache=True)
def _decide(Y, t, centers, G, floor):
    """Nearest of the centres whose score reaches `floor`, in float64; ties: first.

    Returns the place and the two smallest squared distances. A score that is not a
    number is looked at, not skipped.
    """
    at, best, second = -1, np.inf, np.inf
    for k in range(centers.shape[0]):
        if G[t, k] < floor:
            continue
        d2 = _sq_dist(Y, t, centers, k)
        if d2 < best:
            at, best, second = k, d2, best
        elif d2 < second:
            second = d2
    return at, best, second


@njit(nogil=True, cache=True, fastmath=True)
def _book(counts, sums, sq, k, Y, t, refs, w):
    """Add a row of weight w (negative: take it away) to the sums of cluster k."""
    total = 0.0
    for d in range(Y.shape[1]):
        diff = Y[t, d] - refs[k, d]
        sums[k, d] += w * diff
        total += diff * diff
    counts[k] += w
    sq[k] += w * total


@njit(nogil=True, cache=True)
def screen_rows(labels, upper, lower, then, now, gaps, halves, reach, rows, weights, spare):
    """Move the bounds by the centres' drift; list the rows that must be looked at.

    A row stays where it is, unread, when its upper bound is within the lower bound
    of every other centre (Hamerly's test) and within `reach`, the distance beyond
    which it would open a cluster. Centres born since the last visit (NaN in `then`)
    are at least ``gaps[label] - upper`` away. Returns the number of rows listed.
    """
    K = now.shape[0]
    drift = np.empty(K)
    first, second, place = 0.0, 0.0, -1
    for k in range(K):
        drift[k] = 0.0 if np.isnan(then[k]) else now[k] - then[k]
        if drift[k] > first:
            first, second, place = drift[k], first, k
        elif drift[k] > second:
            second = drift[k]
    n = 0
    for i in range(labels.shape[0]):
        a = labels[i]
        if a < 0:
            rows[n] = i
            n += 1
            continue
        u = (upper[i] + drift[a]) * UP
        low = lower[i] - (second if a == place else first)
        low = min(low, gaps[a] - u)
        low *= DOWN if low > 0.0 else UP
        upper[i], lower[i] = u, low
        if u <= max(low, halves[a]) and u <= reach:
            spare[a] += max(low * low - u * u, 0.0) * (weights[i] if weights.size else 1.0)
        else:
            rows[n] = i
            n += 1
    return n


@njit(nogil=True, cache=True)
def visit_rows(
    X, weights, origin, inv, rows, centers, narrow, half, refs, halves, reach,
    labels, upper, lower, counts, sums, sq, spare, costs,
):  # fmt: skip
    """Find the nearest centre of the listed rows; book the change of the statistics.

    `costs` receives the squared distance of each listed row that exceeds `reach`,
    0 for the others. Returns the number of rows that moved, or -1 - i when row i
    holds a value that is not finite.
    """
    K, D = centers.shape
    T = max(32, min(512, 262144 // (4 * K + 12 * D)))
    Y, Y32 = np.empty((T, D)), np.empty((T, D), np.float32)
    G = np.empty((T, K), np.float32)
    y2, at, place = np.empty(T), np.empty(T, np.int64), np.empty(T, np.int64)
    best, second = np.empty(T), np.empty(T)
    widest = np.sqrt(2.0 * np.max(half))
    moved, i = 0, 0
    while i < rows.shape[0]:
        n = 0
        while n < T and i < rows.shape[0]:
            r = rows[i]
            y2[n] = _load(X, r, origin, inv, Y, Y32, n)
            if not np.isfinite(y2[n]):
                return -1 - r
            at[n] = i
            n += 1
            a = labels[r]
            if a >= 0:
                d2 = _sq_dist(Y, n - 1, centers, a)
                upper[r] = np.sqrt(d2) * UP
                near = max(lower[r], halves[a]) * DOWN
                if d2 <= near * near:
                    w = weights[r] if weights.size else 1.0
                    spare[a] += max(lower[r] * lower[r] - d2, 0.0) * w
                    costs[i] = d2 if d2 > reach * reach else 0.0
                    n -= 1
            i += 1
        np.dot(Y32[:n], narrow.T, G[:n])
        _best_two(G, n, half, place, best, second)
        for t in range(n):
            error = (D + 8) * 2.0**-23 * widest * (np.sqrt(y2[t]) + widest)
            k = place[t]
            if best[t] - second[t] > error:
                d2 = _sq_dist(Y, t, centers, k)
                next2 = y2[t] - 2.0 * second[t] - error
            else:
                k, d2, next2 = _decide(Y, t, centers, G, best[t] - error)
                next2 = min(next2, y2[t] - 2.0 * best[t] + error)
            r = rows[at[t]]
            w = weights[r] if weights.size else 1.0
            upper[r] = np.sqrt(d2) * UP
            lower[r] = np.sqrt(max(next2, 0.0)) * DOWN
            spare[k] += max(next2 - d2, 0.0) * w
            costs[at[t]] = d2 if d2 > reach * reach else 0.0
            a = labels[r]
            if a != k:
                if a >= 0:
                    _book(counts, sums, sq, a, Y, t, refs, -w)
                _book(counts, sums, sq, k, Y, t, refs, w)
                labels[r] = k
                moved += 1
    return moved
