"""The choice of a fixed number of features."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.stdlib import qsort

__all__ = ["choose_lowest"]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _ascending(
    a: cy.pointer[cy.const[cy.void]], b: cy.pointer[cy.const[cy.void]]
) -> cy.int:
    """How two numbers are ordered, for `qsort`."""
    x: cy.double = cy.cast(cy.pointer[cy.const[cy.double]], a)[0]
    y: cy.double = cy.cast(cy.pointer[cy.const[cy.double]], b)[0]
    return cy.cast(cy.int, x > y) - cy.cast(cy.int, x < y)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def choose_lowest(
    scores: cy.const[cy.double][::1],
    most: cy.Py_ssize_t,
    work: cy.double[::1],
    chosen: cy.uchar[:, ::1],
    k: cy.Py_ssize_t,
) -> cy.void:
    """Choose for k the `most` features of lowest score, ties to the left, never NaN.

    As many v_kd = 1 as CRAFT Algorithm 2 asks for.
    """
    n: cy.Py_ssize_t = 0
    for d in range(scores.shape[0]):
        if scores[d] == scores[d]:
            work[n] = scores[d]
            n += 1
    left: cy.Py_ssize_t = min(most, n)
    if left <= 0:
        return
    if cy.compiled:
        qsort(cy.address(work[0]), n, cy.sizeof(cy.double), _ascending)
    else:
        work[:n] = np.sort(work[:n])
    last: cy.double = work[left - 1]
    for d in range(scores.shape[0]):
        if scores[d] < last:
            chosen[k, d] = 1
            left -= 1
    for d in range(scores.shape[0]):
        if scores[d] == last and left > 0:
            chosen[k, d] = 1
            left -= 1
