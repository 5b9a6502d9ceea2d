"""Rows a tile at a time: centred, and scored against many centres at once."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import isfinite
else:
    from numpy import isfinite

__all__ = ["Top", "load_tile", "room_for", "scan"]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Top:
    """Scores of a tile's rows, a line for each centre, and the two best of each row."""

    scores: cy.float[:, ::1]  # (K, T)
    first: cy.int[::1]  # (T,) places of the best
    second: cy.int[::1]
    g1: cy.float[::1]  # (T,) their scores
    g2: cy.float[::1]


def room_for(K: cy.Py_ssize_t, T: cy.Py_ssize_t) -> Top:
    """Room for the scores of T rows."""
    ints, floats = np.empty((2, T), np.int32), np.empty((2, T), np.float32)
    return Top(np.empty((K, T), np.float32), *ints, *floats)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def load_tile(
    X: cy.const[cy.floating][:, ::1],
    start: cy.Py_ssize_t,
    n: cy.Py_ssize_t,
    origin: cy.const[cy.double][::1],
    inv: cy.double,
    wide: cy.double[:, ::1],
    narrow: cy.float[:, ::1],
    norms: cy.double[::1],
) -> cy.Py_ssize_t:
    """Centre rows, y = (x − origin)·inv, with ‖y‖²; the first not finite, -1: none."""
    for t in range(n):
        total: cy.double = 0.0
        for d in range(X.shape[1]):
            v: cy.double = (X[start + t, d] - origin[d]) * inv
            wide[t, d] = v
            narrow[t, d] = v
            total += v * v
        norms[t] = total
    for t in range(n):
        if not isfinite(norms[t]):
            return t
    return -1


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def scan(
    top: Top,
    half: cy.const[cy.float][::1],
    K: cy.Py_ssize_t,
    n: cy.Py_ssize_t,
) -> cy.void:
    """For each row, the two largest scores ``y·c - |c|²/2`` and their places.

    `top.scores` holds the products y·c, a centre a line: the inner loop runs over rows
    and has no branches, so that it works on many rows at once. A score that is not a
    number is none of the largest.
    """
    scores, first, second, g1, g2 = top.scores, top.first, top.second, top.g1, top.g2
    for t in range(n):
        first[t], second[t] = 0, 0
        g1[t], g2[t] = -3e38, -3e38
    for k in range(K):
        h: cy.float = half[k]
        place: cy.int = k
        for t in range(n):
            v: cy.float = scores[k, t] - h
            best: cy.float = g1[t]
            mid: cy.float = g2[t]
            leader: cy.int = first[t]
            leads: cy.bint = v > best
            follows: cy.bint = v > mid
            shifted: cy.int = leader if leads else second[t]
            second[t] = place if (follows and not leads) else shifted
            first[t] = place if leads else leader
            g2[t] = max(mid, min(v, best))
            g1[t] = max(best, v)
