"""Accelerated Gibbs sampling of Z (Doshi-Velez and Ghahramani 2009).

A is integrated out, but only over what the other rows say of it: with row n taken out,
its entries are independent with means zA and variance σx²(1 + zHz). In Gram form
(b = Ax, Q = AAᵀ) trying a bit costs O(1) and changing it O(K); O(KD + K²) per row. Of
H and Q without the row no more than the diagonals is needed until a bit changes.

Missing entries of a row are integrated out while its bits are drawn, and drawn afresh
after that, so that later rows find them filled.
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

__all__ = ["sweep_accelerated"]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _factor(
    table: Table,
    post: Posterior,
    n: cy.Py_ssize_t,
    d: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    work: Work,
    a: cy.double[::1],
) -> cy.void:
    """a = H(T − zxᵀ)_d, column d of the mean of A given the other rows."""
    for k in range(K):
        a[k] = 0.0
    for j in range(K):
        t = post.T[j, d] - post.Z[n, j] * table.X[n, d]
        for k in range(K):
            a[k] += t * work.H[j, k]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _add_outer(
    a: cy.const[cy.double][::1], sign: cy.double, K: cy.Py_ssize_t, work: Work
) -> cy.void:
    """Q ± aaᵀ."""
    for i in range(K):
        factor = sign * a[i]
        for j in range(K):
            work.Q[i, j] += factor * a[j]


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
    """b = A₋x, h = H₋z and g = Q₋z without row n, and diagonals of H₋ and Q₋ = A₋A₋ᵀ.

    Q₋ = Q + hvᵀ + vhᵀ.
    """
    weight = law.ratio / (law.ratio + singles)
    work.whole = not take_out(post, n, K, law.ratio, weight, work)
    if work.whole:
        _afresh(table, post, n, K, work)
        _weigh(post, n, K, table.squares[n], work)
        return
    _multiply(table, post, n, K, work)
    rest: cy.double = table.squares[n]
    left: cy.double = table.squares[n]
    for k in range(K):
        if work.shared[k]:
            rest -= work.b[k]
            left += work.g[k] - 2.0 * work.b[k]
    along_h: cy.double = 0.0
    along_v: cy.double = 0.0
    for k in range(K):
        work.v[k] = weight * (0.5 * weight * left * work.h[k] - (work.b[k] - work.g[k]))
        work.b[k] -= weight * rest * work.h[k]
        if work.shared[k]:
            along_h += work.h[k]
            along_v += work.v[k]
    work.error = table.squares[n]
    for k in range(K):
        work.g[k] += along_v * work.h[k] + along_h * work.v[k]
        work.H[k, k] = post.H[k, k] + work.part * work.h[k] * work.h[k]
        work.Q[k, k] = post.Q[k, k] + 2.0 * work.h[k] * work.v[k]
        if work.shared[k]:
            work.error += work.g[k] - 2.0 * work.b[k]
        elif work.old[k]:
            work.b[k] = 0.0
    work.spread = 1.0 + along_h + singles / law.ratio


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _multiply(
    table: Table, post: Posterior, n: cy.Py_ssize_t, K: cy.Py_ssize_t, work: Work
) -> cy.void:
    """b = HTx, and g = Qz for the shared bits z."""
    for k in range(K):
        work.b[k] = 0.0
        work.g[k] = 0.0
    for k in range(K):
        along: cy.double = 0.0
        for d in range(table.X.shape[1]):
            along += post.T[k, d] * table.X[n, d]
        for i in range(K):
            work.b[i] += along * post.H[k, i]
        if work.shared[k]:
            for i in range(K):
                work.g[i] += post.Q[k, i]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _complete(
    post: Posterior, K: cy.Py_ssize_t, ratio: cy.double, work: Work
) -> cy.void:
    """All of H and Q without the row: H₋ = H + w hhᵀ/(1 − w zHz), Q₋ = Q + hvᵀ + vhᵀ.

    Before h changes.
    """
    if work.whole:
        return
    work.whole = True
    take_from_precision(post, K, ratio, work)
    for i in range(K):
        h, v = work.h[i], work.v[i]
        for j in range(K):
            work.Q[i, j] = post.Q[i, j] + h * work.v[j] + v * work.h[j]
    without_singles(K, work)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _afresh(
    table: Table, post: Posterior, n: cy.Py_ssize_t, K: cy.Py_ssize_t, work: Work
) -> cy.void:
    """Q and b from H and the sums, where rank-one updates are not to be trusted.

    Q = AAᵀ, b = Ax.
    """
    for i in range(K):
        work.b[i] = 0.0
        for j in range(K):
            work.Q[i, j] = 0.0
    for d in range(table.X.shape[1]):
        _factor(table, post, n, d, K, work, work.v)
        _add_outer(work.v, 1.0, K, work)
        for k in range(K):
            work.b[k] += work.v[k] * table.X[n, d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _weigh(
    post: Posterior, n: cy.Py_ssize_t, K: cy.Py_ssize_t, xx: cy.double, work: Work
) -> cy.void:
    """h = Hz, g = Qz, and how the bits of row n fit.

    ‖x − zA‖² = ‖x‖² − 2zb + zQz, and 1 + zHz.
    """
    for i in range(K):
        work.h[i] = 0.0
        work.g[i] = 0.0
    for j in range(K):
        if post.Z[n, j]:
            for i in range(K):
                work.h[i] += work.H[j, i]
                work.g[i] += work.Q[j, i]
    error: cy.double = xx
    spread: cy.double = 1.0
    for k in range(K):
        if post.Z[n, k]:
            error += work.g[k] - 2.0 * work.b[k]
            spread += work.h[k]
    work.error, work.spread = error, spread


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _draw_bits(
    post: Posterior,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    work: Work,
    law: Law,
    width: cy.Py_ssize_t,
    draws: Draws,
) -> cy.bint:
    """Draw the bits of features that other rows have, one after the other.

    p(z_k | x, A's posterior) ∝ m_k/(N − m_k) · N(x; zE[A], σx²(1 + zHz)): Doshi-Velez &
    Ghahramani (2009). Return whether any bit changed.
    """
    changed: cy.bint = False
    shuffle(work.order, K, draws)
    for place in range(K):
        k = work.order[place]
        on: cy.bint = post.Z[n, k]
        others = post.counts[k] - on
        if others == 0:
            continue
        sign = -1.0 if on else 1.0
        error = work.error + work.Q[k, k] + 2.0 * sign * (work.g[k] - work.b[k])
        spread = work.spread + work.H[k, k] + 2.0 * sign * work.h[k]
        gain = -0.5 * (
            width * log(spread / work.spread)
            + (error / spread - work.error / work.spread) / law.noise
        )
        if bit_is_on(law.log_odds[others] + sign * gain, draws) == on:
            continue
        changed = True
        _complete(post, K, law.ratio, work)
        post.Z[n, k] = not on
        post.counts[k] = others + (not on)
        work.error, work.spread = error, spread
        for i in range(K):
            work.g[i] += sign * work.Q[k, i]
            work.h[i] += sign * work.H[k, i]
    return changed


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _hide(
    table: Table, post: Posterior, n: cy.Py_ssize_t, K: cy.Py_ssize_t, work: Work
) -> cy.double:
    """Take the missing columns of row n out of b and Q; return the rest of ‖x‖².

    b − Σ a_d x_d, Q − Σ a_d a_dᵀ.
    """
    xx: cy.double = table.squares[n]
    first = table.starts[n]
    for i in range(table.starts[n + 1] - first):
        d = table.gaps[first + i]
        x = table.X[n, d]
        _factor(table, post, n, d, K, work, work.factors[i])
        _add_outer(work.factors[i], -1.0, K, work)
        for k in range(K):
            work.b[k] -= work.factors[i, k] * x
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

    x_d ~ N(zE[a_d], σx²(1 + zHz)).
    """
    first = table.starts[n]
    for i in range(table.starts[n + 1] - first):
        x: cy.double = scale * draws.standard_normal()
        for k in range(K):
            if post.Z[n, k]:
                x += work.factors[i, k]
        table.X[n, table.gaps[first + i]] = x
        _add_outer(work.factors[i], 1.0, K, work)
        for k in range(K):
            work.b[k] += work.factors[i, k] * x
    square: cy.double = 0.0
    for d in range(table.X.shape[1]):
        square += table.X[n, d] * table.X[n, d]
    table.squares[n] = square


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _put_back(
    table: Table, post: Posterior, n: cy.Py_ssize_t, K: cy.Py_ssize_t, work: Work
) -> cy.void:
    """H and Q with row n, from those without it (H − hhᵀ/(1 + zHz))."""
    _weigh(post, n, K, table.squares[n], work)
    part = 1.0 / work.spread
    for k in range(K):
        half = 0.5 * work.error * work.h[k] * part
        work.v[k] = (work.b[k] - work.g[k] + half) * part
    for i in range(K):
        h, v = work.h[i], work.v[i]
        factor = h * part
        # Two loops: one with so many arrays would get no SIMD.
        for j in range(K):
            post.H[i, j] = work.H[i, j] - factor * work.h[j]
        for j in range(K):
            post.Q[i, j] = work.Q[i, j] + h * work.v[j] + v * work.h[j]


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
    if missing:
        _complete(post, K, law.ratio, work)
        _weigh(post, n, K, _hide(table, post, n, K, work), work)
    width = law.width - missing
    changed = _draw_bits(post, n, K, work, law, width, draws)
    spread = work.spread - singles / law.ratio
    number = draw_number(singles, K - singles, work.error, spread, law, width, draws)
    if missing:
        take_from_sums(post, table.X, n, K, work)
        scale = sqrt(law.noise * (spread + number / law.ratio))
        _fill(table, post, n, K, work, scale, draws)
    elif not changed and number == singles:
        return K
    _complete(post, K, law.ratio, work)
    K = set_singles(post, n, K, singles, number, law.ratio, work)
    add_to_sums(post, table.X, n, K, work)
    _put_back(table, post, n, K, work)
    return K


def sweep_accelerated(
    table: Table,
    post: Posterior,
    law: Law,
    start: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    rng: object,
) -> tuple[int, int]:
    """Draw Z row by row from `start` on; return the row to go on with, and K.

    The accelerated sampler of Doshi-Velez & Ghahramani (2009). It ends early where
    arrays have no room for the singles that a row may draw.
    """
    N, C = post.Z.shape[0], post.Z.shape[1]
    gaps: cy.Py_ssize_t = 0
    for i in range(N):
        gaps = max(gaps, table.starts[i + 1] - table.starts[i])
    work, draws = work_for(C, gaps), Draws(rng)
    n = start
    with cy.nogil:
        while n < N and K + law.most_singles <= C:
            K = _draw_row(table, post, law, n, K, work, draws)
            n += 1
    return n, K
