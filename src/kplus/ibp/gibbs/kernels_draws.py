"""What Gibbs samplers of the Indian buffet process draw: bits, singles, factors.

A feature that only row n has is its *single*. Given all else, the number of singles of
a row is Poisson(α/N) before its values are seen (exchangeability), which is how
features come and go; all others have rows left when this one is taken out.
"""

import math

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_random import Draws

if cy.compiled:
    from cython.cimports.libc.math import erfc, exp, log, sqrt
else:
    from math import erfc

    from numpy import exp, log, sqrt

__all__ = [
    "Law",
    "Table",
    "bit_is_on",
    "count_singles",
    "draw_factors",
    "draw_number",
    "evidence_of_feature",
    "move_last_bits",
    "positive_normal",
    "shuffle",
]

# Standard deviations from which on a series is exact.
_FAR = cy.declare(cy.double, -25.0)
# e^-45 of the largest term changes no draw.
_NEGLIGIBLE = cy.declare(cy.double, 45.0)
_INF = cy.declare(cy.double, math.inf)
_ROOT_HALF = cy.declare(cy.double, math.sqrt(0.5))
_ROOT_TWO_PI = cy.declare(cy.double, math.sqrt(2.0 * math.pi))


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Table:
    """The rows: X with gaps filled, ‖x‖², and each row's missing columns (CSR)."""

    X: cy.double[:, ::1]
    squares: cy.double[::1]
    starts: cy.const[cy.longlong][::1]
    gaps: cy.const[cy.longlong][::1]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Law:
    """What a sweep is conditioned on.

    `noise` is σx², `ratio` σx²/σa², `rate` α/N, `width` the number of columns of the
    data, `most` the largest number of features, `most_singles` that of singles of a row
    (as many as arrays must have room for, beyond what the prior ever gives),
    `log_odds[m]` is log m/(N − m), and `enumerate_new` says that the number of singles
    is drawn from its conditional distribution, not by Metropolis.
    """

    noise: cy.double
    ratio: cy.double
    rate: cy.double
    width: cy.Py_ssize_t
    most: cy.longlong
    most_singles: cy.longlong
    log_odds: cy.const[cy.double][::1]
    enumerate_new: cy.bint


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def bit_is_on(log_odds: cy.double, draws: Draws) -> cy.bint:
    """True with probability 1/(1 + e^−log_odds)."""
    u = draws.random()
    if log_odds > 40.0:
        return True
    if log_odds < -40.0:
        return False
    return u * (1.0 + exp(-log_odds)) < 1.0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def shuffle(order: cy.Py_ssize_t[::1], K: cy.Py_ssize_t, draws: Draws) -> cy.void:
    """Put 0..K−1 into a random order, in which the bits of a row are drawn.

    Not in the papers. The places of features tell their history (new ones stand at the
    end). In that order, or in any that knows of the bits to be drawn, draws would be
    off by some per cent where tables are small.
    """
    for i in range(K):
        j = cy.cast(cy.Py_ssize_t, draws.random() * (i + 1))
        order[i] = order[j]
        order[j] = i


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def count_singles(
    Z: cy.const[cy.uchar][:, ::1],
    n: cy.Py_ssize_t,
    counts: cy.const[cy.longlong][::1],
    K: cy.Py_ssize_t,
) -> cy.longlong:
    """Σ_k z_nk [m_k = 1], the features that only row n has."""
    singles: cy.longlong = 0
    for k in range(K):
        if Z[n, k] and counts[k] == 1:
            singles += 1
    return singles


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def move_last_bits(
    Z: cy.uchar[:, ::1], n: cy.Py_ssize_t, k: cy.Py_ssize_t, last: cy.Py_ssize_t
) -> cy.void:
    """z_k ← z_last: the last column takes the place of k, a single of row n.

    Columns from the last on have no bits then, so that new ones need not be cleared.
    """
    Z[n, k] = 0
    if k == last:
        return
    for i in range(Z.shape[0]):
        Z[i, k] = Z[i, last]
        Z[i, last] = 0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fit_of_number(
    j: cy.longlong,
    error: cy.double,
    spread: cy.double,
    law: Law,
    width: cy.Py_ssize_t,
) -> cy.double:
    """Log-likelihood of a row with j singles, their factors integrated out.

    −½[D log(s + j/ratio) + e/(σx²(s + j/ratio))]. Each adds σa² to the variance of all
    its entries, σx²·`spread` without any.
    """
    total = spread + j / law.ratio
    return -0.5 * (width * log(total) + error / (law.noise * total))


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def draw_number(
    now: cy.longlong,
    others: cy.longlong,
    error: cy.double,
    spread: cy.double,
    law: Law,
    width: cy.Py_ssize_t,
    draws: Draws,
) -> cy.longlong:
    """The next number of singles of a row that has `now`, beside `others` shared ones.

    From Poisson(α/N) of the IBP (MEIBP Eq. 1) times the likelihood of the row. `error`
    is what the shared features leave of the row, squared.
    """
    room = min(law.most - others, law.most_singles)
    if law.enumerate_new:
        return _draw_from_all(room, error, spread, law, width, draws)
    tried = draws.poisson(law.rate)
    if tried == now or tried > room:
        return now
    gain = _fit_of_number(tried, error, spread, law, width) - _fit_of_number(
        now, error, spread, law, width
    )
    return tried if -draws.standard_exponential() < gain else now


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _draw_from_all(
    room: cy.longlong,
    error: cy.double,
    spread: cy.double,
    law: Law,
    width: cy.Py_ssize_t,
    draws: Draws,
) -> cy.longlong:
    """From Poisson(rate) times likelihood, by the largest of Gumbel variables.

    P(j) ∝ rate^j/j! · L(j). Terms rise to one peak and then fall: the rest is left out
    where it is nothing.
    """
    best: cy.double = -_INF
    peak: cy.double = -_INF
    prior: cy.double = 0.0
    chosen: cy.longlong = 0
    for j in range(room + 1):
        if j > 0:
            prior += log(law.rate / j)
        term = prior + _fit_of_number(j, error, spread, law, width)
        peak = max(peak, term)
        if term < peak - _NEGLIGIBLE:
            break
        noisy = term - log(draws.standard_exponential())
        if noisy > best:
            best, chosen = noisy, j
    return chosen


# ------------------------------------------------------------------ nonnegative factors


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def positive_normal(mean: cy.double, variance: cy.double, draws: Draws) -> cy.double:
    """A draw from N(mean, variance) given that it is not negative.

    TN(mean, variance) of MEIBP Eq. 13. By trial near the middle; further out from an
    exponential (Robert 1995).
    """
    sigma = sqrt(variance)
    cut = -mean / sigma
    if cut < 0.45:
        while True:
            t = draws.standard_normal()
            if t >= cut:
                return sigma * (t - cut)
    slope = 0.5 * (cut + sqrt(cut * cut + 4.0))
    while True:
        beyond = draws.standard_exponential() / slope
        off = cut + beyond - slope
        if 2.0 * draws.standard_exponential() > off * off:
            return sigma * beyond


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _log_far_tail(t: cy.double) -> cy.double:
    """log 2Φ(t) + t²/2 for a t far below zero, by the series."""
    u = 1.0 / (t * t)
    series = 1.0 - u * (1.0 - u * (3.0 - u * (15.0 - u * 105.0)))
    return log(2.0 * series / (-t * _ROOT_TWO_PI))


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def evidence_of_feature(
    e: cy.const[cy.double][::1],
    noise: cy.double,
    variance: cy.double,
    table: Table,
    n: cy.Py_ssize_t,
) -> cy.double:
    """log ∏ ∫ N(e; a, noise) p(a) da / N(e; 0, noise), p half-normal, over row n.

    Σ_d [log 2Φ(t_d) + t_d²/2 + ½ log(1 − s)], where s is variance/(variance + noise)
    and t_d² = s e_d²/noise. Entries that are missing there say nothing.
    """
    share = variance / (variance + noise)
    factor = sqrt(share / noise)
    total: cy.double = 0.0
    product: cy.double = 1.0  # of 2Φ(t): one logarithm serves many columns
    for d in range(e.shape[0]):
        t = e[d] * factor
        if t < _FAR:
            total += _log_far_tail(t)
            continue
        total += 0.5 * t * t
        product *= erfc(-t * _ROOT_HALF)
        if product < 1e-150 or product > 1e150:
            total += log(product)
            product = 1.0
    known = e.shape[0] - (table.starts[n + 1] - table.starts[n])
    # e is zero in gaps, where 2Φ(0) = 1 changes nothing.
    total += 0.5 * known * log(noise / (variance + noise))
    return total + log(product)


def draw_factors(
    A: cy.double[:, ::1],
    T: cy.const[cy.double][:, ::1],
    grams: cy.const[cy.double][:, :, ::1],
    pattern: cy.const[cy.longlong][::1],
    noise: cy.double,
    ratio: cy.double,
    rng: object,
) -> None:
    """Draw nonnegative factors given Z, one after the other; A and T are (D, K).

    p(a_kd | rest) is TN of MEIBP Eqs. 13 to 15, with the other a drawn, not expected.
    `grams[pattern[d]]` is ZᵀZ over the rows that have a value in column d. Features
    come in a random order, as bits do.
    """
    D, K = A.shape[0], A.shape[1]
    draws = Draws(rng)
    order: cy.Py_ssize_t[::1] = np.empty(K, np.intp)
    with cy.nogil:
        shuffle(order, K, draws)
        for d in range(D):
            p = pattern[d]
            for place in range(K):
                k = order[place]
                rest: cy.double = 0.0
                for j in range(K):
                    rest += grams[p, k, j] * A[d, j]
                own = grams[p, k, k]
                rest = T[d, k] + own * A[d, k] - rest
                precision = own + ratio
                A[d, k] = positive_normal(rest / precision, noise / precision, draws)
