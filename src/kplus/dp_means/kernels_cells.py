"""Sums over rows in cells, rows between cells that touch, and Ward's tree of cells."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import INFINITY as INF
else:
    from numpy import inf as INF

__all__ = ["chain", "count_between", "spread_along", "sum_cells", "two_nearest"]


def sum_cells(
    Y: cy.const[cy.double][:, ::1],
    w: cy.const[cy.double][::1],
    own: cy.const[cy.Py_ssize_t][::1],
    counts: cy.double[::1],
    means: cy.double[:, ::1],
    errors: cy.double[::1],
) -> None:
    """W_k = Σ w, c_k = Σ w y / W_k and Σ w |y - c_k|² over the rows of each cell."""
    n, D, K = Y.shape[0], Y.shape[1], counts.shape[0]
    with cy.nogil:
        for k in range(K):
            counts[k] = errors[k] = 0.0
            for d in range(D):
                means[k, d] = 0.0
        for i in range(n):
            k = own[i]
            counts[k] += w[i]
            for d in range(D):
                means[k, d] += w[i] * Y[i, d]
        for k in range(K):
            for d in range(D):
                means[k, d] /= counts[k]
        for i in range(n):
            k = own[i]
            total: cy.double = 0.0
            for d in range(D):
                apart: cy.double = Y[i, d] - means[k, d]
                total += apart * apart
            errors[k] += w[i] * total


def two_nearest(
    scores: cy.const[cy.double][:, ::1], cells: cy.Py_ssize_t[:, ::1]
) -> None:
    """The cells of the least two scores of each row, the first of equals."""
    with cy.nogil:
        for i in range(scores.shape[0]):
            least: cy.double = INF
            next_: cy.double = INF
            first: cy.Py_ssize_t = 0
            second: cy.Py_ssize_t = 0
            for k in range(scores.shape[1]):
                score: cy.double = scores[i, k]
                if score < least:
                    next_, second = least, first
                    least, first = score, k
                elif score < next_:
                    next_, second = score, k
            cells[i, 0] = first
            cells[i, 1] = second


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _along(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    lines: cy.const[cy.double][:, ::1],
    p: cy.Py_ssize_t,
) -> cy.double:
    """Where row i is on line p."""
    total: cy.double = 0.0
    for d in range(Y.shape[1]):
        total += Y[i, d] * lines[p, d]
    return total


def spread_along(
    Y: cy.const[cy.double][:, ::1],
    w: cy.const[cy.double][::1],
    own: cy.const[cy.Py_ssize_t][::1],
    starts: cy.const[cy.Py_ssize_t][::1],
    ends: cy.const[cy.Py_ssize_t][::1],
    lines: cy.const[cy.double][:, ::1],
    centers: cy.const[cy.double][::1],
    variances: cy.double[::1],
) -> None:
    """Variance of the rows of each cell along each line that it is an end of.

    The ends of cell k are e = starts[k], ..., starts[k + 1] - 1: of line ends[e], on
    which its centre is at centers[e].
    """
    n_ends = ends.shape[0]
    weight: cy.double[::1] = np.zeros(n_ends)
    first: cy.double[::1] = np.zeros(n_ends)
    with cy.nogil:
        for e in range(n_ends):
            variances[e] = 0.0
        for i in range(Y.shape[0]):
            for e in range(starts[own[i]], starts[own[i] + 1]):
                apart: cy.double = _along(Y, i, lines, ends[e]) - centers[e]
                weight[e] += w[i]
                first[e] += w[i] * apart
                variances[e] += w[i] * apart * apart
        for e in range(n_ends):
            mean: cy.double = first[e] / weight[e]
            variances[e] = max(variances[e] / weight[e] - mean * mean, 0.0)


def count_between(
    Y: cy.const[cy.double][:, ::1],
    w: cy.const[cy.double][::1],
    own: cy.const[cy.Py_ssize_t][::1],
    starts: cy.const[cy.Py_ssize_t][::1],
    ends: cy.const[cy.Py_ssize_t][::1],
    lines: cy.const[cy.double][:, ::1],
    low: cy.const[cy.double][::1],
    high: cy.const[cy.double][::1],
    counts: cy.double[:, ::1],
) -> None:
    """Add the rows of each cell to the histograms of the lines that it is an end of."""
    n_bins = counts.shape[1]
    with cy.nogil:
        for i in range(Y.shape[0]):
            for e in range(starts[own[i]], starts[own[i] + 1]):
                p = ends[e]
                if not low[p] < high[p]:
                    continue
                place: cy.double = (_along(Y, i, lines, p) - low[p]) / (
                    high[p] - low[p]
                )
                if 0.0 <= place < 1.0:
                    b: cy.Py_ssize_t = cy.cast(cy.Py_ssize_t, place * n_bins)
                    counts[p, b] += w[i]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _costs_of(
    C: cy.const[cy.double][:, ::1],
    size: cy.const[cy.double][::1],
    a: cy.Py_ssize_t,
    costs: cy.double[::1],
) -> cy.void:
    """n_a n_b / (n_a + n_b) |c_a - c_b|² for all b."""
    for b in range(C.shape[0]):
        total: cy.double = 0.0
        for d in range(C.shape[1]):
            apart: cy.double = C[b, d] - C[a, d]
            total += apart * apart
        # The same from a to b as from b to a, or the chain might go round.
        both: cy.double = size[a] * size[b] / max(size[a] + size[b], 1e-300)
        costs[b] = total * both


def chain(
    C: cy.double[:, ::1],
    size: cy.double[::1],
    pairs: cy.Py_ssize_t[:, ::1],
    merged: cy.double[::1],
) -> None:
    """Ward's merges by the nearest-neighbour chain (Murtagh 1983), as they are found.

    Two groups merge when each is the other's nearest. Points are 0, ..., n - 1, and
    n + t is what merge t joined. Centres and sizes are overwritten.
    """
    n, D = C.shape[0], C.shape[1]
    gone: cy.char[::1] = np.zeros(n, np.int8)
    name: cy.Py_ssize_t[::1] = np.arange(n, dtype=np.intp)
    links: cy.Py_ssize_t[::1] = np.zeros(n + 1, np.intp)
    costs: cy.double[::1] = np.empty(n)
    length: cy.Py_ssize_t = 0
    t: cy.Py_ssize_t = 0
    with cy.nogil:
        while t < n - 1:
            if length == 0:
                links[0] = 0
                while gone[links[0]]:
                    links[0] += 1
                length = 1
            a = links[length - 1]
            _costs_of(C, size, a, costs)
            b: cy.Py_ssize_t = -1
            for k in range(n):
                if k != a and not gone[k] and (b < 0 or costs[k] < costs[b]):
                    b = k
            last: cy.Py_ssize_t = links[length - 2] if length > 1 else -1
            if last < 0 or (costs[last] > costs[b] and length < n):
                links[length] = b
                length += 1
                continue
            b = last
            length -= 2
            pairs[t, 0], pairs[t, 1], merged[t] = name[a], name[b], costs[b]
            both: cy.double = size[a] + size[b]
            share: cy.double = size[a] / max(both, 1e-300)
            for d in range(D):
                C[b, d] += share * (C[a, d] - C[b, d])
            size[b] = both
            gone[a] = 1
            name[b] = n + t
            t += 1
