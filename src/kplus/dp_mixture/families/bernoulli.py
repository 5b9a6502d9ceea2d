"""Columns of 0 and 1, independent inside a component; the prior is beta."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import betaln, digamma

from kplus.core.errors import DataError
from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows
from kplus.dp_mixture.families.columns import (
    CATEGORY_STRENGTH,
    Setting,
    label,
    observed_sums,
    refuse_values,
    setting,
    sum_over_columns,
    values,
)
from kplus.dp_mixture.families.family import Columns, Expected, ObservedFamily
from kplus.dp_mixture.families.learning import (
    DIRICHLET_STEPS,
    dirichlet_hyperprior,
    dirichlet_step,
    higher,
)

__all__ = ["Bernoulli", "BernoulliFamily"]


@dataclass(frozen=True)
class Bernoulli:
    """Columns of 0 and 1 (or False and True), each with its own probability of a 1.

    The prior of a probability is Beta(`ones`, `zeros`). Missing values (NaN) are
    integrated out exactly.

    Parameters
    ----------
    ones, zeros : float, array of shape (n_features,) or None
        How many rows of each kind the prior counts for. By default two rows in all,
        shared out as the column's ones and zeros are (after one more of each, so that
        neither is 0). ``Bernoulli(ones=1, zeros=1)`` is the uniform prior, which stays.
    learn : bool, default=True
        Learn both from the data unless one is given, as `Categorical` does.

    Notes
    -----
    The fitted attribute is ``probabilities_``, the expected probabilities of a 1, of
    shape (n_components, n_features).

    Examples
    --------
    >>> from kplus.observations import Bernoulli
    >>> Bernoulli(ones=1, zeros=1)
    Bernoulli(ones=1, zeros=1, learn=True)
    """

    takes_sparse: ClassVar[bool] = True

    ones: Setting = None
    zeros: Setting = None
    learn: bool = True

    def resolve(
        self, sample: Rows, weights: Array | None, columns: Columns
    ) -> "BernoulliFamily":
        """Resolve the prior; see `kplus.dp_mixture.families.family.Likelihood`."""
        for name, levels in zip(columns.names, columns.levels, strict=True):
            if levels is not None and levels > 2:
                raise DataError(
                    f"{label(name)} holds {levels} categories, but "
                    "observations='bernoulli' takes 0 and 1; use 'categorical'."
                )
        _refuse_others(sample, columns.names)
        n, ones = observed_sums(sample, weights)
        share = (ones + 1.0) / (n + 2.0)
        a = setting("ones", self.ones, CATEGORY_STRENGTH * share)
        b = setting("zeros", self.zeros, CATEGORY_STRENGTH * (1.0 - share))
        given = self.ones is not None or self.zeros is not None
        guess = None if given or not self.learn else np.stack([a, b])
        return BernoulliFamily(columns.names, a, b, guess)


def _refuse_others(X: Rows, names: tuple[str, ...]) -> None:
    x = values(X)
    bad = ~((x == 0.0) | (x == 1.0) | np.isnan(x))
    why = (
        "observations='bernoulli' takes 0 and 1; use 'categorical' for categories, "
        "'poisson' for counts, 'diag_gaussian' for other numbers, or 'mixed'."
    )
    refuse_values(X, bad, names, why)


@dataclass(frozen=True, eq=False)
class BernoulliFamily(ObservedFamily):
    """See `Bernoulli`."""

    shapes: ClassVar[dict[str, str]] = {"ones": "d", "zeros": "d"}

    names: tuple[str, ...]
    ones: Array
    zeros: Array
    guess: Array | None = None  # modes of the hyperpriors of both; None: given

    def consistent(self) -> bool:
        both = (2, self.n_columns)
        fine = self.guess is None or np.shape(self.guess) == both
        return fine and np.shape(self.ones) == both[1:]

    def check(self, X: Rows) -> None:
        _refuse_others(X, self.names)

    def _posterior(self, S: Array) -> tuple[Array, Array]:
        n, ones = self._sums(S)
        return self.ones + ones, self.zeros + np.maximum(n - ones, 0.0)

    def column_evidence(self, S: Array) -> Array:
        out: Array = betaln(*self._posterior(S)) - betaln(self.ones, self.zeros)
        return out

    def expect(self, N: Array, S: Array) -> Expected:
        a, b = self._posterior(S)
        log_zero = digamma(b) - digamma(a + b)
        eta = np.concatenate([log_zero, digamma(a) - digamma(b)], axis=1)
        return Expected(eta, np.zeros(len(S)))

    @property
    def log_hyperprior(self) -> float:
        return dirichlet_hyperprior(np.stack([self.ones, self.zeros]), self.guess)

    def learned(self, N: Array, S: Array) -> Self:
        if self.guess is None:
            return self
        n, ones = self._sums(S)
        a, b = self.ones, self.zeros
        for _ in range(DIRICHLET_STEPS):
            a, b = (
                dirichlet_step(counts, n, prior, a + b, mode)
                for counts, prior, mode in zip(
                    (ones, np.maximum(n - ones, 0.0)), (a, b), self.guess, strict=True
                )
            )
        return higher(replace(self, ones=a, zeros=b), self, N, S)

    def dissimilarity(self, X: Rows, seed: Array, N: Array, S: Array) -> Array:
        """Mismatches, each over the variance of its column in the component."""
        (a,), (b,) = self._posterior(S)
        scale = (a + b) ** 2 / (a * b)
        return sum_over_columns(
            X, lambda x, columns: (x - seed[columns]) ** 2 * scale[columns]
        )

    def log_predictive(self, N: Array, S: Array, X: Rows) -> Array:
        a, b = self._posterior(S)
        logs = np.concatenate([np.log(b / (a + b)), np.log(a / b)], axis=1)
        out: Array = self.features(X) @ logs.T
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        a, b = self._posterior(S)
        p = np.repeat(a / (a + b), counts, axis=0)
        return (rng.random(p.shape) < p).astype(np.float64)

    def column_means(self, N: Array, S: Array) -> Array:
        a, b = self._posterior(S)
        out: Array = a / (a + b)
        return out

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        return {"probabilities_": self.column_means(N, S)}
