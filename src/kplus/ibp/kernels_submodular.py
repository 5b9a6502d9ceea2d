"""The row objective of MEIBP maximised by local search (section 3.6).

`kernels_objective` has the objective, and what is guaranteed of its local maxima.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.ibp.kernels_objective import (
    Objective,
    cost,
    keep_better,
    need,
    sums_beside_diagonal,
    take_row,
)

if cy.compiled:
    from cython.cimports.libc.math import INFINITY, log
else:
    from numpy import inf as INFINITY
    from numpy import log

__all__ = ["exchange", "local_search", "rows_local_search"]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _complement_value(
    f: Objective,
    c: cy.Py_ssize_t,
    free: cy.const[cy.double][::1],
    held: cy.const[cy.double][::1],
) -> cy.double:
    """f(V∖A) of all features that are not held, given their gains.

    MEIBP section 3.6.
    """
    total: cy.double = 0.0
    rest: cy.Py_ssize_t = 0
    for k in range(held.shape[0]):
        own: cy.double = 3.0 * f.lin[k] - free[k] - f.sums[k]
        total += own if held[k] == INFINITY else 0.0
    for k in range(held.shape[0]):
        if f.fresh[k] and held[k] == INFINITY:
            total -= log(f.base + c + 1.0)
            rest += 1
    return 0.5 * total - cost(rest, f.base)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _update_costs(
    moved: cy.Py_ssize_t,
    fresh: cy.const[cy.uchar][::1],
    base: cy.Py_ssize_t,
    before: cy.Py_ssize_t,
    after: cy.Py_ssize_t,
    free: cy.double[::1],
    held: cy.double[::1],
) -> cy.void:
    """Let the gains of fresh features follow when the number of those chosen changes.

    Eq. 20 as c changes: ln(base + c + 1). A free one would be number c + 1, a held one
    is as good as number c; the one that was moved keeps its number.
    """
    of_free: cy.double = log((base + before + 1.0) / (base + after + 1.0))
    of_held: cy.double = log(max(base + before, 1.0) / max(base + after, 1.0))
    for k in range(fresh.shape[0]):
        if fresh[k] and k != moved:
            free[k] += of_free
            held[k] += of_held


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _highest(w: cy.const[cy.double][::1], least: cy.double) -> cy.Py_ssize_t:
    """argmax_k w_k if that exceeds `least`, else -1.

    By four maxima, of which none waits for the others.
    """
    K = w.shape[0]
    a: cy.double = least
    b: cy.double = least
    c: cy.double = least
    d: cy.double = least
    for i in range(K // 4):
        a = max(a, w[4 * i])
        b = max(b, w[4 * i + 1])
        c = max(c, w[4 * i + 2])
        d = max(d, w[4 * i + 3])
    for k in range(K - K % 4, K):
        a = max(a, w[k])
    a = max(max(a, b), max(c, d))
    if a == least:
        return -1
    best: cy.Py_ssize_t = 0
    while w[best] != a:
        best += 1
    return best


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _lowest(w: cy.const[cy.double][::1], most: cy.double) -> cy.Py_ssize_t:
    """argmin_k w_k if that is below `most`, else -1."""
    best: cy.Py_ssize_t = -1
    for k in range(w.shape[0]):
        if w[k] < most:
            best = k
            most = w[k]
    return best


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _move(
    k: cy.Py_ssize_t,
    Q: cy.const[cy.double][:, ::1],
    sign: cy.double,
    source: cy.double[::1],
    target: cy.double[::1],
    absent: cy.double,
) -> cy.double:
    """Take the gain of feature k from one list to the other, and let both follow.

    w −= ±Q_k.
    """
    own: cy.double = source[k]
    for j in range(source.shape[0]):
        source[j] -= sign * Q[k, j]
        target[j] -= sign * Q[k, j]
    source[k] = absent
    target[k] = own
    return own


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _climb(
    f: Objective, free: cy.double[::1], held: cy.double[::1]
) -> tuple[cy.double, cy.Py_ssize_t]:
    """Add greedily; where nothing is to add, remove the worst and add again.

    Steps 2 and 3 of the ls-algorithm in MEIBP section 3.6. `free` has the gains of
    features not chosen (else -inf), `held` of those chosen (else inf). Returns by how
    much f rose and the number of fresh features chosen.
    """
    rise: cy.double = 0.0
    c: cy.Py_ssize_t = 0
    while True:
        sign: cy.Py_ssize_t = 1
        k: cy.Py_ssize_t = _highest(free, f.slack)
        if k >= 0:
            need(f, k)
            rise += _move(k, f.Q, 1.0, free, held, -INFINITY)
        else:
            sign = -1
            k = _lowest(held, -f.slack)
            if k < 0:
                return rise, c
            rise -= _move(k, f.Q, -1.0, held, free, INFINITY)
        if f.fresh[k]:
            _update_costs(k, f.fresh, f.base, c, c + sign, free, held)
            c += sign


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def local_search(f: Objective) -> cy.double:
    """Set z to a local maximum, or to its complement if that is better; return f(z).

    The ls-algorithm of MEIBP section 3.6 (Feige et al. 2011).
    """
    for k in range(f.lin.shape[0]):
        f.free[k] = f.lin[k] - (log(f.base + 1.0) if f.fresh[k] else 0.0)
        f.held[k] = INFINITY
    here, c = _climb(f, f.free, f.held)
    there: cy.double = _complement_value(f, c, f.free, f.held)
    turned: cy.bint = there > here + f.slack
    for k in range(f.lin.shape[0]):
        f.z[k] = (f.held[k] < INFINITY) != turned
    return there if turned else here


# ---------------------------------------------------------------------------- exchanges


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _best_exchange(
    Q: cy.const[cy.double][:, ::1],
    overlaps: cy.const[cy.double][::1],
    slack: cy.double,
    z: cy.const[cy.uchar][::1],
    w: cy.const[cy.double][::1],
    row: cy.double[::1],
) -> tuple[cy.Py_ssize_t, cy.Py_ssize_t]:
    """The feature to give up for another, and that one; (-1, -1) if none pays.

    Not in the paper: w_k − w_j + Q_jk. `overlaps` has the largest Q_jk of each j: most
    features need not be compared. `row` is a buffer.
    """
    out: cy.Py_ssize_t = -1
    into: cy.Py_ssize_t = -1
    most: cy.double = slack
    free: cy.double = -INFINITY
    for k in range(z.shape[0]):
        if not z[k]:
            free = max(free, w[k])
    for j in range(z.shape[0]):
        if z[j] and free - w[j] + overlaps[j] > most:
            for k in range(z.shape[0]):
                row[k] = -INFINITY if z[k] else w[k] + Q[j, k]
            best: cy.Py_ssize_t = _highest(row, most + w[j])
            if best >= 0:
                out = j
                into = best
                most = row[best] - w[j]
    return out, into


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _best_flip(
    slack: cy.double, z: cy.const[cy.uchar][::1], w: cy.const[cy.double][::1]
) -> cy.Py_ssize_t:
    """The bit whose flip raises f most, by more than `slack`; -1: none."""
    best: cy.Py_ssize_t = -1
    most: cy.double = slack
    for k in range(z.shape[0]):
        gain: cy.double = -w[k] if z[k] else w[k]
        if gain > most:
            best = k
            most = gain
    return best


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _flip(
    k: cy.Py_ssize_t,
    Q: cy.const[cy.double][:, ::1],
    z: cy.uchar[::1],
    w: cy.double[::1],
) -> cy.double:
    """Flip bit k: w ∓ Q_k; return by how much f rises, ±w_k."""
    own: cy.double = w[k]
    sign: cy.double = 1.0 - 2.0 * z[k]
    for j in range(w.shape[0]):
        w[j] -= sign * Q[k, j]
    w[k] = own
    z[k] = 1 - z[k]
    return sign * own


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _gains(
    lin: cy.const[cy.double][::1],
    Q: cy.const[cy.double][:, ::1],
    z: cy.const[cy.uchar][::1],
    w: cy.double[::1],
) -> cy.void:
    """w_k = lin_k − Σ_{j≠k} Q_kj z_j, the gain of each feature at z."""
    for k in range(z.shape[0]):
        w[k] = lin[k]
    for k in range(z.shape[0]):
        if z[k]:
            own: cy.double = w[k]
            for j in range(w.shape[0]):
                w[j] -= Q[k, j]
            w[k] = own


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def exchange(f: Objective) -> cy.double:
    """Improve a z without fresh features by exchanging one feature for another.

    Not in the paper. Local search stops where no single flip pays; among features that
    overlap, a row may hold the wrong one of two. Return by how much f rose.
    """
    rise: cy.double = 0.0
    for k in range(f.z.shape[0]):
        if f.z[k]:
            need(f, k)
    _gains(f.lin, f.Q, f.z, f.free)
    while True:
        out, into = _best_exchange(f.Q, f.overlaps, f.slack, f.z, f.free, f.held)
        if out < 0:
            return rise
        rise += _flip(out, f.Q, f.z, f.free)
        k = into
        while k >= 0:
            need(f, k)
            rise += _flip(k, f.Q, f.z, f.free)
            k = _best_flip(f.slack, f.z, f.free)


# ----------------------------------------------------------------------- blocks of rows


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fill_overlaps(
    Qs: cy.const[cy.double][:, :, ::1], overlaps: cy.double[:, ::1]
) -> cy.void:
    """max_k≠j Q_jk for each pattern and j, and 0."""
    for p in range(Qs.shape[0]):
        for j in range(Qs.shape[1]):
            most: cy.double = 0.0
            for k in range(Qs.shape[1]):
                if k != j:
                    most = max(most, Qs[p, j, k])
            overlaps[p, j] = most


def rows_local_search(
    B: cy.const[cy.double][:, ::1],
    linear: cy.const[cy.double][:, ::1],
    Qs: cy.const[cy.double][:, :, ::1],
    pattern: cy.const[cy.longlong][::1],
    Z: cy.uchar[:, ::1],
) -> int:
    """Maximise f for every row of a block by local search and exchanges.

    MEIBP section 3.6 on Eq. 19, all rows given the same q(A).

    Parameters
    ----------
    B : (N, K)
        Products of the rows with the features, in units of the objective.
    linear : (P, K)
        What else is linear in z; row n has ``u = B[n] + linear[pattern[n]]``.
    Qs : (P, K, K)
        Row n has ``Q = Qs[pattern[n]]``.
    pattern : (N,) int
    Z : (N, K) uint8
        The bits so far. They stay for rows of which no better ones are found.

    Returns
    -------
    changed : int
        Number of rows changed.
    """
    f = Objective(Z.shape[1])
    sums: cy.double[:, ::1] = np.empty((Qs.shape[0], Qs.shape[1]))
    overlaps: cy.double[:, ::1] = np.empty((Qs.shape[0], Qs.shape[1]))
    changed: cy.Py_ssize_t = 0
    last: cy.Py_ssize_t = -1
    with cy.nogil:
        for p in range(Qs.shape[0]):
            sums_beside_diagonal(Qs[p], sums[p])
        _fill_overlaps(Qs, overlaps)
        for n in range(Z.shape[0]):
            p = pattern[n]
            if p != last:
                f.Q = Qs[p]
                f.sums = sums[p]
                f.overlaps = overlaps[p]
                last = p
            take_row(f, B, n, linear, p)
            f_z: cy.double = local_search(f)
            f_z += exchange(f)
            changed += keep_better(f, f_z, Z, n) > 0
    return changed
