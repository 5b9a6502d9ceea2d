"""Gaussian rows with a mean and a full covariance; the prior is normal-Wishart."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kplus.core.types import Array
from kplus.dp_mixture.families.columns import (
    MEAN_STRENGTH,
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
    observed_share,
)
from kplus.dp_mixture.families.quadratic import NormalWishart, unpack
from kplus.dp_mixture.families.wishart_learning import (
    RowSums,
    WishartSettings,
    learn_wishart,
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
        stands for that multiple of the identity. It should not be much larger than
        the components that you expect, or small ones do not raise the bound.
    variance_share : float or None
        Makes E[Σ] diagonal, with that share of each column's variance; 0.5 is where
        learning begins, and what is taken without it.
    mean : array of shape (n_features,) or None
        Prior mean; that of the data to begin with.
    mean_strength : float or None
        How many rows the prior mean counts for; 0.01 to begin with.
    dof : float or None
        Degrees of freedom; ``n_features + 2`` to begin with, the vaguest for which E[Σ]
        exists.
    learn : bool, default=True
        Learn what is not given from the data: by ascent of the same bound, after each
        pass. False: keep what learning would begin with.

    Notes
    -----
    The hyperprior of V = B0/ν0, where B0 is the inverse scale matrix of the Wishart, is
    a Wishart density about half of the columns' variances, worth D + 2 degrees of
    freedom. Those of ν0 and of the mean's strength fall with ν0⁻² and exp(-50 D κ0);
    that of the mean is normal about the data's. Where the covariance is learned, values
    count as intervals as wide as the least step δ between values of their column: each
    row adds δ²/12 to the scatter. So columns of few values, such as whole numbers, do
    not make the bound grow without limit.

    Missing values are hidden parts of their rows: given the observed values and the
    component, they are Gaussian under the expected precision, which is the best that
    mean-field inference has for them. The bound holds their entropy.

    Examples
    --------
    >>> from kplus import DPMixture
    >>> from kplus.observations import Gaussian
    >>> model = DPMixture(Gaussian(covariance=0.5))
    """

    covariance: Any = None
    variance_share: float | None = None
    mean: Any = None
    mean_strength: float | None = None
    dof: float | None = None
    learn: bool = True

    name: ClassVar[str] = "gaussian"

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "GaussianFamily":
        refuse_categories(columns, self.name)
        refuse_empty(sample, columns.names, self.name)
        check_finite(sample)
        means, variances = column_moments(sample, weights)
        D = len(means)
        origin = means if self.mean is None else np.asarray(self.mean, np.float64)
        scaling = Scaling.from_moments(origin, variances)
        prior = WishartPrior.of(self, variances, scaling.inv, sample)
        strength, learns = self.mean_strength, prior.learns
        if self.learn:
            learns += ("mean",) * (self.mean is None)
            learns += ("mean_strength",) * (strength is None)
        return GaussianFamily(
            origin,
            scaling.inv,
            MEAN_STRENGTH if strength is None else strength,
            prior.dof,
            prior.scatter,
            np.zeros(D),
            prior.resolution,
            learns,
            prior.guess,
        )


@dataclass(frozen=True, eq=False)
class GaussianFamily(NormalWishartFamily):
    """See `Gaussian`; works in units y = (x - origin) · inv.

    t(y) = [y, triangle of y yᵀ, entropy of what is missing].
    """

    origin: Array
    inv: Array
    mean_strength: float
    dof: float
    scatter: Array
    mean: Array | float = 0.0  # m0
    resolution: Array | float = 0.0
    learns: tuple[str, ...] = ()
    guess: Array | float = 1.0

    linear: ClassVar[bool] = True
    shapes: ClassVar[dict[str, str]] = {"origin": "d", "inv": "d", "scatter": "d d"}

    def consistent(self) -> bool:
        settings = self.mean, self.mean_strength, self.resolution, self.guess
        return of_columns(self.n_columns, *settings)

    @property
    def scaling(self) -> Scaling:
        return Scaling(self.origin, self.inv)

    def _posterior(self, N: Array, S: Array) -> NormalWishart:
        D, prior = self.n_columns, self.mean_strength
        strength = prior + self._heft(N, S)
        means = (prior * (self.mean * np.ones(D)) + S[:, :D]) / strength[:, None]
        return NormalWishart(strength, self.dof + N, means, self._scatter(N, S))

    @property
    def _mean_part(self) -> tuple[float, Array]:
        return self.mean_strength, self.mean * np.ones(self.n_columns)

    def evidence(self, N: Array, S: Array) -> Array:
        ratio = self.mean_strength / (self.mean_strength + self._heft(N, S))
        out: Array = super().evidence(N, S) + 0.5 * self.n_columns * np.log(ratio)
        return out

    @cached_property
    def log_hyperprior(self) -> float:
        out = super().log_hyperprior
        if "mean" in self.learns:
            out -= 0.5 * float(np.sum(np.square(self.mean) / self.guess))
        if "mean_strength" in self.learns:
            out -= 0.5 * self.n_columns * self.mean_strength / MEAN_STRENGTH
        return out

    def _learned(self, N: Array, S: Array) -> dict[str, Any] | None:
        D, W = self.n_columns, self._heft(N, S)
        means = S[:, :D] / W[:, None]
        scatter = unpack(S[:, D : self.n_free], D) - S[:, :D, None] * means[:, None, :]
        diagonal = np.arange(D)
        scatter[:, diagonal, diagonal] += W[:, None] * self.resolution
        settings = WishartSettings(self.learns, self.guess * np.ones(D), MEAN_STRENGTH)
        prior = self.mean * np.ones(D), self.mean_strength, self.dof, self.scatter
        return learn_wishart(RowSums(N, W, means, scatter), settings, *prior)

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """Squared distance under the prior's E[Σ].

        Not under the covariance of the rows: it is wide just where they fall apart.
        """
        shift = self.scaling.transform(X) - self.scaling.transform(seed[None])
        share = observed_share(shift)
        out: Array = np.sum((shift @ self._prior_whiten) ** 2, axis=1) / share
        return out
