"""The posterior of A given Z in information form, with one row taken out and put back.

T = ZᵀX and H = (ZᵀZ + σx²/σa²)⁻¹: the mean of A is HT, σx²H the covariance of each of
its columns. To the shared features of a row its singles are but more noise: the row
counts for them with the weight ratio/(ratio + number of singles). So removing a row
stays well conditioned however small the noise.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.ibp.gibbs.kernels_draws import move_last_bits

__all__ = [
    "Posterior",
    "Work",
    "add_to_sums",
    "set_singles",
    "take_from_precision",
    "take_from_sums",
    "take_out",
    "without_singles",
    "work_for",
]

# A row that alone tells features apart has less room than that.
_SINGULAR = cy.declare(cy.double, 1e-6)


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Posterior:
    """Z, how many rows have each feature, T, H, and the Gram matrix of a sampler.

    `Q` is AAᵀ with A = HT in the accelerated sampler and TTᵀ in the collapsed one. All
    have room for more features than there are; Z has no bits there.
    """

    Z: cy.uchar[:, ::1]
    counts: cy.longlong[::1]
    T: cy.double[:, ::1]
    H: cy.double[:, ::1]
    Q: cy.double[:, ::1]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Work:
    """Room for one row: vectors by feature, H and Q without the row, and its bits.

    `b` is Ax or Tx, zero for features that no row has; h = Hz, g = Qz, and `v` is one
    more. `factors` has columns of A, one for each gap of the row. `old` are the bits
    with which the row is part of T, `shared` those of features that other rows have,
    too. `error` and `spread` say how the bits fit: ‖x − zE[A]‖² and 1 + zHz. `part` is
    that of hhᵀ by which H without the row differs from that with it; `whole` says
    whether H and Q have been computed, or their diagonals only.
    """

    b: cy.double[::1]
    h: cy.double[::1]
    g: cy.double[::1]
    v: cy.double[::1]
    H: cy.double[:, ::1]
    Q: cy.double[:, ::1]
    factors: cy.double[:, ::1]
    old: cy.uchar[::1]
    shared: cy.uchar[::1]
    order: cy.Py_ssize_t[::1]
    error: cy.double
    spread: cy.double
    part: cy.double
    whole: cy.bint


@cy.cfunc
def work_for(capacity: cy.Py_ssize_t, gaps: cy.Py_ssize_t) -> Work:
    """Empty `Work` for so many features, and so many gaps of a row."""
    C = capacity
    return Work(
        *np.empty((4, C)),
        *np.empty((2, C, C)),
        np.empty((gaps, C)),
        *np.empty((2, C), np.uint8),
        np.empty(C, np.intp),
        0.0,
        1.0,
        0.0,
        False,
    )


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _invert_without(
    Z: cy.const[cy.uchar][:, ::1],
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    ratio: cy.double,
    H: cy.double[:, ::1],
) -> cy.void:
    """H of all rows but n, from Z itself, by Gauss and Jordan.

    H = (Σ_{i≠n} z_iᵀz_i + ratio I)⁻¹. Without pivots, as what is inverted is positive
    definite.
    """
    for k in range(K):
        for m in range(K):
            H[k, m] = ratio if k == m else 0.0
    for i in range(Z.shape[0]):
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


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _times_shared(
    M: cy.const[cy.double][:, ::1], K: cy.Py_ssize_t, work: Work
) -> cy.double:
    """h = Mz for the shared bits z and a symmetric M; return zMz."""
    total: cy.double = 0.0
    for i in range(K):
        work.h[i] = 0.0
    for j in range(K):
        if work.shared[j]:
            for i in range(K):
                work.h[i] += M[j, i]
    for i in range(K):
        if work.shared[i]:
            total += work.h[i]
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def take_out(
    post: Posterior,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    ratio: cy.double,
    weight: cy.double,
    work: Work,
) -> cy.bint:
    """Note old and shared bits of row n; let h be H·shared without the row.

    h/(1 − w zHz), zero for singles. False where H without the row had to be computed
    afresh.
    """
    for k in range(K):
        work.old[k] = post.Z[n, k]
        work.shared[k] = post.Z[n, k] if post.counts[k] > 1 else 0
    room = 1.0 - weight * _times_shared(post.H, K, work)
    work.part = weight * room
    if room < _SINGULAR:
        _invert_without(post.Z, n, K, ratio, work.H)
        _free_singles(K, ratio, work)
        _times_shared(work.H, K, work)
        return False
    for k in range(K):
        work.h[k] = 0.0 if work.old[k] and not work.shared[k] else work.h[k] / room
    return True


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def take_from_precision(
    post: Posterior, K: cy.Py_ssize_t, ratio: cy.double, work: Work
) -> cy.void:
    """H without the row that `take_out` looked at: H₋ = H + w hhᵀ/(1 − w zHz)."""
    for i in range(K):
        factor = work.part * work.h[i]
        for j in range(K):
            work.H[i, j] = post.H[i, j] + factor * work.h[j]
    _free_singles(K, ratio, work)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _free_singles(K: cy.Py_ssize_t, ratio: cy.double, work: Work) -> cy.void:
    """Rows of H that belong to singles become those of features that no row has."""
    for k in range(K):
        if work.old[k] and not work.shared[k]:
            for i in range(K):
                work.H[i, k] = 0.0
                work.H[k, i] = 0.0
            work.H[k, k] = 1.0 / ratio


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def without_singles(K: cy.Py_ssize_t, work: Work) -> cy.void:
    """Zero what belongs to the singles of a row in Q and b."""
    for k in range(K):
        if work.old[k] and not work.shared[k]:
            work.b[k] = 0.0
            for i in range(K):
                work.Q[i, k] = 0.0
                work.Q[k, i] = 0.0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def take_from_sums(
    post: Posterior,
    X: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    work: Work,
) -> cy.void:
    """T −= zᵀx: take a row out, before its values change."""
    for k in range(K):
        if work.old[k]:
            work.old[k] = 0
            for d in range(X.shape[1]):
                post.T[k, d] -= X[n, d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def add_to_sums(
    post: Posterior,
    X: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    work: Work,
) -> cy.void:
    """T += (z − old)ᵀx: let T follow the bits of a row that changed."""
    for k in range(K):
        if post.Z[n, k] != work.old[k]:
            sign = 1.0 if post.Z[n, k] else -1.0
            for d in range(X.shape[1]):
                post.T[k, d] += sign * X[n, d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def set_singles(
    post: Posterior,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    now: cy.Py_ssize_t,
    number: cy.Py_ssize_t,
    ratio: cy.double,
    work: Work,
) -> cy.Py_ssize_t:
    """Let row n have so many singles instead of `now`. Return the new K."""
    if number > now:
        return _append_singles(post, n, K, number - now, ratio, work)
    if number < now:
        return _drop_singles(post, n, K, now - number, work)
    return K


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _append_singles(
    post: Posterior,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    new: cy.Py_ssize_t,
    ratio: cy.double,
    work: Work,
) -> cy.Py_ssize_t:
    """Give row n features of its own: 1/ratio in H without it. Return the new K."""
    for k in range(K, K + new):
        post.Z[n, k] = 1
        post.counts[k] = 1
        work.b[k] = 0.0
        work.old[k] = 0
        for d in range(post.T.shape[1]):
            post.T[k, d] = 0.0
        for i in range(k + 1):
            work.H[i, k] = 0.0
            work.H[k, i] = 0.0
            work.Q[i, k] = 0.0
            work.Q[k, i] = 0.0
        work.H[k, k] = 1.0 / ratio
    return K + new


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _move_both(M: cy.double[:, ::1], k: cy.Py_ssize_t, last: cy.Py_ssize_t) -> cy.void:
    """M_k ← M_last: row and column of a square matrix."""
    for i in range(last + 1):
        M[k, i] = M[last, i]
    for i in range(last + 1):
        M[i, k] = M[i, last]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _drop_singles(
    post: Posterior,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    gone: cy.Py_ssize_t,
    work: Work,
) -> cy.Py_ssize_t:
    """Take singles from row n. Return K − gone.

    The last feature moves to the place of each, in all that goes by features.
    """
    k = K - 1
    while gone > 0:
        if post.Z[n, k] and post.counts[k] == 1:
            last = K - 1
            move_last_bits(post.Z, n, k, last)
            post.counts[k] = post.counts[last]
            work.b[k] = work.b[last]
            work.old[k] = work.old[last]
            for d in range(post.T.shape[1]):
                post.T[k, d] = post.T[last, d]
            _move_both(work.H, k, last)
            _move_both(work.Q, k, last)
            K = last
            gone -= 1
        k -= 1
    return K
