"""Collapsed local search over feature allocations: A follows every change of Z at once.

With row n taken out, A₋ and H₋ = (ZᵀWZ)⁻¹ without it, putting it back with z adds
w‖x − zA₋‖²/(1 + w zH₋z) to the error (Eq. 10 of MAD-Bayes, one row at a time). H, A and
G = AAᵀ follow by rank-one updates: O(KD + K²) per row, O(1) per flip tried.

The first `locked` columns of Z are ones for every row and stay so (a base feature).
"""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, inlined, kernel
from kplus.features.kernels_columns import Fit, refit, residual
from kplus.linear.kernels_algebra import dot, times_bits

__all__ = ["ALL", "PAIRS", "SINGLE", "improve"]

# How many bits of a row are changed at once.
# Typed, so that numba compiles each function once.
SINGLE, PAIRS, ALL = np.int64(0), np.int64(1), np.int64(2)
NONE = np.int64(-1)

_ALONE = 1e-5  # a row that alone holds up a feature has less room than that


class _Work(NamedTuple):
    """What belongs to one row that is taken out."""

    h: np.ndarray  # (K,) Hz
    b: np.ndarray  # (K,) A₋x
    ar: np.ndarray  # (K,) Ar
    gz: np.ndarray  # (K,) G₋z
    hz: np.ndarray  # (K,) H₋z
    r: np.ndarray  # (D,) x − zA
    H: np.ndarray  # (K, K) H₋
    G: np.ndarray  # (K, K) G₋


@fast_kernel
def _step(k, z, b, G, H, gz, hz):
    """How zGz − 2z·b and zHz change when bit k flips (±2((Gz)_k − b_k) + G_kk)."""
    sign = 1.0 - 2.0 * z[k]
    return (
        G[k, k] + 2.0 * sign * (gz[k] - b[k]),
        H[k, k] + 2.0 * sign * hz[k],
    )


@inlined
def _take(k, z, G, H, gz, hz):
    """Flip bit k: Gz ± G_k, Hz ± H_k."""
    sign = 1.0 - 2.0 * z[k]
    z[k] = 1 - z[k]
    g, h = G[k], H[k]
    for i in range(len(z)):
        gz[i] += sign * g[i]
        hz[i] += sign * h[i]


@fast_kernel
def _clearly_below(cost, xx):
    """What a cost must fall below to be lower by more than rounding.

    Costs are differences of numbers as large as ‖x‖²: near zero they are noise, by
    which bits could be flipped back and forth forever.
    """
    return cost - 1e-10 * abs(cost) - 1e-12 * xx


@fast_kernel
def _choose_by_flips(z, work, xx, weight, locked):
    """Flip the bit that lowers the row's cost most until none does.

    MAD-Bayes Algorithm 3: lower w‖x − zA₋‖²/(1 + w zH₋z).
    """
    b, G, H, gz, hz = work.b, work.G, work.H, work.gz, work.hz
    K = len(z)
    bottom = 1.0 + weight * times_bits(H, z, len(H), hz)
    top = xx + times_bits(G, z, len(G), gz)
    for k in range(K):
        if z[k]:
            top -= 2.0 * b[k]
    while True:
        best, least = NONE, _clearly_below(top / bottom, xx)
        for k in range(locked, K):
            up, down = _step(k, z, b, G, H, gz, hz)
            cost = (top + up) / (bottom + weight * down)
            if cost < least:
                best, least = k, cost
        if best < 0:
            return
        up, down = _step(best, z, b, G, H, gz, hz)
        top += up
        bottom += weight * down
        _take(best, z, G, H, gz, hz)


@inlined
def _choose_by_pairs(z, work, xx, weight, locked):
    """Flip two bits at once as long as that helps, then single ones.

    Not in the paper.
    """
    b, G, H, gz, hz = work.b, work.G, work.H, work.gz, work.hz
    K = len(z)
    while True:
        _choose_by_flips(z, work, xx, weight, locked)
        bottom = 1.0 + weight * times_bits(H, z, len(H), hz)
        top = xx + times_bits(G, z, len(G), gz)
        for k in range(K):
            if z[k]:
                top -= 2.0 * b[k]
        first, second, least = -1, -1, _clearly_below(top / bottom, xx)
        for i in range(locked, K):
            up_i, down_i = _step(i, z, b, G, H, gz, hz)
            for j in range(i + 1, K):
                up_j, down_j = _step(j, z, b, G, H, gz, hz)
                sign = 2.0 if z[i] == z[j] else -2.0
                up = up_i + up_j + sign * G[i, j]
                down = down_i + down_j + sign * H[i, j]
                cost = (top + up) / (bottom + weight * down)
                if cost < least:
                    first, second, least = i, j, cost
        if first < 0:
            return
        z[first], z[second] = 1 - z[first], 1 - z[second]


@fast_kernel
def _double(costs, cross, matrix, k, locked, own):
    """Extend zMz from patterns of the bits before k to those with bit k.

    ZMz over 2^k patterns in O(1) each. `cross` holds Σ_j z_j M_kj of the patterns,
    doubled up bit by bit as well; `own` is what bit k costs by itself.
    """
    row = matrix[k]
    start = 0.0
    for j in range(locked):
        start += row[j]
    cross[0] = start
    for j in range(locked, k):
        half = 1 << (j - locked)
        upper = cross[half : 2 * half]
        for p in range(half):
            upper[p] = cross[p] + row[j]
    half = 1 << (k - locked)
    upper = costs[half : 2 * half]
    for p in range(half):
        upper[p] = costs[p] + 2.0 * cross[p] + own


@inlined
def _choose_of_all(z, work, xx, weight, locked, tables):
    """The best of all patterns of the bits that are not locked.

    MAD-Bayes Algorithm 3, exactly.
    """
    b, G, H = work.b, work.G, work.H
    tops, bottoms, cross = tables
    K = len(z)
    top, bottom = xx, 0.0
    now = 0
    for i in range(locked):
        top -= 2.0 * b[i]
        for j in range(locked):
            top += G[i, j]
            bottom += H[i, j]
    tops[0], bottoms[0] = top, bottom
    for k in range(locked, K):
        _double(tops, cross, G, k, locked, G[k, k] - 2.0 * b[k])
        _double(bottoms, cross, H, k, locked, H[k, k])
        now += z[k] << (k - locked)
    n_patterns = 1 << (K - locked)
    for p in range(n_patterns):
        cross[p] = tops[p] / (1.0 + weight * bottoms[p])
    best, least = now, _clearly_below(cross[now], xx)
    for p in range(n_patterns):
        if cross[p] < least:
            best, least = p, cross[p]
    for k in range(locked, K):
        z[k] = (best >> (k - locked)) & 1


@inlined
def _take_out(x, z, xx, weight, fit, work):
    """What a row leaves when it is taken out: (scale, ‖r‖², ‖x − zA₋‖²).

    Fills h = Hz, b = A₋x and ar = Ar, with the row's residual r; H₋ = H + scale hhᵀ.
    The scale is -1 where the row alone holds up a feature.
    """
    H, A, G = fit
    h, b, ar = work.h, work.b, work.ar
    K = len(A)
    held = times_bits(H, z, len(H), h)
    room = 1.0 - weight * held
    if room < _ALONE:
        return -1.0, 0.0, 0.0
    scale = weight / room
    times_bits(G, z, len(G), ar)
    along, rr = xx, xx  # r·x and ‖r‖²
    for i in range(K):
        b[i] = dot(A[i], x)
        ar[i] = b[i] - ar[i]
        if z[i]:
            along -= b[i]
            rr -= b[i] + ar[i]
    rr = max(rr, 0.0)
    for i in range(K):
        b[i] -= scale * h[i] * along
    return scale, rr, rr / room**2


@inlined
def _stays(z, xx, weight, locked, out, fit, work):
    """Whether no flip of a single bit lowers the row's cost.

    With r₋ = x − zA₋ = r/room and A₋r₋, all that a flip changes is known without
    building H₋ and G₋: a row that stays costs O(K) beyond its products with A.
    """
    scale, rr, top = out
    H, G, h, ar, gap = fit.H, fit.G, work.h, work.ar, work.gz
    K = len(z)
    held = 0.0
    for k in range(K):
        if z[k]:
            held += h[k]
    room = 1.0 - weight * held
    bottom = 1.0 / room  # 1 + w zH₋z
    least = _clearly_below(top / bottom, xx)
    for k in range(K):
        gap[k] = (ar[k] - scale * h[k] * rr) / room  # A₋r₋
    for k in range(locked, K):
        sign = 1.0 - 2.0 * z[k]
        g = G[k, k] - 2.0 * scale * ar[k] * h[k] + scale * scale * rr * h[k] * h[k]
        up = g - 2.0 * sign * gap[k]
        down = H[k, k] + scale * h[k] * h[k] + 2.0 * sign * h[k] / room
        if top + up < least * (bottom + weight * down):
            return False
    return True


@inlined
def _build(scale, rr, fit, work):
    """H₋ = H + s hhᵀ and G₋ = A₋A₋ᵀ, with A₋ = A − s h rᵀ."""
    H, G, h, ar, H_less, G_less = fit.H, fit.G, work.h, work.ar, work.H, work.G
    K = len(h)
    for i in range(K):
        for j in range(K):
            hh = scale * h[i] * h[j]
            H_less[i, j] = H[i, j] + hh
            G_less[i, j] = (
                G[i, j] - scale * (ar[i] * h[j] + h[i] * ar[j]) + scale * rr * hh
            )


@inlined
def _put_back(x, old, new, weight, scale, fit, work):
    """Let H, A and G follow a row from z = `old` to `new`.

    H = H₋ − s hhᵀ, A = A₋ + s h rᵀ.
    """
    H, A, G = fit
    h, ar, r, H_less, G_less = work.h, work.ar, work.r, work.H, work.G
    K, D = A.shape
    residual(x, A, old, len(A), r)
    for i in range(K):
        a, f = A[i], scale * h[i]
        for d in range(D):
            a[d] -= f * r[d]
    residual(x, A, new, len(A), r)
    scale = weight / (1.0 + weight * times_bits(H_less, new, len(H_less), h))
    rr = dot(r, r)
    for i in range(K):
        ar[i] = dot(A[i], r)
    for i in range(K):
        a, f = A[i], scale * h[i]
        for d in range(D):
            a[d] += f * r[d]
        for j in range(K):
            hh = scale * h[i] * h[j]
            H[i, j] = H_less[i, j] - hh
            G[i, j] = (
                G_less[i, j] + scale * (ar[i] * h[j] + h[i] * ar[j]) + scale * rr * hh
            )


@fast_kernel
def _sweep(X, weights, squares, Z, locked, flips, fit):
    """Visit every row once; return how many changed.

    One round of MAD-Bayes Algorithm 3.
    """
    N, D = X.shape
    K = len(fit.A)
    h, b, ar, gz, hz = np.empty((5, K))
    square = np.empty((2, K, K))
    work = _Work(h, b, ar, gz, hz, np.empty(D), square[0], square[1])
    z = np.empty(K, np.uint8)
    tables = np.empty((3, 1 << (K - locked) if flips == ALL else 0))
    changed = 0
    for n in range(N):
        x, xx, weight = X[n], squares[n], weights[n]
        if weight == 0.0:
            continue
        scale, rr, top = _take_out(x, Z[n], xx, weight, fit, work)
        if scale < 0.0:
            continue
        stays = _stays(Z[n], xx, weight, locked, (scale, rr, top), fit, work)
        if stays and flips == SINGLE:
            continue
        _build(scale, rr, fit, work)
        for k in range(K):
            z[k] = Z[n, k]
        if flips == ALL:
            _choose_of_all(z, work, xx, weight, locked, tables)
        elif flips == PAIRS:
            _choose_by_pairs(z, work, xx, weight, locked)
        else:
            _choose_by_flips(z, work, xx, weight, locked)
        differs = False
        for k in range(K):
            differs |= z[k] != Z[n, k]
        if differs:
            _put_back(x, Z[n], z, weight, scale, fit, work)
            for k in range(K):
                Z[n, k] = z[k]
            changed += 1
    return changed


@kernel
def _copy(Z, to):
    """to = Z."""
    for n in range(len(Z)):
        for k in range(Z.shape[1]):
            to[n, k] = Z[n, k]


@fast_kernel
def improve(X, weights, squares, Z, locked, flips, max_sweeps, target):
    """Sweep until no row changes; return the error, infinite where Z is singular.

    MAD-Bayes Algorithm 3 for a given K: a local minimum of Eq. 10, tr X'(I −
    Z(Z'Z)⁻¹Z')X. Z is changed in place; `squares` are ‖x‖². Where single flips change
    no row, `flips` says what is tried next: PAIRS, or ALL patterns. A is refitted after
    each sweep, so that rounding does not build up; a sweep that raised the error by
    rounding is undone. The search ends early where two more sweeps that gain as much as
    the last would leave the error above `target`.
    """
    K, D = Z.shape[1], X.shape[1]
    fit = Fit(np.empty((K, K)), np.empty((K, D)), np.empty((K, K)))
    before = np.empty_like(Z)
    total = dot(weights, squares)
    explained = refit(X, weights, Z, K, fit)
    for _ in range(max_sweeps):
        if explained == -np.inf:
            break
        _copy(Z, before)
        changed = _sweep(X, weights, squares, Z, locked, SINGLE, fit)
        if flips != SINGLE and changed == 0:
            changed = _sweep(X, weights, squares, Z, locked, flips, fit)
        if changed == 0:
            break
        after = refit(X, weights, Z, K, fit)
        if not after > explained:
            _copy(before, Z)
            break
        gain = after - explained
        explained = after
        if total - explained - 2.0 * gain > target:
            break
    return total - explained
