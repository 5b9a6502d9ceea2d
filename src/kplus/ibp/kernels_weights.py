"""How much of each feature rows have: nonnegative weights, by coordinate ascent.

Not in the paper. A weight v ≥ 0 has a half-normal prior of variance τ_k, and q(v) is a
Gaussian cut off below zero, as those of the factors are.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.ibp.kernels_factors import entropy_cut, truncated
from cython.cimports.kplus.ibp.kernels_objective import Objective, need
from cython.cimports.kplus.ibp.kernels_scattered import (
    RowGrams,
    begin_row,
    open_gaps,
)

if cy.compiled:
    from cython.cimports.libc.math import log, sqrt
else:
    from numpy import log, sqrt

__all__ = ["rows_weights"]

_LOG_2 = cy.declare(cy.double, float(np.log(2.0)))
_LOG_2PIE = cy.declare(cy.double, float(np.log(2.0 * np.pi * np.e)))


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _shift(f: Objective, k: cy.Py_ssize_t, step: cy.double) -> cy.void:
    """w −= Q_k Δ beside k: products with what is left of a row, as v_k moves by Δ."""
    need(f, k)
    own: cy.double = f.free[k]
    for j in range(f.free.shape[0]):
        f.free[j] -= f.Q[k, j] * step
    f.free[k] = own


def rows_weights(
    B: cy.const[cy.double][:, ::1],
    slopes: cy.const[cy.double][::1],
    grams: cy.const[cy.double][:, :, ::1],
    gaps: object,
    noise: cy.double,
    slab: cy.const[cy.double][::1],
    most_rounds: cy.Py_ssize_t,
    still: cy.double,
    M: cy.double[:, ::1],
    V: cy.double[:, ::1],
    H: cy.double[:, ::1],
) -> int:
    """Bits and weights of every row, one feature after another, round after round.

    With w_k = b_k − Σ_{j≠k} Q_kj E[v_j], q(v_k) has the precision Q_kk/σ² + 1/τ_k and
    the centre w_k/σ² in units of it. A row has the feature if

        ln ∫ p(v) exp(w_k v/σ² − Q_kk v²/2σ²) dv + slope_k > 0,

    which is what the bound gains by the best q(v_k), all else unchanged.

    Parameters
    ----------
    B : (N, K)
        Products of the rows, 0 in gaps, with the means of the features.
    slopes : (K,)
        What the log-prior gains for one more row with a feature.
    grams : (G, K, K)
        E[A_g A_gᵀ] of the columns of each group.
    gaps : Gaps
    noise : float
        σ².
    slab : (K,)
        τ.
    most_rounds : int
    still : float
        Rounds end when no feature of a row moves it by more; a length.
    M : (N, K)
        Means of the weights before and after; 0 where a row lacks a feature.
    V : (N, K)
        Their variances, after.
    H : (N, K)
        The entropies of their q(v), after.

    Returns
    -------
    changed : int
        Number of rows that have another set of features than before.
    """
    K = M.shape[1]
    f = Objective(K)
    rows: RowGrams = open_gaps(f, grams, gaps)
    changed: cy.Py_ssize_t = 0
    with cy.nogil:
        for n in range(M.shape[0]):
            begin_row(f, rows, n)
            for k in range(K):
                f.free[k] = B[n, k]
                f.z[k] = M[n, k] > 0.0
            for k in range(K):
                if f.z[k]:
                    _shift(f, k, M[n, k])
            for _ in range(most_rounds):
                moved: cy.double = 0.0
                for k in range(K):
                    own: cy.double = 1.0 / (f.own[k, k] / noise + 1.0 / slab[k])
                    deviation: cy.double = sqrt(own)
                    t: cy.double = -deviation * f.free[k] / noise
                    mean, variance = truncated(t)
                    cut: cy.double = entropy_cut(t, mean)
                    gain: cy.double = cut - 0.5 * t * mean + _LOG_2
                    gain += 0.5 * log(own / slab[k]) + slopes[k]
                    new: cy.double = deviation * mean if gain > 0.0 else 0.0
                    step: cy.double = new - M[n, k]
                    if step != 0.0:
                        _shift(f, k, step)
                        moved = max(moved, step * step * f.own[k, k])
                        M[n, k] = new
                    V[n, k] = own * variance if gain > 0.0 else 0.0
                    H[n, k] = 0.5 * (_LOG_2PIE + log(own)) + cut if gain > 0.0 else 0.0
                if moved <= still * still:
                    break
            other: cy.bint = False
            for k in range(K):
                other = other or (M[n, k] > 0.0) != f.z[k]
            changed += other
    return changed
