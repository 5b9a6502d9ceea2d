"""The posterior of A given Z in information form, with one row taken out and put back.

T = ZᵀX and H = (ZᵀZ + σx²/σa²)⁻¹: the mean of A is HT, σx²H the covariance of each of
its columns. To the shared features of a row its singles are but more noise: the row
counts for them with the weight ratio/(ratio + number of singles). So removing a row
stays well conditioned however small the noise.
"""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import inlined, kernel
from kplus.ibp.gibbs.kernels_draws import move_last_column
from kplus.linear.kernels_algebra import times_bits

__all__ = [
    "Posterior",
    "Work",
    "add_to_sums",
    "set_singles",
    "take_from_sums",
    "take_out",
    "without_singles",
    "work_for",
]

_SINGULAR = 1e-6  # a row that alone tells features apart has less room than that


class Posterior(NamedTuple):
    """Z, how many rows have each feature, T, H, and the Gram matrix of a sampler.

    `Q` is AAᵀ with A = HT in the accelerated sampler and TTᵀ in the collapsed one. All
    have room for more features than there are.
    """

    Z: np.ndarray
    counts: np.ndarray
    T: np.ndarray
    H: np.ndarray
    Q: np.ndarray


class Work(NamedTuple):
    """Room for one row: vectors by feature, H and Q without the row, and its bits.

    `old` are the bits with which the row is part of T, `shared` those of features that
    other rows have, too. The first of `vectors` is zero for features that no row has.
    """

    vectors: np.ndarray
    H: np.ndarray
    Q: np.ndarray
    old: np.ndarray
    shared: np.ndarray
    order: np.ndarray


@inlined
def work_for(capacity, n_vectors):
    """Empty `Work` for so many features."""
    return Work(
        np.empty((n_vectors, capacity)),
        np.empty((capacity, capacity)),
        np.empty((capacity, capacity)),
        np.empty(capacity, np.uint8),
        np.empty(capacity, np.uint8),
        np.empty(capacity, np.int64),
    )


@kernel
def _invert_without(Z, n, K, ratio, H):
    """H of all rows but n, from Z itself, by Gauss and Jordan.

    H = (Σ_{i≠n} z_iᵀz_i + ratio I)⁻¹. Without pivots, as what is inverted is positive
    definite.
    """
    for k in range(K):
        for m in range(K):
            H[k, m] = ratio if k == m else 0.0
    for i in range(len(Z)):
        if i != n:
            for k in range(K):
                if Z[i, k]:
                    for m in range(K):
                        H[k, m] += Z[i, m]
    for k in range(K):
        pivot = 1.0 / H[k, k]
        H[k, k] = 1.0
        for m in range(K):
            H[k, m] *= pivot
        for i in range(K):
            if i != k:
                factor = H[i, k]
                H[i, k] = 0.0
                for m in range(K):
                    H[i, m] -= factor * H[k, m]


@inlined
def take_out(post, n, K, ratio, weight, h, work):
    """Note old and shared bits; make H what it is without row n, and h H·shared.

    H₋ = H + w hhᵀ/(1 − w zHz). The rows of H that belong to singles become those of
    features that no row has. False where H had to be computed afresh.
    """
    H, shared = work.H, work.shared
    for k in range(K):
        work.old[k] = post.Z[n, k]
        shared[k] = post.Z[n, k] if post.counts[k] > 1 else 0
    s = times_bits(post.H, shared, K, h)
    room = 1.0 - weight * s
    if room < _SINGULAR:
        _invert_without(post.Z, n, K, ratio, H)
    else:
        for i in range(K):
            factor = weight * h[i] / room
            old, new = post.H[i], H[i]
            for j in range(K):
                new[j] = old[j] + factor * h[j]
    for k in range(K):
        if post.Z[n, k] and not shared[k]:
            for i in range(K):
                H[i, k] = 0.0
                H[k, i] = 0.0
            H[k, k] = 1.0 / ratio
    if room < _SINGULAR:
        times_bits(H, shared, K, h)
        return False
    for k in range(K):
        h[k] = h[k] / room if shared[k] or not post.Z[n, k] else 0.0
    return True


@inlined
def without_singles(z, K, vector, work):
    """Zero what belongs to the singles of a row in Q and in a vector by feature."""
    for k in range(K):
        if z[k] and not work.shared[k]:
            vector[k] = 0.0
            for i in range(K):
                work.Q[i, k] = 0.0
                work.Q[k, i] = 0.0


@inlined
def take_from_sums(T, x, old, K):
    """T −= zᵀx: take a row out, before its values change."""
    for k in range(K):
        if old[k]:
            old[k] = 0
            for d in range(len(x)):
                T[k, d] -= x[d]


@inlined
def add_to_sums(T, x, z, old, K):
    """T += (z − old)ᵀx: let T follow the bits of a row that changed."""
    for k in range(K):
        if z[k] != old[k]:
            t = T[k]
            if z[k]:
                for d in range(len(x)):
                    t[d] += x[d]
            else:
                for d in range(len(x)):
                    t[d] -= x[d]


@inlined
def set_singles(post, n, K, now, number, ratio, work):
    """Let row n have so many singles instead of `now`. Return the new K."""
    if number > now:
        return _append_singles(post, n, K, number - now, ratio, work)
    if number < now:
        return _drop_singles(post, n, K, now - number, work)
    return K


@inlined
def _append_singles(post, n, K, new, ratio, work):
    """Give row n features of its own. Return the new K."""
    H, Q = work.H, work.Q
    for k in range(K, K + new):
        work.vectors[0, k] = 0.0
        for i in range(len(post.Z)):
            post.Z[i, k] = 0
        post.Z[n, k] = 1
        post.counts[k] = 1
        work.old[k] = 0
        post.T[k, :] = 0.0
        for i in range(k + 1):
            H[i, k] = 0.0
            H[k, i] = 0.0
            Q[i, k] = 0.0
            Q[k, i] = 0.0
        H[k, k] = 1.0 / ratio
    return K + new


@kernel
def _move_both(M, k, last):
    """Let the last row and column of a square matrix take the place of those of k."""
    for i in range(last + 1):
        M[k, i] = M[last, i]
    for i in range(last + 1):
        M[i, k] = M[i, last]


@inlined
def _drop_singles(post, n, K, gone, work):
    """Take singles from row n. Return K − gone.

    The last feature moves to the place of each, in all that goes by features.
    """
    k = K - 1
    while gone > 0:
        if post.Z[n, k] and post.counts[k] == 1:
            last = K - 1
            move_last_column(post.Z, k, last)
            move_last_column(work.vectors, k, last)
            post.counts[k] = post.counts[last]
            work.old[k] = work.old[last]
            for d in range(post.T.shape[1]):
                post.T[k, d] = post.T[last, d]
            _move_both(work.H, k, last)
            _move_both(work.Q, k, last)
            K, gone = last, gone - 1
        k -= 1
    return K
