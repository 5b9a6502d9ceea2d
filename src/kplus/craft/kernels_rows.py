"""Rows of mixed tables: their sums, scores, clusters and distances.

Rows are `numbers` and `codes`, see `kernels_encode`. The score of a row in a cluster,
the logarithm of how much likelier it is there than in the whole table, is then linear:
products with the numbers, and a look-up for each code.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import product

__all__ = [
    "TILE",
    "add_up",
    "assign_rows",
    "cross_sums",
    "distances_to",
    "move_rows",
    "score_rows",
    "sum_rows",
]

TILE = 256  # rows whose scores stay in the cache


# --------------------------------------------------------------------------- sums


@cy.cfunc
@cy.inline
@cy.nogil
@cy.exceptval(check=False)
def _add_row(
    numbers: cy.const[cy.double][:, ::1],
    codes: cy.const[cy.longlong][:, ::1],
    n: cy.Py_ssize_t,
    w: cy.double,
    sums: cy.double[:, ::1],
    k: cy.Py_ssize_t,
) -> cy.void:
    """sums_k += w·[numbers_n, indicators of codes_n]."""
    width = numbers.shape[1]
    for f in range(width):
        sums[k, f] += w * numbers[n, f]
    for q in range(codes.shape[1]):
        sums[k, width + codes[n, q]] += w


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def sum_rows(
    numbers: cy.const[cy.double][:, ::1],
    codes: cy.const[cy.longlong][:, ::1],
    weights: cy.const[cy.double][::1],
    labels: cy.const[cy.longlong][::1],
    sums: cy.double[:, ::1],
    counts: cy.double[::1],
) -> cy.void:
    """As `add_up`."""
    for n in range(labels.shape[0]):
        counts[labels[n]] += weights[n]
        _add_row(numbers, codes, n, weights[n], sums, labels[n])


def add_up(
    numbers: cy.const[cy.double][:, ::1],
    codes: cy.const[cy.longlong][:, ::1],
    weights: cy.const[cy.double][::1],
    labels: cy.const[cy.longlong][::1],
    sums: cy.double[:, ::1],
    counts: cy.double[::1],
) -> None:
    """sums_k += Σ w·[numbers, indicators of codes], counts_k += Σ w, rows of k."""
    with cy.nogil:
        sum_rows(numbers, codes, weights, labels, sums, counts)


def cross_sums(
    numbers: cy.const[cy.double][:, ::1],
    codes: cy.const[cy.longlong][:, ::1],
    weights: cy.const[cy.double][::1],
    middles: cy.const[cy.double][::1],
    place: cy.const[cy.longlong][::1],
    first: cy.Py_ssize_t,
    sums: cy.double[:, ::1],
    counts: cy.double[::1],
) -> None:
    """Sums of the rows on one side of every split along a single feature.

    Not in the paper. The splits with the lowest numbers take the rows with z above
    `middles`; the others those with one category, `place[code]` being the number of the
    split, or -1. There is room for the splits from `first` on.
    """
    P, n_splits = numbers.shape[1] // 3, counts.shape[0]
    last_number = min(middles.shape[0], first + n_splits)
    with cy.nogil:
        for n in range(numbers.shape[0]):
            for p in range(first, last_number):
                if numbers[n, p] != 0.0 and numbers[n, P + p] > middles[p]:
                    counts[p - first] += weights[n]
                    _add_row(numbers, codes, n, weights[n], sums, p - first)
            for q in range(codes.shape[1]):
                at: cy.Py_ssize_t = place[codes[n, q]] - first
                if 0 <= at < n_splits:
                    counts[at] += weights[n]
                    _add_row(numbers, codes, n, weights[n], sums, at)


# ------------------------------------------------------------------------- scores


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _score_tile(
    numbers: cy.const[cy.double][:, ::1],
    codes: cy.const[cy.longlong][:, ::1],
    start: cy.Py_ssize_t,
    tables: cy.const[cy.double][:, ::1],
    scores: cy.double[:, ::1],
) -> cy.void:
    """scores = numbers·(first rows of tables) + looked-up rows of tables.

    Of the rows from `start` on, as many as there is room for.
    """
    width = numbers.shape[1]
    if width > 0:
        product(numbers[start:], tables[:width], scores.shape[0], scores)
    else:
        scores[:] = 0.0
    for n in range(scores.shape[0]):
        for q in range(codes.shape[1]):
            entry = width + codes[start + n, q]
            for k in range(tables.shape[1]):
                scores[n, k] += tables[entry, k]


def score_rows(
    numbers: cy.const[cy.double][:, ::1],
    codes: cy.const[cy.longlong][:, ::1],
    tables: cy.const[cy.double][:, ::1],
    shares: cy.const[cy.double][::1],
    scores: cy.double[:, ::1],
) -> None:
    """scores_nk = log(n_k/N) + Σ_d w_kd log[p(x_nd | k)/p(x_nd)].

    Not in the paper.
    """
    N, T = scores.shape[0], cy.cast(cy.Py_ssize_t, TILE)
    with cy.nogil:
        for tile in range((N + T - 1) // T):
            start = tile * T
            stop = min(start + T, N)
            _score_tile(numbers, codes, start, tables, scores[start:stop])
            for n in range(start, stop):
                for k in range(shares.shape[0]):
                    scores[n, k] += shares[k]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def move_rows(
    numbers: cy.const[cy.double][:, ::1],
    codes: cy.const[cy.longlong][:, ::1],
    tables: cy.const[cy.double][:, ::1],
    shares: cy.const[cy.double][::1],
    scores: cy.double[:, ::1],
    labels: cy.longlong[::1],
) -> cy.Py_ssize_t:
    """As `assign_rows`; `scores` is room for those of some rows."""
    N, T = labels.shape[0], scores.shape[0]
    changed: cy.Py_ssize_t = 0
    for tile in range((N + T - 1) // T):
        start = tile * T
        stop = min(start + T, N)
        _score_tile(numbers, codes, start, tables, scores[: stop - start])
        for n in range(start, stop):
            best: cy.longlong = 0
            highest: cy.double = scores[n - start, 0] + shares[0]
            for k in range(1, shares.shape[0]):
                score: cy.double = scores[n - start, k] + shares[k]
                if score > highest:
                    best, highest = k, score
            changed += labels[n] != best
            labels[n] = best
    return changed


def assign_rows(
    numbers: cy.const[cy.double][:, ::1],
    codes: cy.const[cy.longlong][:, ::1],
    tables: cy.const[cy.double][:, ::1],
    shares: cy.const[cy.double][::1],
    labels: cy.longlong[::1],
) -> int:
    """labels_n = argmax_k scores_nk, ties to the lower number; count changes."""
    scores: cy.double[:, ::1] = np.empty((TILE, shares.shape[0]))
    with cy.nogil:
        changed = move_rows(numbers, codes, tables, shares, scores, labels)
    return changed  # noqa: RET504  no Python without the GIL


# ---------------------------------------------------------------------- distances


def distances_to(
    row: cy.Py_ssize_t,
    numbers: cy.const[cy.double][:, ::1],
    codes: cy.const[cy.longlong][:, ::1],
    scored: cy.Py_ssize_t,
    missing: cy.const[cy.longlong][::1],
    out: cy.double[::1],
) -> None:
    """How far rows are from a row: half the squared z distance, 1 per category.

    Not in the paper: ½Σ(z − z')² + Σ[t ≠ t'] over the first `scored` numbers and all
    categories. What either of them lacks does not count; `missing` are its codes.
    """
    P = numbers.shape[1] // 3
    with cy.nogil:
        for n in range(out.shape[0]):
            distance: cy.double = 0.0
            for p in range(scored):
                gap: cy.double = numbers[n, P + p] - numbers[row, P + p]
                distance += numbers[n, p] * numbers[row, p] * gap * gap
            apart: cy.longlong = 0
            for q in range(codes.shape[1]):
                mine, other = codes[row, q], codes[n, q]
                apart += (mine != other) & (mine != missing[q]) & (other != missing[q])
            out[n] = 0.5 * distance + apart
