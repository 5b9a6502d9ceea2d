"""Nearest centres with bounds, and the statistics of the rows that moved.

Rows are read as ``y = (x - origin) * inv``: centred, so that float32 products lose
nothing that matters, and scaled by a power of two, which costs no rounding.
Distances are first taken in float32 through BLAS; where two centres are closer than
the rounding error allows to tell, the row is decided in float64. Labels are
therefore those of float64 differences, ties to the lower number, whatever the blocks.

Each row knows its nearest and second nearest centre when last looked at, and bounds
of its distances: from above to the first, from below to the second and to all others
(after Hamerly 2010). Three steps, each on the rows that the one before left open:

1. `screen_rows` moves the bounds by the drift of the centres, without the data;
2. `check_rows` reads a row and measures the distance to its two centres;
3. `visit_rows` compares it with other centres. Those are ranked by how far they
   drifted: one that drifted by no more than the margin between two bounds cannot have
   become nearer, so only the first few of the ranking count, rounded up to one of a
   few widths (tiers) that BLAS can work on.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = [
    "Bounds",
    "Drift",
    "Frame",
    "Sums",
    "check_rows",
    "screen_rows",
    "visit_rows",
]

UP = 1.0 + 2.0**-22  # bounds are float32 and rounded to the safe side
DOWN = 1.0 - 2.0**-22


class Frame(NamedTuple):
    """The lens and the centres as the kernels want them; K clusters, D columns."""

    origin: np.ndarray  # (D,)
    inv: float
    centers: np.ndarray  # (K, D)
    refs: np.ndarray  # (K, D), see `Sums`
    halves: np.ndarray  # (K,) half the distance to the nearest other centre, or less
    reach: float  # rows farther than this want a cluster of their own


class Drift(NamedTuple):
    """How the centres moved since a block was last visited."""

    own: np.ndarray  # (K,) how far each centre moved, 0 for those born since
    others: np.ndarray  # (K,) how far any other centre moved at the most
    gaps: np.ndarray  # (K,) distance to the nearest centre born since, or less
    order: np.ndarray  # (K,) centres, farthest drifted first
    narrow: np.ndarray  # (K, D) float32 centres in that order
    half: np.ndarray  # (K,) float32 |c|²/2 in that order
    widths: np.ndarray  # (tiers,) how many of them a tier looks at, ascending to K
    beyond: np.ndarray  # (tiers,) how far the first centre not looked at moved


class Bounds(NamedTuple):
    """Per-row state of a block."""

    labels: np.ndarray  # (n,) int32 nearest centre, -1 before the first visit
    seconds: np.ndarray  # (n,) int32 second nearest, -1 if there is none
    upper: np.ndarray  # (n,) float32, distance to the nearest or more
    near: np.ndarray  # (n,) float32, distance to the second or less
    lower: np.ndarray  # (n,) float32, distance to any other or less


class Sums(NamedTuple):
    """Change of the statistics, taken about fixed points near each centre (refs)."""

    counts: np.ndarray  # (K,)
    sums: np.ndarray  # (K, D)
    squares: np.ndarray  # (K,)
    spare: np.ndarray  # (K,) rise of the squared distances without that cluster


@njit(nogil=True, cache=True)
def screen_rows(bounds, weights, drift, frame, spare, rows):
    """Move the bounds by the drift; list the rows that may not stay. Returns how many."""
    labels, seconds, upper, near, lower = bounds
    n = 0
    for i in range(labels.shape[0]):
        a, b = labels[i], seconds[i]
        if a < 0:
            rows[n] = i
            n += 1
            continue
        u = (upper[i] + drift.own[a]) * UP
        close = near[i] - drift.own[b] if b >= 0 else lower[i]
        low = min(lower[i] - drift.others[a], drift.gaps[a] - u)
        bound = min(close, low) * DOWN
        upper[i], near[i] = u, close * DOWN
        if u < max(bound, frame.halves[a]) and u <= frame.reach:
            lower[i] = low * DOWN
            spare[a] += max(bound * bound - u * u, 0.0) * (
                weights[i] if weights.size else 1.0
            )
        else:
            rows[n] = i
            n += 1
    return n


@njit(nogil=True, cache=True)
def check_rows(X, weights, rows, drift, frame, bounds, sums, costs, open_rows):
    """Measure the distance of the listed rows to their two centres.

    Rows that this settles are booked; the others are gathered in `open_rows` by
    tier. `costs` receives the squared distance of each settled row that exceeds
    `reach`, 0 for the others. Returns the number of rows that moved and where each
    tier ends in `open_rows`; (-1 - r, ...) when row r is not finite.
    """
    labels, seconds, upper, near, lower = bounds
    n_tiers = drift.widths.shape[0]
    tiers = np.empty(rows.shape[0], np.int8)
    ends = np.zeros(n_tiers + 1, np.int64)
    Y, Y32 = np.empty((1, X.shape[1])), np.empty((1, X.shape[1]), np.float32)
    moved = 0
    for i in range(rows.shape[0]):
        r = rows[i]
        a, b = labels[r], seconds[r]
        tiers[i] = n_tiers - 1
        costs[i] = 0.0
        if a >= 0:
            if not np.isfinite(_load(X, r, frame.origin, frame.inv, Y, Y32, 0)):
                return -1 - r, ends
            w = weights[r] if weights.size else 1.0
            d2 = _sq_dist(Y, 0, frame.centers, a)
            u = np.sqrt(d2) * UP
            low = min(lower[r] - drift.others[a], drift.gaps[a] - u) * DOWN
            bound = min(near[r], low)
            if u >= max(bound, frame.halves[a]) and b >= 0:
                other2 = _sq_dist(Y, 0, frame.centers, b)
                near[r] = np.sqrt(other2) * DOWN
                if other2 < d2 or (other2 == d2 and b < a):
                    _book(sums, a, Y, 0, frame.refs, -w)
                    _book(sums, b, Y, 0, frame.refs, w)
                    labels[r], seconds[r] = b, a
                    near[r] = np.sqrt(d2) * DOWN
                    a, d2 = b, other2
                    u = np.sqrt(d2) * UP
                    moved += 1
                bound = np.sqrt(max(d2, other2))  # both are known
                bound = low if low < bound else bound
                settled = u < low
            else:
                settled = u < max(bound, frame.halves[a])
            upper[r] = u
            if settled:
                lower[r] = low
                spare = min(near[r], low)
                sums.spare[a] += max(spare * spare - d2, 0.0) * w
                costs[i] = d2 if d2 > frame.reach**2 else 0.0
                tiers[i] = -1
                continue
            margin = 0.8 * (lower[r] - u)
            for tier in range(n_tiers - 1):
                if drift.beyond[tier] < margin:
                    tiers[i] = tier
                    break
        ends[tiers[i] + 1] += 1
    for tier in range(n_tiers):
        ends[tier + 1] += ends[tier]
    at = ends.copy()
    for i in range(rows.shape[0]):
        if tiers[i] >= 0:
            open_rows[at[tiers[i]]] = i
            at[tiers[i]] += 1
    return moved, ends


@njit(nogil=True, cache=True)
def visit_rows(X, weights, rows, open_rows, ends, drift, frame, bounds, sums, costs):
    """Find the nearest centre of the rows still open; book those that move.

    Returns the number of rows that moved, or -1 - r when row r is not finite.
    """
    D = X.shape[1]
    moved = 0
    for tier in range(drift.widths.shape[0]):
        width = drift.widths[tier]
        T = max(32, min(512, 262144 // (4 * width + 12 * D)))
        Y, Y32 = np.empty((T, D)), np.empty((T, D), np.float32)
        G = np.empty((T, width), np.float32)
        y2 = np.empty(T)
        for start in range(ends[tier], ends[tier + 1], T):
            tile = open_rows[start : min(start + T, ends[tier + 1])]
            n = tile.shape[0]
            for t in range(n):
                r = rows[tile[t]]
                y2[t] = _load(X, r, frame.origin, frame.inv, Y, Y32, t)
                if not np.isfinite(y2[t]):
                    return -1 - r
            np.dot(Y32[:n], drift.narrow[:width].T, G[:n])
            moved += _settle(
                Y, G, y2, tile, rows, tier, weights, drift, frame, bounds, sums, costs
            )
    return moved


@njit(nogil=True, cache=True)
def _settle(Y, G, y2, tile, rows, tier, weights, drift, frame, bounds, sums, costs):
    """Decide a tile of rows from their scores; return how many moved."""
    labels, seconds, upper, near, lower = bounds
    n, D, width = tile.shape[0], Y.shape[1], G.shape[1]
    first, second = np.empty(n, np.int64), np.empty(n, np.int64)
    third = np.empty(n)
    _best_three(G, n, drift.half, first, second, third)
    widest = np.sqrt(2.0 * np.max(drift.half))
    moved = 0
    for t in range(n):
        r = rows[tile[t]]
        a, b = labels[r], seconds[r]
        error = (D + 8) * 2.0**-23 * widest * (np.sqrt(y2[t]) + widest)
        rest2 = y2[t] - 2.0 * third[t] - error
        k1, k2, d1, d2, rest2 = _rank(
            Y, t, drift.order[first[t]], drift.order[second[t]], a, b, rest2, frame.centers
        )
        if not d1 < rest2:
            floor = (y2[t] - d1) / 2.0 - error
            k1, k2, d1, d2, rest2 = _decide(
                Y, t, G, floor, a, b, drift.order, frame.centers
            )
            rest2 = min(rest2, y2[t] - 2.0 * floor - error)
        w = weights[r] if weights.size else 1.0
        low = np.sqrt(max(rest2, 0.0))
        if width < drift.order.shape[0]:
            low = min(low, lower[r] - drift.beyond[tier])
        seconds[r], upper[r] = k2, np.sqrt(d1) * UP
        near[r], lower[r] = np.sqrt(d2) * DOWN, low * DOWN
        sums.spare[k1] += max(min(d2, low * low) - d1, 0.0) * w
        costs[tile[t]] = d1 if d1 > frame.reach**2 else 0.0
        if k1 != a:
            if a >= 0:
                _book(sums, a, Y, t, frame.refs, -w)
            _book(sums, k1, Y, t, frame.refs, w)
            labels[r] = k1
            moved += 1
    return moved


@njit(nogil=True, cache=True)
def _rank(Y, t, p, q, a, b, rest2, centers):
    """The two nearest of centres p, q, a, b (-1: none), exactly; ties: lower number.

    The others join the rest, whose squared distance is at least `rest2`.
    """
    k1, k2, d1, d2 = -1, -1, np.inf, np.inf
    for j in range(4):
        c = p if j == 0 else (q if j == 1 else (a if j == 2 else b))
        if c < 0 or c == k1 or c == k2:
            continue
        dist = _sq_dist(Y, t, centers, c)
        if dist < d1 or (dist == d1 and c < k1):
            rest2 = min(rest2, d2)
            k1, k2, d1, d2 = c, k1, dist, d1
        elif dist < d2:
            rest2 = min(rest2, d2)
            k2, d2 = c, dist
        else:
            rest2 = min(rest2, dist)
    return k1, k2, d1, d2, rest2


@njit(nogil=True, cache=True)
def _decide(Y, t, G, floor, a, b, order, centers):
    """As `_rank`, among a, b and all centres whose score reaches `floor`.

    A score that is not a number is looked at, not skipped.
    """
    k1, k2, d1, d2, rest2 = _rank(Y, t, a, b, -1, -1, np.inf, centers)
    for j in range(G.shape[1]):
        c = order[j]
        if G[t, j] < floor or c == a or c == b:
            continue
        dist = _sq_dist(Y, t, centers, c)
        if dist < d1 or (dist == d1 and c < k1):
            rest2 = min(rest2, d2)
            k1, k2, d1, d2 = c, k1, dist, d1
        elif dist < d2:
            rest2 = min(rest2, d2)
            k2, d2 = c, dist
        else:
            rest2 = min(rest2, dist)
    return k1, k2, d1, d2, rest2


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
def _best_three(G, n, half, first, second, third):
    """Where ``score - half`` is largest and second largest, and the third largest."""
    K = G.shape[1]
    gone = np.float32(-3e38)
    for t in range(n):
        for k in range(K):
            G[t, k] -= half[k]
        high = G[t, 0]
        for k in range(1, K):
            high = max(high, G[t, k])
        p = 0
        while p < K - 1 and G[t, p] != high:
            p += 1
        G[t, p] = gone
        mid = G[t, 0]
        for k in range(1, K):
            mid = max(mid, G[t, k])
        q = 0
        while q < K - 1 and G[t, q] != mid:
            q += 1
        G[t, q] = gone
        low = G[t, 0]
        for k in range(1, K):
            low = max(low, G[t, k])
        G[t, q], G[t, p] = mid, high
        first[t], second[t], third[t] = p, q, low


@njit(nogil=True, cache=True, fastmath=True)
def _book(sums, k, Y, t, refs, w):
    """Add a row of weight w (negative: take it away) to the sums of cluster k."""
    total = 0.0
    for d in range(Y.shape[1]):
        diff = Y[t, d] - refs[k, d]
        sums.sums[k, d] += w * diff
        total += diff * diff
    sums.counts[k] += w
    sums.squares[k] += w * total
