"""What mean-field inference knows: q but for the rows' part, and sums over rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.models.ibp.buffet_sticks import FiniteBuffet, InfiniteBuffet
from kplus.models.ibp.stats import BuffetSums
from kplus.models.linear.sums import by_columns

__all__ = ["BernoulliSums", "Factors", "MeanField", "Rotated", "expected_error"]


@dataclass(frozen=True)
class Factors:
    """q(A): column d of A is Gaussian.

    Attributes
    ----------
    mean : (K, D)
    covs : (G, K, K)
        Covariances: one for all columns, or for each group of columns that miss the
        same rows.
    group : (D,)
        That of each column.
    log_det : float
        Of the covariances of all columns, summed.
    """

    mean: Array
    covs: Array
    group: IntArray
    log_det: float

    @classmethod
    def uncoupled(cls, mean: Array, variance: float) -> Self:
        """Independent features, all of the same variance."""
        K, D = mean.shape
        log_det = mean.size * float(np.log(variance))
        return cls(mean, variance * np.eye(K)[None], np.zeros(D, np.int64), log_det)

    @cached_property
    def spread(self) -> Array:
        """The covariances of all columns, summed."""
        sizes = np.bincount(self.group, minlength=len(self.covs)).astype(np.float64)
        total: Array = np.tensordot(sizes, self.covs, axes=1)
        return total

    @cached_property
    def gram(self) -> Array:
        """E[AAᵀ]."""
        gram: Array = self.mean @ self.mean.T + self.spread
        return gram

    @cached_property
    def outer(self) -> Array:
        """The products of two means in each column, (D, K²)."""
        columns = self.mean.T
        products = columns[:, :, None] * columns[:, None, :]
        return products.reshape(len(columns), -1)

    @property
    def squares(self) -> float:
        """E‖A‖²."""
        return float(np.vdot(self.mean, self.mean) + np.trace(self.spread))

    def within(self, known: Array) -> tuple[Array, Array]:
        """`spread` and `gram` over some columns only, for each row of a 0/1 matrix."""
        K, G = len(self.mean), len(self.covs)
        members = np.zeros((len(self.group), G))
        members[np.arange(len(self.group)), self.group] = 1.0
        spread = known @ members @ self.covs.reshape(G, -1)
        gram = spread + known @ self.outer
        return spread.reshape(-1, K, K), gram.reshape(-1, K, K)


@dataclass(frozen=True)
class MeanField:
    """All of q but the rows' part, and the scales.

    Attributes
    ----------
    noise, factor : float
        Variances of the noise and of the features.
    fresh : bool
        Whether rows also try the way from nothing, as rows of a new table do, and keep
        what is better.
    """

    factors: Factors
    buffet: FiniteBuffet | InfiniteBuffet
    noise: float
    factor: float
    fresh: bool = False

    @property
    def K(self) -> int:
        return len(self.factors.mean)


@dataclass
class BernoulliSums(BuffetSums):
    """Expected sums over rows, of bits that have probabilities; with their entropy."""

    entropy: float = 0.0

    def _plus(self, other: Self, sign: float) -> Self:
        self.entropy += sign * other.entropy
        return super()._plus(other, sign)

    def regroup(self, into: IntArray, K: int) -> Self:
        raise NotImplementedError("The number of features is the truncation.")


class Rotated:
    """q(A) for any variances, from one decomposition of each E[ZᵀZ]."""

    def __init__(self, total: BernoulliSums) -> None:
        values, self.vectors = np.linalg.eigh(total.S)
        self.values = np.maximum(values, 0.0)

    def with_factors(self, params: MeanField, total: BernoulliSums) -> MeanField:
        """The Gaussians with precision S/σ_X² + 1/σ_A² and the means that follow.

        The step from the present mean is solved for, not the mean: see `LinearSums`.
        """
        mean, group = params.factors.mean, total.group
        T = total.about(mean).T
        slope = T / params.noise - mean / params.factor
        inverse = 1.0 / (self.values / params.noise + 1.0 / params.factor)
        covs = (self.vectors * inverse[:, None, :]) @ self.vectors.transpose(0, 2, 1)
        step = by_columns(covs, group, slope)
        log_det = float(np.log(inverse).sum(axis=1)[group].sum())
        return replace(params, factors=Factors(mean + step, covs, group, log_det))


def expected_error(params: MeanField, total: BernoulliSums) -> float:
    """E‖X − ZA‖² over the observed entries."""
    factors = params.factors
    sums = total if total.A is factors.mean else total.about(factors.mean)
    return sums.error + sums.product(factors.covs, factors.group)
