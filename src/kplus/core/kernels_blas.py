"""Products of matrices inside kernels, by the BLAS that scipy brings."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.scipy.linalg.cython_blas import dgemm, sgemm

__all__ = ["product", "product_of_transposed", "row_products"]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def row_products(
    A: cy.const[cy.float][:, ::1],
    B: cy.const[cy.float][:, ::1],
    m: cy.Py_ssize_t,
    n: cy.Py_ssize_t,
    out: cy.float[:, ::1],
) -> cy.void:
    """out[:m, :n] = A[:m] B[:n]ᵀ."""
    if cy.compiled:
        rows: cy.int = n  # of the transposed product: BLAS goes by columns
        columns: cy.int = m
        inner: cy.int = A.shape[1]
        lead: cy.int = max(inner, 1)
        stride: cy.int = out.shape[1]
        one: cy.float = 1.0
        zero: cy.float = 0.0
        if rows == 0 or columns == 0:
            return
        sgemm(
            b"T",
            b"N",
            cy.address(rows),
            cy.address(columns),
            cy.address(inner),
            cy.address(one),
            cy.cast(cy.p_float, cy.address(B[0, 0])),
            cy.address(lead),
            cy.cast(cy.p_float, cy.address(A[0, 0])),
            cy.address(lead),
            cy.address(zero),
            cy.address(out[0, 0]),
            cy.address(stride),
        )
    else:
        out[:m, :n] = np.dot(A[:m], B[:n].T)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def product(
    A: cy.const[cy.double][:, ::1],
    B: cy.const[cy.double][:, ::1],
    m: cy.Py_ssize_t,
    out: cy.double[:, ::1],
) -> cy.void:
    """out[:m] = A[:m] B."""
    if cy.compiled:
        rows: cy.int = B.shape[1]
        columns: cy.int = m
        inner: cy.int = A.shape[1]
        lead: cy.int = max(inner, 1)
        one: cy.double = 1.0
        zero: cy.double = 0.0
        if rows == 0 or columns == 0:
            return
        dgemm(
            b"N",
            b"N",
            cy.address(rows),
            cy.address(columns),
            cy.address(inner),
            cy.address(one),
            cy.cast(cy.p_double, cy.address(B[0, 0])),
            cy.address(rows),
            cy.cast(cy.p_double, cy.address(A[0, 0])),
            cy.address(lead),
            cy.address(zero),
            cy.address(out[0, 0]),
            cy.address(rows),
        )
    else:
        np.dot(A[:m], B, out[:m])


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def product_of_transposed(
    A: cy.const[cy.double][:, ::1],
    B: cy.const[cy.double][:, ::1],
    m: cy.Py_ssize_t,
    out: cy.double[:, ::1],
) -> cy.void:
    """out = A[:m]ᵀ B[:m]."""
    if cy.compiled:
        rows: cy.int = B.shape[1]
        columns: cy.int = A.shape[1]
        inner: cy.int = m
        one: cy.double = 1.0
        zero: cy.double = 0.0
        if rows == 0 or columns == 0:
            return
        dgemm(
            b"N",
            b"T",
            cy.address(rows),
            cy.address(columns),
            cy.address(inner),
            cy.address(one),
            cy.cast(cy.p_double, cy.address(B[0, 0])),
            cy.address(rows),
            cy.cast(cy.p_double, cy.address(A[0, 0])),
            cy.address(columns),
            cy.address(zero),
            cy.address(out[0, 0]),
            cy.address(rows),
        )
    else:
        np.dot(A[:m].T, B[:m], out)
