"""Gaussian columns, independent inside a component; the prior is normal-gamma."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import (
    DOF,
    MEAN_STRENGTH,
    VARIANCE_SHARE,
    Scaling,
    Setting,
    per_column,
    positive,
)
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.normal_gamma import (
    NormalGammaFamily,
    moments_of_numbers,
    prior_mean,
)

__all__ = ["DiagGaussian", "DiagGaussianFamily"]


@dataclass(frozen=True)
class DiagGaussian:
    """Gaussian rows with a mean and a variance for each column.

    The prior of a column's precision is λ ~ Gamma(`dof` / 2, ·), scaled so that
    E[1/λ] = `expected_variance`, and μ | λ ~ Normal(`mean`, 1 / (`mean_strength` λ)).
    Missing values (NaN) are integrated out exactly.

    Parameters
    ----------
    mean : float, array of shape (n_features,) or None
        Prior mean; by default that of each column.
    mean_strength : float, default=0.01
        How many rows the prior mean counts for.
    dof : float, default=3
        How many rows the prior variance counts for; above 2, so that its expectation
        exists.
    expected_variance : float, array of shape (n_features,) or None
        Variance that a component has before it has seen rows. By default the share
        `variance_share` of each column's variance; a column that is constant in the
        data counts as having the square of a thousandth of its value, or 1 if the
        value is 0.
    variance_share : float, default=0.5
        See `expected_variance`.

    Notes
    -----
    The fitted attributes are ``means_``, ``covariances_`` (expected variances) and
    ``precisions_cholesky_``, all of shape (n_components, n_features).

    Examples
    --------
    >>> from kplus.observations import DiagGaussian
    >>> DiagGaussian(expected_variance=0.5).expected_variance
    0.5
    """

    mean: Setting = None
    mean_strength: float = MEAN_STRENGTH
    dof: float = DOF
    expected_variance: Setting = None
    variance_share: float = VARIANCE_SHARE

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "DiagGaussianFamily":
        """Resolve the prior; see `kplus.dp_mixture.families.family.Likelihood`."""
        origin, variances = moments_of_numbers(
            sample, weights, columns, "diag_gaussian"
        )
        scaling, D = Scaling.from_moments(origin, variances), len(origin)
        if self.expected_variance is None:
            variances = variances * positive("variance_share", self.variance_share)
        else:
            variances = per_column("expected_variance", self.expected_variance, D)
        dof = positive("dof", self.dof, above=2.0)
        family = DiagGaussianFamily(
            names=columns.names,
            origin=scaling.origin,
            inv=scaling.inv,
            mean=prior_mean(self.mean, scaling),
            mean_strength=positive("mean_strength", self.mean_strength),
            dof=dof,
            scatter=(dof - 2.0) * (variances * scaling.inv * scaling.inv),
        )
        family.check(sample)
        return family


@dataclass(frozen=True, eq=False)
class DiagGaussianFamily(NormalGammaFamily):
    """See `DiagGaussian`; each column has a precision of its own."""

    @property
    def n_stats(self) -> int:
        return 3 * self.n_columns

    def _pooled(self, values: Array) -> Array:
        return values

    def _pool_squares(self, Y: Array, out: Array) -> None:
        np.square(Y, out=out)

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        """A Student t for each column."""
        q = self._posterior(S)
        Y = self.scaling.transform(X)
        spread = q.scatter * (1.0 + 1.0 / q.strength)
        const = gammaln(0.5 * (q.dof + 1.0)) - gammaln(0.5 * q.dof)
        const += 0.5 * (np.log(2.0) - np.log(spread))
        out = np.repeat(self.log_base(X)[:, None], len(S), axis=1)
        for d in range(self.n_columns):  # one at a time, to save memory
            z = (Y[:, d, None] - q.mean[:, d]) ** 2 / spread[:, d]
            part = const[:, d] - 0.5 * (q.dof[:, d] + 1.0) * np.log1p(z)
            out += np.where(np.isnan(part), 0.0, part)
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        q = self._posterior(S)
        k = np.repeat(np.arange(len(S)), counts)
        width = np.sqrt(q.scatter * (1.0 + 1.0 / q.strength) / q.dof)
        Y = q.mean[k] + width[k] * rng.standard_t(q.dof[k])
        return self.scaling.inverse_transform(Y)
