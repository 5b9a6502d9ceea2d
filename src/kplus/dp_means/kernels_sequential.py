"""Walks over the rows of a block, one after the other, where each row may change
what the next one sees: the serial and the collapsed pass of DP-means.
"""

import cython as cy
import numpy as np

__all__ = ["Live", "collapsed_pass", "nearest_centers", "serial_pass", "tally_rows"]

# A move must pay by this share, or rounding could move rows forever.
LEAST_GAIN = cy.declare(cy.double, 1e-12)
INF = cy.declare(cy.double, float("inf"))


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Live:
    """Clusters as they are while rows move; arrays have room for more of them."""

    members: cy.longlong[::1]  # (room,) rows of positive weight, 0: no cluster here
    counts: cy.double[::1]  # (room,) summed weights
    means: cy.double[:, ::1]  # (room, D)
    refs: cy.double[:, ::1]  # (room, D) first row of each cluster that is opened


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
def _sq_dists(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    C: cy.const[cy.double][:, ::1],
    K: cy.Py_ssize_t,
    out: cy.double[::1],
) -> cy.void:
    """out_k = ‖y_i − c_k‖², four at once: long sums take little longer then than one.

    `out` has room for three numbers more.
    """
    if Y.shape[1] < 32:
        for k in range(K):
            out[k] = _sq_dist(Y, i, C, k)
        return
    for k in range(0, K, 4):
        k1, k2, k3 = min(k + 1, K - 1), min(k + 2, K - 1), min(k + 3, K - 1)
        s0: cy.double = 0.0
        s1: cy.double = 0.0
        s2: cy.double = 0.0
        s3: cy.double = 0.0
        for d in range(Y.shape[1]):
            y: cy.double = Y[i, d]
            d0: cy.double = y - C[k, d]
            d1: cy.double = y - C[k1, d]
            d2: cy.double = y - C[k2, d]
            d3: cy.double = y - C[k3, d]
            s0 += d0 * d0
            s1 += d1 * d1
            s2 += d2 * d2
            s3 += d3 * d3
        out[k], out[k + 1], out[k + 2], out[k + 3] = s0, s1, s2, s3


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _nearest(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    centers: cy.const[cy.double][:, ::1],
    K: cy.Py_ssize_t,
    d2: cy.double[::1],
) -> tuple[cy.double, cy.Py_ssize_t]:
    """min and argmin_k ‖y − c_k‖² of the first K centres, ties to the lower number."""
    at: cy.Py_ssize_t = 0
    best: cy.double
    if Y.shape[1] < 32:
        best = _sq_dist(Y, i, centers, 0)
        for k in range(1, K):
            one = _sq_dist(Y, i, centers, k)
            if one < best:
                best, at = one, k
    else:
        _sq_dists(Y, i, centers, K, d2)
        best = d2[0]
        for k in range(1, K):
            if d2[k] < best:
                best, at = d2[k], k
    return best, at


def nearest_centers(
    Y: cy.const[cy.double][:, ::1],
    centers: cy.const[cy.double][:, ::1],
    labels: cy.int[::1],
) -> None:
    """labels_n = argmin_k ‖y_n − c_k‖²."""
    d2: cy.double[::1] = np.empty(centers.shape[0] + 3)
    with cy.nogil:
        for i in range(Y.shape[0]):
            labels[i] = _nearest(Y, i, centers, centers.shape[0], d2)[1]


def serial_pass(
    Y: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    centers: cy.double[:, ::1],
    K: cy.Py_ssize_t,
    penalty: cy.double,
    labels: cy.int[::1],
) -> int:
    """Assign rows in order; a row that costs more than the penalty opens a cluster.

    ``min_k |y - c_k|² > λ²`` (Kulis & Jordan 2012, Algorithm 1). The first `K` of
    `centers` are there already; opened ones are written behind them, as long as there
    is room. Returns how many there are now.
    """
    dists: cy.double[::1] = np.empty(centers.shape[0] + 3)
    k: cy.Py_ssize_t
    d2: cy.double
    with cy.nogil:
        for i in range(Y.shape[0]):
            d2, k = _nearest(Y, i, centers, K, dists)
            share: cy.double = min(weights[i], 1.0) if weights.shape[0] else 1.0
            if share * d2 > penalty and centers.shape[0] > K:
                k = K
                for d in range(Y.shape[1]):
                    centers[k, d] = Y[i, d]
                K += 1
            labels[i] = k
    return K


def collapsed_pass(
    Y: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    live: Live,
    K: cy.Py_ssize_t,
    penalty: cy.double,
    most: cy.double,
    labels: cy.int[::1],
) -> tuple[int, int]:
    """Move rows in order to where Eq. 9 rises least once they are taken out.

    MAD-Bayes Algorithm 2. With x out, joining a cluster of weight n costs ``w n/(n + w)
    |x - mean|²``, which for its own cluster, of weight n with x in, is ``w n/(n - w) |x
    - mean|²``; a row alone pays the penalty λ² instead, and so does a row that opens a
    cluster. It opens one where a single copy of it, of weight ``min(w, 1)``, would.
    Returns the number of places taken in `live`, and how many rows moved.
    """
    present: cy.Py_ssize_t = 0
    moved: cy.Py_ssize_t = 0
    best: cy.double
    at: cy.Py_ssize_t
    n: cy.double
    d2: cy.double[::1] = np.empty(live.counts.shape[0] + 3)
    members, counts, means = live.members, live.counts, live.means
    with cy.nogil:
        for k in range(K):
            present += members[k] != 0
        for i in range(Y.shape[0]):
            w: cy.double = weights[i] if weights.shape[0] else 1.0
            a: cy.Py_ssize_t = labels[i]
            best, at = _cheapest(Y, i, live, K, w, a, d2)
            if w == 0.0:  # costs nothing anywhere: as a row of hardly any weight
                if a < 0 or not members[a] or best < _sq_dist(Y, i, means, a):
                    labels[i] = at
                continue
            best *= w
            alone: cy.bint = members[a] == 1
            rest: cy.double = 0.0 if alone else max(counts[a] - w, 2.0**-50 * w)
            here: cy.double = penalty
            if not alone:
                here = w * (rest + w) / rest * _sq_dist(Y, i, means, a)
            if not best < here * (1.0 - LEAST_GAIN):
                best, at = here, a
            if not alone and present < most:
                n = rest if at == a else counts[at]
                share: cy.double = min(w, 1.0)
                single: cy.double = best * share * (n + w) / (w * (n + share))
                if single > penalty * (1.0 + LEAST_GAIN):
                    at = K
            if at != a:
                _leave(live, a, Y, i, w, rest)
                if at == K:
                    _open(live, K, Y, i)
                    K += 1
                _join(live, at, Y, i, w)
                present = present - alone + (members[at] == 1)
                labels[i] = at
                moved += 1
    return K, moved


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _cheapest(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    live: Live,
    K: cy.Py_ssize_t,
    w: cy.double,
    a: cy.Py_ssize_t,
    d2: cy.double[::1],
) -> tuple[cy.double, cy.Py_ssize_t]:
    """min and argmin_k≠a n/(n + w) ‖y − mean_k‖², of clusters with rows; -1: none."""
    best: cy.double = INF
    at: cy.Py_ssize_t = -1
    _sq_dists(Y, i, live.means, K, d2)
    for k in range(K):
        if k != a and live.members[k] > 0:
            n: cy.double = live.counts[k]
            cost: cy.double = n / (n + w) * d2[k]
            if cost < best:
                best, at = cost, k
    return best, at


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _open(
    live: Live, k: cy.Py_ssize_t, Y: cy.const[cy.double][:, ::1], i: cy.Py_ssize_t
) -> cy.void:
    """An empty cluster k at row i."""
    live.members[k], live.counts[k] = 0, 0.0
    for d in range(Y.shape[1]):
        live.refs[k, d] = Y[i, d]
        live.means[k, d] = Y[i, d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _leave(
    live: Live,
    k: cy.Py_ssize_t,
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    w: cy.double,
    rest: cy.double,
) -> cy.void:
    """Take row i out of cluster k: m ← m + (m − y) w/rest."""
    live.members[k] -= 1
    live.counts[k] = rest
    if live.members[k] > 0:
        share: cy.double = w / rest
        for d in range(Y.shape[1]):
            live.means[k, d] += (live.means[k, d] - Y[i, d]) * share


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _join(
    live: Live,
    k: cy.Py_ssize_t,
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    w: cy.double,
) -> cy.void:
    """Put row i of weight w into cluster k: m ← m + (y − m) w/n."""
    live.members[k] += 1
    live.counts[k] += w
    share: cy.double = w / live.counts[k]
    for d in range(Y.shape[1]):
        live.means[k, d] += (Y[i, d] - live.means[k, d]) * share


def tally_rows(
    Y: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    labels: cy.const[cy.int][::1],
    refs: cy.const[cy.double][:, ::1],
    members: cy.longlong[::1],
    counts: cy.double[::1],
    sums: cy.double[:, ::1],
    squares: cy.double[::1],
) -> None:
    """Σ w, Σ w(y − ref) and Σ w‖y − ref‖² of each cluster."""
    with cy.nogil:
        for i in range(Y.shape[0]):
            w: cy.double = weights[i] if weights.shape[0] else 1.0
            k: cy.Py_ssize_t = labels[i]
            total: cy.double = 0.0
            for d in range(Y.shape[1]):
                diff: cy.double = Y[i, d] - refs[k, d]
                sums[k, d] += w * diff
                total += diff * diff
            members[k] += w > 0.0
            counts[k] += w
            squares[k] += w * total
