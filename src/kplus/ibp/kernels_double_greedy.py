"""The double greedy of Buchbinder et al. (2012) on the row objective of MEIBP.

It decides feature after feature between a set that grows and one that shrinks, and
reaches 1/3 of the range of a submodular f, or 1/2 in expectation if it decides at
random. The objective is that of `kernels_objective`.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_uniform import scramble, uniform
from cython.cimports.kplus.ibp.kernels_objective import (
    Objective,
    keep_better,
    sums_beside_diagonal,
    take_row,
    value,
)

if cy.compiled:
    from cython.cimports.libc.math import log
    from cython.cimports.libc.stdint import uint64_t
else:
    from numpy import log
    from numpy import uint64 as uint64_t

__all__ = ["double_greedy", "random_double_greedy", "rows_double_greedy"]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _squeeze(
    f: Objective,
    randomly: cy.bint,
    start: uint64_t,
    z: cy.uchar[::1],
    low: cy.double[::1],
    high: cy.double[::1],
) -> cy.void:
    """Decide feature after feature between a growing and a shrinking set; fill z.

    The double greedy of Buchbinder et al. (2012), which the paper cites. `low` and
    `high` are the gains at the two sets, which meet at the end. The feature is taken in
    with probability a/(a + b) or, if not at random, where a ≥ b.
    """
    c_low: cy.Py_ssize_t = 0
    c_high: cy.Py_ssize_t = 0
    for k in range(z.shape[0]):
        low[k] = f.lin[k]
        high[k] = f.lin[k] - f.sums[k]
        c_high += 1 if f.fresh[k] else 0
    for k in range(z.shape[0]):
        a: cy.double = low[k]
        b: cy.double = -high[k]
        if f.fresh[k]:
            a -= log(f.base + c_low + 1.0)
            b += log(f.base + c_high)
        if randomly:
            a = max(a, 0.0)
            b = max(b, 0.0)
            z[k] = uniform(start, k) * (a + b) <= a
        else:
            z[k] = a >= b
        if z[k]:
            c_low += 1 if f.fresh[k] else 0
            for j in range(z.shape[0]):
                low[j] -= f.Q[k, j]
        else:
            c_high -= 1 if f.fresh[k] else 0
            for j in range(z.shape[0]):
                high[j] += f.Q[k, j]


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def double_greedy(f: Objective) -> cy.double:
    """Fill z by the deterministic double greedy; return f(z).

    Buchbinder et al. 2012.
    """
    _squeeze(f, False, 0, f.z, f.free, f.held)
    return value(f, f.z)


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def random_double_greedy(f: Objective, seed: uint64_t, row: uint64_t) -> cy.double:
    """Fill z by the randomised double greedy; return f(z). Seed and row fix the draws.

    Buchbinder et al. 2012.
    """
    start: uint64_t = scramble(
        cy.cast(uint64_t, seed) + scramble(cy.cast(uint64_t, row))
    )
    _squeeze(f, True, start, f.z, f.free, f.held)
    return value(f, f.z)


def rows_double_greedy(
    B: cy.const[cy.double][:, ::1],
    linear: cy.const[cy.double][:, ::1],
    Qs: cy.const[cy.double][:, :, ::1],
    pattern: cy.const[cy.longlong][::1],
    Z: cy.uchar[:, ::1],
    seed: uint64_t,
    numbers: cy.const[cy.longlong][::1],
) -> int:
    """Maximise f for every row of a block, as `rows_local_search` does.

    Buchbinder et al. (2012) on MEIBP Eq. 19. `numbers` are those of the rows in their
    table: what is drawn for a row depends on its number and on `seed` alone, not on how
    the table is cut.
    """
    f = Objective(Z.shape[1])
    sums: cy.double[:, ::1] = np.empty((Qs.shape[0], Qs.shape[1]))
    changed: cy.Py_ssize_t = 0
    last: cy.Py_ssize_t = -1
    with cy.nogil:
        for p in range(Qs.shape[0]):
            sums_beside_diagonal(Qs[p], sums[p])
        for n in range(Z.shape[0]):
            p = pattern[n]
            if p != last:
                f.Q = Qs[p]
                f.sums = sums[p]
                last = p
            take_row(f, B, n, linear, p)
            f_z: cy.double = random_double_greedy(f, seed, numbers[n])
            changed += keep_better(f, f_z, Z, n) > 0
    return changed
