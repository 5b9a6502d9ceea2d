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
measures the distance to their two centres and, where that does not decide a row,
compares it with other centres. These are ranked by how far they drifted: one that
drifted by no more than the margin between two bounds cannot have become nearer, so
only the first few of the ranking count, rounded up to one of a few widths (tiers)
that BLAS can work on, a tile of rows at a time.
"""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, fast_nsz_kernel, inlined, kernel
from kplus.linear.kernels_algebra import sq_dist

__all__ = [
    "Bounds",
    "Drift",
    "Frame",
    "Sums",
    "meet_rows",
    "screen_rows",
    "visit_rows",
]

UP = 1.0 + 2.0**-22  # bounds are float32 and rounded to the safe side
DOWN = 1.0 - 2.0**-22
NONE = np.int64(-1)  # typed, so that numba compiles each function once
ZERO = np.int64(0)
GONE = -1e38  # below any score
HUGE = 2.0**120  # products and norms beyond this may not fit into float32


class Frame(NamedTuple):
    """The scaling and the centres for the kernels; K clusters, D columns."""

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
    widest: float  # largest norm of a centre
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
    removal_cost: np.ndarray  # (K,) rise of the squared distances without that cluster


@kernel
def screen_rows(bounds, weights, drift, frame, removal_cost, rows):
    """Move the bounds by the drift; list the rows that may move; return how many.

    Not in the papers: bounds after Hamerly (2010) for the step of `visit_rows`.
    """
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
        bound = max(min(close, low) * DOWN, 0.0)
        upper[i], near[i] = u, close * DOWN
        if u < max(bound, frame.halves[a]) and u <= frame.reach:
            lower[i] = low * DOWN
            removal_cost[a] += max(bound * bound - u * u, 0.0) * (
                weights[i] if weights.size else 1.0
            )
        else:
            rows[n] = i
            n += 1
    return n


@kernel
def meet_rows(X, weights, drift, frame, bounds, sums, costs):
    """Find the nearest centre of rows never seen before.

    MAD-Bayes Eq. 3 given μ: z_n = argmin_k ‖x_n − μ_k‖². As `visit_rows`, but every row
    is compared with every centre, and the two nearest are told apart from the rest by
    their scores alone.
    """
    labels, seconds, upper, near, lower = bounds
    K, D = frame.centers.shape
    T = max(32, min(256, 65536 // (K + 3 * D)))
    Y, Y32 = np.empty((T, D)), np.zeros((T, D), np.float32)
    norms, G = np.empty(T), np.empty((K, T), np.float32)
    first, second = np.empty(T, np.int32), np.empty(T, np.int32)
    g1, g2 = np.empty(T, np.float32), np.empty(T, np.float32)
    far2 = frame.reach * frame.reach
    for start in range(0, X.shape[0], T):
        n = min(T, X.shape[0] - start)
        _load_tile(X, start, n, frame.origin, frame.inv, Y, Y32, norms)
        bad = _first_not_finite(norms, n)
        if bad >= 0:
            return -1 - (start + bad)
        np.dot(drift.narrow, Y32.T, G)  # the last tile may end in stale rows
        _scan(G, drift.half, first, second, g1, g2)
        for t in range(n):
            error = _error(D, drift.widest, norms[t])
            k1 = drift.order[first[t]]
            k2 = drift.order[second[t]] if K > 1 else NONE
            if g1[t] - g2[t] > error:
                d1 = sq_dist(Y, t, frame.centers, k1)
                d2 = norms[t] - 2.0 * g2[t] - error
                rest2 = d2
            else:
                floor = g1[t] - error
                k1, k2, d1, d2, rest2 = _decide(
                    Y, t, G, floor, NONE, NONE, drift, frame.centers
                )
                rest2 = min(rest2, norms[t] - 2.0 * floor - error)
            r = start + t
            w = weights[r] if weights.size else 1.0
            labels[r], seconds[r], upper[r] = k1, k2, np.sqrt(d1) * UP
            near[r] = np.sqrt(max(d2, 0.0)) * DOWN
            lower[r] = np.sqrt(max(rest2, 0.0)) * DOWN
            sums.removal_cost[k1] += max(min(d2, rest2) - d1, 0.0) * w
            costs[r] = d1 if d1 > far2 else 0.0
            _book(sums, k1, Y, t, frame.refs, w)
    return X.shape[0]


class Listed(NamedTuple):
    """The rows to visit and what their visit finds."""

    rows: np.ndarray  # (n,) numbers of rows
    weights: np.ndarray  # of all rows, or empty
    costs: np.ndarray  # (n,) see `visit_rows`


class Tiles(NamedTuple):
    """Rows waiting for comparison with the centres of their tier."""

    wide: np.ndarray  # (tiers, T, D) rows as float64
    narrow: np.ndarray  # (tiers, T, D) rows as float32
    norms: np.ndarray  # (tiers, T) squared norms
    own: np.ndarray  # (tiers, T) squared distances to their own centre
    at: np.ndarray  # (tiers, T) their places in the list of rows


@kernel
def visit_rows(X, weights, rows, drift, frame, bounds, sums, costs):
    """Find the nearest centre of the listed rows; book the change of the statistics.

    MAD-Bayes Eq. 3 given μ: z_n = argmin_k ‖x_n − μ_k‖² (step of Kulis & Jordan 2012,
    Algorithm 1). `costs` receives the squared distance of each listed row that exceeds
    `reach`, 0 for the others. Returns the number of rows that moved, or -1 - r when row
    r holds a value that is not finite.
    """
    labels, seconds, upper, near, lower = bounds
    K, D = frame.centers.shape
    n_tiers, T = drift.widths.shape[0], max(16, min(128, 131072 // (K + 3 * D)))
    tiles = Tiles(
        np.empty((n_tiers, T, D)), np.empty((n_tiers, T, D), np.float32),
        np.empty((n_tiers, T)), np.empty((n_tiers, T)),
        np.empty((n_tiers, T), np.int64),
    )  # fmt: skip
    listed = Listed(rows, weights, costs)
    filled = np.zeros(n_tiers, np.int64)
    y = np.empty((1, D))
    far2 = frame.reach * frame.reach
    moved = 0
    for i in range(rows.shape[0]):
        r = rows[i]
        a, b = np.int64(labels[r]), np.int64(seconds[r])
        norm = _load(X, r, frame.origin, frame.inv, y)
        if not np.isfinite(norm):
            return -1 - r
        tier = n_tiers - 1
        d2 = np.inf
        if a >= 0:
            w = weights[r] if weights.size else 1.0
            d2 = sq_dist(y, ZERO, frame.centers, a)
            u = np.sqrt(d2) * UP
            low = min(lower[r] - drift.others[a], drift.gaps[a] - u) * DOWN
            stays = u < max(min(near[r], low), frame.halves[a])
            if not stays and b >= 0:
                other2 = sq_dist(y, ZERO, frame.centers, b)
                if other2 < d2 or (other2 == d2 and b < a):
                    _book(sums, a, y, ZERO, frame.refs, -w)
                    _book(sums, b, y, ZERO, frame.refs, w)
                    labels[r], seconds[r] = b, a
                    a, d2, other2 = b, other2, d2
                    u = np.sqrt(d2) * UP
                    moved += 1
                near[r] = np.sqrt(other2) * DOWN
                stays = u < low
            upper[r] = u
            if stays:
                lower[r] = low
                bound = max(min(near[r], low), 0.0)
                sums.removal_cost[a] += max(bound * bound - d2, 0.0) * w
                costs[i] = d2 if d2 > far2 else 0.0
                continue
            tier = _tier(drift.beyond, 0.8 * (lower[r] - u))
        t = filled[tier]
        tiles.norms[tier, t], tiles.own[tier, t], tiles.at[tier, t] = norm, d2, i
        _store(y, tiles.wide, tiles.narrow, tier, t)
        filled[tier] += 1
        if filled[tier] == T:
            moved += _flush(tier, T, tiles, listed, drift, frame, bounds, sums)
            filled[tier] = 0
    for tier in range(n_tiers):
        if filled[tier]:
            n = filled[tier]
            moved += _flush(tier, n, tiles, listed, drift, frame, bounds, sums)
    return moved


@kernel
def _error(D, widest, norm):
    """(D + 8) 2⁻²³ |c|(|y| + |c|): how far two float32 scores of a row may be off.

    Infinite where float32 may overflow: then scores may be no numbers, and every centre
    is compared in float64.
    """
    reach = np.sqrt(norm) + widest
    if reach > HUGE or widest * reach > HUGE:
        return np.inf
    return (D + 8) * 2.0**-23 * widest * reach


@inlined
def _tier(beyond, margin):
    """The narrowest tier that leaves out only centres which drifted less.

    Not in the papers.
    """
    for tier in range(beyond.shape[0] - 1):
        if beyond[tier] < margin:
            return tier
    return beyond.shape[0] - 1


@kernel
def _flush(tier, n, tiles, listed, drift, frame, bounds, sums):
    """Compare a tile of rows with the centres of its tier; return how many moved.

    The argmin of `visit_rows`.
    """
    labels, seconds, upper, near, lower = bounds
    rows, weights, costs = listed
    width, D = drift.widths[tier], frame.centers.shape[1]
    Y = tiles.wide[tier]
    G = np.empty((width, n), np.float32)
    np.dot(drift.narrow[:width], tiles.narrow[tier, :n].T, G)
    for t in range(n):
        r = rows[tiles.at[tier, t]]
        for c in (labels[r], seconds[r]):
            if c >= 0 and drift.rank[c] < width:
                G[drift.rank[c], t] = np.float32(-3e38)  # these two are known
    first, second = np.empty(n, np.int32), np.empty(n, np.int32)
    g1, g2 = np.empty(n, np.float32), np.empty(n, np.float32)
    _scan(G, drift.half, first, second, g1, g2)
    far2 = frame.reach * frame.reach
    moved = 0
    for t in range(n):
        r, norm = rows[tiles.at[tier, t]], tiles.norms[tier, t]
        a, b = np.int64(labels[r]), np.int64(seconds[r])
        error = _error(D, drift.widest, norm)
        first2, rest2 = norm - 2.0 * g1[t] - error, norm - 2.0 * g2[t] - error
        unseen = (
            lower[r] - drift.beyond[tier] if width < drift.order.shape[0] else np.inf
        )
        d1, k1 = tiles.own[tier, t], a
        if first2 > d1:
            k2, d2 = b, near[r] * near[r]
            if g1[t] < GONE:  # a and b were all there is
                d2, rest2 = d2 if b >= 0 else np.inf, np.inf
            elif b < 0 or d2 > first2:
                k2, d2, rest2 = drift.order[first[t]], first2, min(rest2, d2)
            else:
                rest2 = first2
        else:
            k1, k2, d1, d2, rest2 = _rank(
                Y, t, drift.order[first[t]], NONE, a, b, rest2, frame.centers
            )
            if not d1 < rest2:
                floor = 0.5 * (norm - d1) - error
                k1, k2, d1, d2, rest2 = _decide(
                    Y, t, G, floor, a, b, drift, frame.centers
                )
                rest2 = min(rest2, norm - 2.0 * floor - error)
        w = weights[r] if weights.size else 1.0
        low = max(min(np.sqrt(max(rest2, 0.0)), unseen), 0.0)
        seconds[r], upper[r] = k2, np.sqrt(d1) * UP
        near[r], lower[r] = np.sqrt(d2) * DOWN, low * DOWN
        sums.removal_cost[k1] += max(min(d2, low * low) - d1, 0.0) * w
        costs[tiles.at[tier, t]] = d1 if d1 > far2 else 0.0
        if k1 != a:
            if a >= 0:
                _book(sums, a, Y, t, frame.refs, -w)
            _book(sums, k1, Y, t, frame.refs, w)
            labels[r] = k1
            moved += 1
    return moved


@kernel
def _placed(c, dist, k1, k2, d1, d2, rest2):
    """The two nearest of k1, k2 and c, and the least of all others (of ‖y − c‖²)."""
    if dist < d1 or (dist == d1 and c < k1):
        return c, k1, dist, d1, min(rest2, d2)
    if dist < d2:
        return k1, c, d1, dist, min(rest2, d2)
    return k1, k2, d1, d2, min(rest2, dist)


@kernel
def _rank(Y, t, p, q, a, b, rest2, centers):
    """The two nearest of centres p, q, a, b (-1: none), exactly; ties: lower number.

    argmin_k ‖y − c_k‖² among four. The others join the rest, whose squared distance is
    at least `rest2`.
    """
    k1, k2, d1, d2 = NONE, NONE, np.inf, np.inf
    for j in range(4):
        c = p if j == 0 else (q if j == 1 else (a if j == 2 else b))
        if c < 0 or c in (k1, k2):
            continue
        dist = sq_dist(Y, t, centers, c)
        k1, k2, d1, d2, rest2 = _placed(c, dist, k1, k2, d1, d2, rest2)
    return k1, k2, d1, d2, rest2


@kernel
def _decide(Y, t, G, floor, a, b, drift, centers):
    """As `_rank`, among a, b and all centres whose score reaches `floor`.

    argmin_k ‖y − c_k‖² in float64. A score that is not a number is looked at, not
    skipped.
    """
    k1, k2, d1, d2, rest2 = _rank(Y, t, a, b, NONE, NONE, np.inf, centers)
    for j in range(G.shape[0]):
        c = drift.order[j]
        if G[j, t] - drift.half[j] < floor or c in (a, b):
            continue
        dist = sq_dist(Y, t, centers, c)
        k1, k2, d1, d2, rest2 = _placed(c, dist, k1, k2, d1, d2, rest2)
    return k1, k2, d1, d2, rest2


@fast_kernel
def _load_tile(X, start, n, origin, inv, Y, Y32, norms):
    """Centre rows into tiles, with their squared norms (y = (x − origin)·inv)."""
    for t in range(n):
        total = 0.0
        for d in range(X.shape[1]):
            v = (X[start + t, d] - origin[d]) * inv
            Y[t, d] = v
            Y32[t, d] = v
            total += v * v
        norms[t] = total


@inlined
def _first_not_finite(norms, n):
    """min{t : norms_t is not finite}; -1: none."""
    for t in range(n):
        if not np.isfinite(norms[t]):
            return t
    return -1


@fast_kernel
def _load(X, r, origin, inv, y):
    """Centre row r; return |y|² (y = (x − origin)·inv)."""
    total = 0.0
    for d in range(X.shape[1]):
        v = (X[r, d] - origin[d]) * inv
        y[0, d] = v
        total += v * v
    return total


@fast_nsz_kernel
def _store(y, wide, narrow, tier, t):
    """wide_t = narrow_t = y: put a row into its tile."""
    for d in range(y.shape[1]):
        wide[tier, t, d] = y[0, d]
        narrow[tier, t, d] = y[0, d]


@fast_nsz_kernel
def _scan(G, half, first, second, g1, g2):
    """For each row, the two largest scores ``y·c - |c|²/2`` and their places.

    G holds the products y·c, a centre a line: the inner loop runs over rows and has no
    branches, so that it works on many rows at once.
    """
    K, n = G.shape
    for t in range(n):
        first[t], second[t] = 0, 0
        g1[t], g2[t] = np.float32(-3e38), np.float32(-3e38)
    for k in range(K):
        h, place, line = half[k], np.int32(k), G[k]
        for t in range(n):
            v = line[t] - h
            top, mid, leader = g1[t], g2[t], first[t]
            leads, follows = v > top, v > mid
            shifted = leader if leads else second[t]
            second[t] = place if (follows and not leads) else shifted
            first[t] = place if leads else leader
            g2[t] = max(mid, min(v, top))
            g1[t] = max(top, v)


@fast_nsz_kernel
def _add_row(sums, k, Y, t, refs, w):
    """Σ w(y - ref) of cluster k with row t; return |y - ref|²."""
    total = 0.0
    for d in range(Y.shape[1]):
        diff = Y[t, d] - refs[k, d]
        sums[k, d] += w * diff
        total += diff * diff
    return total


@kernel
def _book(sums, k, Y, t, refs, w):
    """Add a row of weight w (negative: take it away) to the sums of cluster k.

    n ± w, Σw(y − ref), Σw‖y − ref‖².
    """
    sums.counts[k] += w
    sums.squares[k] += w * _add_row(sums.sums, k, Y, t, refs, w)
