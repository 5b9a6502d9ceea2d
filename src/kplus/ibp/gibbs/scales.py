"""Hyperparameters of the samplers: their priors, and draws given the rest."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log, pi

import numpy as np
from scipy.special import gammaln, logsumexp, pdtr

from kplus.core.types import Array
from kplus.ibp.prior import harmonic, log_prior

__all__ = [
    "LEAST_RATIO",
    "Hyperprior",
    "Scales",
    "Spectrum",
    "draw_alpha",
    "draw_collapsed_scales",
    "draw_variance",
    "log_prior_of_state",
]


_LARGEST = 300.0  # logarithm of a scale
LEAST_RATIO = 1e-8
"""Least σx²/σa²: with less, features that few rows tell apart cost all digits."""


@dataclass(frozen=True)
class Scales:
    """α and the variances of noise and factors, σx² and σa²."""

    alpha: float
    noise: float
    factor: float


@dataclass(frozen=True)
class Hyperprior:
    """Priors of what is inferred; None where a value is given.

    Attributes
    ----------
    alpha : (shape, rate) of a Gamma distribution
    noise, factor : (shape, scale) of inverse Gamma distributions of the variances
    """

    alpha: tuple[float, float] | None
    noise: tuple[float, float] | None
    factor: tuple[float, float] | None

    def log_density(self, scales: Scales) -> float:
        """Log-density of α, σx² and σa², as far as they are inferred."""
        total = 0.0
        if self.alpha is not None:
            shape, rate = self.alpha
            total += shape * np.log(rate) - gammaln(shape)
            total += (shape - 1.0) * np.log(scales.alpha) - rate * scales.alpha
        for prior, value in ((self.noise, scales.noise), (self.factor, scales.factor)):
            if prior is not None:
                shape, scale = prior
                total += shape * np.log(scale) - gammaln(shape)
                total -= (shape + 1.0) * np.log(value) + scale / value
        return float(total)


# ------------------------------------------------------------------ the prior of Z


def _log_at_most(most: int | None, mean: float) -> float:
    """log P(K ≤ most) for K ~ Poisson(mean)."""
    if most is None:
        return 0.0
    probability = float(pdtr(most, mean))
    if probability > 1e-200:
        return float(np.log(probability))
    j = np.arange(most + 1)
    return float(logsumexp(j * np.log(mean) - gammaln(j + 1.0)) - mean)


def log_prior_of_state(
    counts: Array, N: int, scales: Scales, hyper: Hyperprior, most: int | None
) -> float:
    """Log-density of Z and what is inferred of α and the variances.

    With a largest number of features, the IBP is one that did not exceed it.
    """
    allowed = _log_at_most(most, scales.alpha * harmonic(N))
    return log_prior(counts, N, scales.alpha) - allowed + hyper.log_density(scales)


def draw_alpha(
    K: int,
    N: int,
    scales: Scales,
    hyper: Hyperprior,
    most: int | None,
    rng: np.random.Generator,
) -> Scales:
    """α given the number of features: Gamma, unless this is limited."""
    if hyper.alpha is None:
        return scales
    shape, rate = hyper.alpha[0] + K, hyper.alpha[1] + harmonic(N)
    if most is None:
        return replace(scales, alpha=float(rng.gamma(shape) / rate))

    def log_density(t: float) -> float:
        return shape * t - rate * exp(t) - _log_at_most(most, exp(t) * harmonic(N))

    return replace(scales, alpha=exp(_slice(log_density, log(scales.alpha), rng)))


# -------------------------------------------------------------------- the variances


def draw_variance(
    prior: tuple[float, float], count: int, squares: float, rng: np.random.Generator
) -> float:
    """A variance given so many Gaussian values that sum to so much when squared."""
    return float((prior[1] + 0.5 * squares) / rng.gamma(prior[0] + 0.5 * count))


@dataclass(frozen=True)
class Spectrum:
    """All that log p(X | Z) needs as a function of the variances.

    Attributes
    ----------
    values : (K,)
        Eigenvalues of ZᵀZ.
    parts : (K,)
        ‖uᵀT‖² for each eigenvector u, with T = ZᵀX.
    squares : float
        ‖X‖².
    shape : (N, D)
    """

    values: Array
    parts: Array
    squares: float
    shape: tuple[int, int]

    @classmethod
    def of(cls, Z: Array, T: Array, squares: float, width: int) -> "Spectrum":
        if Z.shape[1] == 0:
            return cls(np.empty(0), np.empty(0), squares, (len(Z), width))
        values, vectors = np.linalg.eigh(Z.T @ Z)
        parts = np.sum((vectors.T @ T) ** 2, axis=1)
        return cls(np.maximum(values, 0.0), parts, squares, (len(Z), width))

    def log_evidence(self, noise: float, factor: float) -> float:
        """log p(X | Z) with A integrated out."""
        N, D = self.shape
        ratio = noise / factor
        left = self.squares - float((self.parts / (self.values + ratio)).sum())
        determinant = D * float(np.log1p(self.values / ratio).sum())
        count = N * D * log(2.0 * pi * noise)
        return -0.5 * (count + determinant + left / noise)


def draw_collapsed_scales(
    spectrum: Spectrum, scales: Scales, hyper: Hyperprior, rng: np.random.Generator
) -> Scales:
    """σx² and then σa² given Z alone: slice sampling of their logarithms.

    Their priors are those given that the ratio is not below `LEAST_RATIO`.
    """
    noise, factor = scales.noise, scales.factor
    if hyper.noise is not None:
        shape, scale = hyper.noise

        def of_noise(t: float) -> float:
            if exp(t) < LEAST_RATIO * factor:
                return -np.inf
            fit = spectrum.log_evidence(exp(t), factor)
            return fit - shape * t - scale * exp(-t)

        noise = exp(_slice(of_noise, log(noise), rng))
    if hyper.factor is not None:
        shape, scale = hyper.factor

        def of_factor(t: float) -> float:
            if noise < LEAST_RATIO * exp(t):
                return -np.inf
            fit = spectrum.log_evidence(noise, exp(t))
            return fit - shape * t - scale * exp(-t)

        factor = exp(_slice(of_factor, log(factor), rng))
    return replace(scales, noise=noise, factor=factor)


def _slice(
    log_density: Callable[[float], float],
    now: float,
    rng: np.random.Generator,
    width: float = 1.0,
) -> float:
    """One step of slice sampling, stepping out and shrinking (Neal 2003).

    Logarithms of scales that a float64 cannot hold are left out; from an improbable
    start a step may lead that far.
    """
    level = log_density(now) - rng.standard_exponential()
    low = now - width * rng.random()
    high = low + width
    while low > -_LARGEST and log_density(low) > level:
        low -= width
    while high < _LARGEST and log_density(high) > level:
        high += width
    while True:
        new = low + (high - low) * rng.random()
        if log_density(new) > level:
            return float(new)
        if new < now:
            low = new
        else:
            high = new
