"""Walks over the rows of a block, one after the other, where each row may change
what the next one sees: the serial and the collapsed pass of DP-means.
"""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import kernel
from kplus.linear.kernels_algebra import sq_dist

__all__ = ["Live", "collapsed_pass", "nearest_centers", "serial_pass", "tally_rows"]

LEAST_GAIN = 1e-12  # a move must pay by this share, or rounding could move rows forever


class Live(NamedTuple):
    """Clusters as they are while rows move; arrays have room for more of them."""

    members: np.ndarray  # (room,) int64 rows of positive weight, 0: no cluster here
    counts: np.ndarray  # (room,) summed weights
    means: np.ndarray  # (room, D)
    refs: np.ndarray  # (room, D) first row of each cluster that is opened


@kernel
def _nearest(Y, i, centers, K):
    """min and argmin_k ‖y − c_k‖² of the first K centres, ties to the lower number."""
    best, at = sq_dist(Y, i, centers, 0), 0
    for k in range(1, K):
        d2 = sq_dist(Y, i, centers, k)
        if d2 < best:
            best, at = d2, k
    return best, at


@kernel
def nearest_centers(Y, centers, labels):
    """labels_n = argmin_k ‖y_n − c_k‖²."""
    for i in range(Y.shape[0]):
        labels[i] = _nearest(Y, i, centers, centers.shape[0])[1]


@kernel
def serial_pass(Y, weights, centers, K, penalty, most, labels):
    """Assign rows in order; a row that costs more than the penalty opens a cluster.

    ``min_k |y - c_k|² > λ²`` (Kulis & Jordan 2012, Algorithm 1). The first `K` of
    `centers` are there already; opened ones are written behind them, `most` in all.
    Returns how many there are now.
    """
    for i in range(Y.shape[0]):
        d2, k = _nearest(Y, i, centers, K)
        share = min(weights[i], 1.0) if weights.size else 1.0
        if share * d2 > penalty and most > K:
            k = K
            centers[k] = Y[i]
            K += 1
        labels[i] = k
    return K


@kernel
def collapsed_pass(Y, weights, live, K, penalty, most, labels):
    """Move rows in order to where Eq. 9 rises least once they are taken out.

    MAD-Bayes Algorithm 2. With x out, joining a cluster of weight n costs ``w n/(n + w)
    |x - mean|²``, which for its own cluster, of weight n with x in, is ``w n/(n - w) |x
    - mean|²``; a row alone pays the penalty λ² instead, and so does a row that opens a
    cluster. It opens one where a single copy of it, of weight ``min(w, 1)``, would.
    Returns the number of places taken in `live`, and how many rows moved.
    """
    present = np.count_nonzero(live.members[:K])
    moved = 0
    for i in range(Y.shape[0]):
        w = weights[i] if weights.size else 1.0
        a = labels[i]
        best, at = np.inf, -1
        for k in range(K):
            if k != a and live.members[k] > 0:
                n = live.counts[k]
                cost = n / (n + w) * sq_dist(Y, i, live.means, k)
                if cost < best:
                    best, at = cost, k
        if w == 0.0:  # costs nothing anywhere: as a row of hardly any weight
            if a < 0 or not live.members[a] or best < sq_dist(Y, i, live.means, a):
                labels[i] = at
            continue
        best *= w
        alone = live.members[a] == 1
        rest = 0.0 if alone else max(live.counts[a] - w, 2.0**-50 * w)
        here = penalty
        if not alone:
            here = w * (rest + w) / rest * sq_dist(Y, i, live.means, a)
        if not best < here * (1.0 - LEAST_GAIN):
            best, at = here, a
        if not alone and present < most:
            n, share = rest if at == a else live.counts[at], min(w, 1.0)
            single = best * share * (n + w) / (w * (n + share))
            if single > penalty * (1.0 + LEAST_GAIN):
                at = K
        if at != a:
            _leave(live, a, Y, i, w, rest)
            if at == K:
                live.refs[K], live.means[K] = Y[i], Y[i]
                live.members[K], live.counts[K] = 0, 0.0
                K += 1
            _join(live, at, Y, i, w)
            present = present - alone + (live.members[at] == 1)
            labels[i] = at
            moved += 1
    return K, moved


@kernel
def _leave(live, k, Y, i, w, rest):
    """Take row i out of cluster k: m ← m + (m − y) w/rest."""
    live.members[k] -= 1
    live.counts[k] = rest
    if live.members[k] > 0:
        for d in range(Y.shape[1]):
            live.means[k, d] += (live.means[k, d] - Y[i, d]) * (w / rest)


@kernel
def _join(live, k, Y, i, w):
    """Put row i of weight w into cluster k: m ← m + (y − m) w/n."""
    live.members[k] += 1
    live.counts[k] += w
    for d in range(Y.shape[1]):
        live.means[k, d] += (Y[i, d] - live.means[k, d]) * (w / live.counts[k])


@kernel
def tally_rows(Y, weights, labels, refs, members, counts, sums, squares):
    """Σ w, Σ w(y − ref) and Σ w‖y − ref‖² of each cluster."""
    for i in range(Y.shape[0]):
        w = weights[i] if weights.size else 1.0
        k = labels[i]
        total = 0.0
        for d in range(Y.shape[1]):
            diff = Y[i, d] - refs[k, d]
            sums[k, d] += w * diff
            total += diff * diff
        members[k] += w > 0.0
        counts[k] += w
        squares[k] += w * total
