"""Gaussian rows around 0 with a full covariance; the prior is Wishart (Sup. Mat. 1)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kplus.core.types import Array
from kplus.dp_mixture.families.columns import (
    Scaling,
    column_moments,
    refuse_categories,
    refuse_empty,
)
from kplus.dp_mixture.families.family import Columns, of_columns
from kplus.dp_mixture.families.normal_wishart import (
    NormalWishartFamily,
    WishartPrior,
    check_finite,
)
from kplus.dp_mixture.families.quadratic import NormalWishart, unpack
from kplus.dp_mixture.families.wishart_learning import (
    RowSums,
    WishartSettings,
    learn_wishart,
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
    variance_share : float or None
        Makes E[Σ] diagonal, with that share of each column's mean square; 0.5 is where
        learning begins, and what is taken without it.
    dof : float or None
        Degrees of freedom; ``n_features + 2`` to begin with.
    learn : bool, default=True
        Learn what is not given from the data, as `Gaussian` does.

    Examples
    --------
    >>> from kplus import DPMixture
    >>> from kplus.observations import ZeroMeanGaussian
    >>> model = DPMixture(ZeroMeanGaussian(covariance=0.1))
    """

    covariance: Any = None
    variance_share: float | None = None
    dof: float | None = None
    learn: bool = True

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "ZeroMeanGaussianFamily":
        refuse_categories(columns, "zero_mean_gaussian")
        refuse_empty(sample, columns.names, "zero_mean_gaussian")
        check_finite(sample)
        means, variances = column_moments(sample, weights)
        squares = variances + means**2
        D = len(means)
        scaling = Scaling.from_moments(np.zeros(D), squares)
        prior = WishartPrior.of(self, squares, scaling.inv, sample)
        return ZeroMeanGaussianFamily(
            scaling.inv,
            prior.dof,
            prior.scatter,
            prior.resolution,
            prior.learns,
            prior.guess,
        )


@dataclass(frozen=True, eq=False)
class ZeroMeanGaussianFamily(NormalWishartFamily):
    """See `ZeroMeanGaussian`; in units y = x · inv, t(y) = [triangle of y yᵀ, 0]."""

    inv: Array
    dof: float
    scatter: Array
    resolution: Array | float = 0.0
    learns: tuple[str, ...] = ()
    guess: Array | float = 1.0

    linear: ClassVar[bool] = False
    shapes: ClassVar[dict[str, str]] = {"inv": "d", "scatter": "d d"}

    def consistent(self) -> bool:
        return of_columns(self.n_columns, self.resolution, self.guess)

    @property
    def scaling(self) -> Scaling:
        return Scaling(np.zeros(self.n_columns), self.inv)

    def _posterior(self, N: Array, S: Array) -> NormalWishart:
        """ν and B as in Eq. 18 of the supplement."""
        sure, means = np.full(len(N), np.inf), np.zeros((len(N), self.n_columns))
        return NormalWishart(sure, self.dof + N, means, self._scatter(N, S))

    @property
    def _mean_part(self) -> tuple[float, Array]:
        return np.inf, np.zeros(self.n_columns)

    def _learned(self, N: Array, S: Array) -> dict[str, Any] | None:
        D = self.n_columns
        scatter = unpack(S[:, :-1], D)
        diagonal = np.arange(D)
        scatter[:, diagonal, diagonal] += N[:, None] * self.resolution
        settings = WishartSettings(self.learns, self.guess * np.ones(D), 1.0)
        prior = np.zeros(D), np.inf, self.dof, self.scatter
        sums = RowSums(N, N, np.zeros((len(N), D)), scatter)
        return learn_wishart(sums, settings, *prior)

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """1 - cos² of the angle to the seed under the prior's E[Σ]; sizes count not."""
        Y, y = self.scaling.transform(X), self.scaling.transform(seed[None])
        for rows in Y, y:
            rows[np.isnan(rows)] = 0.0  # which changes no angle between the others
        Y, y = Y @ self._prior_whiten, (y @ self._prior_whiten)[0]
        squares = np.sum(Y**2, axis=1) * np.sum(y**2)
        cosines = np.where(
            squares > 0.0, (Y @ y) ** 2 / np.maximum(squares, 1e-300), 1.0
        )
        out: Array = np.maximum(1.0 - cosines, 0.0)
        return out
