"""Nearest centres with bounds, and the statistics of the rows that moved.

Rows are read as ``y = (x - origin) * inv``: centred, so that float32 products lose
nothing that matters, and scaled by a power of two, which costs no rounding.
Distances are first taken in float32 through BLAS; where two centres are closer than
the rounding error allows to tell, the row is decided in float64. Labels are
therefore those of float64 differences, ties to the lower number, whatever the blocks.

Each row knows its nearest and second nearest centre when last looked at, and bounds
of its distances: from above to the first, from below to the second and to all others
(after Hamerly 2010). `screen_rows` moves the bounds by the drift of the centres,
without the data, and lists the rows that may not stay. `visit_rows` reads those: it
measures the distance to their two centres and, where that does not settle a row,
compares it with other centres. These are ranked by how far they drifted: one that
drifted by no more than the margin between two bounds cannot have become nearer, so
only the first few of the ranking count, rounded up to one of a few widths (tiers)
that BLAS can work on, a tile of rows at a time.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = [
    "Bounds",
    "Drift",
    "Frame",
    "Sums",
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
    rank: np.ndarray  # (K,) place of each centre in that order
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


class Tiles(NamedTuple):
    """Rows waiting for comparison with the centres of their tier."""

    wide: np.ndarray  # (tiers, T, D) rows as float64
    narrow: np.ndarray  # (tiers, T, D) rows as float32
    norms: np.ndarray  # (tiers, T) squared norms
    at: np.ndarray  # (tiers, T) their places in the list of rows
    scores: np.ndarray  # (T * K,) y·c - |c|²/2


@njit(nogil=True, cache=True)
def visit_rows(X, weights, rows, drift, frame, bounds, sums, costs):
    """Find the nearest centre of the listed rows; book the change of the statistics.

    `costs` receives the squared distance of each listed row that exceeds `reach`,
    0 for the others. Returns the number of rows that moved, or -1 - r when row r
    holds a value that is not finite.
    """
    labels, seconds, upper, near, lower = bounds
    K, D = frame.centers.shape
    n_tiers, T = drift.widths.shape[0], max(16, min(128, 131072 // (K + 3 * D)))
    tiles = Tiles(
        np.empty((n_tiers, T, D)), np.empty((n_tiers, T, D), np.float32),
        np.empty((n_tiers, T)), np.empty((n_tiers, T), np.int64),
        np.empty(T * K, np.float32),
    )  # fmt: skip
    filled = np.zeros(n_tiers, np.int64)
    y = np.empty((1, D))
    far2 = frame.reach * frame.reach
    moved = 0
    for i in range(rows.shape[0]):
        r = rows[i]
        a, b = labels[r], seconds[r]
        norm = _load(X, r, frame.origin, frame.inv, y)
        if not np.isfinite(norm):
            return -1 - r
        tier = n_tiers - 1
        if a >= 0:
            w = weights[r] if weights.size else 1.0
            d2 = _sq_dist(y, 0, frame.centers, a)
            u = np.sqrt(d2) * UP
            low = min(lower[r] - drift.others[a], drift.gaps[a] - u) * DOWN
            stays = u < max(min(near[r], low), frame.halves[a])
            if not stays and b >= 0:
                other2 = _sq_dist(y, 0, frame.centers, b)
                if other2 < d2 or (other2 == d2 and b < a):
                    _book(sums, a, y, 0, frame.refs, -w)
                    _book(sums, b, y, 0, frame.refs, w)
                    labels[r], seconds[r] = b, a
                    a, d2, other2 = b, other2, d2
                    u = np.sqrt(d2) * UP
                    moved += 1
                near[r] = np.sqrt(other2) * DOWN
                stays = u < low
            upper[r] = u
            if stays:
                lower[r] = low
                bound = min(near[r], low)
                sums.spare[a] += max(bound * bound - d2, 0.0) * w
                costs[i] = d2 if d2 > far2 else 0.0
                continue
            tier = _tier(drift.beyond, 0.8 * (lower[r] - u))
        t = filled[tier]
        tiles.norms[tier, t], tiles.at[tier, t] = norm, i
        _store(y, tiles.wide, tiles.narrow, tier, t)
        filled[tier] += 1
        if filled[tier] == T:
            moved += _flush(tier, T, tiles, rows, weights, drift, frame, bounds, sums, costs)
            filled[tier] = 0
    for tier in range(n_tiers):
        if filled[tier]:
            n = filled[tier]
            moved += _flush(tier, n, tiles, rows, weights, drift, frame, bounds, sums, costs)
    return moved


@njit(nogil=True, cache=True)
def _tier(beyond, margin):
    """The narrowest tier that leaves out only centres which drifted less."""
    for tier in range(beyond.shape[0] - 1):
        if beyond[tier] < margin:
            return tier
    return beyond.shape[0] - 1


@njit(nogil=True, cache=True)
def _flush(tier, n, tiles, rows, weights, drift, frame, bounds, sums, costs):
    """Compare a tile of rows with the centres of its tier; return how many moved."""
    labels, seconds, upper, near, lower = bounds
    width, D = drift.widths[tier], frame.centers.shape[1]
    Y = tiles.wide[tier]
    G = tiles.scores[: n * width].reshape((n, width))
    np.dot(tiles.narrow[tier, :n], drift.narrow[:width].T, G)
    widest = np.sqrt(2.0 * np.max(drift.half))
    far2 = frame.reach * frame.reach
    moved = 0
    for t in range(n):
        r, norm = rows[tiles.at[tier, t]], tiles.norms[tier, t]
        a, b = labels[r], seconds[r]
        error = (D + 8) * 2.0**-23 * widest * (np.sqrt(norm) + widest)
        p, q, g1, g2, g3 = _best(G, t, drift.half, drift.rank, a, b)
        first2, rest2 = norm - 2.0 * g1 - error, norm - 2.0 * g2 - error
        unseen = lower[r] - drift.beyond[tier] if width < drift.order.shape[0] else np.inf
        d1, k1 = upper[r] * upper[r] if a >= 0 else np.inf, a
        if first2 > d1:
            k2, d2 = b, near[r] * near[r]
            if b < 0 or d2 > first2:
                k2, d2, rest2 = drift.order[p], first2, min(rest2, d2)
            else:
                rest2 = first2
        else:
            k2 = drift.order[p]
            if a < 0:
                rest2 = norm - 2.0 * g3 - error
            k1, k2, d1, d2, rest2 = _rank(
                Y, t, k2, drift.order[q] if a < 0 else -1, a, b, rest2, frame.centers
            )
            if not d1 < rest2:
                floor = 0.5 * (norm - d1) - error
                k1, k2, d1, d2, rest2 = _decide(
                    Y, t, G, floor, a, b, drift.order, frame.centers
                )
                rest2 = min(rest2, norm - 2.0 * floor - error)
        w = weights[r] if weights.size else 1.0
        low = min(np.sqrt(max(rest2, 0.0)), unseen)
        seconds[r], upper[r] = k2, np.sqrt(d1) * UP
        near[r], lower[r] = np.sqrt(d2) * DOWN, low * DOWN
        sums.spare[k1] += max(min(d2, low * low) - d1, 0.0) * w
        costs[tiles.at[tier, t]] = d1 if d1 > far2 else 0.0
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
def _load(X, r, origin, inv, y):
    """Centre row r; return |y|²."""
    total = 0.0
    for d in range(X.shape[1]):
        v = (X[r, d] - origin[d]) * inv
        y[0, d] = v
        total += v * v
    return total


@njit(nogil=True, cache=True, fastmath=True)
def _store(y, wide, narrow, tier, t):
    """Put a row into its tile."""
    for d in range(y.shape[1]):
        wide[tier, t, d] = y[0, d]
        narrow[tier, t, d] = y[0, d]


@njit(nogil=True, cache=True, fastmath=True)
def _sq_dist(Y, t, C, k):
    """|y_t - c_k|²."""
    total = 0.0
    for d in range(Y.shape[1]):
        diff = Y[t, d] - C[k, d]
        total += diff * diff
    return total


@njit(nogil=True, cache=True, fastmath=True)
def _best(G, t, half, rank, a, b):
    """The largest scores of row t but for those of centres a and b (-1: none).

    Returns the places of the largest and the second largest and the three largest
    scores; without a, b the scores of the first two are as they were in G.
    """
    K = G.shape[1]
    gone = np.float32(-3e38)
    for k in range(K):
        G[t, k] -= half[k]
    if a >= 0 and rank[a] < K:
        G[t, rank[a]] = gone
    if b >= 0 and rank[b] < K:
        G[t, rank[b]] = gone
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
    q, low = 0, mid
    if a < 0:
        while q < K - 1 and G[t, q] != mid:
            q += 1
        G[t, q] = gone
        low = G[t, 0]
        for k in range(1, K):
            low = max(low, G[t, k])
        G[t, q] = mid
    G[t, p] = high
    return p, q, high, mid, low


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
