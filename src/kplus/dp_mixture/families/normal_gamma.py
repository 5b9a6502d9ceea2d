"""What the two Gaussian families with independent columns share.

Their priors are normal-gamma: of each column, or with one precision for all columns.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import (
    Setting,
    Units,
    column_moments,
    contiguous,
    per_column,
    refuse_categories,
    refuse_far,
    refuse_infinite,
    rescaled_sum,
)
from kplus.dp_mixture.families.family import (
    ByComponent,
    Columns,
    Expected,
    FeatureFamily,
)
from kplus.dp_mixture.kernels_normal_gamma import (
    Levels,
    add_columns,
    score_column_candidates,
    score_columns,
)

__all__ = ["NormalGamma", "NormalGammaFamily", "moments_of_numbers", "prior_mean"]

_LOG_2PI = float(np.log(2.0 * np.pi))


def moments_of_numbers(
    sample: Array, weights: Array | None, columns: Columns, family: str
) -> tuple[Array, Array]:
    """Means and variances of columns that are checked to be finite numbers."""
    refuse_categories(columns, family)
    refuse_infinite(sample, columns.names)
    return column_moments(sample, weights)


def prior_mean(mean: Setting, units: Units) -> Array:
    """The user's prior mean in the units of the family; by default the origin."""
    D = len(units.origin)
    if mean is None:
        return np.zeros(D)
    row: Array = units.view(per_column("mean", mean, D, sign=True)[None])[0]
    return row


class NormalGamma(NamedTuple):
    """A posterior; C is the number of precisions, that of columns or 1."""

    strength: Array  # κ (K, D)
    mean: Array  # m (K, D)
    dof: Array  # ν (K, C)
    scatter: Array  # β (K, C): λ ~ Gamma(ν / 2, β / 2)


@dataclass(frozen=True, eq=False)
class NormalGammaFamily(FeatureFamily):
    """In units y = (x - origin) · inv; t(y) = [observed, y, y² pooled].

    Zeros stand where a value is missing. A subclass says how columns are pooled that
    share a precision, and has the predictive.
    """

    names: tuple[str, ...]
    origin: Array
    inv: Array
    mean: Array
    mean_strength: float
    dof: float
    scatter: Array | float

    @property
    def n_stats(self) -> int:
        raise NotImplementedError

    def _pooled(self, values: Array) -> Array:
        """Sums over the columns that share a precision, (n, C)."""
        raise NotImplementedError

    def _pool_squares(self, Y: Array, out: Array) -> None:
        """``out[:] = _pooled(Y**2)``, quickly."""
        raise NotImplementedError

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
        F = np.empty((len(X), self.n_stats))
        F[:, :D] = seen
        F[:, D : 2 * D] = np.where(seen, Y, 0.0)
        self._pool_squares(F[:, D : 2 * D], F[:, 2 * D :])
        return F

    def scores(
        self, expected: Expected, X: Array, candidates: IntArray | None = None
    ) -> Array:
        rows, D = (contiguous(X), self.origin, self.inv), self.n_columns
        observed, values = np.split(expected.eta, [D], axis=1)
        levels = Levels(
            np.ascontiguousarray(observed),
            observed.sum(axis=1),
            np.ascontiguousarray(values),
        )
        if candidates is None:
            out = np.empty((len(X), len(expected.bias)))
            score_columns(*rows, levels, out)
        else:
            out = np.empty(candidates.shape)
            score_column_candidates(*rows, candidates, levels, out)
        return out

    def sums(self, X: Array, members: ByComponent) -> Array:
        out = np.zeros((len(members.starts) - 1, self.n_stats))
        add_columns(contiguous(X), self.origin, self.inv, *members, out)
        return out

    def _posterior(self, S: Array) -> NormalGamma:
        n, first, second = np.split(S, [self.n_columns, 2 * self.n_columns], axis=1)
        n = np.maximum(n, 0.0)
        prior, m0 = self.mean_strength, self.mean
        strength = prior + n
        # Σ y² + κ0 m0² - κ m², arranged so that a far prior mean does not cancel.
        shift = prior * m0 * (n * m0 - 2.0 * first) - first**2
        scatter = second + self._pooled(shift / strength)
        return NormalGamma(
            strength,
            (prior * m0 + first) / strength,
            self.dof + self._pooled(n),
            self.scatter + np.maximum(scatter, 0.0),
        )

    def evidence(self, N: Array, S: Array) -> Array:
        q = self._posterior(S)
        out: Array = (
            self._pooled(0.5 * np.log(self.mean_strength / q.strength))
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

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        q = self._posterior(S)
        root = np.sqrt(q.scatter / (q.dof - 2.0)) / self.inv[: q.scatter.shape[1]]
        return {
            "means_": self.units.back(q.mean),
            "covariances_": root**2,
            "precisions_cholesky_": 1.0 / root,
        }
