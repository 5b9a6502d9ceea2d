"""Kernels of Gaussian rows of which some values are missing.

A component expects the precision Λ and has the mean m. Given the values observed (o),
those missing (m) are Normal with mean m_m - Λ_mm⁻¹ Λ_mo (y_o - m_o) and covariance
Λ_mm⁻¹. Rows come in the units of their family, NaN where a value is missing.
"""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import isnan, log, sqrt
else:
    from numpy import isnan, log, sqrt

__all__ = ["fill_gaps", "gap_distances", "gap_outer"]

_TINY = cy.declare(cy.double, 1e-300)  # least pivot; rounding may leave less


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Row:
    """What is made of one row for one component."""

    gone: cy.longlong[::1]  # (D,) the columns that are missing
    apart: cy.double[::1]  # (D,) y - m, 0 where missing
    pull: cy.double[::1]  # (D,) Λ (y - m)
    L: cy.double[:, ::1]  # (D, D) Cholesky factor of Λ_mm, its diagonal inverted
    turned: cy.double[::1]  # (D,) L⁻¹ Λ_mo (y_o - m_o), or what is solved for
    inverse: cy.double[:, ::1]  # (D, D) Λ_mm⁻¹


def _row(D: int) -> _Row:
    return _Row(
        np.empty(D, np.int64), np.empty(D), np.empty(D), np.empty((D, D)),
        np.empty(D), np.empty((D, D)),
    )  # fmt: skip


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _look(
    Y: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    mean: cy.const[cy.double][::1],
    precision: cy.const[cy.double][:, ::1],
    row: _Row,
) -> cy.Py_ssize_t:
    """Fill in `row` up to the factor and what it turns; the number of gaps."""
    D = Y.shape[1]
    M: cy.Py_ssize_t = 0
    for d in range(D):
        if isnan(Y[n, d]):
            row.gone[M] = d
            M += 1
            row.apart[d] = 0.0
        else:
            row.apart[d] = Y[n, d] - mean[d]
    for d in range(D):
        total: cy.double = 0.0
        for e in range(D):
            total += precision[d, e] * row.apart[e]
        row.pull[d] = total
    for i in range(M):
        a = row.gone[i]
        for j in range(i):
            rest: cy.double = precision[a, row.gone[j]]
            for m in range(j):
                rest -= row.L[i, m] * row.L[j, m]
            row.L[i, j] = rest * row.L[j, j]
        pivot: cy.double = precision[a, a]
        for m in range(i):
            pivot -= row.L[i, m] * row.L[i, m]
        row.L[i, i] = 1.0 / sqrt(pivot if pivot > _TINY else _TINY)
        value: cy.double = row.pull[a]
        for m in range(i):
            value -= row.L[i, m] * row.turned[m]
        row.turned[i] = value * row.L[i, i]
    return M


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _solve(M: cy.Py_ssize_t, row: _Row) -> cy.void:
    """turned = L⁻ᵀ turned, so that Λ_mm⁻¹ Λ_mo (y_o - m_o) is found."""
    for back in range(M):
        i = M - 1 - back
        value: cy.double = row.turned[i]
        for m in range(i + 1, M):
            value -= row.L[m, i] * row.turned[m]
        row.turned[i] = value * row.L[i, i]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _invert(M: cy.Py_ssize_t, row: _Row) -> cy.void:
    """inverse = (L Lᵀ)⁻¹, a column at a time."""
    for c in range(M):
        for i in range(M):
            value: cy.double = 1.0 if i == c else 0.0
            for m in range(c, i):
                value -= row.L[i, m] * row.inverse[m, c]
            row.inverse[i, c] = value * row.L[i, i] if i >= c else 0.0
        for back in range(M):
            i = M - 1 - back
            value = row.inverse[i, c]
            for m in range(i + 1, M):
                value -= row.L[m, i] * row.inverse[m, c]
            row.inverse[i, c] = value * row.L[i, i]


def gap_distances(
    Y: cy.const[cy.double][:, ::1],
    starts: cy.const[cy.longlong][::1],
    rows: cy.const[cy.longlong][::1],
    means: cy.const[cy.double][:, ::1],
    precisions: cy.const[cy.double][:, :, ::1],
    distances: cy.double[::1],
    log_dets: cy.double[::1],
) -> None:
    """Of each pair the least squared distance under Λ over the missing values, and
    log |Λ_mm|.

    It is (y_o - m_o)ᵀ (Λ_oo - Λ_om Λ_mm⁻¹ Λ_mo) (y_o - m_o); pairs
    ``starts[k]:starts[k + 1]`` name the rows of component k.
    """
    D = Y.shape[1]
    row: _Row = _row(D)
    with cy.nogil:
        for k in range(means.shape[0]):
            for p in range(starts[k], starts[k + 1]):
                M = _look(Y, rows[p], means[k], precisions[k], row)
                total: cy.double = 0.0
                log_det: cy.double = 0.0
                for d in range(D):
                    total += row.apart[d] * row.pull[d]
                for i in range(M):
                    total -= row.turned[i] * row.turned[i]
                    log_det -= 2.0 * log(row.L[i, i])
                distances[p] = total if total > 0.0 else 0.0
                log_dets[p] = log_det


def gap_outer(
    Y: cy.const[cy.double][:, ::1],
    starts: cy.const[cy.longlong][::1],
    rows: cy.const[cy.longlong][::1],
    weights: cy.const[cy.double][::1],
    scales: cy.const[cy.double][::1],
    means: cy.const[cy.double][:, ::1],
    precisions: cy.const[cy.double][:, :, ::1],
    offset: cy.Py_ssize_t,
    out: cy.double[:, ::1],
) -> None:
    """out[k] += Σ w [u E[y] (if `offset` is D), the triangle of u E[y] E[y]ᵀ + C].

    C is Λ_mm⁻¹ where both values are missing, 0 elsewhere: E[u y yᵀ] of rows whose
    precision is u Λ, with u given by `scales`.
    """
    D = Y.shape[1]
    row: _Row = _row(D)
    filled: cy.double[::1] = np.empty(D)
    places: cy.longlong[::1] = np.concatenate(
        [[offset], offset + np.cumsum(np.arange(D, 1, -1))]
    ).astype(np.int64)  # of the diagonal
    with cy.nogil:
        for k in range(means.shape[0]):
            for p in range(starts[k], starts[k + 1]):
                M = _look(Y, rows[p], means[k], precisions[k], row)
                _solve(M, row)
                _invert(M, row)
                for d in range(D):
                    filled[d] = row.apart[d] + means[k, d]
                for i in range(M):
                    filled[row.gone[i]] -= row.turned[i]
                w: cy.double = weights[p] * scales[p]
                for d in range(offset):
                    out[k, d] += w * filled[d]
                for d in range(D):
                    heavy: cy.double = w * filled[d]
                    for e in range(D - d):
                        out[k, places[d] + e] += heavy * filled[d + e]
                for i in range(M):
                    a = row.gone[i]
                    for j in range(i, M):
                        out[k, places[a] + row.gone[j] - a] += (
                            weights[p] * row.inverse[i, j]
                        )


def fill_gaps(
    Y: cy.double[:, ::1],
    owners: cy.const[cy.longlong][::1],
    means: cy.const[cy.double][:, ::1],
    precisions: cy.const[cy.double][:, :, ::1],
    normals: cy.const[cy.double][:, ::1],
) -> None:
    """Put in place of NaN a draw from Normal(E[y_m], Λ_mm⁻¹), for one component each.

    E[y_m] + L⁻ᵀ z, with L Lᵀ = Λ_mm and the standard normal z taken from the entries of
    `normals` that are missing in Y.
    """
    D = Y.shape[1]
    row: _Row = _row(D)
    with cy.nogil:
        for n in range(Y.shape[0]):
            k = owners[n]
            M = _look(Y, n, means[k], precisions[k], row)
            for i in range(M):
                row.turned[i] -= normals[n, row.gone[i]]
            _solve(M, row)
            for i in range(M):
                a = row.gone[i]
                Y[n, a] = means[k, a] - row.turned[i]
