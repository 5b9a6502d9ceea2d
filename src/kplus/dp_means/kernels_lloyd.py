"""Nearest centres with bounds, and the statistics of the rows that moved.

Rows are read as ``y = (x - origin) * inv``: centred, so that float32 products lose
nothing that matters, and scaled by a power of two, which costs no rounding.
Distances are first taken in float32 through BLAS; where two centres are closer than
the rounding error allows to tell, the row is decided in float64. Labels are
therefore those of float64 differences, ties to the lower number, whatever the blocks.

`meet_rows` reads rows of which nothing is known. `visit_rows` reads those that, by
their bounds, may not stay (`kernels_bounds`): it measures the distance to the two
centres that they know and, where that does not decide a row, compares it with other
centres. These are ranked by how far they drifted: one that drifted by no more than the
margin between two bounds cannot have become nearer, so only the first few of the
ranking count, rounded up to one of a few widths (tiers) that BLAS can work on, a tile
of rows at a time.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import row_products
from cython.cimports.kplus.dp_means.kernels_bounds import Bounds, Drift, Frame, Sums
from cython.cimports.kplus.dp_means.kernels_nearest import decide, two_nearest
from cython.cimports.kplus.dp_means.kernels_tiles import Top, load_tile, scan

if cy.compiled:
    from cython.cimports.libc.math import isfinite, sqrt
else:
    from numpy import isfinite, sqrt

from kplus.dp_means.kernels_tiles import room_for

__all__ = ["meet_rows", "visit_rows"]

UP = cy.declare(cy.double, 1.0 + 2.0**-22)  # bounds are float32, rounded to be safe
DOWN = cy.declare(cy.double, 1.0 - 2.0**-22)
GONE = cy.declare(cy.double, -1e38)  # below any score
HUGE = cy.declare(cy.double, 2.0**120)  # products beyond this may not fit into float32
INF = cy.declare(cy.double, float("inf"))


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Listed:
    """The rows to visit and what their visit finds."""

    rows: cy.const[cy.int][::1]  # (n,) numbers of rows
    weights: cy.const[cy.double][::1]  # of all rows, or empty
    costs: cy.double[::1]  # (n,) see `visit_rows`


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Tiles:
    """Rows waiting for comparison with the centres of their tier."""

    wide: cy.double[:, ::1]  # (tiers T, D) rows as float64
    narrow: cy.float[:, :, ::1]  # (tiers, T, D) rows as float32
    norms: cy.double[::1]  # (tiers T,) squared norms
    own: cy.double[::1]  # (tiers T,) squared distances to their own centre
    at: cy.Py_ssize_t[::1]  # (tiers T,) their places in the list of rows
    filled: cy.Py_ssize_t[::1]  # (tiers,) how many


def _tiles(n_tiers: cy.Py_ssize_t, T: cy.Py_ssize_t, D: cy.Py_ssize_t) -> Tiles:
    return Tiles(
        np.empty((n_tiers * T, D)),
        np.empty((n_tiers, T, D), np.float32),
        np.empty(n_tiers * T),
        np.empty(n_tiers * T),
        np.empty(n_tiers * T, np.intp),
        np.zeros(n_tiers, np.intp),
    )


def meet_rows(
    X: cy.const[cy.floating][:, ::1],
    weights: cy.const[cy.double][::1],
    drift: Drift,
    frame: Frame,
    bounds: Bounds,
    sums: Sums,
    costs: cy.double[::1],
) -> int:
    """Find the nearest centre of all rows, whatever is known of them.

    MAD-Bayes Eq. 3 given μ: z_n = argmin_k ‖x_n − μ_k‖². As `visit_rows`, but every row
    is compared with every centre, and the two nearest are told apart from the rest by
    their scores alone. For rows never seen before, and where they are so few that
    bounds would cost more than they save.
    """
    K, D = frame.centers.shape[0], frame.centers.shape[1]
    T: cy.Py_ssize_t = max(32, min(256, 65536 // (K + 3 * D)))
    Y: cy.double[:, ::1] = np.empty((T, D))
    Y32: cy.float[:, ::1] = np.empty((T, D), np.float32)
    norms: cy.double[::1] = np.empty(T)
    top: Top = room_for(K, T)
    moved: cy.Py_ssize_t = 0
    with cy.nogil:
        for tile in range((X.shape[0] + T - 1) // T):
            start = tile * T
            n = min(T, X.shape[0] - start)
            bad = load_tile(X, start, n, frame.origin, frame.inv, Y, Y32, norms)
            if bad >= 0:
                moved = -1 - (start + bad)
                break
            row_products(drift.narrow, Y32, K, n, top.scores)
            scan(top, drift.half, K, n)
            moved += _meet_tile(
                start, n, Y, norms, top, weights, drift, frame, bounds, sums, costs
            )
    return moved


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _meet_tile(
    start: cy.Py_ssize_t,
    n: cy.Py_ssize_t,
    Y: cy.double[:, ::1],
    norms: cy.double[::1],
    top: Top,
    weights: cy.const[cy.double][::1],
    drift: Drift,
    frame: Frame,
    bounds: Bounds,
    sums: Sums,
    costs: cy.double[::1],
) -> cy.Py_ssize_t:
    """The argmin of `meet_rows` for a tile of rows; return how many moved."""
    K, D = frame.centers.shape[0], frame.centers.shape[1]
    d1: cy.double
    d2: cy.double
    rest2: cy.double
    k1: cy.Py_ssize_t
    k2: cy.Py_ssize_t
    moved: cy.Py_ssize_t = 0
    far2 = frame.reach * frame.reach
    for t in range(n):
        error = _error(D, drift.widest, norms[t])
        g1, g2 = top.g1[t], top.g2[t]
        k1 = drift.order[top.first[t]]
        k2 = drift.order[top.second[t]] if K > 1 else -1
        if g1 - g2 > error:
            d1 = _sq_dist(Y, t, frame.centers, k1)
            d2 = norms[t] - 2.0 * g2 - error
            rest2 = d2
        else:
            floor = g1 - error
            k1, k2, d1, d2, rest2 = decide(
                Y, t, top.scores, t, K, floor, -1, -1, drift, frame.centers
            )
            rest2 = min(rest2, norms[t] - 2.0 * floor - error)
        r = start + t
        w: cy.double = weights[r] if weights.shape[0] else 1.0
        bounds.seconds[r], bounds.upper[r] = k2, sqrt(d1) * UP
        bounds.near[r] = sqrt(max(d2, 0.0)) * DOWN
        bounds.lower[r] = sqrt(max(rest2, 0.0)) * DOWN
        sums.removal_cost[k1] += max(min(d2, rest2) - d1, 0.0) * w
        costs[r] = d1 if d1 > far2 else 0.0
        a: cy.Py_ssize_t = bounds.labels[r]
        if k1 != a:
            if a >= 0:
                _book(sums, a, Y, t, frame.refs, -w)
            _book(sums, k1, Y, t, frame.refs, w)
            bounds.labels[r] = k1
            moved += 1
    return moved


def visit_rows(
    X: cy.const[cy.floating][:, ::1],
    weights: cy.const[cy.double][::1],
    rows: cy.const[cy.int][::1],
    drift: Drift,
    frame: Frame,
    bounds: Bounds,
    sums: Sums,
    costs: cy.double[::1],
) -> int:
    """Find the nearest centre of the listed rows; book the change of the statistics.

    MAD-Bayes Eq. 3 given μ: z_n = argmin_k ‖x_n − μ_k‖² (step of Kulis & Jordan 2012,
    Algorithm 1). `costs` receives the squared distance of each listed row that exceeds
    `reach`, 0 for the others. Returns the number of rows that moved, or -1 - r when row
    r holds a value that is not finite.
    """
    K, D = frame.centers.shape[0], frame.centers.shape[1]
    n_tiers = drift.widths.shape[0]
    T: cy.Py_ssize_t = max(16, min(128, 131072 // (K + 3 * D)))
    tiles: Tiles = _tiles(n_tiers, T, D)
    top: Top = room_for(K, T)
    listed: Listed = Listed(rows, weights, costs)
    y: cy.double[:, ::1] = np.empty((1, D))
    moved: cy.Py_ssize_t = 0
    stays: cy.bint
    swapped: cy.bint
    d2: cy.double
    with cy.nogil:
        for i in range(rows.shape[0]):
            r: cy.Py_ssize_t = rows[i]
            norm = _load(X, r, frame.origin, frame.inv, y)
            if not isfinite(norm):
                moved = -1 - r
                break
            stays, swapped, d2 = _look_again(i, y, listed, drift, frame, bounds, sums)
            moved += swapped
            if stays:
                continue
            tier = _tier(drift.beyond, 0.8 * (bounds.lower[r] - sqrt(d2) * UP))
            t = tiles.filled[tier]
            p = tier * T + t
            tiles.norms[p], tiles.own[p], tiles.at[p] = norm, d2, i
            _store(y, tiles, tier, t)
            tiles.filled[tier] += 1
            if t + 1 == T:
                moved += _flush(tier, tiles, top, listed, drift, frame, bounds, sums)
        if moved >= 0:
            for tier in range(n_tiers):
                moved += _flush(tier, tiles, top, listed, drift, frame, bounds, sums)
    return moved


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _look_again(
    i: cy.Py_ssize_t,
    y: cy.double[:, ::1],
    listed: Listed,
    drift: Drift,
    frame: Frame,
    bounds: Bounds,
    sums: Sums,
) -> tuple[cy.bint, cy.bint, cy.double]:
    """Measure ‖y − c‖² of the two centres that listed row i knows.

    Returns whether the nearer one is the nearest of all, whether they changed places,
    and its squared distance; infinite where the row knows none.
    """
    r: cy.Py_ssize_t = listed.rows[i]
    a: cy.Py_ssize_t = bounds.labels[r]
    b: cy.Py_ssize_t = bounds.seconds[r]
    if a < 0:
        return False, False, INF
    w: cy.double = listed.weights[r] if listed.weights.shape[0] else 1.0
    swapped: cy.bint = False
    d2: cy.double = _sq_dist(y, 0, frame.centers, a)
    u: cy.double = sqrt(d2) * UP
    low: cy.double = min(bounds.lower[r] - drift.others[a], drift.gaps[a] - u) * DOWN
    stays: cy.bint = u < max(min(bounds.near[r], low), frame.halves[a])
    if not stays and b >= 0:
        other2: cy.double = _sq_dist(y, 0, frame.centers, b)
        if other2 < d2 or (other2 == d2 and b < a):
            _book(sums, a, y, 0, frame.refs, -w)
            _book(sums, b, y, 0, frame.refs, w)
            bounds.labels[r], bounds.seconds[r] = b, a
            a, d2, other2 = b, other2, d2
            u = sqrt(d2) * UP
            swapped = True
        bounds.near[r] = sqrt(other2) * DOWN
        stays = u < low
    bounds.upper[r] = u
    if stays:
        bounds.lower[r] = low
        bound: cy.double = max(min(bounds.near[r], low), 0.0)
        sums.removal_cost[a] += max(bound * bound - d2, 0.0) * w
        listed.costs[i] = d2 if d2 > frame.reach * frame.reach else 0.0
    return stays, swapped, d2


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _error(D: cy.Py_ssize_t, widest: cy.double, norm: cy.double) -> cy.double:
    """(D + 8) 2⁻²³ |c|(|y| + |c|): how far two float32 scores of a row may be off.

    Infinite where float32 may overflow: then scores may be no numbers, and every centre
    is compared in float64.
    """
    reach: cy.double = sqrt(norm) + widest
    if reach > HUGE or widest * reach > HUGE:
        return INF
    return (D + 8) * 2.0**-23 * widest * reach


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _tier(beyond: cy.const[cy.double][::1], margin: cy.double) -> cy.Py_ssize_t:
    """The narrowest tier that leaves out only centres which drifted less.

    Not in the papers.
    """
    for tier in range(beyond.shape[0] - 1):
        if beyond[tier] < margin:
            return tier
    return beyond.shape[0] - 1


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _flush(
    tier: cy.Py_ssize_t,
    tiles: Tiles,
    top: Top,
    listed: Listed,
    drift: Drift,
    frame: Frame,
    bounds: Bounds,
    sums: Sums,
) -> cy.Py_ssize_t:
    """Compare a tile of rows with the centres of its tier; return how many moved.

    The argmin of `visit_rows`.
    """
    moved: cy.Py_ssize_t = 0
    n, width = tiles.filled[tier], drift.widths[tier]
    first: cy.Py_ssize_t = tier * tiles.narrow.shape[1]
    row_products(drift.narrow, tiles.narrow[tier], width, n, top.scores)
    for t in range(n):
        r: cy.Py_ssize_t = listed.rows[tiles.at[first + t]]
        a: cy.Py_ssize_t = bounds.labels[r]
        b: cy.Py_ssize_t = bounds.seconds[r]
        if a >= 0 and drift.rank[a] < width:  # these two are known
            top.scores[drift.rank[a], t] = -3e38
        if b >= 0 and drift.rank[b] < width:
            top.scores[drift.rank[b], t] = -3e38
    scan(top, drift.half, width, n)
    for t in range(n):
        moved += _compare(tier, t, tiles, top, listed, drift, frame, bounds, sums)
    tiles.filled[tier] = 0
    return moved


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _compare(
    tier: cy.Py_ssize_t,
    t: cy.Py_ssize_t,
    tiles: Tiles,
    top: Top,
    listed: Listed,
    drift: Drift,
    frame: Frame,
    bounds: Bounds,
    sums: Sums,
) -> cy.bint:
    """The argmin of `visit_rows` for row t of a tile; return whether it moved."""
    k1: cy.Py_ssize_t
    k2: cy.Py_ssize_t
    d1: cy.double
    d2: cy.double
    rest2: cy.double
    p = tier * tiles.narrow.shape[1] + t
    r: cy.Py_ssize_t = listed.rows[tiles.at[p]]
    a: cy.Py_ssize_t = bounds.labels[r]
    b: cy.Py_ssize_t = bounds.seconds[r]
    width, norm = drift.widths[tier], tiles.norms[p]
    error = _error(tiles.wide.shape[1], drift.widest, norm)
    first2: cy.double = norm - 2.0 * top.g1[t] - error
    rest2 = norm - 2.0 * top.g2[t] - error
    k1, k2, d1, d2 = a, b, tiles.own[p], bounds.near[r] * bounds.near[r]
    if first2 > d1:
        if top.g1[t] < GONE:  # a and b were all there is
            d2, rest2 = d2 if b >= 0 else INF, INF
        elif b < 0 or d2 > first2:
            k2, d2, rest2 = drift.order[top.first[t]], first2, min(rest2, d2)
        else:
            rest2 = first2
    else:
        k1, k2, d1, d2, rest2 = two_nearest(
            tiles.wide, p, drift.order[top.first[t]], a, b, rest2, frame.centers
        )
        if not d1 < rest2:
            floor = 0.5 * (norm - d1) - error
            k1, k2, d1, d2, rest2 = decide(
                tiles.wide, p, top.scores, t, width, floor, a, b, drift, frame.centers
            )
            rest2 = min(rest2, norm - 2.0 * floor - error)
    w: cy.double = listed.weights[r] if listed.weights.shape[0] else 1.0
    low: cy.double = sqrt(max(rest2, 0.0))
    if width < drift.order.shape[0]:
        low = max(min(low, bounds.lower[r] - drift.beyond[tier]), 0.0)
    bounds.seconds[r], bounds.upper[r] = k2, sqrt(d1) * UP
    bounds.near[r], bounds.lower[r] = sqrt(d2) * DOWN, low * DOWN
    sums.removal_cost[k1] += max(min(d2, low * low) - d1, 0.0) * w
    listed.costs[tiles.at[p]] = d1 if d1 > frame.reach * frame.reach else 0.0
    if k1 == a:
        return False
    if a >= 0:
        _book(sums, a, tiles.wide, p, frame.refs, -w)
    _book(sums, k1, tiles.wide, p, frame.refs, w)
    bounds.labels[r] = k1
    return True


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _load(
    X: cy.const[cy.floating][:, ::1],
    r: cy.Py_ssize_t,
    origin: cy.const[cy.double][::1],
    inv: cy.double,
    y: cy.double[:, ::1],
) -> cy.double:
    """Centre row r; return |y|² (y = (x − origin)·inv)."""
    total: cy.double = 0.0
    for d in range(X.shape[1]):
        v: cy.double = (X[r, d] - origin[d]) * inv
        y[0, d] = v
        total += v * v
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _store(
    y: cy.const[cy.double][:, ::1], tiles: Tiles, tier: cy.Py_ssize_t, t: cy.Py_ssize_t
) -> cy.void:
    """wide_t = narrow_t = y: put a row into its tile."""
    p = tier * tiles.narrow.shape[1] + t
    for d in range(y.shape[1]):
        tiles.wide[p, d] = y[0, d]
        tiles.narrow[tier, t, d] = y[0, d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _sq_dist(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    C: cy.const[cy.double][:, ::1],
    k: cy.Py_ssize_t,
) -> cy.double:
    """‖y_i − c_k‖²; in this file, where the compiler can put it into its callers."""
    total: cy.double = 0.0
    for d in range(Y.shape[1]):
        diff: cy.double = Y[i, d] - C[k, d]
        total += diff * diff
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _book(
    sums: Sums,
    k: cy.Py_ssize_t,
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    refs: cy.const[cy.double][:, ::1],
    w: cy.double,
) -> cy.void:
    """Add a row of weight w (negative: take it away) to the sums of cluster k.

    n ± w, Σw(y − ref), Σw‖y − ref‖².
    """
    total: cy.double = 0.0
    for d in range(Y.shape[1]):
        diff: cy.double = Y[i, d] - refs[k, d]
        sums.sums[k, d] += w * diff
        total += diff * diff
    sums.counts[k] += w
    sums.squares[k] += w * total
