"""The two nearest of some centres, exactly: by float64 differences."""

import cython as cy
from cython.cimports.kplus.dp_means.kernels_bounds import Drift

__all__ = ["decide", "two_nearest"]

INF = cy.declare(cy.double, float("inf"))


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _sq_dist(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    C: cy.const[cy.double][:, ::1],
    k: cy.Py_ssize_t,
) -> cy.double:
    """‖y_i − c_k‖²; in this file, where the compiler can put it into its callers."""
    total: cy.double = 0.0
    for d in range(Y.shape[1]):
        diff: cy.double = Y[i, d] - C[k, d]
        total += diff * diff
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _placed(
    c: cy.Py_ssize_t,
    dist: cy.double,
    k1: cy.Py_ssize_t,
    k2: cy.Py_ssize_t,
    d1: cy.double,
    d2: cy.double,
    rest2: cy.double,
) -> tuple[cy.Py_ssize_t, cy.Py_ssize_t, cy.double, cy.double, cy.double]:
    """The two nearest of k1, k2 and c, and the least of all others (of ‖y − c‖²)."""
    if k1 < 0 or dist < d1 or (dist == d1 and c < k1):
        return c, k1, dist, d1, min(rest2, d2)
    if dist < d2:
        return k1, c, d1, dist, min(rest2, d2)
    return k1, k2, d1, d2, min(rest2, dist)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def two_nearest(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    p: cy.Py_ssize_t,
    a: cy.Py_ssize_t,
    b: cy.Py_ssize_t,
    rest2: cy.double,
    centers: cy.const[cy.double][:, ::1],
) -> tuple[cy.Py_ssize_t, cy.Py_ssize_t, cy.double, cy.double, cy.double]:
    """The two nearest of centres p, a, b (-1: none), exactly; ties: lower number.

    argmin_k ‖y − c_k‖² among three. The others join the rest, whose squared distance is
    at least `rest2`.
    """
    k1: cy.Py_ssize_t = -1
    k2: cy.Py_ssize_t = -1
    d1: cy.double = INF
    d2: cy.double = INF
    for j in range(3):
        c = p if j == 0 else (a if j == 1 else b)
        if c < 0 or c in (k1, k2):
            continue
        dist = _sq_dist(Y, i, centers, c)
        k1, k2, d1, d2, rest2 = _placed(c, dist, k1, k2, d1, d2, rest2)
    return k1, k2, d1, d2, rest2


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def decide(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    G: cy.const[cy.float][:, ::1],
    t: cy.Py_ssize_t,
    width: cy.Py_ssize_t,
    floor: cy.double,
    a: cy.Py_ssize_t,
    b: cy.Py_ssize_t,
    drift: Drift,
    centers: cy.const[cy.double][:, ::1],
) -> tuple[cy.Py_ssize_t, cy.Py_ssize_t, cy.double, cy.double, cy.double]:
    """As `two_nearest`, among a, b and all centres whose score reaches `floor`.

    argmin_k ‖y − c_k‖² in float64. A score that is not a number is looked at, not
    skipped.
    """
    k1: cy.Py_ssize_t
    k2: cy.Py_ssize_t
    d1: cy.double
    d2: cy.double
    rest2: cy.double
    k1, k2, d1, d2, rest2 = two_nearest(Y, i, -1, a, b, INF, centers)
    for j in range(width):
        c = drift.order[j]
        if G[j, t] - drift.half[j] < floor or c in (a, b):
            continue
        dist = _sq_dist(Y, i, centers, c)
        k1, k2, d1, d2, rest2 = _placed(c, dist, k1, k2, d1, d2, rest2)
    return k1, k2, d1, d2, rest2
