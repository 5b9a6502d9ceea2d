"""Kernels of mixtures: rows gathered by component, and their scores and sums."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import INFINITY as INF
    from cython.cimports.libc.math import fabs
else:
    from numpy import fabs
    from numpy import inf as INF

__all__ = [
    "add_features",
    "candidate_sets",
    "count_beyond",
    "gather_pairs",
    "gather_support",
    "score_candidates",
]


def count_beyond(values: cy.const[cy.floating][::1], limit: cy.double) -> tuple:
    """How many values are above the limit in size, and how many are NaN."""
    n_beyond: cy.Py_ssize_t = 0
    n_missing: cy.Py_ssize_t = 0
    with cy.nogil:
        for i in range(values.shape[0]):
            n_beyond += fabs(values[i]) > limit
            n_missing += values[i] != values[i]
    return n_beyond, n_missing


def gather_support(
    starts: cy.const[cy.longlong][::1],
    support: cy.const[cy.int][::1],
    r: cy.const[cy.double][::1],
    weights: cy.const[cy.double][::1],
    K: cy.Py_ssize_t,
) -> tuple:
    """Rows by component, with responsibility times weight.

    The r_nk of Memoized Eq. 7.
    """
    n_rows = starts.shape[0] - 1
    n_pairs = starts[n_rows]
    first_: cy.longlong[::1] = (first := np.zeros(K + 1, np.int64))
    rows_: cy.longlong[::1] = (rows := np.empty(n_pairs, np.int64))
    shares_: cy.double[::1] = (shares := np.empty(n_pairs))
    at: cy.longlong[::1] = np.empty(K, np.int64)
    with cy.nogil:
        for i in range(n_pairs):
            first_[support[i] + 1] += 1
        for k in range(K):
            at[k] = first_[k]
            first_[k + 1] += first_[k]
        for n in range(n_rows):
            for i in range(starts[n], starts[n + 1]):
                k = support[i]
                rows_[at[k]] = n
                shares_[at[k]] = weights[n] * r[i]
                at[k] += 1
    return first, rows, shares


def gather_pairs(candidates: cy.const[cy.int][:, ::1], K: cy.Py_ssize_t) -> tuple:
    """Pairs of row and slot by the component in the slot; -1 is none.

    {(n, c) : candidates_nc = k}.
    """
    n_rows, C = candidates.shape[0], candidates.shape[1]
    first_: cy.longlong[::1] = (first := np.zeros(K + 1, np.int64))
    at: cy.longlong[::1] = np.empty(K, np.int64)
    k: cy.Py_ssize_t
    with cy.nogil:
        for n in range(n_rows):
            for c in range(C):
                if candidates[n, c] >= 0:
                    first_[candidates[n, c] + 1] += 1
        for k in range(K):
            at[k] = first_[k]
            first_[k + 1] += first_[k]
    rows_: cy.longlong[::1] = (rows := np.empty(first_[K], np.int64))
    slots_: cy.longlong[::1] = (slots := np.empty(first_[K], np.int64))
    with cy.nogil:
        for n in range(n_rows):
            for c in range(C):
                k = candidates[n, c]
                if k >= 0:
                    rows_[at[k]] = n
                    slots_[at[k]] = c
                    at[k] += 1
    return first, rows, slots


def candidate_sets(
    starts: cy.const[cy.longlong][::1],
    support: cy.const[cy.int][::1],
    neighbours: cy.const[cy.int][:, ::1],
    n_active: cy.Py_ssize_t,
) -> np.ndarray:
    """Last support of each row and the neighbours of its leading component, once each.

    Not in the paper: where r_nk may be above 0 in the next pass. Unused slots are -1. A
    support larger than `n_active` keeps its first entries.
    """
    n_rows, N = starts.shape[0] - 1, neighbours.shape[1]
    found: cy.int[:, ::1] = (out := np.full((n_rows, n_active + N), -1, np.int32))
    at: cy.Py_ssize_t
    with cy.nogil:
        for n in range(n_rows):
            at = 0
            # Merged components may stand in a support twice.
            for i in range(starts[n], min(starts[n + 1], starts[n] + n_active)):
                at += _add_new(found, n, at, support[i])
            for j in range(N):
                at += _add_new(found, n, at, neighbours[support[starts[n]], j])
    return out


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _add_new(
    found: cy.int[:, ::1], n: cy.Py_ssize_t, size: cy.Py_ssize_t, k: cy.int
) -> cy.Py_ssize_t:
    """Add k to the first `size` entries of a row unless it is there; how many came."""
    for i in range(size):
        if found[n, i] == k:
            return 0
    found[n, size] = k
    return 1


def score_candidates(
    F: cy.const[cy.double][:, ::1],
    candidates: cy.const[cy.int][:, ::1],
    eta: cy.const[cy.double][:, ::1],
    bias: cy.const[cy.double][::1],
    out: cy.double[:, ::1],
) -> None:
    """out[n, c] = F[n] · eta[k] + bias[k] with k = candidates[n, c]; -inf for k < 0.

    Memoized Eq. 9: E[log p(x | φ_k)] = E[φ_k]·t(x) − E[a(φ_k)].
    """
    k: cy.Py_ssize_t
    with cy.nogil:
        for n in range(candidates.shape[0]):
            for c in range(candidates.shape[1]):
                k = candidates[n, c]
                if k < 0:
                    out[n, c] = -INF
                    continue
                total: cy.double = bias[k]
                for m in range(F.shape[1]):
                    total += F[n, m] * eta[k, m]
                out[n, c] = total


def add_features(
    F: cy.const[cy.double][:, ::1],
    starts: cy.const[cy.longlong][::1],
    rows: cy.const[cy.longlong][::1],
    weights: cy.const[cy.double][::1],
    out: cy.double[:, ::1],
) -> None:
    """out[k] += Σ weights · F[rows] over the rows of component k.

    Memoized Eq. 7: s_k.
    """
    with cy.nogil:
        for k in range(out.shape[0]):
            for i in range(starts[k], starts[k + 1]):
                n = rows[i]
                w = weights[i]
                for m in range(F.shape[1]):
                    out[k, m] += w * F[n, m]
