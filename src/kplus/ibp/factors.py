"""What is known of the factors A: q(A), for either prior, and the sums it needs.

Both kinds answer the same questions, so that the model need not know which it has.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, Self

import numpy as np
from scipy.special import erfcx, log_ndtr

from kplus.core.types import Array, IntArray
from kplus.ibp.kernels_factors import refresh
from kplus.linear.gaps import columns_of
from kplus.linear.sums import LinearSums, by_columns

__all__ = [
    "Factors",
    "GaussianFactors",
    "IBPSums",
    "TruncatedFactors",
    "truncated_entropy",
    "truncated_moments",
]

_FAR = 50.0  # standard deviations below zero from which on a series is more exact
_LOG_2PIE = float(np.log(2.0 * np.pi * np.e))
_MAX_ROUNDS = 10
_FIRST_ROUNDS = 3
_FEW = 0.02
_CONVERGED = 1e-3  # change of a mean, in standard deviations of the noise


class Factors(Protocol):
    """A distribution over K factors."""

    @classmethod
    def near(cls, A: Array, noise: float) -> Self:
        """Factors believed to be about A."""

    @property
    def mean(self) -> Array:
        """E[A], (K, D)."""

    @property
    def squares(self) -> float:
        """Σ E[a²]."""

    def grams(self, group: IntArray, n_groups: int) -> Array:
        """E[A_g A_gᵀ] over the columns of each group, (n_groups, K, K)."""

    def uncertainty(self, sums: LinearSums) -> float:
        """E‖X − ZA‖² − ‖X − Z E[A]‖²."""

    def gain(self, spread: float) -> float:
        """E[log p(A)] and the entropy of q(A), where `spread` is the prior variance."""

    def own_gains(self, spread: float) -> Array:
        """By how much that falls if a factor is left out, for each."""

    def refreshed(self, sums: LinearSums, noise: float, spread: float) -> Self:
        """The best distribution for the rows summed, or one nearer to it."""

    def regroup(self, old_to_new: IntArray, K: int, new: Array, noise: float) -> Self:
        """Carry over to K factors; `new` are the means of those that had no number."""


@dataclass(frozen=True)
class TruncatedFactors:
    """Independent Gaussians cut off below zero (Eq. 13): N(mu, variance | a >= 0)."""

    shapes: ClassVar[dict[str, str]] = {"mu": "K D", "variance": "K D"}

    mu: Array
    variance: Array

    @classmethod
    def near(cls, A: Array, noise: float) -> Self:
        """Factors believed to be about A."""
        return cls(np.maximum(A, 0.0), np.full(A.shape, 1e-3 * noise))

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        return truncated_moments(self.mu, self.variance)

    @cached_property
    def _entropies(self) -> Array:
        """Of each factor."""
        each = truncated_entropy(self.mu, self.variance, self.mean)
        entropies: Array = each.sum(axis=1)
        return entropies

    @property
    def mean(self) -> Array:
        return self._moments[0]

    @property
    def squares(self) -> float:
        mean, variance = self._moments
        return float(np.vdot(mean, mean) + variance.sum())

    def grams(self, group: IntArray, n_groups: int) -> Array:
        mean, variance = self._moments
        K = len(mean)
        if n_groups == len(group):  # each column for itself
            order = np.argsort(group)
            part = np.ascontiguousarray(mean[:, order].T)
            grams = part[:, :, None] * part[:, None, :]
            grams[:, range(K), range(K)] += variance[:, order].T
            return grams
        grams = np.empty((n_groups, K, K))
        for g, own in enumerate(columns_of(group, n_groups)):
            part = mean[:, own]
            grams[g] = part @ part.T
            grams[g].flat[:: K + 1] += variance[:, own].sum(axis=1)
        return grams

    def uncertainty(self, sums: LinearSums) -> float:
        counts = np.diagonal(sums.S, axis1=1, axis2=2)  # (groups, K)
        return float(np.vdot(counts[sums.group].T, self._moments[1]))

    def gain(self, spread: float) -> float:
        return float(self.own_gains(spread).sum())

    def own_gains(self, spread: float) -> Array:
        mean, variance = self._moments
        squares = (mean * mean + variance).sum(axis=1)
        prior = 0.5 * mean.shape[1] * np.log(2.0 / (np.pi * spread))
        gains: Array = prior - 0.5 * squares / spread + self._entropies
        return gains

    def refreshed(self, sums: LinearSums, noise: float, spread: float) -> Self:
        """Coordinate updates (Eqs. 14 and 15), round after round."""
        sums = sums.about(self.mean)
        order = np.argsort(sums.group, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(sums.group)))
        mean, T = self.mean.take(order, axis=1), sums.T.take(order, axis=1)
        mu, variance = np.empty_like(mean), np.empty_like(mean)
        # While many rows change their features, precise factors are of no use.
        far_off = sums.changed > _FEW * sums.weight
        for _ in range(_FIRST_ROUNDS if far_off else _MAX_ROUNDS):
            moved = refresh(sums.S, starts, T, noise, spread, mu, variance, mean)
            if moved < _CONVERGED:
                break
        back = np.argsort(order, kind="stable")
        return type(self)(mu.take(back, axis=1), variance.take(back, axis=1))

    def regroup(self, old_to_new: IntArray, K: int, new: Array, noise: float) -> Self:
        fresh = self.near(new, noise)
        return type(self)(
            _carried(self.mu, old_to_new, K, fresh.mu),
            _carried(self.variance, old_to_new, K, fresh.variance),
        )


@dataclass(frozen=True)
class GaussianFactors:
    """Columns of A, each jointly Gaussian; those of a group share a covariance.

    Attributes
    ----------
    mean : (K, D)
    covariance : (groups, K, K)
    group : (D,)
        That of each column.
    known_log_det : float or None
        `log_det` where it is known better than large and small covariances tell.
    """

    shapes: ClassVar[dict[str, str]] = {
        "mean": "K D",
        "covariance": "g K K",
        "group": "D <g",
    }

    mean: Array
    covariance: Array
    group: IntArray
    known_log_det: float | None = None

    @classmethod
    def near(cls, A: Array, noise: float) -> Self:
        """Factors believed to be about A."""
        return cls.uncoupled(A, 1e-3 * noise)

    @classmethod
    def uncoupled(cls, mean: Array, variance: float) -> Self:
        """Independent factors, all of the same variance."""
        covariance = variance * np.eye(len(mean))
        return cls(mean, covariance[None], np.zeros(mean.shape[1], np.int64))

    @classmethod
    def independent(cls, mean: Array, variance: Array, group: IntArray) -> Self:
        """Factors without covariances; columns of a group have the same variances."""
        first = np.unique(group, return_index=True)[1]
        return cls(mean, np.stack([np.diag(variance[:, d]) for d in first]), group)

    @cached_property
    def _widths(self) -> IntArray:
        return np.bincount(self.group, minlength=len(self.covariance))

    @cached_property
    def log_det(self) -> float:
        """Of the covariances of all columns, summed."""
        if self.known_log_det is not None:
            return self.known_log_det
        return float(self._widths @ np.linalg.slogdet(self.covariance)[1])

    @property
    def squares(self) -> float:
        traces = np.trace(self.covariance, axis1=1, axis2=2)
        return float(np.vdot(self.mean, self.mean) + self._widths @ traces)

    def grams(self, group: IntArray, n_groups: int) -> Array:
        grams = self.spreads(group, n_groups)
        for gram, own in zip(grams, columns_of(group, n_groups), strict=True):
            gram += self.mean[:, own] @ self.mean[:, own].T
        return grams

    def spreads(self, group: IntArray, n_groups: int) -> Array:
        """Covariances added up over the columns of each group, (n_groups, K, K)."""
        widths = np.zeros((n_groups, len(self.covariance)))
        np.add.at(widths, (group, self.group), 1.0)
        spreads: Array = np.tensordot(widths, self.covariance, axes=1)
        return spreads

    def uncertainty(self, sums: LinearSums) -> float:
        return sums.product(self.covariance, self.group)

    def gain(self, spread: float) -> float:
        prior = -0.5 * self.mean.size * np.log(spread) - 0.5 * self.squares / spread
        entropy = 0.5 * (self.log_det + self.mean.size)  # log 2π of both cancels
        return float(prior + entropy)

    def own_gains(self, spread: float) -> Array:
        own = np.diagonal(self.covariance, axis1=1, axis2=2)
        squares = (self.mean**2).sum(axis=1) + self._widths @ own
        precisions = np.diagonal(np.linalg.inv(self.covariance), axis1=1, axis2=2)
        entropy = 0.5 * self._widths @ (1.0 - np.log(precisions))
        prior = -0.5 * self.mean.shape[1] * np.log(spread) - 0.5 * squares / spread
        gains: Array = prior + entropy
        return gains

    def refreshed(self, sums: LinearSums, noise: float, spread: float) -> Self:
        """The posterior given Z, exactly."""
        K = len(self.mean)
        sums = sums.about(self.mean)
        precision = sums.S / noise + np.eye(K) / spread
        # Features with the same rows would make this singular but for the prior.
        precision += 1e-14 * precision.max(initial=0.0) * np.eye(K)
        covariance = np.linalg.inv(precision)
        covariance = 0.5 * (covariance + covariance.swapaxes(1, 2))
        pull = sums.T / noise - self.mean / spread
        mean = self.mean + by_columns(covariance, sums.group, pull)
        return type(self)(mean, covariance, sums.group)

    def regroup(self, old_to_new: IntArray, K: int, new: Array, noise: float) -> Self:
        old, keep = np.flatnonzero(old_to_new >= 0), old_to_new[old_to_new >= 0]
        covariance = np.zeros((len(self.covariance), K, K))
        covariance[:, np.arange(K), np.arange(K)] = 1e-3 * noise
        covariance[:, keep[:, None], keep] = self.covariance[:, old[:, None], old]
        mean = _carried(self.mean, old_to_new, K, new)
        return type(self)(mean, covariance, self.group)


def _carried(values: Array, old_to_new: IntArray, K: int, new: Array) -> Array:
    """Rows at their new numbers; rows without an old number come from `new`."""
    carried = np.empty((K, values.shape[1]))
    fresh = np.ones(K, np.bool_)
    fresh[old_to_new[old_to_new >= 0]] = False
    carried[fresh] = new
    carried[old_to_new[old_to_new >= 0]] = values[old_to_new >= 0]
    return carried


@dataclass
class IBPSums(LinearSums):
    """Sums over rows, and the number of values that these have."""

    observed: float = 0.0

    def weight_gains(self, slab: Array | None) -> Array:
        """What the weights of features add to the bound; bits have none."""
        return np.zeros(self.K)

    def _plus(self, other: Self, sign: float) -> Self:
        self.observed += sign * other.observed
        return super()._plus(other, sign)


# ------------------------------------------------------------------------------ moments


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
