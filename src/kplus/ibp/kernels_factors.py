"""Nonnegative factors: moments of a Gaussian cut off below zero, coordinate updates.

Eqs. 12 and 14 to 17 of MEIBP.
"""

from collections import namedtuple

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import exp, log, log1p, sqrt
else:
    from numpy import exp, log, log1p, sqrt

__all__ = [
    "FactorArrays",
    "Factors",
    "Model",
    "SumArrays",
    "Sums",
    "entropy_cut",
    "erfcx",
    "evidence_of_factor",
    "evidence_of_factors",
    "excess",
    "refresh",
    "truncated",
    "update_factor",
    "update_factors",
]

# T (K, D), S (G, K, K), counts (K,)
Sums = namedtuple("Sums", "T S counts")
# Parameters mu and scale (a variance) of q(A), its means and variances; (K, D) each
Factors = namedtuple("Factors", "mu scale mean variance")
# Variances of noise and factors; whether factors are confined to nonnegative values
Model = namedtuple("Model", "noise spread alpha nonnegative")

_FAR = cy.declare(cy.double, 50.0)  # beyond, hazard less t loses too many digits
_NEAR = cy.declare(cy.double, -9.0)  # before, the cut changes nothing in float64
_CLOSE = cy.declare(cy.double, 5.0)  # as _FAR, for the variance, which loses more
_ROOT_HALF = cy.declare(cy.double, 0.5**0.5)
_ROOT_2_PI = cy.declare(cy.double, (2.0 / np.pi) ** 0.5)
# (1 + 2x) erfcx(x) for x >= 0 as a polynomial in (x − 3)/(x + 3), interpolated at 80
# Chebyshev points in 40 digits; relative error below 1e-15.
_TAIL = cy.declare(
    cy.double[24],
    [
        1.2530080582697296,
        -0.13562110612458117,
        -0.04756229435342038,
        0.1296451587027594,
        -0.11927366341676002,
        0.0683080273440099,
        -0.023770514891530075,
        0.0025293918156939696,
        0.0018886900977441495,
        -0.0007798322696543306,
        -0.00010515831297813128,
        0.0001250993424583729,
        4.94412434222366e-06,
        -2.0100542268525612e-05,
        -7.187883834404266e-07,
        3.472370944977168e-06,
        3.3669790806407595e-07,
        -6.166011460398726e-07,
        -1.205414228648938e-07,
        1.0183620603842736e-07,
        2.7843881265502222e-08,
        -1.3312919661038687e-08,
        -3.1813541434969274e-09,
        9.862533510345587e-10,
    ],
)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _scaled(x: cy.double) -> cy.double:
    """(1 + 2x) erfcx(x) for x >= 0; even and odd powers apart, so that both can run.

    MEIBP Eq. 16 needs it.
    """
    y: cy.double = (x - 3.0) / (x + 3.0)
    u: cy.double = y * y
    even: cy.double = 0.0
    odd: cy.double = 0.0
    for i in range(22, -1, -2):
        even = even * u + _TAIL[i]
        odd = odd * u + _TAIL[i + 1]
    return even + y * odd


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def erfcx(x: cy.double) -> cy.double:
    """exp(x²) erfc(x) for x >= 0.

    MEIBP Eq. 16.
    """
    return _scaled(x) / (1.0 + 2.0 * x)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fraction(t: cy.double) -> cy.double:
    """2/(t + 3/(t + 4/(t + ...))) for t ≥ 5, to 1e-16."""
    r: cy.double = 0.0
    for i in range(8 + cy.cast(cy.int, 110.0 / t), 1, -1):
        r = i / (t + r)
    return r


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def excess(t: cy.double) -> cy.double:
    """Mean of a standard Gaussian beyond t, less t.

    MEIBP Eq. 16: √(2/π)/erfcx(t/√2) − t.
    """
    if t < _NEAR:
        return -t
    if t > _FAR:
        return 1.0 / (t + _fraction(t))
    if t >= 0.0:
        x: cy.double = t * _ROOT_HALF
        return _ROOT_2_PI * (1.0 + 2.0 * x) / _scaled(x) - t
    half: cy.double = exp(-0.5 * t * t)
    return _ROOT_2_PI * half / (2.0 - half * erfcx(-t * _ROOT_HALF)) - t


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def truncated(t: cy.double) -> tuple[cy.double, cy.double]:
    """Mean and variance of x ≥ 0 with density in proportion to exp(−(x + t)²/2).

    MEIBP Eqs. 16 and 17.
    """
    mean: cy.double
    if t > _CLOSE:
        f: cy.double = _fraction(t)
        mean = 1.0 / (t + f)
        return mean, mean * (f - mean)
    mean = excess(t)
    return mean, 1.0 - mean * (mean + t)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def entropy_cut(t: cy.double, mean: cy.double) -> cy.double:
    """What the cut at zero takes off the entropy: ln P(x ≥ 0) + t·hazard/2.

    For H(q(a)) of MEIBP Eq. 12. For t > 0 both hold t²/2, with opposite signs, and are
    taken without it.
    """
    if t < _NEAR:
        return 0.5 * t * (mean + t)
    if t > 0.0:
        return log(0.5 * erfcx(t * _ROOT_HALF)) + 0.5 * t * mean
    below: cy.double = 0.5 * exp(-0.5 * t * t) * erfcx(-t * _ROOT_HALF)
    return log1p(-below) + 0.5 * t * (mean + t)


# ------------------------------------------------------------------------------ updates


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _follow(
    T: cy.double[:, ::1],
    S: cy.const[cy.double][:, :, ::1],
    starts: cy.const[cy.longlong][::1],
    g: cy.Py_ssize_t,
    k: cy.Py_ssize_t,
    step: cy.const[cy.double][::1],
) -> cy.void:
    """T −= S_k Δ in group g: residuals after feature k moved by `step`.

    MEIBP Eq. 14, its inner sum.
    """
    begin: cy.Py_ssize_t = starts[g]
    end: cy.Py_ssize_t = starts[g + 1]
    for j in range(T.shape[0]):
        share: cy.double = S[g, k, j]
        if share != 0.0:
            for d in range(begin, end):
                T[j, d] -= share * step[d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _follow_column(
    column: cy.double[::1],
    S: cy.const[cy.double][:, :, ::1],
    g: cy.Py_ssize_t,
    k: cy.Py_ssize_t,
    step: cy.double,
) -> cy.void:
    """The same for a group of one column, of which `column` holds T."""
    for j in range(column.shape[0]):
        column[j] -= S[g, k, j] * step


def refresh(
    S: cy.const[cy.double][:, :, ::1],
    starts: cy.const[cy.longlong][::1],
    T: cy.double[:, ::1],
    noise: cy.double,
    prior: cy.double,
    mu: cy.double[:, ::1],
    variance: cy.double[:, ::1],
    mean: cy.double[:, ::1],
) -> float:
    """One round of updates over features; q(A) and T = ZᵀR follow.

    MEIBP Eqs. 14 to 16: μ̃_kd = ρ_k (T_kd + S_kk E[a_kd]), σ̃² = ρ_k σ_X². Columns
    ``starts[g]:starts[g + 1]`` have the ZᵀZ of group g. `noise` and `prior` are the
    variances of noise and factors. q(A) has `mu` and `variance` before the cut at zero
    and `mean` after it. Returns the largest change of a mean, in standard deviations of
    the noise.
    """
    K = T.shape[0]
    step: cy.double[::1] = np.empty(T.shape[1])
    column: cy.double[::1] = np.empty(K)
    most: cy.double = 0.0
    with cy.nogil:
        for g in range(S.shape[0]):
            first: cy.Py_ssize_t = starts[g]
            single: cy.bint = starts[g + 1] == first + 1
            if single:
                for j in range(K):
                    column[j] = T[j, first]
            for k in range(K):
                held: cy.double = S[g, k, k]
                own: cy.double = 1.0 / (held / noise + 1.0 / prior)
                deviation: cy.double = sqrt(own)
                pull: cy.double = own / noise
                steps: cy.double = 1.0 / deviation
                for d in range(first, starts[g + 1]):
                    old: cy.double = mean[k, d]
                    left: cy.double = column[k] if single else T[k, d]
                    centre: cy.double = (left + held * old) * pull
                    new: cy.double = deviation * excess(-centre * steps)
                    step[d] = new - old
                    mu[k, d] = centre
                    variance[k, d] = own
                    mean[k, d] = new
                    most = max(most, abs(new - old))
                if single:
                    _follow_column(column, S, g, k, step[first])
                else:
                    _follow(T, S, starts, g, k, step)
            if single:
                for j in range(K):
                    T[j, first] = column[j]
    return most / sqrt(noise)


# ---------------------------------------------------- as rows change, one after another


@cy.final
@cy.cclass
class SumArrays:
    """`Sums` for kernels."""

    def __init__(self, sums: Sums) -> None:
        self.T = sums.T
        self.S = sums.S
        self.counts = sums.counts


@cy.final
@cy.cclass
class FactorArrays:
    """`Factors` and their `Model` for kernels."""

    def __init__(self, factors: Factors, model: Model) -> None:
        self.mu = factors.mu
        self.scale = factors.scale
        self.mean = factors.mean
        self.variance = factors.variance
        self.noise = model.noise
        self.spread = model.spread
        self.alpha = model.alpha
        self.nonnegative = model.nonnegative


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _take_moments(
    k: cy.Py_ssize_t,
    start: cy.Py_ssize_t,
    stop: cy.Py_ssize_t,
    scale: cy.double,
    factors: FactorArrays,
) -> cy.void:
    """Means and variances of the factors of one group of columns.

    MEIBP Eqs. 16 and 17.
    """
    sigma: cy.double = sqrt(scale)
    for d in range(start, stop):
        factors.scale[k, d] = scale
        if factors.nonnegative:
            mean, variance = truncated(-factors.mu[k, d] / sigma)
            factors.mean[k, d] = sigma * mean
            factors.variance[k, d] = scale * variance
        else:
            factors.mean[k, d] = factors.mu[k, d]
            factors.variance[k, d] = scale


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def update_factor(
    k: cy.Py_ssize_t,
    sums: SumArrays,
    starts: cy.const[cy.longlong][::1],
    factors: FactorArrays,
) -> cy.void:
    """Eqs. 14 and 15 for feature k, group by group of the columns."""
    for g in range(starts.shape[0] - 1):
        start: cy.Py_ssize_t = starts[g]
        stop: cy.Py_ssize_t = starts[g + 1]
        for d in range(start, stop):
            factors.mu[k, d] = sums.T[k, d]
        for j in range(sums.counts.shape[0]):
            shared: cy.double = sums.S[g, k, j]
            if j != k and shared != 0.0:
                for d in range(start, stop):
                    factors.mu[k, d] -= shared * factors.mean[j, d]
        rho: cy.double = 1.0 / (sums.S[g, k, k] + factors.noise / factors.spread)
        for d in range(start, stop):
            factors.mu[k, d] *= rho
        _take_moments(k, start, stop, rho * factors.noise, factors)


def update_factors(
    sums: Sums, starts: cy.const[cy.longlong][::1], factors: Factors, model: Model
) -> None:
    """One coordinate pass of q(A) over the features that some row has.

    MEIBP Eqs. 14 to 17.
    """
    own, of_rows = FactorArrays(factors, model), SumArrays(sums)
    with cy.nogil:
        for k in range(of_rows.counts.shape[0]):
            if of_rows.counts[k] > 0.0:
                update_factor(k, of_rows, starts, own)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def evidence_of_factor(k: cy.Py_ssize_t, factors: FactorArrays) -> cy.double:
    """E[ln p(a)] + H(q(a)) of feature k: η of Eq. 12 without ln α."""
    constant: cy.double = 0.5 - 0.5 * log(factors.spread)
    if factors.nonnegative:
        constant += log(2.0)
    total: cy.double = 0.0
    for d in range(factors.mu.shape[1]):
        scale: cy.double = factors.scale[k, d]
        mean: cy.double = factors.mean[k, d]
        square: cy.double = mean * mean + factors.variance[k, d]
        total += constant + 0.5 * (log(scale) - square / factors.spread)
        if factors.nonnegative:
            sigma: cy.double = sqrt(scale)
            total += entropy_cut(-factors.mu[k, d] / sigma, mean / sigma)
    return total


def evidence_of_factors(factors: Factors, model: Model) -> float:
    """Σ_kd E[ln p(a_kd)] + H(q(a_kd)).

    Σ η_k of MEIBP Eqs. 10 and 12, without ln α.
    """
    own = FactorArrays(factors, model)
    total: cy.double = 0.0
    with cy.nogil:
        for k in range(own.mu.shape[0]):
            total += evidence_of_factor(k, own)
    return total
