"""Accelerated Gibbs sampling of Z (Doshi-Velez and Ghahramani 2009).

A is integrated out, but only over what the other rows say of it: with row n taken out,
its entries are independent with means zA and variance σx²(1 + zHz). In Gram form
(b = Ax, Q = AAᵀ) trying a bit costs O(1) and changing it O(K); O(KD + K²) per row.

Missing entries of a row are integrated out while its bits are drawn, and drawn afresh
after that, so that later rows find them filled.
"""

import math

import numpy as np

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

__all__ = ["sweep_accelerated"]


@fast_kernel
def _factor(T, z, x, d, H, K, a):
    """a = H(T − zxᵀ)_d, column d of the mean of A given the other rows."""
    for k in range(K):
        a[k] = 0.0
    for j in range(K):
        t = T[j, d] - z[j] * x[d]
        row = H[j]
        for k in range(K):
            a[k] += t * row[k]


@fast_kernel
def _add_outer(Q, a, sign, K):
    """Q ± aaᵀ."""
    for i in range(K):
        row, factor = Q[i], sign * a[i]
        for j in range(K):
            row[j] += factor * a[j]


@inlined
def _prepare(table, post, n, K, law, singles, work):
    """H, Q and b without row n (b = A₋x, Q = A₋A₋ᵀ)."""
    b, h, g, ahead = work.vectors[0], work.vectors[1], work.vectors[2], work.vectors[3]
    x, xx, z, shared = table.X[n], table.squares[n], post.Z[n], work.shared
    weight = law.ratio / (law.ratio + singles)
    if not take_out(post, n, K, law.ratio, weight, h, work):
        _afresh(post.T, z, x, K, b, ahead, work.H, work.Q)
        return
    for k in range(K):
        b[k] = 0.0
    for k in range(K):
        u = dot(post.T[k], x)
        row = post.H[k]
        for i in range(K):
            b[i] += u * row[i]
    left = xx + times_bits(post.Q, shared, K, g)
    along = xx
    for k in range(K):
        if shared[k]:
            left -= 2.0 * b[k]
            along -= b[k]
    for k in range(K):
        ahead[k] = weight * (0.5 * weight * left * h[k] - (b[k] - g[k]))
        b[k] -= weight * along * h[k]
    for i in range(K):
        old, new = post.Q[i], work.Q[i]
        hi, ai = h[i], ahead[i]
        for j in range(K):
            new[j] = old[j] + hi * ahead[j] + ai * h[j]
    without_singles(z, K, b, work)


@inlined
def _afresh(T, z, x, K, b, a, H, Q):
    """Q and b from H and the sums, where rank-one updates are not to be trusted.

    Q = AAᵀ, b = Ax.
    """
    for i in range(K):
        b[i] = 0.0
        for j in range(K):
            Q[i, j] = 0.0
    for d in range(len(x)):
        _factor(T, z, x, d, H, K, a)
        _add_outer(Q, a, 1.0, K)
        for k in range(K):
            b[k] += a[k] * x[d]


@inlined
def _draw_bits(post, n, K, work, fit, law, width, rng):
    """Draw the bits of features that other rows have, one after the other.

    p(z_k | x, A's posterior) ∝ m_k/(N − m_k) · N(x; zE[A], σx²(1 + zHz)): Doshi-Velez &
    Ghahramani (2009). `fit` is ‖x − zA‖² and 1 + zHz. Return both, and whether any bit
    changed.
    """
    z, counts, order, H, Q = post.Z[n], post.counts, work.order, work.H, work.Q
    b, hz, gz = work.vectors[0], work.vectors[1], work.vectors[2]
    error, spread = fit
    changed = False
    shuffle(order, K, rng)
    for place in range(K):
        k = order[place]
        others = counts[k] - z[k]
        if others == 0:
            continue
        sign = 1.0 - 2.0 * z[k]
        error_of = error + Q[k, k] + 2.0 * sign * (gz[k] - b[k])
        spread_of = spread + H[k, k] + 2.0 * sign * hz[k]
        gain = -0.5 * (
            width * math.log(spread_of / spread)
            + (error_of / spread_of - error / spread) / law.noise
        )
        on = bit_is_on(law.log_odds[others] + sign * gain, rng)
        if on == (z[k] == 1):
            continue
        changed = True
        z[k] = 1 - z[k]
        counts[k] = others + z[k]
        error, spread = error_of, spread_of
        q, h = Q[k], H[k]
        for i in range(K):
            gz[i] += sign * q[i]
            hz[i] += sign * h[i]
    return error, spread, changed


@inlined
def _hide(table, post, n, K, b, H, Q, factors):
    """Take the missing columns of row n out of b and Q; return the rest of ‖x‖².

    b − Σ a_d x_d, Q − Σ a_d a_dᵀ.
    """
    x, z, xx = table.X[n], post.Z[n], table.squares[n]
    first, last = table.starts[n], table.starts[n + 1]
    for i in range(last - first):
        d = table.gaps[first + i]
        a = factors[i]
        _factor(post.T, z, x, d, H, K, a)
        _add_outer(Q, a, -1.0, K)
        for k in range(K):
            b[k] -= a[k] * x[d]
        xx -= x[d] * x[d]
    return xx


@inlined
def _fill(table, n, z, K, work, factors, scale, rng):
    """Draw the missing entries of row n, and put their columns back into b and Q.

    x_d ~ N(zE[a_d], σx²(1 + zHz)).
    """
    b, Q = work.vectors[0], work.Q
    x = table.X[n]
    first, last = table.starts[n], table.starts[n + 1]
    for i in range(last - first):
        a = factors[i]
        mean = 0.0
        for k in range(K):
            if z[k]:
                mean += a[k]
        value = mean + scale * rng.standard_normal()
        x[table.gaps[first + i]] = value
        _add_outer(Q, a, 1.0, K)
        for k in range(K):
            b[k] += a[k] * value
    table.squares[n] = dot(x, x)


@inlined
def _put_back(post, n, K, xx, vectors, H, Q):
    """H and Q with row n, from those without it (H − hhᵀ/(1 + zHz))."""
    z = post.Z[n]
    b, h, g, ahead = vectors[0], vectors[1], vectors[2], vectors[3]
    spread = 1.0 + times_bits(H, z, K, h)
    left = xx + times_bits(Q, z, K, g)
    for k in range(K):
        if z[k]:
            left -= 2.0 * b[k]
    for k in range(K):
        ahead[k] = (b[k] - g[k] + 0.5 * left * h[k] / spread) / spread
    for i in range(K):
        hi, ai = h[i], ahead[i]
        factor = hi / spread
        for j in range(K):
            post.H[i, j] = H[i, j] - factor * h[j]
            post.Q[i, j] = Q[i, j] + hi * ahead[j] + ai * h[j]


@fast_kernel
def sweep_accelerated(table, post, law, start, K, rng):
    """Draw Z row by row from `start` on; return the row to go on with, and K.

    The accelerated sampler of Doshi-Velez & Ghahramani (2009). It ends early where
    arrays have no room for the singles that a row may draw.
    """
    N, C = post.Z.shape
    work, longest = work_for(C, 4), 0
    H, Q = work.H, work.Q
    b, hz, gz = work.vectors[0], work.vectors[1], work.vectors[2]
    for n in range(N):
        longest = max(longest, table.starts[n + 1] - table.starts[n])
    factors = np.empty((longest, C))
    for n in range(start, N):
        if K + law.most_singles > C:
            return n, K
        z, x = post.Z[n], table.X[n]
        missing = table.starts[n + 1] - table.starts[n]
        singles = count_singles(z, post.counts, K)
        _prepare(table, post, n, K, law, singles, work)
        xx = _hide(table, post, n, K, b, H, Q, factors) if missing else table.squares[n]
        spread = 1.0 + times_bits(H, z, K, hz)
        error = xx + times_bits(Q, z, K, gz)
        for k in range(K):
            if z[k]:
                error -= 2.0 * b[k]
        width = law.width - missing
        error, spread, changed = _draw_bits(
            post, n, K, work, (error, spread), law, width, rng
        )
        spread -= singles / law.ratio
        number = draw_number(singles, K - singles, error, spread, law, width, rng)
        if missing:
            take_from_sums(post.T, x, work.old, K)
            scale = math.sqrt(law.noise * (spread + number / law.ratio))
            _fill(table, n, z, K, work, factors, scale, rng)
        elif not changed and number == singles:
            continue
        K = set_singles(post, n, K, singles, number, law.ratio, work)
        add_to_sums(post.T, x, z, work.old, K)
        _put_back(post, n, K, table.squares[n], work.vectors, H, Q)
    return N, K
