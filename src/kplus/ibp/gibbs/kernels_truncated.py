"""Gaussians cut off below zero: draws, and the evidence for a nonnegative feature."""

import math

import numpy as np

from kplus.core.kernels import fast_kernel, kernel
from kplus.ibp.gibbs.kernels_draws import shuffle

__all__ = ["draw_factors", "evidence_of_feature", "positive_normal"]

_FAR = -25.0  # standard deviations from which on a series is exact


@kernel
def positive_normal(mean, variance, rng):
    """A draw from N(mean, variance) given that it is not negative.

    TN(mean, variance) of MEIBP Eq. 13. By trial near the middle; further out from an
    exponential (Robert 1995).
    """
    sigma = math.sqrt(variance)
    cut = -mean / sigma
    if cut < 0.45:
        while True:
            t = rng.standard_normal()
            if t >= cut:
                return sigma * (t - cut)
    slope = 0.5 * (cut + math.sqrt(cut * cut + 4.0))
    while True:
        beyond = rng.standard_exponential() / slope
        if 2.0 * rng.standard_exponential() > (cut + beyond - slope) ** 2:
            return sigma * beyond


@kernel
def _log_scaled_tail(t):
    """log Φ(t) + t²/2, without cancellation for any t."""
    if t > _FAR:
        return math.log(0.5 * math.erfc(-t / math.sqrt(2.0))) + 0.5 * t * t
    u = 1.0 / (t * t)
    series = 1.0 - u * (1.0 - u * (3.0 - u * (15.0 - u * 105.0)))
    return math.log(series / (-t * math.sqrt(2.0 * math.pi)))


@kernel
def evidence_of_feature(e, noise, variance, table, n):
    """log ∏ ∫ N(e; a, noise) p(a) da / N(e; 0, noise), p half-normal, over row n.

    Entries that are missing there say nothing.
    """
    share = variance / (variance + noise)
    factor = math.sqrt(share / noise)
    nothing = math.log(0.5)
    total = 0.0
    for d in range(len(e)):
        total += _log_scaled_tail(e[d] * factor) - nothing
    known = len(e) - (table.starts[n + 1] - table.starts[n])
    # e is zero in gaps, where the sum gained log Φ(0) − log ½ = 0.
    return total + 0.5 * known * math.log(noise / (variance + noise))


@fast_kernel
def draw_factors(A, T, grams, pattern, noise, ratio, rng):
    """Draw nonnegative factors given Z, one after the other; A and T are (D, K).

    p(a_kd | rest) is TN of MEIBP Eqs. 13 to 15, with the other a drawn, not expected.
    `grams[pattern[d]]` is ZᵀZ over the rows that have a value in column d. Features
    come in a random order, as bits do.
    """
    D, K = A.shape
    order = np.empty(K, np.int64)
    shuffle(order, K, rng)
    for d in range(D):
        a, gram = A[d], grams[pattern[d]]
        for place in range(K):
            k = order[place]
            row = gram[k]
            rest = T[d, k] + row[k] * a[k]
            for j in range(K):
                rest -= row[j] * a[j]
            precision = row[k] + ratio
            a[k] = positive_normal(rest / precision, noise / precision, rng)
