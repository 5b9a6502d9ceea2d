"""The Indian buffet process prior over binary matrices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from kplus.core.types import Array

__all__ = ["count_slopes", "harmonic", "log_prior", "log_prior_left_ordered"]


def harmonic(N: float) -> float:
    """H_N = 1 + 1/2 + ... + 1/N, also between whole numbers."""
    return float(digamma(N + 1.0) + np.euler_gamma)


def log_prior(counts: Array, N: float, alpha: float) -> float:
    """Log-probability of Z, given how many rows have each of its features (Eq. 1).

    That of a class of matrices that differ by where empty columns stand ("shifted"
    classes). All counts are above 0; they and N may be sums of weights.
    """
    K = len(counts)
    columns = gammaln(N - counts + 1.0) + gammaln(counts) - gammaln(N + 1.0)
    features = K * np.log(alpha) - gammaln(K + 1.0) - alpha * harmonic(N)
    return float(features + columns.sum())


def log_prior_left_ordered(Z: NDArray[Any], alpha: float) -> float:
    """The same for a class of matrices that differ by the order of columns.

    Griffiths and Ghahramani's "left-ordered form": with K! in Eq. 1 replaced by the
    factorials of how often each column occurs.
    """
    held = Z[:, Z.any(axis=0)]
    _, repeats = np.unique(held, axis=1, return_counts=True)
    shifted = log_prior(held.sum(axis=0).astype(np.float64), len(Z), alpha)
    return float(shifted + gammaln(held.shape[1] + 1.0) - gammaln(repeats + 1.0).sum())


def count_slopes(counts: Array, N: float) -> Array:
    """How fast the log-prior rises with the count of each feature.

    The log-prior is convex in the counts: its tangent lies below it. So if all rows
    choose at once by these slopes, it rises by at least what they were promised.
    """
    slopes: Array = digamma(counts) - digamma(N - counts + 1.0)
    return slopes
