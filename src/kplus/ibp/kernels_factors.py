"""Nonnegative factors: moments of a Gaussian cut off below zero, coordinate updates.

Eqs. 14 to 17 of MEIBP.
"""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, kernel

__all__ = ["Moments", "entropy_cut", "erfcx", "excess", "refresh", "truncated"]

_FAR = 50.0  # beyond, hazard less t loses too many digits
_NEAR = -9.0  # before, the cut changes nothing in float64
_ROOT_HALF = np.sqrt(0.5)
_CLOSE = 5.0  # the same for the variance, which loses more
_ROOT_2_PI = np.sqrt(2.0 / np.pi)
# (1 + 2x) erfcx(x) for x >= 0 as a polynomial in (x − 3)/(x + 3), interpolated at 80
# Chebyshev points in 40 digits; relative error below 1e-15.
_TAIL = (
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
)


@kernel
def _scaled(x):
    """(1 + 2x) erfcx(x) for x >= 0; even and odd powers apart, so that both can run.

    MEIBP Eq. 16 needs it.
    """
    y = (x - 3.0) / (x + 3.0)
    u = y * y
    even, odd = 0.0, 0.0
    for i in range(len(_TAIL) - 2, -1, -2):
        even = even * u + _TAIL[i]
        odd = odd * u + _TAIL[i + 1]
    return even + y * odd


@kernel
def erfcx(x):
    """exp(x²) erfc(x) for x >= 0.

    MEIBP Eq. 16.
    """
    return _scaled(x) / (1.0 + 2.0 * x)


@kernel
def _fraction(t):
    """2/(t + 3/(t + 4/(t + ...))) for t ≥ 5, to 1e-16."""
    r = 0.0
    for i in range(8 + int(110.0 / t), 1, -1):
        r = i / (t + r)
    return r


@kernel
def excess(t):
    """Mean of a standard Gaussian beyond t, less t.

    MEIBP Eq. 16: √(2/π)/erfcx(t/√2) − t.
    """
    if t > _FAR:
        return 1.0 / (t + _fraction(t))
    if t >= 0.0:
        x = t * _ROOT_HALF
        return _ROOT_2_PI * (1.0 + 2.0 * x) / _scaled(x) - t
    if t < _NEAR:
        return -t
    half = np.exp(-0.5 * t * t)
    return _ROOT_2_PI * half / (2.0 - half * erfcx(-t * _ROOT_HALF)) - t


@kernel
def truncated(t):
    """Mean and variance of x ≥ 0 with density in proportion to exp(−(x + t)²/2).

    MEIBP Eqs. 16 and 17.
    """
    if t > _CLOSE:
        f = _fraction(t)
        mean = 1.0 / (t + f)
        return mean, mean * (f - mean)
    mean = excess(t)
    return mean, 1.0 - mean * (mean + t)


@kernel
def entropy_cut(t, mean):
    """What the cut at zero takes off the entropy: ln P(x ≥ 0) + t·hazard/2.

    For H(q(a)) of MEIBP Eq. 12. For t > 0 both hold t²/2, with opposite signs, and are
    taken without it.
    """
    if t > 0.0:
        return np.log(0.5 * erfcx(t * _ROOT_HALF)) + 0.5 * t * mean
    below = 0.5 * np.exp(-0.5 * t * t) * erfcx(-t * _ROOT_HALF)
    return np.log1p(-below) + 0.5 * t * (mean + t)


# ------------------------------------------------------------------------------ updates


class Moments(NamedTuple):
    """q(A): parameters before the cut at zero, and the mean after it; (K, D) each."""

    mu: np.ndarray
    variance: np.ndarray
    mean: np.ndarray


@fast_kernel
def _follow(T, S, starts, k, step):
    """T −= S_k Δ: residuals after feature k moved by `step`.

    MEIBP Eq. 14, its inner sum.
    """
    for g in range(len(S)):
        begin, end = starts[g], starts[g + 1]
        for j in range(len(T)):
            share = S[g, k, j]
            if share != 0.0:
                row = T[j]
                for d in range(begin, end):
                    row[d] -= share * step[d]


@kernel
def refresh(S, starts, T, noise, prior, factors, step):
    """One round of updates over features; q(A) and T = ZᵀR follow.

    MEIBP Eqs. 14 to 16: μ̃_kd = ρ_k (T_kd + S_kk E[a_kd]), σ̃² = ρ_k σ_X². Columns
    ``starts[g]:starts[g + 1]`` have the ZᵀZ of group g. `noise` and `prior` are the
    variances of noise and factors; `step` is a buffer of a row. Returns the largest
    change of a mean, in standard deviations of the noise.
    """
    mu, variance, mean = factors
    most = 0.0
    for k in range(len(T)):
        for g in range(len(S)):
            held = S[g, k, k]
            own = 1.0 / (held / noise + 1.0 / prior)
            deviation = np.sqrt(own)
            pull, steps = own / noise, 1.0 / deviation
            for d in range(starts[g], starts[g + 1]):
                centre = (T[k, d] + held * mean[k, d]) * pull
                new = deviation * excess(-centre * steps)
                step[d] = new - mean[k, d]
                mu[k, d] = centre
                variance[k, d] = own
                mean[k, d] = new
                most = max(most, abs(step[d]))
        _follow(T, S, starts, k, step)
    return most / np.sqrt(noise)
