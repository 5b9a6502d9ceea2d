"""Rows with scattered gaps: each has a Q of its own, of which few rows are needed.

MEIBP Eq. 19 over observed entries only, exactly.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.ibp.kernels_objective import (
    Objective,
    keep_better,
    take_row,
)
from cython.cimports.kplus.ibp.kernels_submodular import exchange, local_search

__all__ = ["RowGrams", "begin_row", "open_gaps", "scattered_local_search"]


@cy.final
@cy.cclass
class RowGrams:
    """Where rows have gaps, and the diagonals and sums of their Q, by patterns."""


@cy.cfunc
def open_gaps(
    f: Objective, grams: cy.const[cy.double][:, :, ::1], gaps: object
) -> RowGrams:
    """Let Q of an objective follow the gaps of a row; `gaps` are `Gaps`.

    ``grams[g]`` is E[A_g A_gᵀ] over the columns of group g.
    """
    K = grams.shape[1]
    each = np.asarray(grams)
    own = np.ascontiguousarray(np.diagonal(each, axis1=1, axis2=2))
    rows = RowGrams()
    rows.pattern = gaps.pattern
    rows.starts = gaps.shorter.starts
    rows.signs = gaps.shorter.signs
    rows.diagonals = np.ascontiguousarray(gaps.known @ own)
    rows.sums = np.ascontiguousarray(gaps.known @ (each.sum(axis=2) - own))
    f.whole = False
    f.own = np.empty((K, K))
    f.most = np.empty(K)
    f.ready = np.zeros(K, np.uint8)
    f.total = np.ascontiguousarray(each.sum(axis=0))
    f.grams = grams
    f.listed = gaps.shorter.groups
    f.Q = f.own
    f.overlaps = f.most
    return rows


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def begin_row(f: Objective, rows: RowGrams, n: cy.Py_ssize_t) -> cy.void:
    """Q of row n: its diagonal and sums; `need` computes the rest where it is used."""
    p: cy.Py_ssize_t = rows.pattern[n]
    f.begin = rows.starts[p]
    f.end = rows.starts[p + 1]
    f.sign = rows.signs[p]
    f.sums = rows.sums[p]
    for k in range(f.own.shape[0]):
        f.own[k, k] = rows.diagonals[p, k]
        f.ready[k] = 0


def scattered_local_search(
    B: cy.const[cy.double][:, ::1],
    slopes: cy.const[cy.double][:, ::1],
    grams: cy.const[cy.double][:, :, ::1],
    gaps: object,
    Z: cy.uchar[:, ::1],
) -> int:
    """What `rows_local_search` does, where hardly two rows have the same gaps.

    MEIBP section 3.6 on Eq. 19. `slopes` (1, K) is what else is linear in z, `grams`
    (G, K, K) the second moments of the factors by groups of columns, `gaps` are `Gaps`.
    """
    f = Objective(Z.shape[1])
    rows: RowGrams = open_gaps(f, grams, gaps)
    changed: cy.Py_ssize_t = 0
    with cy.nogil:
        for n in range(Z.shape[0]):
            begin_row(f, rows, n)
            take_row(f, B, n, slopes, 0)
            f_z: cy.double = local_search(f)
            f_z += exchange(f)
            changed += keep_better(f, f_z, Z, n) > 0
    return changed
