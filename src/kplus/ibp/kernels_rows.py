"""MEIBP's own algorithm: one row after another, q(A) following the rows that change.

A row is taken out, its bits maximise the evidence bound given all else (Eq. 19, in
which a feature that no other row has costs η and −ln N!), and the sums T = ZᵀX, S = ZᵀZ
and the counts follow. After `refresh` changed rows the factors that gained or lost rows
are updated (Eqs. 14 to 17).

Missing entries: columns come sorted into groups of equal gaps, each with a ZᵀZ of its
rows, and rows with equal gaps share a pattern, hence a Gram matrix.
"""

from collections import namedtuple

import cython as cy
import numpy as np
from cython.cimports.kplus.ibp.kernels_double_greedy import (
    double_greedy,
    random_double_greedy,
)
from cython.cimports.kplus.ibp.kernels_factors import (
    FactorArrays,
    SumArrays,
    evidence_of_factor,
    update_factor,
)
from cython.cimports.kplus.ibp.kernels_objective import (
    Objective,
    keep_better,
    row_slack,
    sums_beside_diagonal,
)
from cython.cimports.kplus.ibp.kernels_submodular import local_search

from kplus.ibp.kernels_factors import Factors, Model, Sums

if cy.compiled:
    from cython.cimports.libc.math import NAN, log
else:
    from numpy import log
    from numpy import nan as NAN

__all__ = [
    "DOUBLE_GREEDY",
    "LOCAL_SEARCH",
    "RANDOM_DOUBLE_GREEDY",
    "Schedule",
    "Table",
    "row_objective",
    "sweep",
]

LOCAL_SEARCH, DOUBLE_GREEDY, RANDOM_DOUBLE_GREEDY = 0, 1, 2

# X (N, D), 0 where missing; pattern (N,); observed (P, G); starts (G + 1,) of groups
Table = namedtuple("Table", "X pattern observed starts")
# How rows are visited: by which maximizer, factors after how many changed rows
Schedule = namedtuple("Schedule", "maximizer refresh seed")

_ROOM = 2**23  # numbers kept in Gram matrices: 64 MB


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Table:
    """`Table` for kernels."""

    X: cy.const[cy.double][:, ::1]
    pattern: cy.const[cy.longlong][::1]
    observed: cy.const[cy.uchar][:, ::1]
    starts: cy.const[cy.longlong][::1]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Grams:
    """Gram matrices of patterns in slots, and how recent their features are."""

    Q: cy.double[:, :, ::1]
    widths: cy.double[:, ::1]
    beside: cy.double[:, ::1]
    owner: cy.longlong[::1]  # pattern of each slot
    seen: cy.longlong[:, ::1]  # versions of features in each slot
    version: cy.longlong[::1]  # of each feature
    eta: cy.double[::1]  # of each feature, NaN where it is to be computed


def _make_grams(P: int, K: int, room: int) -> _Grams:
    """Empty Gram matrices for P patterns, as far as there is room."""
    slots = max(1, min(P, room // (K * K)))
    return _Grams(
        np.empty((slots, K, K)),
        np.empty((slots, K)),
        np.empty((slots, K)),
        np.full(slots, -1, np.int64),
        np.zeros((slots, K), np.int64),
        np.ones(K, np.int64),
        np.full(K, np.nan),
    )


# ------------------------------------------------------------------- what rows maximise


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _dot(
    A: cy.const[cy.double][:, ::1],
    k: cy.Py_ssize_t,
    B: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    start: cy.Py_ssize_t,
    stop: cy.Py_ssize_t,
) -> cy.double:
    """Σ_d a_kd b_nd over start ≤ d < stop."""
    total: cy.double = 0.0
    for d in range(start, stop):
        total += A[k, d] * B[n, d]
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _renew_feature(
    k: cy.Py_ssize_t,
    s: cy.Py_ssize_t,
    table: _Table,
    factors: FactorArrays,
    grams: _Grams,
) -> cy.void:
    """Row and column k of a pattern's Q = ΦΦᵀ/σ², and (E‖a_k‖² − ‖Φ_k‖²)/σ².

    MEIBP Eqs. 11 and 19. Features before k that are to be renewed, too, have been.
    """
    p = grams.owner[s]
    grams.widths[s, k] = 0.0
    for g in range(table.observed.shape[1]):
        if table.observed[p, g]:
            for d in range(table.starts[g], table.starts[g + 1]):
                grams.widths[s, k] += factors.variance[k, d] / factors.noise
    for j in range(grams.version.shape[0]):
        if j < k and grams.seen[s, j] != grams.version[j]:
            continue
        total: cy.double = 0.0
        for g in range(table.observed.shape[1]):
            if table.observed[p, g]:
                start: cy.Py_ssize_t = table.starts[g]
                stop: cy.Py_ssize_t = table.starts[g + 1]
                total += _dot(factors.mean, k, factors.mean, j, start, stop)
        grams.Q[s, k, j] = total / factors.noise
        grams.Q[s, j, k] = total / factors.noise


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _gram_of(
    p: cy.Py_ssize_t, table: _Table, factors: FactorArrays, grams: _Grams
) -> cy.Py_ssize_t:
    """Bring the Gram matrix of a pattern up to date; return in which slot it is.

    ΦΦᵀ/σ² of MEIBP Eq. 19.
    """
    K = grams.version.shape[0]
    s: cy.Py_ssize_t = p % grams.owner.shape[0]
    if grams.owner[s] != p:
        grams.owner[s] = p
        for k in range(K):
            grams.seen[s, k] = 0
    stale: cy.bint = False
    for k in range(K):
        if grams.seen[s, k] != grams.version[k]:
            _renew_feature(k, s, table, factors, grams)
            stale = True
    if stale:
        for k in range(K):
            grams.seen[s, k] = grams.version[k]
        sums_beside_diagonal(grams.Q[s], grams.beside[s])
    return s


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fill_objective(
    f: Objective,
    n: cy.Py_ssize_t,
    table: _Table,
    Z: cy.const[cy.uchar][:, ::1],
    counts: cy.const[cy.double][::1],
    factors: FactorArrays,
    grams: _Grams,
) -> cy.void:
    """The objective of row n given all else.

    MEIBP Eq. 19: lin = ω − ½diag Q.
    """
    s = _gram_of(table.pattern[n], table, factors, grams)
    f.Q = grams.Q[s]
    f.sums = grams.beside[s]
    f.base = 0
    N: cy.double = Z.shape[0]
    for k in range(Z.shape[1]):
        others: cy.double = counts[k] - Z[n, k]
        prior: cy.double
        if others <= 0.0:
            f.fresh[k] = 1
            if grams.eta[k] != grams.eta[k]:
                grams.eta[k] = evidence_of_factor(k, factors)
            prior = log(factors.alpha / N) + grams.eta[k]
        else:
            f.fresh[k] = 0
            prior = log(others / (N - others))
            f.base += 1
        product: cy.double = _dot(factors.mean, k, table.X, n, 0, table.X.shape[1])
        own: cy.double = grams.widths[s, k] + grams.Q[s, k, k]
        f.lin[k] = product / factors.noise - 0.5 * own + prior
    f.slack = row_slack(f.lin, f.Q)


def row_objective(
    n: cy.Py_ssize_t,
    table: Table,
    Z: cy.const[cy.uchar][:, ::1],
    counts: cy.const[cy.double][::1],
    factors: Factors,
    model: Model,
) -> Objective:
    """The objective of row n given all else.

    MEIBP Eq. 19.
    """
    f = Objective(Z.shape[1])
    grams: _Grams = _make_grams(1, Z.shape[1], _ROOM)
    own = FactorArrays(factors, model)
    _fill_objective(f, n, _Table(*table), Z, counts, own, grams)
    return f


# ---------------------------------------------------------------------------- the sweep


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _account(
    n: cy.Py_ssize_t,
    was: cy.const[cy.uchar][::1],
    Z: cy.const[cy.uchar][:, ::1],
    table: _Table,
    sums: SumArrays,
    touched: cy.uchar[::1],
) -> cy.void:
    """Let the sums follow a change of row n's bits; note which features it touches.

    T = ZᵀX, S = ZᵀZ, m = Zᵀ1.
    """
    K = Z.shape[1]
    for k in range(K):
        if Z[n, k] == was[k]:
            continue
        sign: cy.double = 1.0 if Z[n, k] else -1.0
        sums.counts[k] += sign
        touched[k] = 1
        for d in range(table.X.shape[1]):
            sums.T[k, d] += sign * table.X[n, d]
    for g in range(table.observed.shape[1]):
        if not table.observed[table.pattern[n], g]:
            continue
        for k in range(K):
            now: cy.double = float(Z[n, k])
            before: cy.double = float(was[k])
            for j in range(K):
                sums.S[g, k, j] += now * Z[n, j] - before * was[j]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _refresh(
    touched: cy.uchar[::1],
    sums: SumArrays,
    starts: cy.const[cy.longlong][::1],
    factors: FactorArrays,
    grams: _Grams,
) -> cy.void:
    """Update the factors of touched features, unless no row has them any more.

    MEIBP Eqs. 14 to 17.
    """
    for k in range(touched.shape[0]):
        if touched[k] and sums.counts[k] > 0.0:
            update_factor(k, sums, starts, factors)
            grams.version[k] += 1
            grams.eta[k] = NAN
        touched[k] = 0


def sweep(
    table: Table,
    order: cy.const[cy.longlong][::1],
    Z: cy.uchar[:, ::1],
    sums: Sums,
    factors: Factors,
    model: Model,
    schedule: Schedule,
    room: int = _ROOM,
) -> int:
    """Visit the rows in order; Z, sums and factors follow at once.

    MEIBP sections 3.3 and 3.6, row by row: argmax F(Z_n). Features that lose their last
    row stay as they are: a later row may take them up. `room` is for how many numbers
    in Gram matrices.

    Returns
    -------
    bits : int
        Number of bits of Z that changed.
    """
    K = Z.shape[1]
    rows, of_rows, own = _Table(*table), SumArrays(sums), FactorArrays(factors, model)
    grams: _Grams = _make_grams(len(table.observed), K, room)
    f = Objective(K)
    was: cy.uchar[::1] = np.empty(K, np.uint8)
    touched: cy.uchar[::1] = np.zeros(K, np.uint8)
    searches: cy.bint = schedule.maximizer == LOCAL_SEARCH
    draws: cy.bint = schedule.maximizer == RANDOM_DOUBLE_GREEDY
    seed: cy.ulonglong = schedule.seed
    most_waiting: cy.Py_ssize_t = schedule.refresh
    total: cy.Py_ssize_t = 0
    waiting: cy.Py_ssize_t = 0
    with cy.nogil:
        for i in range(order.shape[0]):
            n: cy.Py_ssize_t = order[i]
            for k in range(K):
                was[k] = Z[n, k]
            _fill_objective(f, n, rows, Z, of_rows.counts, own, grams)
            f_z: cy.double
            if searches:
                f_z = local_search(f)
            elif draws:
                f_z = random_double_greedy(f, seed, n)
            else:
                f_z = double_greedy(f)
            bits = keep_better(f, f_z, Z, n)
            if bits:
                _account(n, was, Z, rows, of_rows, touched)
                total += bits
                waiting += 1
            if waiting == most_waiting:
                _refresh(touched, of_rows, rows.starts, own, grams)
                waiting = 0
        _refresh(touched, of_rows, rows.starts, own, grams)
    return total
