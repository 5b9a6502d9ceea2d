"""Collapsed Gibbs sampling of Z (Griffiths and Ghahramani 2005).

A is integrated out: log p(X | Z) is −½D log|ZᵀZ + ratio| + tr(TᵀHT)/(2σx²) and terms
without Z. A bit is tried by what it makes of determinant and trace, which follow from H
without the row by a rank-one update: O(K²) per bit.

Missing entries are treated as in the accelerated sampler.
"""

import cython as cy
from cython.cimports.kplus.core.kernels_random import Draws
from cython.cimports.kplus.ibp.gibbs.kernels_draws import (
    Law,
    Table,
    bit_is_on,
    count_singles,
    draw_number,
    shuffle,
)
from cython.cimports.kplus.ibp.gibbs.kernels_posterior import (
    Posterior,
    Work,
    add_to_sums,
    set_singles,
    take_from_precision,
    take_from_sums,
    take_out,
    without_singles,
    work_for,
)

if cy.compiled:
    from cython.cimports.libc.math import log, sqrt
else:
    from numpy import log, sqrt

__all__ = ["sweep_collapsed"]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _add_to_gram(
    post: Posterior,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    xx: cy.double,
    sign: cy.double,
    work: Work,
) -> cy.void:
    """Put row n into Q = TTᵀ, or take it out; b = Tx without the row.

    Q ± (zbᵀ + bzᵀ + ‖x‖² zzᵀ).
    """
    for i in range(K):
        if post.Z[n, i]:
            for j in range(K):
                work.Q[i, j] += sign * work.b[j]
                work.Q[j, i] += sign * work.b[j]
            for j in range(K):
                if post.Z[n, j]:
                    work.Q[i, j] += sign * xx


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _explained(
    K: cy.Py_ssize_t, xx: cy.double, s: cy.double, h: cy.double[::1], work: Work
) -> cy.double:
    """How the trace changes when a row with bits z is put in: h = Hz, s = zHz.

    The trace of MAD-Bayes Eq. 7: tr(TᵀHT) after less before.
    """
    along: cy.double = 0.0
    quadratic: cy.double = 0.0
    for i in range(K):
        along += h[i] * work.b[i]
        total: cy.double = 0.0
        for j in range(K):
            total += work.Q[i, j] * h[j]
        quadratic += h[i] * total
    explained = (quadratic + 2.0 * s * along + xx * s * s) / (1.0 + s)
    return 2.0 * along + xx * s - explained


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _times_bits(
    post: Posterior, n: cy.Py_ssize_t, K: cy.Py_ssize_t, work: Work
) -> cy.double:
    """h = Hz for the bits of row n; return zHz."""
    total: cy.double = 0.0
    for i in range(K):
        work.h[i] = 0.0
    for j in range(K):
        if post.Z[n, j]:
            for i in range(K):
                work.h[i] += work.H[j, i]
    for i in range(K):
        if post.Z[n, i]:
            total += work.h[i]
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _draw_bits(
    post: Posterior,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    work: Work,
    xx: cy.double,
    law: Law,
    width: cy.Py_ssize_t,
    draws: Draws,
) -> cy.bint:
    """Draw the bits of features that other rows have, one after the other.

    p(z_k | rest) ∝ m_k/(N − m_k) · P(X | Z) of MAD-Bayes Eq. 7, in which 1 + zHz is
    |ZᵀZ + ratio| with the row over that without. Return whether any bit changed.
    """
    changed: cy.bint = False
    s: cy.double = _times_bits(post, n, K, work)
    trace: cy.double = _explained(K, xx, s, work.h, work)
    shuffle(work.order, K, draws)
    for place in range(K):
        k = work.order[place]
        on: cy.bint = post.Z[n, k]
        others = post.counts[k] - on
        if others == 0:
            continue
        sign = -1.0 if on else 1.0
        s_of = s + work.H[k, k] + 2.0 * sign * work.h[k]
        for i in range(K):
            work.g[i] = work.h[i] + sign * work.H[k, i]
        trace_of = _explained(K, xx, s_of, work.g, work)
        fit = 0.5 * ((trace_of - trace) / law.noise)
        fit -= 0.5 * width * log((1.0 + s_of) / (1.0 + s))
        if bit_is_on(law.log_odds[others] + sign * fit, draws) == on:
            continue
        changed = True
        post.Z[n, k] = not on
        post.counts[k] = others + (not on)
        s, trace = s_of, trace_of
        for i in range(K):
            work.h[i] = work.g[i]
    work.spread = 1.0 + s
    work.error = (xx - trace) * work.spread
    return changed


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _hide(
    table: Table, post: Posterior, n: cy.Py_ssize_t, K: cy.Py_ssize_t, work: Work
) -> cy.double:
    """Take the missing columns of row n out of b and Q; return the rest of ‖x‖².

    b − Σ t_d x_d, Q − Σ t_d t_dᵀ.
    """
    xx: cy.double = table.squares[n]
    for i in range(table.starts[n], table.starts[n + 1]):
        d = table.gaps[i]
        x = table.X[n, d]
        for k in range(K):
            work.v[k] = post.T[k, d] - post.Z[n, k] * x
        for k in range(K):
            work.b[k] -= work.v[k] * x
            for j in range(K):
                work.Q[k, j] -= work.v[k] * work.v[j]
        xx -= x * x
    return xx


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fill(
    table: Table,
    post: Posterior,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    work: Work,
    scale: cy.double,
    draws: Draws,
) -> cy.void:
    """Draw the missing entries of row n, and put their columns back into b and Q.

    x_d ~ N(zHt_d, σx²(1 + zHz)). T is without the row; h = Hz.
    """
    for i in range(table.starts[n], table.starts[n + 1]):
        d = table.gaps[i]
        x: cy.double = scale * draws.standard_normal()
        for k in range(K):
            work.v[k] = post.T[k, d]
            x += work.h[k] * work.v[k]
        table.X[n, d] = x
        for k in range(K):
            work.b[k] += work.v[k] * x
            for j in range(K):
                work.Q[k, j] += work.v[k] * work.v[j]
    square: cy.double = 0.0
    for d in range(table.X.shape[1]):
        square += table.X[n, d] * table.X[n, d]
    table.squares[n] = square


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _prepare(
    table: Table,
    post: Posterior,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    law: Law,
    singles: cy.longlong,
    work: Work,
) -> cy.void:
    """H, Q = TTᵀ and b = Tx without row n (T₋ = T − zᵀx)."""
    xx: cy.double = table.squares[n]
    if take_out(post, n, K, law.ratio, law.ratio / (law.ratio + singles), work):
        take_from_precision(post, K, law.ratio, work)
    for k in range(K):
        along: cy.double = 0.0
        for d in range(table.X.shape[1]):
            along += post.T[k, d] * table.X[n, d]
        work.b[k] = along - post.Z[n, k] * xx
        for j in range(K):
            work.Q[k, j] = post.Q[k, j]
    _add_to_gram(post, n, K, xx, -1.0, work)
    without_singles(K, work)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _put_back(
    table: Table, post: Posterior, n: cy.Py_ssize_t, K: cy.Py_ssize_t, work: Work
) -> cy.void:
    """H and Q with row n, from those without it (H − hhᵀ/(1 + zHz))."""
    part = 1.0 / (1.0 + _times_bits(post, n, K, work))
    _add_to_gram(post, n, K, table.squares[n], 1.0, work)
    for i in range(K):
        for j in range(K):
            post.H[i, j] = work.H[i, j] - work.h[i] * part * work.h[j]
            post.Q[i, j] = work.Q[i, j]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _draw_row(
    table: Table,
    post: Posterior,
    law: Law,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    work: Work,
    draws: Draws,
) -> cy.Py_ssize_t:
    """Take row n out, draw its bits, singles and gaps, put it back. Return K."""
    missing = table.starts[n + 1] - table.starts[n]
    singles = count_singles(post.Z, n, post.counts, K)
    _prepare(table, post, n, K, law, singles, work)
    xx = _hide(table, post, n, K, work) if missing else table.squares[n]
    width = law.width - missing
    changed = _draw_bits(post, n, K, work, xx, law, width, draws)
    spread = work.spread - singles / law.ratio
    number = draw_number(singles, K - singles, work.error, spread, law, width, draws)
    if missing:
        take_from_sums(post, table.X, n, K, work)
        scale = sqrt(law.noise * (spread + number / law.ratio))
        _fill(table, post, n, K, work, scale, draws)
    elif not changed and number == singles:
        return K
    K = set_singles(post, n, K, singles, number, law.ratio, work)
    add_to_sums(post, table.X, n, K, work)
    _put_back(table, post, n, K, work)
    return K


def sweep_collapsed(
    table: Table,
    post: Posterior,
    law: Law,
    start: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    rng: object,
) -> tuple[int, int]:
    """Draw Z row by row from `start` on; return the row to go on with, and K.

    The sampler of Griffiths & Ghahramani (2006), with P(X | Z) of MAD-Bayes Eq. 7. It
    ends early where arrays have no room for the singles that a row may draw.
    """
    N, C = post.Z.shape[0], post.Z.shape[1]
    work, draws = work_for(C, 0), Draws(rng)
    n = start
    with cy.nogil:
        while n < N and K + law.most_singles <= C:
            K = _draw_row(table, post, law, n, K, work, draws)
            n += 1
    return n, K
