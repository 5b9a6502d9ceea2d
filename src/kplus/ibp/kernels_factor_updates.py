"""Coordinate updates of nonnegative factors (Eqs. 14 and 15 of MEIBP)."""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, kernel
from kplus.ibp.kernels_tails import excess

__all__ = ["Moments", "refresh"]


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
