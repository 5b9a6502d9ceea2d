"""Gaussian rows around 0 with a full covariance; the prior is Wishart (Sup. Mat. 1)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kplus.core.types import Array
from kplus.dp_mixture.families.columns import (
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
    prior_scatter,
    unpack,
)

__all__ = ["ZeroMeanGaussian", "ZeroMeanGaussianFamily"]


@dataclass(frozen=True, eq=False)
class ZeroMeanGaussian:
    """Gaussian rows with mean 0 and a full covariance matrix for each component.

    For rows whose mean says nothing, such as image patches without their average. The
    prior is Λ ~ Wishart with `dof` degrees of freedom, scaled so that E[Σ] =
    `covariance`. Nothing is subtracted from the rows.

    Parameters
    ----------
    covariance : float, array of shape (n_features, n_features) or None
        E[Σ] before rows are seen; a number stands for that multiple of the identity.
        By default diagonal, with the share `variance_share` of each column's mean
        square.
    variance_share : float, default=0.5
        See `covariance`.
    dof : float or None
        Degrees of freedom; by default ``n_features + 2``.

    Examples
    --------
    >>> from kplus import DPMixture
    >>> from kplus.observations import ZeroMeanGaussian
    >>> model = DPMixture(ZeroMeanGaussian(covariance=0.1))
    """

    covariance: Any = None
    variance_share: float = VARIANCE_SHARE
    dof: float | None = None

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "ZeroMeanGaussianFamily":
        refuse_categories(columns, "zero_mean_gaussian")
        check_finite(sample)
        means, variances = column_moments(sample, weights)
        squares = variances + means**2
        D = len(means)
        scaling = Scaling.from_moments(np.zeros(D), squares)
        dof = float(D + 2 if self.dof is None else self.dof)
        scatter = prior_scatter(
            self.covariance, self.variance_share * squares, dof, scaling.inv
        )
        return ZeroMeanGaussianFamily(scaling.inv, dof, scatter)


@dataclass(frozen=True, eq=False)
class ZeroMeanGaussianFamily(NormalWishartFamily):
    """See `ZeroMeanGaussian`; in units y = x · inv, t(y) = triangle of y yᵀ."""

    inv: Array
    dof: float
    scatter: Array

    linear: ClassVar[bool] = False

    @property
    def scaling(self) -> Scaling:
        return Scaling(np.zeros(self.n_columns), self.inv)

    def _posterior(self, N: Array, S: Array) -> NormalWishart:
        """ν and B as in Eq. 18 of the supplement."""
        sure, means = np.full(len(N), np.inf), np.zeros((len(N), self.n_columns))
        B = self.scatter + unpack(S, self.n_columns)
        return NormalWishart(sure, self.dof + N, means, B)

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """1 - cos² of the angle to the seed under the prior's E[Σ]; sizes count not."""
        Y = self.scaling.transform(X) @ self._prior_whiten
        y = (self.scaling.transform(seed[None]) @ self._prior_whiten)[0]
        squares = np.sum(Y**2, axis=1) * np.sum(y**2)
        cosines = np.where(
            squares > 0.0, (Y @ y) ** 2 / np.maximum(squares, 1e-300), 1.0
        )
        out: Array = np.maximum(1.0 - cosines, 0.0)
        return out
