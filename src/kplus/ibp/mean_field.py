"""What mean-field inference knows: q but for the rows' part, and sums over rows."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kplus.core.types import IntArray
from kplus.ibp.factors import GaussianFactors
from kplus.ibp.stats import IBPSums
from kplus.ibp.sticks import FiniteIBP, InfiniteIBP
from kplus.linear.sums import by_columns

__all__ = ["BernoulliSums", "MeanField", "Rotated", "expected_error"]


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

    factors: GaussianFactors
    ibp: FiniteIBP | InfiniteIBP
    noise: float
    factor: float
    fresh: bool = False

    @property
    def K(self) -> int:
        return len(self.factors.mean)


@dataclass
class BernoulliSums(IBPSums):
    """Expected sums over rows, of bits that have probabilities; with their entropy."""

    entropy: float = 0.0

    def _plus(self, other: Self, sign: float) -> Self:
        self.entropy += sign * other.entropy
        return super()._plus(other, sign)

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
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
        factors = GaussianFactors(mean + step, covs, group, log_det)
        return replace(params, factors=factors)


def expected_error(params: MeanField, total: BernoulliSums) -> float:
    """E‖X − ZA‖² over the observed entries."""
    factors = params.factors
    sums = total if total.A is factors.mean else total.about(factors.mean)
    return sums.error + factors.uncertainty(sums)
