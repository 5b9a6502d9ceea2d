"""What the two Gaussian families with independent columns share.

Their priors are normal-gamma: of each column, or with one precision for all columns.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import digamma, gammaln

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import (
    DOF,
    MEAN_STRENGTH,
    Scaling,
    Setting,
    column_moments,
    contiguous,
    per_column,
    positive,
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
    of_columns,
)
from kplus.dp_mixture.families.learning import (
    EMPTY,
    higher,
    resolutions,
    search_scale,
)
from kplus.dp_mixture.kernels_normal_gamma import (
    Levels,
    add_columns,
    score_column_candidates,
    score_columns,
)

__all__ = [
    "NormalGamma",
    "NormalGammaFamily",
    "mean_and_learning",
    "moments_of_numbers",
    "prior_mean",
]

_STEPS = 2  # of expectation maximisation
_FLOOR = 1e-8  # share of the guess below which no variance of a prior is learned
_LOG_2PI = float(np.log(2.0 * np.pi))


def moments_of_numbers(
    sample: Array, weights: Array | None, columns: Columns, family: str
) -> tuple[Array, Array]:
    """Means and variances of columns that are checked to be finite numbers."""
    refuse_categories(columns, family)
    refuse_infinite(sample, columns.names)
    return column_moments(sample, weights)


def prior_mean(mean: Setting, scaling: Scaling) -> Array:
    """The user's prior mean in the units of the family; by default the origin."""
    D = len(scaling.origin)
    if mean is None:
        return np.zeros(D)
    row: Array = scaling.transform(per_column("mean", mean, D, sign=True)[None])[0]
    return row


def mean_and_learning(chosen: Any, scaling: Scaling, sample: Array) -> dict[str, Any]:
    """From the user's choice: the prior of means, what is learned, and rounding."""
    given = chosen.expected_variance is not None or chosen.variance_share is not None
    strength = chosen.mean_strength
    open_settings = {
        "variance": not given,
        "dof": chosen.dof is None,
        "mean": chosen.mean is None,
        "mean_strength": strength is None,
    }
    learns = tuple(name for name, is_open in open_settings.items() if is_open)
    rounding = resolutions(sample) * scaling.inv * scaling.inv
    return {
        "mean": prior_mean(chosen.mean, scaling),
        "mean_strength": positive(
            "mean_strength", MEAN_STRENGTH if strength is None else strength
        ),
        "learns": learns if chosen.learn else (),
        "resolution": 0.0 if given or not chosen.learn else rounding,
    }


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

    shapes: ClassVar[dict[str, str]] = {"origin": "d", "inv": "d", "mean": "d"}

    names: tuple[str, ...]
    origin: Array
    inv: Array
    mean: Array
    mean_strength: Array | float
    dof: Array | float
    scatter: Array | float
    resolution: Array | float = 0.0  # what rounding adds to the square of each value
    learns: tuple[str, ...] = ()  # which of the prior's parameters are learned
    guess: Array | float = 1.0  # what the hyperprior takes for the variances

    def consistent(self) -> bool:
        prior = self.mean_strength, self.dof, self.scatter, self.resolution, self.guess
        fine = len(self.origin) == self.n_columns
        return fine and of_columns(self.n_columns, *prior)

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
    def scaling(self) -> Scaling:
        return Scaling(self.origin, self.inv)

    def check(self, X: Array) -> None:
        refuse_far(X, self.scaling, self.names)

    def log_base(self, X: Array) -> Array:
        out: Array = ~np.isnan(X) @ (self.scaling.log_inv - 0.5 * _LOG_2PI)
        return out

    def features(self, X: Array) -> Array:
        D = self.n_columns
        Y = self.scaling.transform(X)
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

    def sums(self, X: Array, members: ByComponent, expected: Any = None) -> Array:
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
        scatter = second + self._pooled(shift / strength + n * self.resolution)
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
        square = q.mean**2 + self.resolution
        level = 0.5 * (log_precision - precision * square - 1.0 / q.strength)
        eta = np.concatenate([level, precision * q.mean, -0.5 * precision], axis=1)
        return Expected(eta, np.zeros(len(S)))

    # ------------------------------------------------------------------ prior

    @cached_property
    def log_hyperprior(self) -> float:
        """log density of what is learned, up to a constant; see `learned`."""
        out, D = 0.0, self.n_columns
        if "variance" in self.learns:
            ratio = self.scatter / (self.dof * self.guess)
            out += 0.5 * self._weight * float(np.sum(np.log(ratio) - ratio))
        if "dof" in self.learns:
            out -= 2.0 * float(np.sum(np.log(self.dof)))
        if "mean" in self.learns:
            out -= 0.5 * float(np.sum(np.square(self.mean) / self.guess))
        if "mean_strength" in self.learns:
            strength = self.mean_strength * np.ones(D)
            out -= 0.5 * float(strength.sum()) / MEAN_STRENGTH
        return out

    def learned(self, N: Array, S: Array) -> Self:
        """The same with a prior that these components favour more.

        Each column has its own mean, strength, variance v = β0/ν0 and ν0, unless they
        are given. Columns that share a precision share all but the mean: else
        components of one row each would make up for variances that the columns cannot
        have. The hyperpriors are those of `Gaussian`, for columns that share a
        precision.
        """
        some = N > EMPTY
        if not self.learns or not some.any():
            return self
        family, S = self, S[some]
        for _ in range(_STEPS):
            family = family._step(S)
        return higher(family._with_best_dof(S), self, N[some], S)

    def _step(self, S: Array) -> Self:
        """Expectation maximisation: the prior that suits q(φ) best.

        Components without a value in a column say nothing of its prior.
        """
        q, D = self._posterior(S), self.n_columns
        seen = S[:, :D] > EMPTY
        precision = q.dof / q.scatter  # (K, C)
        changes: dict[str, Any] = {}
        mean, strength = self.mean, self.mean_strength * np.ones(D)
        if "mean" in self.learns:
            pull = np.where(seen, strength * precision, 0.0)
            weight = pull.sum(axis=0) + 1.0 / self.guess
            changes["mean"] = mean = (pull * q.mean).sum(axis=0) / weight
        if "mean_strength" in self.learns:
            far = precision * (q.mean - mean) ** 2 + 1.0 / q.strength
            far = np.where(seen, far, 0.0).sum(axis=0)
            far = far + 1.0 / MEAN_STRENGTH
            parts = np.stack([seen.sum(axis=0) + 1e-9, far])
            count, far = self._pooled(parts)
            changes["mean_strength"] = count / far
        if "variance" in self.learns:
            with_rows = self._pooled(seen.astype(np.float64)) > 0.0
            total = np.where(with_rows, precision, 0.0).sum(axis=0)
            K = with_rows.sum(axis=0)
            best = K * self.dof + self._weight
            best = best / (self.dof * total + self._weight / self.guess)
            changes["scatter"] = self.dof * np.maximum(best, _FLOOR * self.guess)
        return replace(self, **changes)

    def _with_best_dof(self, S: Array) -> Self:
        """The ν0 of the highest evidence, β0 in proportion to it."""
        if "dof" not in self.learns:
            return self
        less = 0.0 if "variance" in self.learns else 2.0  # E[1/λ] that is given stays
        q, least = self._posterior(S), self._least_dof
        own = (q.scatter - self.scatter) / self.scatter * (self.dof - less)
        n = q.dof - self.dof

        def value(dof: Array) -> Array:
            dof = dof[:, None]
            f = dof - less
            out = gammaln(0.5 * (dof + n)) - gammaln(0.5 * dof)
            out += 0.5 * dof * np.log(f) - 0.5 * (dof + n) * np.log(f + own)
            worth: Array = out.sum(axis=1) - 2.0 * np.log(dof[:, 0])
            return worth

        now = self.dof * np.ones(q.dof.shape[1])
        dof = search_scale(value, least, now)
        scatter = self.scatter * ((dof - less) / (now - less))
        return replace(self, dof=dof, scatter=scatter)

    @property
    def _least_dof(self) -> float:
        return DOF

    @property
    def _weight(self) -> float:
        """Degrees of freedom that the hyperprior of a variance is worth.

        More than the values of a row that share it, so that one row cannot bring it
        down to 0.
        """
        return 3.0

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """Squared distance in units of the component's expected variances."""
        q = self._posterior(S)
        shift = self.scaling.transform(X) - self.scaling.transform(seed[None])
        return rescaled_sum(shift**2 * ((q.dof - 2.0) / q.scatter))

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """The mean of a column does not depend on the others, nor on their variance.

        In the units of the family, so that a large offset costs no digits.
        """
        means = self.scaling.inverse_transform(shares @ self._posterior(S).mean)
        return np.where(np.isnan(X), means, X)

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        q = self._posterior(S)
        root = np.sqrt(q.scatter / (q.dof - 2.0)) / self.inv[: q.scatter.shape[1]]
        return {
            "means_": self.scaling.inverse_transform(q.mean),
            "covariances_": root**2,
            "precisions_cholesky_": 1.0 / root,
        }
