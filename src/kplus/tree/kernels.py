"""Kernels of the valley test: histograms of one mode, fitted by isotonic regression."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import INFINITY as INF
    from cython.cimports.libc.math import log
else:
    from numpy import inf as INF
    from numpy import log

__all__ = ["one_mode"]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def fit_monotone(
    counts: cy.const[cy.double][:, ::1],
    p: cy.Py_ssize_t,
    first: cy.Py_ssize_t,
    sign: cy.double,
    pools: cy.double[:, ::1],
    out: cy.double[::1],
) -> cy.void:
    """Pool adjacent violators; out_b is the log-likelihood of counts first, ..., b - 1.

    Rates rise with sign 1 and fall with -1. A pool of n counts that sum to s has
    s log(s / n) - s.
    """
    n_pools: cy.Py_ssize_t = 0
    likelihood: cy.double = 0.0
    out[first] = 0.0
    for b in range(first, counts.shape[1]):
        total: cy.double = counts[p, b]
        bins: cy.double = 1.0
        while (
            n_pools > 0
            and sign * pools[n_pools - 1, 0] * bins
            >= sign * total * pools[n_pools - 1, 1]
        ):
            n_pools -= 1
            total += pools[n_pools, 0]
            bins += pools[n_pools, 1]
            likelihood -= pools[n_pools, 2]
        pools[n_pools, 0] = total
        pools[n_pools, 1] = bins
        pools[n_pools, 2] = total * log(total / bins) - total if total > 0.0 else 0.0
        likelihood += pools[n_pools, 2]
        n_pools += 1
        out[b + 1] = likelihood


def one_mode(counts: cy.const[cy.double][:, ::1], out: cy.double[:, ::1]) -> None:
    """Log-likelihood of one mode in the first b counts of each row, b = 0, ..., n.

    Counts are Poisson; their rates rise up to some bin and fall after it.
    """
    n_bins = counts.shape[1]
    pools: cy.double[:, ::1] = np.empty((n_bins + 1, 3))
    rising: cy.double[::1] = np.empty(n_bins + 1)
    falling: cy.double[::1] = np.empty(n_bins + 1)
    with cy.nogil:
        for p in range(counts.shape[0]):
            fit_monotone(counts, p, 0, 1.0, pools, rising)
            for b in range(n_bins + 1):
                out[p, b] = -INF
            for mode in range(n_bins + 1):
                fit_monotone(counts, p, mode, -1.0, pools, falling)
                for b in range(mode, n_bins + 1):
                    out[p, b] = max(out[p, b], rising[mode] + falling[b])
