"""Small products that kernels of several models share."""

import cython as cy

__all__ = ["dot", "row_dot", "sq_dist", "times_bits"]


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


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def sq_dist(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    C: cy.const[cy.double][:, ::1],
    k: cy.Py_ssize_t,
) -> cy.double:
    """‖y_i − c_k‖²."""
    total: cy.double = 0.0
    for d in range(Y.shape[1]):
        diff: cy.double = Y[i, d] - C[k, d]
        total += diff * diff
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def times_bits(
    M: cy.const[cy.double][:, ::1],
    z: cy.const[cy.uchar][::1],
    K: cy.Py_ssize_t,
    out: cy.double[::1],
) -> cy.double:
    """out = Mz for a symmetric M; return zMz."""
    total: cy.double = 0.0
    for i in range(K):
        out[i] = 0.0
    for j in range(K):
        if z[j]:
            for i in range(K):
                out[i] += M[j, i]
    for i in range(K):
        if z[i]:
            total += out[i]
    return total
