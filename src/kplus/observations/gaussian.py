"""Gaussian rows with a mean and a full covariance; the prior is normal-Wishart."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.observations.columns import refuse_categories
from kplus.observations.defaults import MEAN_STRENGTH, VARIANCE_SHARE
from kplus.observations.family import Columns
from kplus.observations.units import Units, column_moments
from kplus.observations.wishart import (
    LOG_2PI,
    Quadratic,
    QuadraticFamily,
    check_finite,
    draw_wishart_normals,
    expected_covariances,
    factor,
    log_gamma_ratio,
    mean_log_det,
    pack,
    precision_factors,
    prior_scatter,
    student_t,
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
        the components that you expect, or small ones are not worth their price.
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
        units = Units.on(origin, variances)
        dof = float(D + 2 if self.dof is None else self.dof)
        scatter = prior_scatter(
            self.covariance, self.variance_share * variances, dof, units
        )
        return GaussianFamily(units.origin, units.inv, self.mean_strength, dof, scatter)


@dataclass(frozen=True, eq=False)
class GaussianFamily(QuadraticFamily):
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
    def units(self) -> Units:
        return Units(self.origin, self.inv)

    def _posterior(self, N: Array, S: Array) -> tuple[Array, Array, Array, Array]:
        """κ, ν, means and B of each component."""
        D = self.n_columns
        strength = self.mean_strength + N
        means = S[:, :D] / strength[:, None]
        spread = pack(means[:, :, None] * means[:, None, :])
        B = self.scatter + unpack(S[:, D:] - strength[:, None] * spread, D)
        return strength, self.dof + N, means, B

    def evidence(self, N: Array, S: Array) -> Array:
        D = self.n_columns
        strength, dof, _, B = self._posterior(N, S)
        log_det = factor(B)[1]
        out: Array = (
            -0.5 * D * np.log(np.pi) * N
            + log_gamma_ratio(dof, self.dof, D)
            + 0.5 * (self.dof * self._log_det0 - dof * log_det)
            + 0.5 * D * np.log(self.mean_strength / strength)
        )
        return out

    def expect(self, N: Array, S: Array) -> Quadratic:
        D = self.n_columns
        strength, dof, means, B = self._posterior(N, S)
        L, log_det = factor(B)
        const = 0.5 * (mean_log_det(dof, log_det, D) - D * LOG_2PI - D / strength)
        whiten = precision_factors(L, np.sqrt(dof))
        return Quadratic(const, means, whiten, linear=True)

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """Squared distance under the prior's E[Σ].

        Not under the covariance of the rows: it is wide just where they fall apart.
        """
        shift = self.units.view(X) - self.units.view(seed[None])
        out: Array = np.sum((shift @ self._prior_whiten) ** 2, axis=1)
        return out

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        D = self.n_columns
        strength, dof, means, B = self._posterior(N, S)
        free = dof - D + 1.0
        shape = B * ((strength + 1.0) / (strength * free))[:, None, None]
        return (
            student_t(self.units.view(X), means, shape, free)
            + self.log_base(X)[:, None]
        )

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        strength, dof, means, B = self._posterior(N, S)
        Y = draw_wishart_normals(means, strength, dof, B, counts, rng)
        return self.units.back(Y)

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        _, dof, means, B = self._posterior(N, S)
        covariances = expected_covariances(B, dof, self.inv)
        return {
            "means_": self.units.back(means),
            "covariances_": covariances,
            "precisions_cholesky_": precision_factors(factor(covariances)[0]),
        }
