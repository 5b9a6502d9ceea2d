"""Gaussian columns, independent inside a component; the prior is normal-gamma."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import (
    DOF,
    VARIANCE_SHARE,
    Scaling,
    Setting,
    per_column,
    positive,
)
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.normal_gamma import (
    NormalGammaFamily,
    mean_and_learning,
    moments_of_numbers,
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
        Prior mean; that of each column to begin with.
    mean_strength : float or None
        How many rows the prior mean counts for; 0.01 to begin with.
    dof : float or None
        How many rows the prior variance counts for; above 2, so that its expectation
        exists; 3 to begin with.
    expected_variance : float, array of shape (n_features,) or None
        Variance that a component has before it has seen rows.
    variance_share : float or None
        Makes that a share of each column's variance; 0.5 is where learning begins, and
        what is taken without it. A column that is constant in the data counts as having
        the square of a thousandth of its value, or 1 if the value is 0.
    learn : bool, default=True
        Learn what is not given from the data, for each column on its own: by ascent of
        the same bound, after each pass, as `Gaussian` does. False: keep what learning
        would begin with.

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
    mean_strength: float | None = None
    dof: float | None = None
    expected_variance: Setting = None
    variance_share: float | None = None
    learn: bool = True

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "DiagGaussianFamily":
        """Resolve the prior; see `kplus.dp_mixture.families.family.Likelihood`."""
        origin, variances = moments_of_numbers(
            sample, weights, columns, "diag_gaussian"
        )
        scaling, D = Scaling.from_moments(origin, variances), len(origin)
        share = VARIANCE_SHARE if self.variance_share is None else self.variance_share
        if self.expected_variance is None:
            variances = variances * positive("variance_share", share)
        else:
            variances = per_column("expected_variance", self.expected_variance, D)
        dof = positive("dof", DOF if self.dof is None else self.dof, above=2.0)
        guess = variances * scaling.inv * scaling.inv
        family = DiagGaussianFamily(
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
