"""Small products that kernels of several models share."""

import cython as cy

__all__ = ["dot", "row_dot"]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def dot(a: cy.const[cy.double][::1], b: cy.const[cy.double][::1]) -> cy.double:
    """Σ_d a_d b_d."""
    total: cy.double = 0.0
    for d in range(a.shape[0]):
        total += a[d] * b[d]
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def row_dot(
    A: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    B: cy.const[cy.double][:, ::1],
    j: cy.Py_ssize_t,
) -> cy.double:
    """a_i · b_j."""
    total: cy.double = 0.0
    for d in range(A.shape[1]):
        total += A[i, d] * B[j, d]
    return total
