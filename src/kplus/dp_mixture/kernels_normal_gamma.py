"""Kernels of Gaussian columns that are independent inside a component.

t(y) = [observed, y, y² or its sum over the columns] with y = (x - origin) · inv, made
for some rows at a time. Most rows are without missing values (gaps), and what is
observed adds the same to the scores of all of them.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import product_of_transposed

if cy.compiled:
    from cython.cimports.libc.math import INFINITY as INF
else:
    from numpy import inf as INF

__all__ = ["Levels", "add_columns", "score_column_candidates", "score_columns"]

_TILE = cy.declare(cy.Py_ssize_t, 128)  # rows scored at a time


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Levels:
    """eta of K components (Memoized Eq. 9), cut where t(y) is."""

    observed: cy.const[cy.double][:, ::1]  # (K, D)
    total: cy.const[cy.double][::1]  # (K,) over the columns
    values: cy.const[cy.double][:, ::1]  # (K, M - D) of y and its squares


def score_columns(
    X: cy.const[cy.floating][:, ::1],
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
    levels: Levels,
    out: cy.double[:, ::1],
) -> None:
    """out[n, k] = eta_k · t(y_n); Memoized Eq. 9."""
    n_rows, K, M = X.shape[0], out.shape[1], levels.values.shape[1]
    features: cy.double[:, ::1] = np.zeros((M, _TILE))
    values: cy.double[:, ::1] = np.ascontiguousarray(np.transpose(levels.values))
    scores: cy.double[:, ::1] = np.empty((_TILE, K))
    start: cy.Py_ssize_t = 0
    with cy.nogil:
        while start < n_rows:
            size = min(_TILE, n_rows - start)
            n_gaps = _fill_tile(X, start, size, origin, inv, features)
            product_of_transposed(features, values, M, scores)
            for i in range(size):
                has_gaps: cy.bint = n_gaps > 0 and _has_gaps(X, start + i)
                for k in range(K):
                    level = levels.total[k]
                    if has_gaps:
                        level = _level(X, start + i, levels, k)
                    out[start + i, k] = level + scores[i, k]
            start += size


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fill_tile(
    X: cy.const[cy.floating][:, ::1],
    start: cy.Py_ssize_t,
    size: cy.Py_ssize_t,
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
    features: cy.double[:, ::1],
) -> cy.Py_ssize_t:
    """y and its squares, one row of `features` for each; return how many are gaps."""
    D = X.shape[1]
    pooled: cy.bint = features.shape[0] < 2 * D
    n_gaps: cy.Py_ssize_t = 0
    if pooled:
        for i in range(size):
            features[D, i] = 0.0
    for d in range(D):
        for i in range(size):
            y: cy.double = (X[start + i, d] - origin[d]) * inv[d]
            n_gaps += y != y
            features[d, i] = y if y == y else 0.0
        square: cy.Py_ssize_t = D if pooled else D + d
        for i in range(size):
            y = features[d, i]
            features[square, i] = y * y + (features[square, i] if pooled else 0.0)
    return n_gaps


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _has_gaps(X: cy.const[cy.floating][:, ::1], n: cy.Py_ssize_t) -> cy.bint:
    n_gaps: cy.Py_ssize_t = 0
    for d in range(X.shape[1]):
        n_gaps += X[n, d] != X[n, d]
    return n_gaps > 0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _level(
    X: cy.const[cy.floating][:, ::1],
    n: cy.Py_ssize_t,
    levels: Levels,
    k: cy.Py_ssize_t,
) -> cy.double:
    """What the values that are there add to a score of row n by being there."""
    total: cy.double = 0.0
    for d in range(X.shape[1]):
        total += levels.observed[k, d] if X[n, d] == X[n, d] else 0.0
    return total


def score_column_candidates(
    X: cy.const[cy.floating][:, ::1],
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
    candidates: cy.const[cy.int][:, ::1],
    levels: Levels,
    out: cy.double[:, ::1],
) -> None:
    """out[n, c] = eta_k · t(y_n) with k = candidates[n, c]; -inf for k < 0.

    Memoized Eq. 9.
    """
    M = levels.values.shape[1]
    t: cy.double[::1] = np.empty(M)
    k: cy.Py_ssize_t
    with cy.nogil:
        for n in range(candidates.shape[0]):
            n_gaps = _fill_row(X, n, origin, inv, t)
            for c in range(candidates.shape[1]):
                k = candidates[n, c]
                if k < 0:
                    out[n, c] = -INF
                    continue
                total: cy.double = 0.0
                for m in range(M):
                    total += t[m] * levels.values[k, m]
                level = levels.total[k]
                if n_gaps > 0:
                    level = _level(X, n, levels, k)
                out[n, c] = level + total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fill_row(
    X: cy.const[cy.floating][:, ::1],
    n: cy.Py_ssize_t,
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
    t: cy.double[::1],
) -> cy.Py_ssize_t:
    """t = [y, its squares or their sum]; return how many values are missing."""
    D = X.shape[1]
    n_gaps: cy.Py_ssize_t = 0
    total: cy.double = 0.0
    for d in range(D):
        y: cy.double = (X[n, d] - origin[d]) * inv[d]
        n_gaps += y != y
        t[d] = y if y == y else 0.0
    if t.shape[0] == 2 * D:
        for d in range(D):
            t[D + d] = t[d] * t[d]
    else:
        for d in range(D):
            total += t[d] * t[d]
        t[D] = total
    return n_gaps


def add_columns(
    X: cy.const[cy.floating][:, ::1],
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
    starts: cy.const[cy.longlong][::1],
    rows: cy.const[cy.longlong][::1],
    weights: cy.const[cy.double][::1],
    out: cy.double[:, ::1],
) -> None:
    """out[k] += Σ weights · t(y) over the rows of component k.

    Memoized Eq. 7: s_k.
    """
    D, M = X.shape[1], out.shape[1] - X.shape[1]
    t: cy.double[::1] = np.empty(M)
    with cy.nogil:
        for k in range(out.shape[0]):
            for i in range(starts[k], starts[k + 1]):
                n = rows[i]
                w = weights[i]
                if _fill_row(X, n, origin, inv, t) == 0:
                    for d in range(D):
                        out[k, d] += w
                else:
                    for d in range(D):
                        out[k, d] += w if X[n, d] == X[n, d] else 0.0
                for m in range(M):
                    out[k, D + m] += w * t[m]
