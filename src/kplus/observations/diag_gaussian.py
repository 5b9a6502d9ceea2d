"""Gaussian columns, independent inside a component; the prior is normal-gamma."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from kplus.core.types import Array, IntArray
from kplus.observations.columns import (
    Setting,
    per_column,
    positive,
    refuse_categories,
    refuse_far,
    refuse_infinite,
    rescaled_sum,
)
from kplus.observations.defaults import DOF, MEAN_STRENGTH, VARIANCE_SHARE
from kplus.observations.family import Columns, Expected, FeatureFamily
from kplus.observations.units import Units, column_moments

__all__ = ["DiagGaussian", "DiagGaussianFamily"]

_LOG_2PI = float(np.log(2.0 * np.pi))


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
        """Settle the prior; see `kplus.observations.family.Likelihood`."""
        refuse_categories(columns, "diag_gaussian")
        refuse_infinite(sample, columns.names)
        origin, variances = column_moments(sample, weights)
        units = Units.on(origin, variances)
        D = len(origin)
        if self.expected_variance is None:
            variances = variances * positive("variance_share", self.variance_share)
        else:
            variances = per_column("expected_variance", self.expected_variance, D)
        mean = np.zeros(D)
        if self.mean is not None:
            given = per_column("mean", self.mean, D, sign=True)
            mean = units.view(given[None])[0]
        dof = positive("dof", self.dof, above=2.0)
        family = DiagGaussianFamily(
            names=columns.names,
            origin=units.origin,
            inv=units.inv,
            mean=mean,
            mean_strength=positive("mean_strength", self.mean_strength),
            dof=dof,
            scatter=(dof - 2.0) * (variances * units.inv * units.inv),
        )
        family.check(sample)
        return family


class _Posterior(NamedTuple):
    strength: Array  # κ, all (K, D)
    mean: Array  # m
    dof: Array  # ν
    scatter: Array  # β: λ ~ Gamma(ν / 2, β / 2)


@dataclass(frozen=True, eq=False)
class DiagGaussianFamily(FeatureFamily):
    """See `DiagGaussian`; in units y = (x - origin) · inv.

    t(y) = [observed, y, y²], with zeros where a value is missing.
    """

    names: tuple[str, ...]
    origin: Array
    inv: Array
    mean: Array
    mean_strength: float
    dof: float
    scatter: Array

    @property
    def n_columns(self) -> int:
        return len(self.origin)

    @property
    def n_stats(self) -> int:
        return 3 * len(self.origin)

    @property
    def units(self) -> Units:
        return Units(self.origin, self.inv)

    def check(self, X: Array) -> None:
        refuse_far(X, self.units, self.names)

    def log_base(self, X: Array) -> Array:
        out: Array = ~np.isnan(X) @ (self.units.log_inv - 0.5 * _LOG_2PI)
        return out

    def features(self, X: Array) -> Array:
        D = self.n_columns
        Y = self.units.view(X)
        seen = ~np.isnan(Y)
        F = np.empty((len(X), 3 * D))
        F[:, :D] = seen
        F[:, D : 2 * D] = np.where(seen, Y, 0.0)
        np.square(F[:, D : 2 * D], out=F[:, 2 * D :])
        return F

    def _posterior(self, S: Array) -> _Posterior:
        n, first, second = np.split(S, 3, axis=1)
        n = np.maximum(n, 0.0)
        prior, m0 = self.mean_strength, self.mean
        strength = prior + n
        # Σ y² + κ0 m0² - κ m², arranged so that a far prior mean does not cancel.
        scatter = second - first**2 / strength
        scatter += prior * m0 * (n * m0 - 2.0 * first) / strength
        return _Posterior(
            strength,
            (prior * m0 + first) / strength,
            self.dof + n,
            self.scatter + np.maximum(scatter, 0.0),
        )

    def evidence(self, N: Array, S: Array) -> Array:
        q = self._posterior(S)
        out: Array = (
            0.5 * np.log(self.mean_strength / q.strength)
            + gammaln(0.5 * q.dof)
            - gammaln(0.5 * self.dof)
            + 0.5 * self.dof * np.log(0.5 * self.scatter)
            - 0.5 * q.dof * np.log(0.5 * q.scatter)
        ).sum(axis=1)
        return out

    def expect(self, N: Array, S: Array) -> Expected:
        q = self._posterior(S)
        precision = q.dof / q.scatter
        log_precision = digamma(0.5 * q.dof) - np.log(0.5 * q.scatter)
        level = 0.5 * (log_precision - precision * q.mean**2 - 1.0 / q.strength)
        eta = np.concatenate([level, precision * q.mean, -0.5 * precision], axis=1)
        return Expected(eta, np.zeros(len(S)))

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """Squared distance in units of the component's expected variances."""
        q = self._posterior(S)
        shift = self.units.view(X) - self.units.view(seed[None])
        return rescaled_sum(shift**2 * ((q.dof - 2.0) / q.scatter))

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        """A Student t for each column."""
        q = self._posterior(S)
        Y = self.units.view(X)
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
        return self.units.back(q.mean[k] + width[k] * rng.standard_t(q.dof[k]))

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        q = self._posterior(S)
        root = np.sqrt(q.scatter / (q.dof - 2.0)) / self.inv
        return {
            "means_": self.units.back(q.mean),
            "covariances_": root**2,
            "precisions_cholesky_": 1.0 / root,
        }
