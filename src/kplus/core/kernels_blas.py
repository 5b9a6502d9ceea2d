"""Products of matrices inside kernels, by the BLAS that scipy brings."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.scipy.linalg.cython_blas import dgemm, sgemm

__all__ = [
    "add_product",
    "add_product_of_rows",
    "add_product_of_transposed",
    "product",
    "product_of_transposed",
    "row_products",
    "single_product",
]


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
def single_product(
    A: cy.const[cy.float][:, ::1], B: cy.const[cy.float][:, ::1], out: cy.float[:, ::1]
) -> cy.void:
    """out = A B in float32; what overflows is infinite or NaN."""
    if cy.compiled:
        rows: cy.int = B.shape[1]
        columns: cy.int = A.shape[0]
        inner: cy.int = A.shape[1]
        one: cy.float = 1.0
        zero: cy.float = 0.0
        sgemm(
            b"N",
            b"N",
            cy.address(rows),
            cy.address(columns),
            cy.address(inner),
            cy.address(one),
            cy.cast(cy.p_float, cy.address(B[0, 0])),
            cy.address(rows),
            cy.cast(cy.p_float, cy.address(A[0, 0])),
            cy.address(inner),
            cy.address(zero),
            cy.address(out[0, 0]),
            cy.address(rows),
        )
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            np.dot(A, B, out)


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
    add_product(1.0, A, B, m, B.shape[1], A.shape[1], 0.0, out)


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
    add_product_of_transposed(1.0, A, B, A.shape[1], B.shape[1], m, 0.0, out)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def add_product(
    sign: cy.double,
    A: cy.const[cy.double][:, ::1],
    B: cy.const[cy.double][:, ::1],
    m: cy.Py_ssize_t,
    n: cy.Py_ssize_t,
    inner: cy.Py_ssize_t,
    keep: cy.double,
    out: cy.double[:, ::1],
) -> cy.void:
    """out[:m, :n] = keep · out[:m, :n] + sign · A[:m, :inner] B[:inner, :n]."""
    if cy.compiled:
        _gemm(b"N", b"N", sign, A, B, m, n, inner, keep, out)
    else:
        _add(sign * (A[:m, :inner] @ B[:inner, :n]), keep, out[:m, :n])


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def add_product_of_rows(
    sign: cy.double,
    A: cy.const[cy.double][:, ::1],
    B: cy.const[cy.double][:, ::1],
    m: cy.Py_ssize_t,
    n: cy.Py_ssize_t,
    inner: cy.Py_ssize_t,
    keep: cy.double,
    out: cy.double[:, ::1],
) -> cy.void:
    """out[:m, :n] = keep · out[:m, :n] + sign · A[:m, :inner] B[:n, :inner]ᵀ."""
    if cy.compiled:
        _gemm(b"N", b"T", sign, A, B, m, n, inner, keep, out)
    else:
        _add(sign * (A[:m, :inner] @ B[:n, :inner].T), keep, out[:m, :n])


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def add_product_of_transposed(
    sign: cy.double,
    A: cy.const[cy.double][:, ::1],
    B: cy.const[cy.double][:, ::1],
    m: cy.Py_ssize_t,
    n: cy.Py_ssize_t,
    inner: cy.Py_ssize_t,
    keep: cy.double,
    out: cy.double[:, ::1],
) -> cy.void:
    """out[:m, :n] = keep · out[:m, :n] + sign · A[:inner, :m]ᵀ B[:inner, :n]."""
    if cy.compiled:
        _gemm(b"T", b"N", sign, A, B, m, n, inner, keep, out)
    else:
        _add(sign * (A[:inner, :m].T @ B[:inner, :n]), keep, out[:m, :n])


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _gemm(
    of_a: cy.p_char,
    of_b: cy.p_char,
    sign: cy.double,
    A: cy.const[cy.double][:, ::1],
    B: cy.const[cy.double][:, ::1],
    m: cy.Py_ssize_t,
    n: cy.Py_ssize_t,
    inner: cy.Py_ssize_t,
    keep: cy.double,
    out: cy.double[:, ::1],
) -> cy.void:
    """Call BLAS, which goes by columns: it is given the transposed product."""
    if cy.compiled:
        rows: cy.int = n
        columns: cy.int = m
        shared: cy.int = inner
        stride_a: cy.int = max(A.shape[1], 1)
        stride_b: cy.int = max(B.shape[1], 1)
        stride: cy.int = out.shape[1]
        if m == 0 or n == 0:
            return
        if inner == 0:  # no entry of A whose address could be taken
            for i in range(m):
                for j in range(n):
                    out[i, j] = keep * out[i, j] if keep != 0.0 else 0.0
            return
        dgemm(
            of_b,
            of_a,
            cy.address(rows),
            cy.address(columns),
            cy.address(shared),
            cy.address(sign),
            cy.cast(cy.p_double, cy.address(B[0, 0])),
            cy.address(stride_b),
            cy.cast(cy.p_double, cy.address(A[0, 0])),
            cy.address(stride_a),
            cy.address(keep),
            cy.address(out[0, 0]),
            cy.address(stride),
        )


def _add(product: object, keep: float, out: object) -> None:
    """Uncompiled: what is not kept may be NaN."""
    out[:] = product if keep == 0.0 else product + np.multiply(keep, out)
