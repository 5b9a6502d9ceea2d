"""Gaussian rows with a mean and a full covariance; the prior is normal-Wishart."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kplus.core.types import Array
from kplus.dp_mixture.families.columns import (
    MEAN_STRENGTH,
    VARIANCE_SHARE,
    Scaling,
    column_moments,
    refuse_categories,
)
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.normal_wishart import (
    NormalWishart,
    NormalWishartFamily,
    check_finite,
    pack,
    prior_scatter,
    unpack,
)

__all__ = ["Gaussian", "GaussianFamily"]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Gaussian rows with a mean and a full covariance matrix for each component.

    The prior is normal-Wishart: Λ ~ Wishart with `dof` degrees of freedom, scaled so
    that E[Σ] = `covariance`, and μ | Λ ~ Normal(`mean`, (`mean_strength` Λ)⁻¹).

    Parameters
    ----------
    covariance : float, array of shape (n_features, n_features) or None
        E[Σ], the covariance that a component has before it has seen rows; a number
        stands for that multiple of the identity. By default diagonal, with the share
        `variance_share` of each column's variance. It should not be much larger than
        the components that you expect, or small ones do not raise the bound.
    variance_share : float, default=0.5
        See `covariance`.
    mean : array of shape (n_features,) or None
        Prior mean; by default that of the data.
    mean_strength : float, default=0.01
        How many rows the prior mean counts for.
    dof : float or None
        Degrees of freedom; by default ``n_features + 2``, the vaguest for which E[Σ]
        exists.

    Examples
    --------
    >>> from kplus import DPMixture
    >>> from kplus.observations import Gaussian
    >>> model = DPMixture(Gaussian(covariance=0.5))
    """

    covariance: Any = None
    variance_share: float = VARIANCE_SHARE
    mean: Any = None
    mean_strength: float = MEAN_STRENGTH
    dof: float | None = None

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "GaussianFamily":
        refuse_categories(columns, "gaussian")
        check_finite(sample)
        means, variances = column_moments(sample, weights)
        D = len(means)
        origin = means if self.mean is None else np.asarray(self.mean, np.float64)
        scaling = Scaling.from_moments(origin, variances)
        dof = float(D + 2 if self.dof is None else self.dof)
        scatter = prior_scatter(
            self.covariance, self.variance_share * variances, dof, scaling.inv
        )
        return GaussianFamily(origin, scaling.inv, self.mean_strength, dof, scatter)


@dataclass(frozen=True, eq=False)
class GaussianFamily(NormalWishartFamily):
    """See `Gaussian`; works in units y = (x - origin) · inv, in which m0 = 0.

    t(y) = [y, triangle of y yᵀ].
    """

    origin: Array
    inv: Array
    mean_strength: float
    dof: float
    scatter: Array

    linear: ClassVar[bool] = True

    @property
    def scaling(self) -> Scaling:
        return Scaling(self.origin, self.inv)

    def _posterior(self, N: Array, S: Array) -> NormalWishart:
        D = self.n_columns
        strength = self.mean_strength + N
        means = S[:, :D] / strength[:, None]
        spread = pack(means[:, :, None] * means[:, None, :])
        B = self.scatter + unpack(S[:, D:] - strength[:, None] * spread, D)
        return NormalWishart(strength, self.dof + N, means, B)

    def evidence(self, N: Array, S: Array) -> Array:
        ratio = self.mean_strength / (self.mean_strength + N)
        out: Array = super().evidence(N, S) + 0.5 * self.n_columns * np.log(ratio)
        return out

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """Squared distance under the prior's E[Σ].

        Not under the covariance of the rows: it is wide just where they fall apart.
        """
        shift = self.scaling.transform(X) - self.scaling.transform(seed[None])
        out: Array = np.sum((shift @ self._prior_whiten) ** 2, axis=1)
        return out
