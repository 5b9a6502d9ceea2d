"""Gibbs sampling of Z given A, and of nonnegative A given Z.

Residuals are zero where a row has no value, so that gaps are left out of everything.
The cost is O(KD) per row.
"""

import math
from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, inlined, kernel
from kplus.ibp.gibbs.kernels_draws import (
    bit_is_on,
    count_singles,
    draw_number,
    evidence_of_feature,
    move_last_column,
    poisson,
    positive_normal,
    shuffle,
)
from kplus.linear.kernels_algebra import dot

__all__ = ["Factors", "sweep_gaussian", "sweep_nonnegative"]


class Factors(NamedTuple):
    """Z, how many rows have each feature, A and ‖a‖², with room for more features."""

    Z: np.ndarray
    counts: np.ndarray
    A: np.ndarray
    norms: np.ndarray


@fast_kernel
def _add(e, a, sign, table, n):
    """e += ±a, and nothing where row n has gaps."""
    for d in range(len(e)):
        e[d] += sign * a[d]
    for i in range(table.starts[n], table.starts[n + 1]):
        e[table.gaps[i]] = 0.0


@fast_kernel
def _residual(table, state, n, K, e):
    """e = x − zA (with gaps 0)."""
    x, z = table.X[n], state.Z[n]
    for d in range(len(x)):
        e[d] = x[d]
    for k in range(K):
        if z[k]:
            a = state.A[k]
            for d in range(len(x)):
                e[d] -= a[d]
    for i in range(table.starts[n], table.starts[n + 1]):
        e[table.gaps[i]] = 0.0


@fast_kernel
def _draw_bits(table, state, n, K, e, order, law, rng):
    """Draw the bits of features that other rows have; e follows.

    p(z_k | x, A) ∝ m_k/(N − m_k) · N(x; zA, σx²), MEIBP Eq. 6.
    """
    z, counts = state.Z[n], state.counts
    shuffle(order, K, rng)
    for place in range(K):
        k = order[place]
        others = counts[k] - z[k]
        if others == 0:
            continue
        a, norm = state.A[k], state.norms[k]
        for i in range(table.starts[n], table.starts[n + 1]):
            norm -= a[table.gaps[i]] ** 2
        along = dot(a, e) + z[k] * norm
        on = bit_is_on(law.log_odds[others] + (along - 0.5 * norm) / law.noise, rng)
        if on == (z[k] == 1):
            continue
        _add(e, a, -1.0 if on else 1.0, table, n)
        z[k] = 1 if on else 0
        counts[k] = others + z[k]


@kernel
def _is_single(state, n, k):
    """z_nk = m_k = 1: only row n has feature k."""
    return state.Z[n, k] == 1 and state.counts[k] == 1


@kernel
def _drop(state, k, K):
    """Take feature k away; the last one gets its place. Return K − 1."""
    last = K - 1
    move_last_column(state.Z, k, last)
    state.counts[k] = state.counts[last]
    for d in range(state.A.shape[1]):
        state.A[k, d] = state.A[last, d]
    state.norms[k] = state.norms[last]
    return last


@kernel
def _append(state, n, K):
    """Make feature K, of which A is set, one of row n alone. Return K + 1."""
    for i in range(len(state.Z)):
        state.Z[i, K] = 0
    state.Z[n, K] = 1
    state.counts[K] = 1
    state.norms[K] = dot(state.A[K], state.A[K])
    return K + 1


@inlined
def _take_singles(table, state, n, K, e):
    """Take all singles from row n; e becomes what they were to explain. Return K.

    e += Σ a_k over singles.
    """
    k = K - 1
    while k >= 0:
        if _is_single(state, n, k):
            _add(e, state.A[k], 1.0, table, n)
            K = _drop(state, k, K)
        k -= 1
    return K


@inlined
def _gaussian_singles(table, state, n, K, e, law, rng):
    """Draw the number of singles with their factors integrated out, then these.

    p(A | e) = N(e/(j + ratio), ...) for j singles. Factors are drawn from their prior
    and corrected by what they miss of e (Matheron's rule): exact, and O(D) for each.
    Return K.
    """
    singles = count_singles(state.Z[n], state.counts, K)
    K = _take_singles(table, state, n, K, e)
    first, last = table.starts[n], table.starts[n + 1]
    width = law.width - (last - first)
    number = draw_number(singles, K, dot(e, e), 1.0, law, width, rng)
    if number == 0:
        return K
    sigma, scale = math.sqrt(law.noise / law.ratio), math.sqrt(law.noise)
    gain = 1.0 / (number + law.ratio)
    for d in range(len(e)):
        missed = e[d] - scale * rng.standard_normal()
        for k in range(K, K + number):
            state.A[k, d] = sigma * rng.standard_normal()
            missed -= state.A[k, d]
        for k in range(K, K + number):
            state.A[k, d] += gain * missed
    for i in range(first, last):
        for k in range(K, K + number):
            state.A[k, table.gaps[i]] = sigma * rng.standard_normal()
    for _ in range(number):
        K = _append(state, n, K)
    return K


@inlined
def _propose_from_prior(table, state, n, K, e, law, rng):
    """Replace all singles by others from the prior, or not (Metropolis). Return K.

    Accept with min(1, L(e')/L(e)).
    """
    singles = count_singles(state.Z[n], state.counts, K)
    tried = poisson(law.rate, rng)
    if tried + singles == 0 or tried > min(law.most - K + singles, law.most_singles):
        return K
    sigma, before = math.sqrt(law.noise / law.ratio), dot(e, e)
    for k in range(K):
        if _is_single(state, n, k):
            _add(e, state.A[k], 1.0, table, n)
    for k in range(K, K + tried):
        for d in range(len(e)):
            state.A[k, d] = sigma * abs(rng.standard_normal())
        _add(e, state.A[k], -1.0, table, n)
    if -rng.standard_exponential() >= 0.5 * (before - dot(e, e)) / law.noise:
        return K
    total = K
    for _ in range(tried):
        total = _append(state, n, total)
    k = K - 1
    while k >= 0:
        if _is_single(state, n, k):
            total = _drop(state, k, total)
        k -= 1
    return total


@inlined
def _birth_or_death(table, state, n, K, e, law, rng):
    """Give row n one more single, drawn to fit, or take one away. Return K.

    log[α/N/(j + 1)] + log evidence. A reversible jump in which the factor of the one
    feature is integrated out.
    """
    singles = count_singles(state.Z[n], state.counts, K)
    sigma2 = law.noise / law.ratio
    chance = -rng.standard_exponential()
    if rng.random() < 0.5:
        if law.most <= K or singles >= law.most_singles:
            return K
        odds = math.log(law.rate / (singles + 1)) + evidence_of_feature(
            e, law.noise, sigma2, table, n
        )
        if chance >= odds:
            return K
        variance = law.noise / (1.0 + law.ratio)
        for d in range(len(e)):
            state.A[K, d] = positive_normal(e[d] / (1.0 + law.ratio), variance, rng)
        for i in range(table.starts[n], table.starts[n + 1]):
            state.A[K, table.gaps[i]] = positive_normal(0.0, sigma2, rng)
        return _append(state, n, K)
    if singles == 0:
        return K
    turn, k = rng.integers(0, singles), -1
    while turn >= 0:
        k += 1
        if _is_single(state, n, k):
            turn -= 1
    _add(e, state.A[k], 1.0, table, n)
    odds = math.log(law.rate / singles) + evidence_of_feature(
        e, law.noise, sigma2, table, n
    )
    return _drop(state, k, K) if chance < -odds else K


@kernel
def sweep_gaussian(table, state, law, start, K, rng):
    """Draw Z given A row by row from `start` on; return the row to go on with, and K.

    The uncollapsed sampler: MEIBP Eqs. 1 and 6, with Gaussian factors. It ends early
    where arrays have no room for the singles that a row may draw.
    """
    N, C = state.Z.shape
    e, order = np.empty(table.X.shape[1]), np.empty(C, np.int64)
    for n in range(start, N):
        if K + law.most_singles > C:
            return n, K
        _residual(table, state, n, K, e)
        _draw_bits(table, state, n, K, e, order, law, rng)
        K = _gaussian_singles(table, state, n, K, e, law, rng)
    return N, K


@kernel
def sweep_nonnegative(table, state, law, start, K, rng):
    """The same where factors are not negative (MEIBP Eqs. 1, 6 and 7)."""
    N, C = state.Z.shape
    e, order = np.empty(table.X.shape[1]), np.empty(C, np.int64)
    for n in range(start, N):
        if K + law.most_singles > C:
            return n, K
        _residual(table, state, n, K, e)
        _draw_bits(table, state, n, K, e, order, law, rng)
        if law.enumerate_new:
            K = _birth_or_death(table, state, n, K, e, law, rng)
        else:
            K = _propose_from_prior(table, state, n, K, e, law, rng)
    return N, K
