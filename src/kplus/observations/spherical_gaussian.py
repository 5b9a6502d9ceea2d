"""Gaussian columns with one variance for all; the prior is normal-gamma."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
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
    varies,
)
from kplus.observations.defaults import DOF, MEAN_STRENGTH, VARIANCE_SHARE
from kplus.observations.family import Columns, Expected, FeatureFamily
from kplus.observations.units import Units, column_moments

__all__ = ["SphericalGaussian", "SphericalGaussianFamily"]

_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class SphericalGaussian:
    """Gaussian rows with a mean for each column and one variance for all.

    For columns in the same units. The prior of a component's precision is
    λ ~ Gamma(`dof` / 2, ·), scaled so that E[1/λ] = `expected_variance`, and
    μ | λ ~ Normal(`mean`, 1 / (`mean_strength` λ)). Missing values (NaN) are
    integrated out exactly.

    Parameters
    ----------
    mean : float, array of shape (n_features,) or None
        Prior mean; by default that of each column.
    mean_strength : float, default=0.01
        How many rows the prior mean counts for.
    dof : float or None
        How many values the prior variance counts for; above 2, so that its
        expectation exists. By default ``n_features + 2``.
    expected_variance : float or None
        Variance that a component has before it has seen rows. By default the share
        `variance_share` of the columns' mean variance. Where all columns are
        constant, each counts as having the square of a thousandth of its value, or 1
        if the value is 0.
    variance_share : float, default=0.5
        See `expected_variance`.

    Notes
    -----
    The fitted attributes are ``means_`` of shape (n_components, n_features), and
    ``covariances_`` (expected variances) and ``precisions_cholesky_`` of shape
    (n_components,).

    Examples
    --------
    >>> from kplus.observations import SphericalGaussian
    >>> SphericalGaussian(expected_variance=0.5).expected_variance
    0.5
    """

    mean: Setting = None
    mean_strength: float = MEAN_STRENGTH
    dof: float | None = None
    expected_variance: float | None = None
    variance_share: float = VARIANCE_SHARE

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "SphericalGaussianFamily":
        """Settle the prior; see `kplus.observations.family.Likelihood`."""
        refuse_categories(columns, "spherical_gaussian")
        refuse_infinite(sample, columns.names)
        origin, variances = column_moments(sample, weights)
        variance = _mean_variance(variances, varies(sample, weights))
        units = Units.on(origin, variance)
        D = len(origin)
        if self.expected_variance is None:
            variance *= positive("variance_share", self.variance_share)
        else:
            variance[:] = positive("expected_variance", self.expected_variance)
        mean = np.zeros(D)
        if self.mean is not None:
            given = per_column("mean", self.mean, D, sign=True)
            mean = units.view(given[None])[0]
        dof = positive("dof", D - 1 + DOF if self.dof is None else self.dof, above=2.0)
        family = SphericalGaussianFamily(
            names=columns.names,
            origin=units.origin,
            inv=units.inv,
            mean=mean,
            mean_strength=positive("mean_strength", self.mean_strength),
            dof=dof,
            scatter=float((dof - 2.0) * (variance * units.inv * units.inv)[0]),
        )
        family.check(sample)
        return family


def _mean_variance(variances: Array, varying: NDArray[np.bool_]) -> Array:
    """The mean over columns, for each; a constant's stand-in counts only among its own.

    Divided by the largest first, since the sum could be no number.
    """
    true = np.where(varying, variances, 0.0) if varying.any() else variances
    return np.full(len(variances), np.mean(true / true.max()) * true.max())


class _Posterior(NamedTuple):
    strength: Array  # κ (K, D)
    mean: Array  # m (K, D)
    dof: Array  # ν (K,)
    scatter: Array  # β (K,): λ ~ Gamma(ν / 2, β / 2)


@dataclass(frozen=True, eq=False)
class SphericalGaussianFamily(FeatureFamily):
    """See `SphericalGaussian`; in units y = (x - origin) · inv, one `inv` for all.

    t(y) = [observed, y, Σ y²], with zeros where a value is missing.
    """

    names: tuple[str, ...]
    origin: Array
    inv: Array
    mean: Array
    mean_strength: float
    dof: float
    scatter: float

    @property
    def n_columns(self) -> int:
        return len(self.origin)

    @property
    def n_stats(self) -> int:
        return 2 * len(self.origin) + 1

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
        F = np.empty((len(X), 2 * D + 1))
        F[:, :D] = seen
        F[:, D:-1] = np.where(seen, Y, 0.0)
        np.einsum("nd,nd->n", F[:, D:-1], F[:, D:-1], out=F[:, -1])
        return F

    def _posterior(self, S: Array) -> _Posterior:
        D = self.n_columns
        n, first, second = np.maximum(S[:, :D], 0.0), S[:, D:-1], S[:, -1]
        prior, m0 = self.mean_strength, self.mean
        strength = prior + n
        # Σ y² + κ0 m0² - κ m², arranged so that a far prior mean does not cancel.
        shift = prior * m0 * (n * m0 - 2.0 * first) - first**2
        scatter = second + (shift / strength).sum(axis=1)
        return _Posterior(
            strength,
            (prior * m0 + first) / strength,
            self.dof + n.sum(axis=1),
            self.scatter + np.maximum(scatter, 0.0),
        )

    def evidence(self, N: Array, S: Array) -> Array:
        q = self._posterior(S)
        out: Array = (
            0.5 * np.log(self.mean_strength / q.strength).sum(axis=1)
            + gammaln(0.5 * q.dof)
            - gammaln(0.5 * self.dof)
            + 0.5 * self.dof * np.log(0.5 * self.scatter)
            - 0.5 * q.dof * np.log(0.5 * q.scatter)
        )
        return out

    def expect(self, N: Array, S: Array) -> Expected:
        q = self._posterior(S)
        precision = (q.dof / q.scatter)[:, None]
        log_precision = (digamma(0.5 * q.dof) - np.log(0.5 * q.scatter))[:, None]
        level = 0.5 * (log_precision - precision * q.mean**2 - 1.0 / q.strength)
        eta = np.concatenate([level, precision * q.mean, -0.5 * precision], axis=1)
        return Expected(eta, np.zeros(len(S)))

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """Squared distance in units of the component's expected variance."""
        q = self._posterior(S)
        shift = self.units.view(X) - self.units.view(seed[None])
        return rescaled_sum(shift**2 * ((q.dof - 2.0) / q.scatter))

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        """A multivariate Student t of the columns that are not missing."""
        q = self._posterior(S)
        Y = self.units.view(X)
        widen = 1.0 + 1.0 / q.strength
        squares = np.zeros((len(X), len(S)))
        for d in range(self.n_columns):  # one at a time, to save memory
            z = (Y[:, d, None] - q.mean[:, d]) ** 2 / widen[:, d]
            squares += np.where(np.isnan(z), 0.0, z)
        seen = ~np.isnan(X)
        free = seen.sum(axis=1)[:, None]
        out: Array = gammaln(0.5 * (q.dof + free)) - gammaln(0.5 * q.dof)
        out -= 0.5 * free * np.log(0.5 * q.scatter)
        out -= 0.5 * (q.dof + free) * np.log1p(squares / q.scatter)
        out += self.log_base(X)[:, None] - 0.5 * (seen @ np.log(widen).T)
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        q = self._posterior(S)
        k = np.repeat(np.arange(len(S)), counts)
        variance = q.scatter[k] / rng.chisquare(q.dof[k])
        width = np.sqrt(variance[:, None] * (1.0 + 1.0 / q.strength[k]))
        return self.units.back(q.mean[k] + width * rng.standard_normal(width.shape))

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        q = self._posterior(S)
        root = np.sqrt(q.scatter / (q.dof - 2.0)) / self.inv[0]
        return {
            "means_": self.units.back(q.mean),
            "covariances_": root**2,
            "precisions_cholesky_": 1.0 / root,
        }
