"""WᵀW by columns where gaps are scattered, so that it is another for each column."""

import cython as cy
import numpy as np

__all__ = ["add_gaps"]


def add_gaps(
    W: cy.const[cy.double][:, ::1],
    pattern: cy.const[cy.longlong][::1],
    starts: cy.const[cy.longlong][::1],
    groups: cy.const[cy.longlong][::1],
    signs: cy.const[cy.double][::1],
    S: cy.double[:, :, ::1],
) -> None:
    """S_g ± w_n w_nᵀ for the groups of columns listed for each row.

    WᵀW by groups of columns: a gap costs the square of what features its row has.
    """
    K = W.shape[1]
    has: cy.Py_ssize_t[::1] = np.empty(K, np.intp)
    with cy.nogil:
        for n in range(W.shape[0]):
            p: cy.Py_ssize_t = pattern[n]
            c: cy.Py_ssize_t = 0
            for k in range(K):
                if W[n, k] != 0.0:
                    has[c] = k
                    c += 1
            for i in range(starts[p], starts[p + 1]):
                g: cy.Py_ssize_t = groups[i]
                for a in range(c):
                    share: cy.double = signs[p] * W[n, has[a]]
                    for b in range(a + 1):
                        S[g, has[a], has[b]] += share * W[n, has[b]]
        for g in range(S.shape[0]):
            for k in range(K):
                for j in range(k):
                    S[g, j, k] = S[g, k, j]
