"""Columns of counts, independent inside a component; the prior is gamma."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import digamma, kl_div

from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows
from kplus.dp_mixture.families.columns import (
    POISSON_STRENGTH,
    Setting,
    count_means,
    log_factorials,
    per_column,
    refuse_no_counts,
    setting,
    sum_over_columns,
)
from kplus.dp_mixture.families.family import Columns, Expected, ObservedFamily
from kplus.dp_mixture.families.learning import learn_two, log_normal
from kplus.dp_mixture.kernels_counts import log_gains

__all__ = ["Poisson", "PoissonFamily"]


@dataclass(frozen=True)
class Poisson:
    """Columns of counts, from 0 on, each with its own rate.

    The prior of a rate is Gamma(`shape`, `rate`), with mean ``shape / rate``. Missing
    values (NaN) are integrated out exactly.

    Parameters
    ----------
    shape : float, array of shape (n_features,) or None
        How many counts the prior is worth.
    rate : float, array of shape (n_features,) or None
        How many rows the prior is worth. By default the prior mean is that of the
        column (after one more row with half a count, so that it is not 0), and the
        prior is worth one row or one count, whichever is less. Where only one of the
        two is given, the other makes the prior mean that of the column.
    learn : bool, default=True
        Learn both from the data unless one is given: by ascent of the same bound, after
        each pass. Their hyperpriors are log-normal about the default, worth one column
        of a component.

    Notes
    -----
    The fitted attribute is ``rates_``, the expected rates, of shape
    (n_components, n_features).

    Examples
    --------
    >>> from kplus.observations import Poisson
    >>> Poisson(shape=1, rate=0.1)
    Poisson(shape=1, rate=0.1, learn=True)
    """

    takes_sparse: ClassVar[bool] = True

    shape: Setting = None
    rate: Setting = None
    learn: bool = True

    def resolve(
        self, sample: Rows, weights: Array | None, columns: Columns
    ) -> "PoissonFamily":
        """Resolve the prior; see `kplus.dp_mixture.families.family.Likelihood`."""
        means = count_means(sample, weights, columns, "poisson")
        shape, rate, D = self.shape, self.rate, len(means)
        learns = self.learn and shape is None and rate is None
        if shape is None:
            most = POISSON_STRENGTH * np.minimum(1.0, means)
            shape = most if rate is None else per_column("rate", rate, D) * means
        shape = per_column("shape", shape, D)
        rate = setting("rate", rate, shape / means)
        guess = np.stack([shape, rate]) if learns else None
        return PoissonFamily(columns.names, shape, rate, guess)


@dataclass(frozen=True, eq=False)
class PoissonFamily(ObservedFamily):
    """See `Poisson`."""

    shapes: ClassVar[dict[str, str]] = {"shape": "d", "rate": "d"}

    names: tuple[str, ...]
    shape: Array
    rate: Array
    guess: Array | None = None  # medians of the hyperpriors of both; None: given

    def consistent(self) -> bool:
        both = (2, self.n_columns)
        fine = self.guess is None or np.shape(self.guess) == both
        return fine and np.shape(self.shape) == both[1:]

    def check(self, X: Rows) -> None:
        refuse_no_counts(X, self.names, "poisson")

    def log_base(self, X: Rows) -> Array:
        return -log_factorials(X)

    def _posterior(self, S: Array) -> tuple[Array, Array]:
        n, total = self._sums(S)
        return self.shape + total, self.rate + n

    def column_evidence(self, S: Array) -> Array:
        n, total = self._sums(S)
        out: Array = log_gains(self.shape, total)
        out -= self.shape * np.log1p(n / self.rate) + total * np.log(self.rate + n)
        return out

    def expect(self, N: Array, S: Array) -> Expected:
        shape, rate = self._posterior(S)
        eta = np.concatenate([-shape / rate, digamma(shape) - np.log(rate)], axis=1)
        return Expected(eta, np.zeros(len(S)))

    @property
    def log_hyperprior(self) -> float:
        return log_normal(np.stack([self.shape, self.rate]), self.guess)

    def learned(self, N: Array, S: Array) -> Self:
        return learn_two(self, N, S, "shape", "rate")

    def dissimilarity(self, X: Rows, seed: Array, N: Array, S: Array) -> Array:
        """Deviance of counts from the seed's, both with the prior's counts added."""

        def deviance(x: Array, columns: Any) -> Array:
            a = self.shape[columns]
            out: Array = 2.0 * kl_div(x + a, seed[columns] + a)
            return out

        return sum_over_columns(X, deviance)

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        shape, rate = self._posterior(S)
        k = np.repeat(np.arange(len(S)), counts)
        return rng.poisson(rng.gamma(shape[k]) / rate[k]).astype(np.float64)

    def column_means(self, N: Array, S: Array) -> Array:
        shape, rate = self._posterior(S)
        out: Array = shape / rate
        return out

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        return {"rates_": self.column_means(N, S)}
