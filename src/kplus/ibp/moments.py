"""Moments of a Gaussian that is cut off below zero."""

import numpy as np
from scipy.special import erfcx, log_ndtr

from kplus.core.types import Array

__all__ = ["truncated_entropy", "truncated_moments"]

_FAR = 50.0  # standard deviations below zero from which on a series is more exact
_LOG_2PIE = float(np.log(2.0 * np.pi * np.e))


def truncated_moments(mu: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and variance of N(mu, variance) given that it is not negative.

    Eqs. 16 and 17 of MEIBP with t = −mu/σ. They cancel for large t, where mean/σ is
    1/t − 2/t³ + 10/t⁵ − 74/t⁷ + 706/t⁹ (the distribution is nearly exponential).
    """
    sigma = np.sqrt(variance)
    t = -mu / sigma
    near = np.minimum(t, _FAR)
    hazard = np.sqrt(2.0 / np.pi) / erfcx(near / np.sqrt(2.0))
    mean = hazard - near
    spread = 1.0 - mean * hazard
    far = t > _FAR
    if far.any():
        u = 1.0 / np.maximum(t, _FAR) ** 2
        series = np.sqrt(u) * (1 - u * (2 - u * (10 - u * (74 - u * 706))))
        mean = np.where(far, series, mean)
        spread = np.where(far, u * (1 - u * (6 - u * (50 - u * 518))), spread)
    return sigma * mean, variance * spread


def truncated_entropy(mu: Array, variance: Array, mean: Array) -> Array:
    """Entropy of N(mu, variance) given that it is not negative; `mean` is its mean.

    With t = −mu/σ, log P(x ≥ 0) and t·hazard/2 are added to that of the Gaussian. For
    t > 0 both hold t²/2, with opposite signs, and are taken without it.
    """
    sigma = np.sqrt(variance)
    t = -mu / sigma
    mean = mean / sigma
    below = np.log(0.5 * erfcx(np.maximum(t, 0.0) / np.sqrt(2.0))) + 0.5 * t * mean
    above = log_ndtr(-np.minimum(t, 0.0)) + 0.5 * t * (mean + t)
    entropy: Array = 0.5 * (_LOG_2PIE + np.log(variance)) + np.where(
        t > 0, below, above
    )
    return entropy
