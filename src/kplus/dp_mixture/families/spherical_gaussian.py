"""Gaussian columns with one variance for all; the prior is normal-gamma."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import (
    DOF,
    VARIANCE_SHARE,
    Scaling,
    Setting,
    positive,
    varies,
)
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.normal_gamma import (
    NormalGammaFamily,
    mean_and_learning,
    moments_of_numbers,
)

__all__ = ["SphericalGaussian", "SphericalGaussianFamily"]


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
        Prior mean; that of each column to begin with.
    mean_strength : float or None
        How many rows the prior mean counts for; 0.01 to begin with.
    dof : float or None
        How many values the prior variance counts for; above 2, so that its
        expectation exists; ``n_features + 2`` to begin with.
    expected_variance : float or None
        Variance that a component has before it has seen rows.
    variance_share : float or None
        Makes that a share of the columns' mean variance; 0.5 is where learning begins,
        and what is taken without it. Where all columns are constant, each counts as
        having the square of a thousandth of its value, or 1 if the value is 0.
    learn : bool, default=True
        Learn what is not given from the data, as `DiagGaussian` does.

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
    mean_strength: float | None = None
    dof: float | None = None
    expected_variance: float | None = None
    variance_share: float | None = None
    learn: bool = True

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "SphericalGaussianFamily":
        """Resolve the prior; see `kplus.dp_mixture.families.family.Likelihood`."""
        origin, variances = moments_of_numbers(
            sample, weights, columns, "spherical_gaussian"
        )
        variance = _mean_variance(variances, varies(sample, weights))
        scaling, D = Scaling.from_moments(origin, variance), len(origin)
        share = VARIANCE_SHARE if self.variance_share is None else self.variance_share
        if self.expected_variance is None:
            variance *= positive("variance_share", share)
        else:
            variance[:] = positive("expected_variance", self.expected_variance)
        dof = positive("dof", D - 1 + DOF if self.dof is None else self.dof, above=2.0)
        guess = float((variance * scaling.inv * scaling.inv)[0])
        family = SphericalGaussianFamily(
            names=columns.names,
            origin=scaling.origin,
            inv=scaling.inv,
            dof=dof,
            scatter=(dof - 2.0) * guess,
            guess=guess,
            **mean_and_learning(self, scaling, sample),
        )
        family.check(sample)
        return family


def _mean_variance(variances: Array, varying: NDArray[np.bool_]) -> Array:
    """The mean over columns, for each; a constant's stand-in counts only among its own.

    Divided by the largest first, since the sum could be no number.
    """
    true = np.where(varying, variances, 0.0) if varying.any() else variances
    return np.full(len(variances), np.mean(true / true.max()) * true.max())


@dataclass(frozen=True, eq=False)
class SphericalGaussianFamily(NormalGammaFamily):
    """See `SphericalGaussian`; one precision and one `inv` for all columns."""

    @property
    def n_stats(self) -> int:
        return 2 * self.n_columns + 1

    @property
    def _weight(self) -> float:
        return self.n_columns + 2.0

    def _pooled(self, values: Array) -> Array:
        out: Array = values.sum(axis=1, keepdims=True)
        return out

    def _pool_squares(self, Y: Array, out: Array) -> None:
        np.einsum("nd,nd->n", Y, Y, out=out[:, 0])

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        """A multivariate Student t of the columns that are not missing."""
        q = self._posterior(S)
        dof, scatter = q.dof[:, 0], q.scatter[:, 0]
        Y = self.scaling.transform(X)
        widen = 1.0 + 1.0 / q.strength
        squares = np.zeros((len(X), len(S)))
        for d in range(self.n_columns):  # one at a time, to save memory
            z = (Y[:, d, None] - q.mean[:, d]) ** 2 / widen[:, d]
            squares += np.where(np.isnan(z), 0.0, z)
        seen = ~np.isnan(X)
        free = seen.sum(axis=1)[:, None]
        out: Array = gammaln(0.5 * (dof + free)) - gammaln(0.5 * dof)
        out -= 0.5 * free * np.log(0.5 * scatter)
        out -= 0.5 * (dof + free) * np.log1p(squares / scatter)
        out += self.log_base(X)[:, None] - 0.5 * (seen @ np.log(widen).T)
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        q = self._posterior(S)
        dof, scatter = q.dof[:, 0], q.scatter[:, 0]
        k = np.repeat(np.arange(len(S)), counts)
        variance = scatter[k] / rng.chisquare(dof[k])
        width = np.sqrt(variance[:, None] * (1.0 + 1.0 / q.strength[k]))
        Y = q.mean[k] + width * rng.standard_normal(width.shape)
        return self.scaling.inverse_transform(Y)

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        """What is observed tells more of the variance that all columns share."""
        q, k, seen = self._posterior(S), components, ~np.isnan(X)
        widen = 1.0 + 1.0 / q.strength[k]
        squares = (self.scaling.transform(X) - q.mean[k]) ** 2 / widen
        scatter = q.scatter[k, 0] + np.where(seen, squares, 0.0).sum(axis=1)
        variance = scatter / rng.chisquare(q.dof[k, 0] + seen.sum(axis=1))
        width = np.sqrt(variance[:, None] * widen)
        Y = q.mean[k] + width * rng.standard_normal(X.shape)
        return np.where(seen, X, self.scaling.inverse_transform(Y))

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        values = super().attributes(N, S)
        one = ("covariances_", "precisions_cholesky_")
        return {name: v[:, 0] if name in one else v for name, v in values.items()}
