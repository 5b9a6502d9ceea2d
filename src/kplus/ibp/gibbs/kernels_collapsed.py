"""Collapsed Gibbs sampling of Z (Griffiths and Ghahramani 2005).

A is integrated out: log p(X | Z) is −½D log|ZᵀZ + ratio| + tr(TᵀHT)/(2σx²) and terms
without Z. A bit is tried by what it makes of determinant and trace, which follow from H
without the row by a rank-one update: O(K²) per bit.

Missing entries are treated as in the accelerated sampler.
"""

import math

from kplus.core.kernels import fast_kernel, inlined
from kplus.ibp.gibbs.kernels_draws import bit_is_on, count_singles, draw_number, shuffle
from kplus.ibp.gibbs.kernels_posterior import (
    add_to_sums,
    set_singles,
    take_from_sums,
    take_out,
    without_singles,
    work_for,
)
from kplus.linear.kernels_algebra import dot, times_bits

__all__ = ["sweep_collapsed"]


@fast_kernel
def _add_to_gram(Q, z, w, xx, sign, K):
    """Put a row with bits z into Q = TTᵀ, or take it out; w = Tx without the row.

    Q ± (zwᵀ + wzᵀ + ‖x‖² zzᵀ).
    """
    for i in range(K):
        for j in range(K):
            Q[i, j] += sign * (z[i] * w[j] + w[i] * z[j] + xx * z[i] * z[j])


@fast_kernel
def _explained(z, K, w, xx, h, H, Q):
    """How determinant and trace change when a row with bits z is put in.

    1 + zHz and the trace of MAD-Bayes Eq. 7. Return |ZᵀZ + ratio| after over before,
    and tr(TᵀHT) after less before.
    """
    s = times_bits(H, z, K, h)
    along, quadratic = 0.0, 0.0
    for i in range(K):
        along += h[i] * w[i]
        quadratic += h[i] * dot(Q[i, :K], h[:K])
    spread = 1.0 + s
    trace = 2.0 * along + xx * s
    trace -= (quadratic + 2.0 * s * along + xx * s * s) / spread
    return spread, trace


@inlined
def _draw_bits(post, n, K, work, xx, law, width, rng):
    """Draw the bits of features that other rows have, one after the other.

    p(z_k | rest) ∝ m_k/(N − m_k) · P(X | Z) of MAD-Bayes Eq. 7. Return what
    `_explained` says of the last bits, and whether any changed.
    """
    z, counts, order, H, Q = post.Z[n], post.counts, work.order, work.H, work.Q
    w, h = work.vectors[0], work.vectors[1]
    changed = False
    spread, trace = _explained(z, K, w, xx, h, H, Q)
    shuffle(order, K, rng)
    for place in range(K):
        k = order[place]
        others = counts[k] - z[k]
        if others == 0:
            continue
        was = z[k]
        z[k] = 1 - was
        spread_of, trace_of = _explained(z, K, w, xx, h, H, Q)
        fit = 0.5 * ((trace_of - trace) / law.noise)
        fit -= 0.5 * width * math.log(spread_of / spread)
        sign = 1.0 - 2.0 * was
        on = bit_is_on(law.log_odds[others] + sign * fit, rng)
        if on == (was == 1):
            z[k] = was
            continue
        changed = True
        counts[k] = others + z[k]
        spread, trace = spread_of, trace_of
    return spread, trace, changed


@inlined
def _hide(table, post, n, K, w, Q):
    """Take the missing columns of row n out of w and Q; return the rest of ‖x‖².

    w − Σ t_d x_d, Q − Σ t_d t_dᵀ.
    """
    x, z, xx = table.X[n], post.Z[n], table.squares[n]
    for i in range(table.starts[n], table.starts[n + 1]):
        d = table.gaps[i]
        for k in range(K):
            t = post.T[k, d] - z[k] * x[d]
            w[k] -= t * x[d]
            for j in range(K):
                Q[k, j] -= t * (post.T[j, d] - z[j] * x[d])
        xx -= x[d] * x[d]
    return xx


@inlined
def _fill(table, post, n, K, work, scale, rng):
    """Draw the missing entries of row n, and put their columns back into w and Q.

    x_d ~ N(zHt_d, σx²(1 + zHz)). T is without the row; h = Hz.
    """
    w, h, Q = work.vectors[0], work.vectors[1], work.Q
    x = table.X[n]
    for i in range(table.starts[n], table.starts[n + 1]):
        d = table.gaps[i]
        mean = 0.0
        for k in range(K):
            mean += h[k] * post.T[k, d]
        x[d] = mean + scale * rng.standard_normal()
        for k in range(K):
            t = post.T[k, d]
            w[k] += t * x[d]
            for j in range(K):
                Q[k, j] += t * post.T[j, d]
    table.squares[n] = dot(x, x)


@inlined
def _prepare(table, post, n, K, law, singles, work):
    """H, Q = TTᵀ and w = Tx without row n (T₋ = T − zᵀx)."""
    x, xx, z, w = table.X[n], table.squares[n], post.Z[n], work.vectors[0]
    weight = law.ratio / (law.ratio + singles)
    take_out(post, n, K, law.ratio, weight, work.vectors[1], work)
    for k in range(K):
        w[k] = dot(post.T[k], x) - z[k] * xx
        for j in range(K):
            work.Q[k, j] = post.Q[k, j]
    _add_to_gram(work.Q, z, w, xx, -1.0, K)
    without_singles(z, K, w, work)


@inlined
def _put_back(post, n, K, xx, w, h, H, Q):
    """H and Q with row n, from those without it (H − hhᵀ/(1 + zHz))."""
    z = post.Z[n]
    spread = 1.0 + times_bits(H, z, K, h)
    _add_to_gram(Q, z, w, xx, 1.0, K)
    for i in range(K):
        factor = h[i] / spread
        for j in range(K):
            post.H[i, j] = H[i, j] - factor * h[j]
            post.Q[i, j] = Q[i, j]


@fast_kernel
def sweep_collapsed(table, post, law, start, K, rng):
    """Draw Z row by row from `start` on; return the row to go on with, and K.

    The sampler of Griffiths & Ghahramani (2006), with P(X | Z) of MAD-Bayes Eq. 7. It
    ends early where arrays have no room for the singles that a row may draw.
    """
    N, C = post.Z.shape
    work = work_for(C, 2)
    H, Q, w, h = work.H, work.Q, work.vectors[0], work.vectors[1]
    for n in range(start, N):
        if K + law.most_singles > C:
            return n, K
        z, x = post.Z[n], table.X[n]
        missing = table.starts[n + 1] - table.starts[n]
        singles = count_singles(z, post.counts, K)
        _prepare(table, post, n, K, law, singles, work)
        xx = _hide(table, post, n, K, w, Q) if missing else table.squares[n]
        width = law.width - missing
        spread, trace, changed = _draw_bits(post, n, K, work, xx, law, width, rng)
        error = (xx - trace) * spread
        spread -= singles / law.ratio
        number = draw_number(singles, K - singles, error, spread, law, width, rng)
        if missing:
            take_from_sums(post.T, x, work.old, K)
            times_bits(H, z, K, h)
            scale = math.sqrt(law.noise * (spread + number / law.ratio))
            _fill(table, post, n, K, work, scale, rng)
        elif not changed and number == singles:
            continue
        K = set_singles(post, n, K, singles, number, law.ratio, work)
        add_to_sums(post.T, x, z, work.old, K)
        _put_back(post, n, K, table.squares[n], w, h, H, Q)
    return N, K
