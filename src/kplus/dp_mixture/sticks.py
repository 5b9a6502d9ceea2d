"""The stick-breaking weights of a Dirichlet process, given expected counts.

q(v_k) = Beta(1 + N_k, α + N_{>k}) (Eq. 10, whose α₁ is 1). The truncation is nested: an
empty last component has q(v) equal to its prior and changes nothing.
"""

from functools import lru_cache

import numpy as np
from scipy.special import betaln, digamma

from kplus.core.types import Array

__all__ = [
    "best_concentration",
    "log_prior",
    "mean_log_weights",
    "mean_weights",
    "merge_gains",
    "removal_gains",
    "stick_evidence",
]

_SHAPE, _RATE = 2.0, 1.0  # Gamma prior of a concentration that is learned
_GRID = np.arange(-12.0, 13.0)


def _rest(N: Array) -> Array:
    """N_{>k}, the counts of the components behind each."""
    return np.cumsum(N[::-1])[::-1] - N


def mean_log_weights(N: Array, concentration: float) -> Array:
    """E_q[log w_k] (Eq. 16 of the supplement)."""
    ahead, rest = 1.0 + N, concentration + _rest(N)
    both = digamma(ahead + rest)
    stay = digamma(rest) - both
    out: Array = digamma(ahead) - both + np.cumsum(stay) - stay
    return out


def mean_weights(N: Array, concentration: float) -> Array:
    """E_q[w_k]; what is missing to 1 belongs to components not seen yet."""
    ahead, rest = 1.0 + N, concentration + _rest(N)
    stay = rest / (ahead + rest)
    out: Array = (1.0 - stay) * np.concatenate([[1.0], np.cumprod(stay)[:-1]])
    return out


def stick_evidence(N: Array, concentration: float) -> float:
    """log of the sticks' marginal likelihood of the counts.

    Equals Σ N_k E[log w_k] - KL(q(v) ‖ p(v)) at the best q(v).
    """
    lost = betaln(1.0 + N, concentration + _rest(N)) + np.log(concentration)
    return float(lost.sum())


def merge_gains(N: Array, concentration: float) -> Array:
    """Change of `stick_evidence` when b joins a, for all a < b: (K, K), upper part.

    The sticks between a and b have N_b rows less behind them.
    """
    rest = _rest(N)
    known = betaln(1.0 + N, concentration + rest)
    less = np.maximum(rest[None, :] - N[:, None], 0.0)  # [b, k]: behind k without b
    between = betaln(1.0 + N, concentration + less) - known
    between = np.tril(between, -1)
    behind = np.cumsum(between[:, ::-1], axis=1)[:, ::-1] - between  # Σ over a < k < b
    joint = betaln(1.0 + N[:, None] + N[None, :], concentration + less.T)
    gains = joint - known[:, None] + behind.T - known[None, :] - np.log(concentration)
    out: Array = np.triu(gains, 1)
    return out


def removal_gains(N: Array, concentration: float) -> Array:
    """What the bound gains when a stick is taken away and all else stays.

    Its divergence from the prior, and what the components behind it no longer pay.
    """
    rest = _rest(N)
    ahead, behind = 1.0 + N, concentration + rest
    both = digamma(ahead + behind)
    go, stay = digamma(ahead) - both, digamma(behind) - both
    divergence = N * go + rest * stay - betaln(ahead, behind) - np.log(concentration)
    out: Array = divergence - rest * stay
    return out


def best_concentration(N: Array) -> float:
    """The α that the counts and a Gamma(2, 1) prior favour most."""
    return _best_concentration(np.ascontiguousarray(N, np.float64).tobytes())


@lru_cache(maxsize=64)
def _best_concentration(counts: bytes) -> float:
    """For the bytes of N: bounds and posteriors ask for the same, one by one."""
    N = np.frombuffer(counts)
    rest = _rest(N)

    def value(log_alpha: Array) -> Array:
        alpha = np.exp(log_alpha)[:, None]
        sticks = (betaln(1.0 + N, alpha + rest) + np.log(alpha)).sum(axis=1)
        out: Array = sticks + (_SHAPE - 1.0) * log_alpha - _RATE * alpha[:, 0]
        return out

    # The sum is concave in log α near its top: three grids, each around the last best.
    best, step = 0.0, 1.0
    for _ in range(3):
        grid = best + step * _GRID
        best, step = float(grid[np.argmax(value(grid))]), step / 12.0
    return float(np.exp(best))


def log_prior(concentration: float) -> float:
    """log density of a learned concentration, up to a constant."""
    return float((_SHAPE - 1.0) * np.log(concentration) - _RATE * concentration)
