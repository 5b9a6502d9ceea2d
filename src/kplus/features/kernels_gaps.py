"""Which features does a row with missing entries (NaN) have?

Each row is solved on its observed columns, hence with a Gram matrix of its own.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import add_product_of_rows
from cython.cimports.kplus.features.kernels_row import (
    Search,
    decode,
    factor_into,
    flip,
    is_certain,
    prepare,
)

if cy.compiled:
    from cython.cimports.libc.math import sqrt
else:
    from numpy import sqrt

__all__ = ["AllocatedGaps", "allocate_gaps"]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class AllocatedGaps:
    """What a visit of rows changes and adds up."""

    Z: cy.uchar[:, ::1]  # (n, K)
    errors: cy.double[::1]  # (n,) ‖x − zA‖², over what was observed
    S: cy.double[:, :, ::1]  # (D, K, K) ZᵀWZ over the rows that have d
    T: cy.double[:, ::1]  # (K, D) ZᵀW(X − ZA)


@cy.final
@cy.cclass
class _Row:
    """One row: what was observed of it, and the features there."""

    seen: cy.double[::1]  # (D,) 1 where observed, or else 0
    r: cy.double[:, ::1]  # (2, D) x − zA and x, 0 where nothing was observed
    A: cy.double[:, ::1]  # (K, D) features on these columns, or else 0
    G: cy.double[:, ::1]  # (K, K) AAᵀ on these columns
    bits: cy.Py_ssize_t[::1]  # the features that the row has
    pairs: cy.double[:, ::1]  # (K(K + 1)/2, D) S, for features i ≥ j

    def __init__(self, K: cy.Py_ssize_t, D: cy.Py_ssize_t) -> None:
        self.seen, self.r = np.zeros(D), np.zeros((2, D))
        self.A, self.G = np.zeros((K, D)), np.zeros((K, K))
        self.bits = np.zeros(K, np.intp)
        self.pairs = np.zeros((K * (K + 1) // 2, D))


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _square(R: cy.const[cy.double][:, ::1], i: cy.Py_ssize_t) -> cy.double:
    """‖r_i‖²."""
    total: cy.double = 0.0
    for d in range(R.shape[1]):
        total += R[i, d] * R[i, d]
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _look(X: cy.const[cy.double][:, ::1], n: cy.Py_ssize_t, row: _Row) -> cy.void:
    """What was observed of row n."""
    for d in range(X.shape[1]):
        x: cy.double = X[n, d]
        row.seen[d] = 1.0 if x == x else 0.0
        row.r[1, d] = x if x == x else 0.0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _residual(A: cy.const[cy.double][:, ::1], search: Search, row: _Row) -> cy.void:
    """r = x − zA where x was observed."""
    D = A.shape[1]
    for d in range(D):
        row.r[0, d] = row.r[1, d]
    for k in range(A.shape[0]):
        if search.signs[k] < 0.0:
            for d in range(D):
                row.r[0, d] -= row.seen[d] * A[k, d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _products(A: cy.const[cy.double][:, ::1], search: Search, row: _Row) -> cy.bint:
    """Ar and G_kk over the columns that a row has; whether a flip may help."""
    helps: cy.bint = False
    for k in range(A.shape[0]):
        ar: cy.double = 0.0
        square: cy.double = 0.0
        for d in range(A.shape[1]):
            a: cy.double = row.seen[d] * A[k, d]
            ar += a * row.r[0, d]
            square += a * a
        search.ar[k] = ar
        helps |= 2.0 * search.signs[k] * ar > square
    return helps


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _gram(A: cy.const[cy.double][:, ::1], search: Search, row: _Row) -> cy.void:
    """G = AAᵀ over the columns that a row has."""
    K, D = A.shape[0], A.shape[1]
    for k in range(K):
        for d in range(D):
            row.A[k, d] = row.seen[d] * A[k, d]
    add_product_of_rows(1.0, row.A, row.A, K, K, D, 0.0, row.G)
    prepare(search)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _choose(
    A: cy.const[cy.double][:, ::1],
    exact: cy.bint,
    most_steps: cy.Py_ssize_t,
    before: cy.uchar[:, ::1],
    n: cy.Py_ssize_t,
    search: Search,
    row: _Row,
) -> cy.void:
    """The signs and the residual of a row: flips, then the best of all patterns."""
    K = A.shape[0]
    for k in range(K):
        search.signs[k] = 1.0 - 2.0 * before[n, k]
    _residual(A, search, row)
    helps = _products(A, search, row)
    if not (helps or exact):
        return
    _gram(A, search, row)
    if exact:
        factor_into(search)
        if is_certain(search):
            return
        for k in range(K):
            search.signs[k] = 1.0
        _residual(A, search, row)
        _products(A, search, row)
    flip(sqrt(_square(row.r, 1)), search)
    _residual(A, search, row)
    if not exact:
        return
    _products(A, search, row)
    short = decode(search, most_steps)
    for k in range(K):
        if search.flips[k]:
            search.signs[k] = -search.signs[k]
    _residual(A, search, row)
    if short:
        _keep_better(A, before, n, search, row)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _keep_better(
    A: cy.const[cy.double][:, ::1],
    before: cy.uchar[:, ::1],
    n: cy.Py_ssize_t,
    search: Search,
    row: _Row,
) -> cy.void:
    """Go back to the z from before a search that was cut short, if that was better.

    The lower ‖x − zA‖² of two.
    """
    now: cy.double = _square(row.r, 0)
    for k in range(A.shape[0]):
        search.changes[k] = search.signs[k]
        search.signs[k] = 1.0 - 2.0 * before[n, k]
    _residual(A, search, row)
    if _square(row.r, 0) < now:
        return
    for k in range(A.shape[0]):
        search.signs[k] = search.changes[k]
    _residual(A, search, row)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _add_up(
    weight: cy.double, search: Search, row: _Row, T: cy.double[:, ::1]
) -> cy.void:
    """Add the sums of a row: S_d += w zᵀz, T_d += w z(x − zA)_d."""
    D = T.shape[1]
    count: cy.Py_ssize_t = 0
    for k in range(T.shape[0]):
        if search.signs[k] < 0.0:
            row.bits[count] = k
            count += 1
    for d in range(D):
        row.seen[d] *= weight
    for a in range(count):
        i = row.bits[a]
        for d in range(D):
            T[i, d] += weight * row.r[0, d]
        for b in range(a + 1):
            pair = i * (i + 1) // 2 + row.bits[b]
            for d in range(D):
                row.pairs[pair, d] += row.seen[d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _note(Z: cy.uchar[:, ::1], n: cy.Py_ssize_t, search: Search) -> cy.bint:
    """Write z into row n of Z; whether it is new."""
    differs: cy.bint = False
    for k in range(Z.shape[1]):
        z: cy.uchar = search.signs[k] < 0.0
        differs |= z != Z[n, k]
        Z[n, k] = z
    return differs


def allocate_gaps(
    X: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    A: cy.const[cy.double][:, ::1],
    exact: cy.bint,
    most_steps: cy.Py_ssize_t,
    out: AllocatedGaps,
) -> int:
    """As `allocate_rows` where entries are missing (NaN).

    z = argmin Σ_d ∈ observed (x − zA)_d². S[d] sums over the rows that have column d.
    """
    K, D = A.shape[0], A.shape[1]
    row = _Row(K, D)
    search = Search(row.G)
    changed: cy.Py_ssize_t = 0
    with cy.nogil:
        for n in range(X.shape[0]):
            _look(X, n, row)
            _choose(A, exact, most_steps, out.Z, n, search, row)
            out.errors[n] = _square(row.r, 0)
            changed += _note(out.Z, n, search)
            _add_up(weights[n], search, row, out.T)
        for d in range(D):
            for i in range(K):
                for j in range(i + 1):
                    total: cy.double = row.pairs[i * (i + 1) // 2 + j, d]
                    out.S[d, i, j] += total
                    if j < i:
                        out.S[d, j, i] += total
    return changed
