"""Gibbs sampling of Z given A, and of nonnegative A given Z.

Residuals are zero where a row has no value, so that gaps are left out of everything.
The cost is O(KD) per row.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_random import Draws
from cython.cimports.kplus.ibp.gibbs.kernels_draws import (
    Law,
    Table,
    bit_is_on,
    count_singles,
    draw_number,
    evidence_of_feature,
    move_last_bits,
    positive_normal,
    shuffle,
)

if cy.compiled:
    from cython.cimports.libc.math import fabs, log, sqrt
else:
    from numpy import fabs, log, sqrt

__all__ = ["Factors", "sweep_gaussian", "sweep_nonnegative"]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Factors:
    """Z, how many rows have each feature, A and ‖a‖².

    With room for more features than there are; Z has no bits there.
    """

    Z: cy.uchar[:, ::1]
    counts: cy.longlong[::1]
    A: cy.double[:, ::1]
    norms: cy.double[::1]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Row:
    """Room for one row: e = x − zA, and an order of its bits."""

    e: cy.double[::1]
    order: cy.Py_ssize_t[::1]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _add(
    table: Table,
    state: Factors,
    n: cy.Py_ssize_t,
    k: cy.Py_ssize_t,
    sign: cy.double,
    row: _Row,
) -> cy.void:
    """e += ±a_k, and nothing where row n has gaps."""
    for d in range(row.e.shape[0]):
        row.e[d] += sign * state.A[k, d]
    for i in range(table.starts[n], table.starts[n + 1]):
        row.e[table.gaps[i]] = 0.0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _residual(
    table: Table, state: Factors, n: cy.Py_ssize_t, K: cy.Py_ssize_t, row: _Row
) -> cy.void:
    """e = x − zA (with gaps 0)."""
    D = row.e.shape[0]
    for d in range(D):
        row.e[d] = table.X[n, d]
    for k in range(K):
        if state.Z[n, k]:
            for d in range(D):
                row.e[d] -= state.A[k, d]
    for i in range(table.starts[n], table.starts[n + 1]):
        row.e[table.gaps[i]] = 0.0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _left(row: _Row) -> cy.double:
    """‖e‖²."""
    total: cy.double = 0.0
    for d in range(row.e.shape[0]):
        total += row.e[d] * row.e[d]
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _draw_bits(
    table: Table,
    state: Factors,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    row: _Row,
    law: Law,
    draws: Draws,
) -> cy.void:
    """Draw the bits of features that other rows have; e follows.

    p(z_k | x, A) ∝ m_k/(N − m_k) · N(x; zA, σx²), MEIBP Eq. 6.
    """
    shuffle(row.order, K, draws)
    for place in range(K):
        k = row.order[place]
        on: cy.bint = state.Z[n, k]
        others = state.counts[k] - on
        if others == 0:
            continue
        norm: cy.double = state.norms[k]
        for i in range(table.starts[n], table.starts[n + 1]):
            a = state.A[k, table.gaps[i]]
            norm -= a * a
        along: cy.double = 0.0
        for d in range(row.e.shape[0]):
            along += state.A[k, d] * row.e[d]
        if on:
            along += norm
        log_odds = law.log_odds[others] + (along - 0.5 * norm) / law.noise
        if bit_is_on(log_odds, draws) == on:
            continue
        _add(table, state, n, k, 1.0 if on else -1.0, row)
        state.Z[n, k] = not on
        state.counts[k] = others + (not on)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _is_single(state: Factors, n: cy.Py_ssize_t, k: cy.Py_ssize_t) -> cy.bint:
    """z_nk = m_k = 1: only row n has feature k."""
    return state.Z[n, k] and state.counts[k] == 1


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _drop(
    state: Factors, n: cy.Py_ssize_t, k: cy.Py_ssize_t, K: cy.Py_ssize_t
) -> cy.Py_ssize_t:
    """Take a single of row n away; the last feature gets its place. Return K − 1."""
    last = K - 1
    move_last_bits(state.Z, n, k, last)
    state.counts[k] = state.counts[last]
    for d in range(state.A.shape[1]):
        state.A[k, d] = state.A[last, d]
    state.norms[k] = state.norms[last]
    return last


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _append(state: Factors, n: cy.Py_ssize_t, K: cy.Py_ssize_t) -> cy.Py_ssize_t:
    """Make feature K, of which A is set, one of row n alone. Return K + 1."""
    norm: cy.double = 0.0
    for d in range(state.A.shape[1]):
        norm += state.A[K, d] * state.A[K, d]
    state.Z[n, K] = 1
    state.counts[K] = 1
    state.norms[K] = norm
    return K + 1


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _take_singles(
    table: Table, state: Factors, n: cy.Py_ssize_t, K: cy.Py_ssize_t, row: _Row
) -> cy.Py_ssize_t:
    """Take all singles from row n; e becomes what they were to explain. Return K.

    e += Σ a_k over singles.
    """
    k = K - 1
    while k >= 0:
        if _is_single(state, n, k):
            _add(table, state, n, k, 1.0, row)
            K = _drop(state, n, k, K)
        k -= 1
    return K


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _gaussian_singles(
    table: Table,
    state: Factors,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    row: _Row,
    law: Law,
    draws: Draws,
) -> cy.Py_ssize_t:
    """Draw the number of singles with their factors integrated out, then these.

    p(A | e) = N(e/(j + ratio), ...) for j singles. Factors are drawn from their prior
    and corrected by what they miss of e (Matheron's rule): exact, and O(D) for each.
    Return K.
    """
    singles = count_singles(state.Z, n, state.counts, K)
    if singles:
        K = _take_singles(table, state, n, K, row)
    first, last = table.starts[n], table.starts[n + 1]
    width = law.width - (last - first)
    number = draw_number(singles, K, _left(row), 1.0, law, width, draws)
    if number == 0:
        return K
    sigma, scale = sqrt(law.noise / law.ratio), sqrt(law.noise)
    gain = 1.0 / (number + law.ratio)
    for d in range(row.e.shape[0]):
        missed: cy.double = row.e[d] - scale * draws.standard_normal()
        for k in range(K, K + number):
            state.A[k, d] = sigma * draws.standard_normal()
            missed -= state.A[k, d]
        for k in range(K, K + number):
            state.A[k, d] += gain * missed
    for i in range(first, last):
        for k in range(K, K + number):
            state.A[k, table.gaps[i]] = sigma * draws.standard_normal()
    for k in range(K, K + number):
        _append(state, n, k)
    return K + number


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _propose_from_prior(
    table: Table,
    state: Factors,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    row: _Row,
    law: Law,
    draws: Draws,
) -> cy.Py_ssize_t:
    """Replace all singles by others from the prior, or not (Metropolis). Return K.

    Accept with min(1, L(e')/L(e)).
    """
    singles = count_singles(state.Z, n, state.counts, K)
    tried = draws.poisson(law.rate)
    if tried + singles == 0 or tried > min(law.most - K + singles, law.most_singles):
        return K
    sigma, before = sqrt(law.noise / law.ratio), _left(row)
    for k in range(K):
        if _is_single(state, n, k):
            _add(table, state, n, k, 1.0, row)
    for k in range(K, K + tried):
        for d in range(row.e.shape[0]):
            state.A[k, d] = sigma * fabs(draws.standard_normal())
        _add(table, state, n, k, -1.0, row)
    if -draws.standard_exponential() >= 0.5 * (before - _left(row)) / law.noise:
        return K
    total = K
    while total < K + tried:
        total = _append(state, n, total)
    k = K - 1
    while k >= 0:
        if _is_single(state, n, k):
            total = _drop(state, n, k, total)
        k -= 1
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _birth_or_death(
    table: Table,
    state: Factors,
    n: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    row: _Row,
    law: Law,
    draws: Draws,
) -> cy.Py_ssize_t:
    """Give row n one more single, drawn to fit, or take one away. Return K.

    log[α/N/(j + 1)] + log evidence. A reversible jump in which the factor of the one
    feature is integrated out.
    """
    singles = count_singles(state.Z, n, state.counts, K)
    sigma2 = law.noise / law.ratio
    chance = -draws.standard_exponential()
    if draws.random() < 0.5:
        if law.most <= K or singles >= law.most_singles:
            return K
        evidence = evidence_of_feature(row.e, law.noise, sigma2, table, n)
        if chance >= log(law.rate / (singles + 1)) + evidence:
            return K
        variance = law.noise / (1.0 + law.ratio)
        for d in range(row.e.shape[0]):
            mean = row.e[d] / (1.0 + law.ratio)
            state.A[K, d] = positive_normal(mean, variance, draws)
        for i in range(table.starts[n], table.starts[n + 1]):
            state.A[K, table.gaps[i]] = positive_normal(0.0, sigma2, draws)
        return _append(state, n, K)
    if singles == 0:
        return K
    turn = cy.cast(cy.Py_ssize_t, draws.random() * singles)
    k: cy.Py_ssize_t = -1
    while turn >= 0:
        k += 1
        if _is_single(state, n, k):
            turn -= 1
    _add(table, state, n, k, 1.0, row)
    evidence = evidence_of_feature(row.e, law.noise, sigma2, table, n)
    odds = log(law.rate / singles) + evidence
    return _drop(state, n, k, K) if chance < -odds else K


def sweep_gaussian(
    table: Table,
    state: Factors,
    law: Law,
    start: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    rng: object,
) -> tuple[int, int]:
    """Draw Z given A row by row from `start` on; return the row to go on with, and K.

    The uncollapsed sampler: MEIBP Eqs. 1 and 6, with Gaussian factors. It ends early
    where arrays have no room for the singles that a row may draw.
    """
    N, C = state.Z.shape[0], state.Z.shape[1]
    row = _Row(np.empty(table.X.shape[1]), np.empty(C, np.intp))
    draws, n = Draws(rng), start
    with cy.nogil:
        while n < N and K + law.most_singles <= C:
            _residual(table, state, n, K, row)
            _draw_bits(table, state, n, K, row, law, draws)
            K = _gaussian_singles(table, state, n, K, row, law, draws)
            n += 1
    return n, K


def sweep_nonnegative(
    table: Table,
    state: Factors,
    law: Law,
    start: cy.Py_ssize_t,
    K: cy.Py_ssize_t,
    rng: object,
) -> tuple[int, int]:
    """The same where factors are not negative (MEIBP Eqs. 1, 6 and 7)."""
    N, C = state.Z.shape[0], state.Z.shape[1]
    row = _Row(np.empty(table.X.shape[1]), np.empty(C, np.intp))
    draws, n = Draws(rng), start
    with cy.nogil:
        while n < N and K + law.most_singles <= C:
            _residual(table, state, n, K, row)
            _draw_bits(table, state, n, K, row, law, draws)
            if law.enumerate_new:
                K = _birth_or_death(table, state, n, K, row, law, draws)
            else:
                K = _propose_from_prior(table, state, n, K, row, law, draws)
            n += 1
    return n, K
