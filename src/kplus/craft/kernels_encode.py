"""Rows of mixed tables as numbers.

A row is `numbers`, for each number column 1, z, z² (all 0 where it is missing), and
`codes`, for each category column the place of its value in one list of all categories
of all columns; a missing value has a place of its own, which never counts.
"""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import expm1, log1p
else:
    from numpy import expm1, log1p

__all__ = ["Categories", "Numbers", "encode_rows", "yeo_johnson"]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Numbers:
    """How the P number columns are read; NaN in `powers`: not transformed."""

    at: cy.const[cy.longlong][::1]  # (P,) column of the table
    powers: cy.const[cy.double][::1]  # (P,) exponent of Yeo and Johnson
    origins: cy.const[cy.double][::1]  # (P,)
    scales: cy.const[cy.double][::1]  # (P,)


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Categories:
    """How the Q category columns are read."""

    at: cy.const[cy.longlong][::1]  # (Q,) column of the table
    starts: cy.const[cy.longlong][::1]  # (Q,) first place of the column's categories
    widths: cy.const[cy.longlong][::1]  # (Q,) their number; the place after: missing
    edges: cy.const[cy.double][:, ::1]  # (Q, most) where numbers are cut, NaN: nowhere


@cy.cfunc
@cy.inline
@cy.nogil
@cy.exceptval(check=False)
def _yeo_johnson(x: cy.double, power: cy.double) -> cy.double:
    """((1 + x)^p − 1)/p for x ≥ 0, −((1 − x)^(2−p) − 1)/(2 − p) below."""
    sign: cy.double = 1.0
    if x < 0.0:
        sign, x, power = -1.0, -x, 2.0 - power
    if power == 0.0:
        return sign * log1p(x)
    return sign * expm1(power * log1p(x)) / power


def yeo_johnson(
    x: cy.const[cy.double][::1], power: cy.double, out: cy.double[::1]
) -> None:
    """Numbers with the transformation of Yeo and Johnson (not in the paper)."""
    with cy.nogil:
        for n in range(x.shape[0]):
            out[n] = _yeo_johnson(x[n], power)


def encode_rows(
    X: cy.const[cy.double][:, ::1],
    plain: Numbers,
    coded: Categories,
    numbers: cy.double[:, ::1],
    codes: cy.longlong[:, ::1],
) -> None:
    """Fill `numbers` (n, 3P) from the columns of `plain`, `codes` from `coded`.

    Not in the paper: z = (x − origin)/scale.
    """
    inverse: cy.double[::1] = 1.0 / np.asarray(plain.scales)
    with cy.nogil:
        for n in range(X.shape[0]):
            _encode_numbers(X, n, plain, inverse, numbers)
            for q in range(codes.shape[1]):
                codes[n, q] = coded.starts[q] + _code(X[n, coded.at[q]], coded, q)


@cy.cfunc
@cy.inline
@cy.nogil
@cy.exceptval(check=False)
def _encode_numbers(
    X: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    plain: Numbers,
    inverse: cy.double[::1],
    numbers: cy.double[:, ::1],
) -> cy.void:
    """1, z and z² of each number of row n."""
    P = inverse.shape[0]
    for p in range(P):
        x: cy.double = X[n, plain.at[p]]
        if x != x:
            numbers[n, p] = numbers[n, P + p] = numbers[n, 2 * P + p] = 0.0
            continue
        power: cy.double = plain.powers[p]
        if power == power:
            x = _yeo_johnson(x, power)
        z: cy.double = (x - plain.origins[p]) * inverse[p]
        numbers[n, p] = 1.0
        numbers[n, P + p] = z
        numbers[n, 2 * P + p] = z * z


@cy.cfunc
@cy.inline
@cy.nogil
@cy.exceptval(check=False)
def _code(x: cy.double, coded: Categories, q: cy.Py_ssize_t) -> cy.longlong:
    """Which of its categories a value is, or behind them if it is missing."""
    if x != x:
        return coded.widths[q]
    first: cy.double = coded.edges[q, 0]
    if first != first:
        return cy.cast(cy.longlong, x)
    code: cy.longlong = 0
    for e in range(coded.widths[q] - 1):
        code += x > coded.edges[q, e]
    return code
