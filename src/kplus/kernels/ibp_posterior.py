"""The posterior of A given Z in information form, with one row taken out and put back.

T = ZᵀX and H = (ZᵀZ + σx²/σa²)⁻¹: the mean of A is HT, σx²H the covariance of each of
its columns. To the shared features of a row its singles are but more noise: the row
counts for them with the weight ratio/(ratio + number of singles). So removing a row
stays well conditioned however small the noise.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from kplus.kernels.ibp_rows import FAST, move_last_column, times_bits

__all__ = ["Posterior", "add_to_sums", "append_singles", "drop_singles", "take_out"]

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


@nb.njit(nogil=True, cache=True)
def _invert_without(Z, n, K, ratio, H):
    """H of all rows but n, from Z itself."""
    S = np.zeros((K, K))
    for i in range(len(Z)):
        if i != n:
            for k in range(K):
                if Z[i, k]:
                    for m in range(K):
                        S[k, m] += Z[i, m]
    for k in range(K):
        S[k, k] += ratio
    H[:K, :K] = np.linalg.inv(S)


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def take_out(post, n, K, ratio, shared, weight, h, H):
    """Fill H with what it is without row n; h becomes H·`shared` of it.

    `shared` are the bits of the row but for its singles, whose rows of H become those
    of features that no row has. False where this had to be computed afresh.
    """
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


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def add_to_sums(T, x, z, old, K):
    """Let T follow the bits of a row that changed."""
    for k in range(K):
        if z[k] != old[k]:
            t = T[k]
            if z[k]:
                for d in range(len(x)):
                    t[d] += x[d]
            else:
                for d in range(len(x)):
                    t[d] -= x[d]


@nb.njit(nogil=True, cache=True)
def append_singles(post, n, K, new, ratio, old, H, Q):
    """Give row n features of its own; H and Q are without the row. Return K."""
    for k in range(K, K + new):
        for i in range(len(post.Z)):
            post.Z[i, k] = 0
        post.Z[n, k] = 1
        post.counts[k] = 1
        old[k] = 0
        post.T[k, :] = 0.0
        for i in range(k + 1):
            H[i, k] = 0.0
            H[k, i] = 0.0
            Q[i, k] = 0.0
            Q[k, i] = 0.0
        H[k, k] = 1.0 / ratio
    return K + new


@nb.njit(nogil=True, cache=True)
def _move_both(M, k, last):
    """Let the last row and column of a square matrix take the place of those of k."""
    for i in range(last + 1):
        M[k, i] = M[last, i]
    for i in range(last + 1):
        M[i, k] = M[i, last]


@nb.njit(nogil=True, cache=True)
def drop_singles(post, n, K, gone, old, vectors, H, Q):
    """Take singles from row n; H and Q are without the row. Return K.

    The last feature moves to the place of each, in all that goes by features.
    """
    k = K - 1
    while gone > 0:
        if post.Z[n, k] and post.counts[k] == 1:
            last = K - 1
            move_last_column(post.Z, k, last)
            move_last_column(vectors, k, last)
            post.counts[k] = post.counts[last]
            old[k] = old[last]
            post.T[k, :] = post.T[last, :]
            _move_both(H, k, last)
            _move_both(Q, k, last)
            K, gone = last, gone - 1
        k -= 1
    return K
