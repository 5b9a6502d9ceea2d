"""Uniform numbers that depend on a seed and a number alone (splitmix64).

What is drawn for a row is then the same however the table is cut into blocks.
"""

import cython as cy

if cy.compiled:
    from cython.cimports.libc.stdint import uint64_t
else:
    from numpy import uint64 as uint64_t

__all__ = ["scramble", "uniform", "uniform_of_rows"]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def scramble(x: uint64_t) -> uint64_t:
    """Scatter the bits of a 64-bit number: the last step of splitmix64."""
    x = (x ^ (x >> 30)) * cy.cast(uint64_t, 0xBF58476D1CE4E5B9)
    x = (x ^ (x >> 27)) * cy.cast(uint64_t, 0x94D049BB133111EB)
    return x ^ (x >> 31)


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def uniform(start: uint64_t, k: uint64_t) -> cy.double:
    """Number k of the stream of splitmix64 that begins at `start`, in [0, 1)."""
    step: uint64_t = cy.cast(uint64_t, k + 1) * cy.cast(uint64_t, 0x9E3779B97F4A7C15)
    return cy.cast(cy.double, scramble(start + step) >> 11) * 2.0**-53


def uniform_of_rows(
    rows: cy.const[cy.longlong][::1], seed: uint64_t, out: cy.double[::1]
) -> None:
    """out_i = a number in [0, 1) that depends on rows_i and the seed alone."""
    with cy.nogil:
        for i in range(rows.shape[0]):
            out[i] = uniform(cy.cast(uint64_t, rows[i]), seed - 1)
