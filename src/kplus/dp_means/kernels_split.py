"""The best split of a cluster in two, by 2-means from its principal axis."""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_nsz_kernel, kernel

__all__ = ["Groups", "Splits", "group_rows", "split_cluster", "split_clusters"]


class Groups(NamedTuple):
    """Rows by cluster: those of cluster k are ``rows[starts[k] : starts[k + 1]]``."""

    rows: np.ndarray  # (n,)
    starts: np.ndarray  # (K + 1,)


class Splits(NamedTuple):
    """What splits of clusters gain, and the two centres of each."""

    gains: np.ndarray  # (n,)
    pairs: np.ndarray  # (n, 2, D)


@kernel
def group_rows(labels, K):
    """Rows of each cluster, in row order ({n : z_n = k})."""
    starts = np.zeros(K + 1, np.int64)
    for label in labels:
        starts[label + 1] += 1
    for k in range(K):
        starts[k + 1] += starts[k]
    at = starts[:-1].copy()
    rows = np.empty(labels.shape[0], np.int64)
    for i in range(labels.shape[0]):
        rows[at[labels[i]]] = i
        at[labels[i]] += 1
    return Groups(rows, starts)


@fast_nsz_kernel
def _project(Y, w, axis, out, onto):
    """out = Y·axis; onto = Σ w (y·axis) y."""
    onto[:] = 0.0
    for i in range(Y.shape[0]):
        dot = 0.0
        for d in range(Y.shape[1]):
            dot += Y[i, d] * axis[d]
        out[i] = dot
        dot *= w[i]
        for d in range(Y.shape[1]):
            onto[d] += dot * Y[i, d]


@fast_nsz_kernel
def _sum_above(Y, w, dots, cut, total):
    """Σ w and Σ w y over the rows with y·axis > cut."""
    weight = 0.0
    total[:] = 0.0
    for i in range(Y.shape[0]):
        if dots[i] > cut:
            weight += w[i]
            for d in range(Y.shape[1]):
                total[d] += w[i] * Y[i, d]
    return weight


@fast_nsz_kernel
def _farthest(Y, w):
    """argmax ‖y‖² over the rows that weigh anything."""
    far, most = 0, -1.0
    for i in range(Y.shape[0]):
        norm = 0.0
        for d in range(Y.shape[1]):
            norm += Y[i, d] * Y[i, d]
        if w[i] > 0.0 and norm > most:
            far, most = i, norm
    return far


@fast_nsz_kernel
def _dot(a, b):
    """Σ_d a_d b_d, with the flags of this file."""
    total = 0.0
    for d in range(a.shape[0]):
        total += a[d] * b[d]
    return total


@kernel
def split_cluster(Y, w, max_iter, first, second):
    """Split rows, centred on their mean, in two by 2-means.

    Not in the papers: a move that lowers MAD-Bayes Eq. 3 where the gain exceeds λ². The
    start is the sign along the principal axis (a few power steps from the farthest
    row), which depends on neither the order nor the number of copies of the rows.
    Writes the two centres and returns the fall of the squared distances,
    W₁W₂/(W₁+W₂)·|c₁ - c₂|²; 0 means that no split was found.
    """
    n, D = Y.shape
    dots, onto, axis, above = np.zeros(n), np.zeros(D), np.zeros(D), np.zeros(D)
    everything, W, far = np.zeros(D), 0.0, _farthest(Y, w)
    W = _sum_above(Y, w, dots, -1.0, everything)
    for d in range(D):
        axis[d] = Y[far, d]
    for _ in range(4):
        _project(Y, w, axis, dots, onto)
        norm = np.sqrt(_dot(onto, onto))
        if norm == 0.0:
            return 0.0
        for d in range(D):
            axis[d] = onto[d] / norm
    _project(Y, w, axis, dots, onto)
    cut, gain = _dot(axis, everything) / W, 0.0
    for _ in range(max_iter):
        W1 = _sum_above(Y, w, dots, cut, above)
        if W1 <= 0.0 or W1 >= W:
            break
        cut = 0.0
        for d in range(D):
            c1, c2 = above[d] / W1, (everything[d] - above[d]) / (W - W1)
            axis[d] = c1 - c2
            cut += 0.5 * (c1 * c1 - c2 * c2)
        rise = W1 * (W - W1) / W * _dot(axis, axis)
        if rise <= gain * (1.0 + 1e-4):
            break
        gain = rise
        for d in range(D):
            first[d] = above[d] / W1
            second[d] = (everything[d] - above[d]) / (W - W1)
        _project(Y, w, axis, dots, onto)
    return gain


@kernel
def split_clusters(Y, w, groups, centers, wanted, enough, max_iter, splits):
    """Split each wanted cluster on trial: the gain and the two centres.

    Not in the papers. Of a cluster of more than `enough` rows every so-manieth shows
    how it splits.
    """
    rows, starts = groups
    gains, pairs = splits
    D = Y.shape[1]
    for i in range(wanted.shape[0]):
        k = wanted[i]
        size = starts[k + 1] - starts[k]
        step = 1 + size // enough
        n = (size + step - 1) // step
        own, own_w, W = np.empty((n, D)), np.empty(n), 0.0
        for j in range(n):
            row = rows[starts[k] + j * step]
            own_w[j] = w[row]
            W += w[row]
            for d in range(D):
                own[j, d] = Y[row, d] - centers[k, d]
        if n < 2 or W <= 0.0:
            continue
        gain = split_cluster(own, own_w, max_iter, pairs[i, 0], pairs[i, 1])
        gains[i] = gain * size / n
        for side in range(2):
            for d in range(D):
                pairs[i, side, d] += centers[k, d]
