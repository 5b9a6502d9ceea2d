"""Columns of categories, independent inside a component; the priors are Dirichlet."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import digamma, gammaln

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import (
    CATEGORY_STRENGTH,
    draw_codes,
    label,
    per_column,
    refuse_numbers,
    refuse_values,
    rescaled_sum,
    row_weights,
)
from kplus.dp_mixture.families.family import Columns, Expected, FeatureFamily
from kplus.dp_mixture.families.learning import (
    DIRICHLET_STEPS,
    dirichlet_hyperprior,
    dirichlet_step,
    higher,
)

__all__ = ["Categorical", "CategoricalFamily"]


@dataclass(frozen=True)
class Categorical:
    """Columns of categories, each with its own probabilities.

    The prior of a column's probabilities is Dirichlet(`pseudo_counts`). Missing values
    are integrated out exactly.

    Parameters
    ----------
    pseudo_counts : float, sequence of n_features floats or arrays, or None
        How many rows of each category the prior counts for: one number for all, or
        for each column a number or an array over its categories. By default two rows
        per column in all, in proportion to the counts of its categories (after one
        more row of each, so that none is 0). ``Categorical(pseudo_counts=1)`` is
        the uniform prior, which stays.
    learn : bool, default=True
        Learn pseudo-counts that are not given from the data: by ascent of the same
        bound, after each pass, with a Gamma hyperprior whose mode is the default.

    Notes
    -----
    The fitted attribute is ``probabilities_``, a tuple with an array of shape
    (n_components, n_categories) for each column.

    Examples
    --------
    >>> from kplus.observations import Categorical
    >>> Categorical(pseudo_counts=1)
    Categorical(pseudo_counts=1, learn=True)
    """

    pseudo_counts: float | Sequence[Any] | None = None
    learn: bool = True

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "CategoricalFamily":
        """Resolve the prior; see `kplus.dp_mixture.families.family.Likelihood`."""
        refuse_numbers(columns, "categorical")
        levels = np.array([level or 0 for level in columns.levels], dtype=np.int64)
        family = CategoricalFamily(columns.names, levels, np.ones(levels.sum()))
        family.check(sample)
        if self.pseudo_counts is not None:
            prior = _explicit(self.pseudo_counts, columns.names, levels)
        else:
            counts = row_weights(sample, weights) @ family.features(sample) + 1.0
            totals = np.add.reduceat(counts, family.starts)
            prior = CATEGORY_STRENGTH * counts / np.repeat(totals, levels)
        learns = self.learn and self.pseudo_counts is None
        return CategoricalFamily(
            columns.names, levels, prior, prior if learns else None
        )


def _explicit(settings: Any, names: tuple[str, ...], levels: IntArray) -> Array:
    """Pseudo-counts that the user has set, one for each category of each column."""
    if isinstance(settings, Real):
        return per_column("pseudo_counts", settings, int(levels.sum()))
    if len(settings) != len(levels):
        raise ValueError(
            f"pseudo_counts has {len(settings)} entries; give one number, or one entry "
            f"for each of the {len(levels)} columns."
        )
    parts = []
    for name, level, setting in zip(names, levels, settings, strict=True):
        if np.shape(setting) not in ((), (level,)):
            raise ValueError(
                f"{label(name)} has {level} categories; its entry of pseudo_counts "
                f"must be a number or an array of that length."
            )
        parts.append(per_column("pseudo_counts", setting, int(level)))
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class CategoricalFamily(FeatureFamily):
    """See `Categorical`; t(x) marks the category of each column, none if missing."""

    shapes: ClassVar[dict[str, str]] = {
        "levels": "d", "pseudo_counts": "m", "guess": "m",
    }  # fmt: skip

    names: tuple[str, ...]
    levels: IntArray
    pseudo_counts: Array  # of all columns, one after the other
    guess: Array | None = None  # mode of their hyperprior; None: they are given

    def consistent(self) -> bool:
        fine = len(self.names) == len(self.levels) and bool(np.all(self.levels > 0))
        return fine and int(self.levels.sum()) == len(self.pseudo_counts)

    @property
    def n_stats(self) -> int:
        return len(self.pseudo_counts)

    @property
    def starts(self) -> IntArray:
        """Where each column's categories begin in t(x)."""
        out: IntArray = np.cumsum(self.levels) - self.levels
        return out

    def check(self, X: Array) -> None:
        fine = (X >= 0) & (self.levels > X) & (np.floor(X) == X)
        why = (
            "an unseen category: the codes of its categories are the whole numbers "
            "that the fit saw. Mark it missing (NaN), or fit again with it."
        )
        refuse_values(X, ~(fine | np.isnan(X)), self.names, why)

    def features(self, X: Array) -> Array:
        seen = ~np.isnan(X)
        F = np.zeros((len(X), self.n_stats))
        marks = np.where(seen, X, 0.0).astype(np.int64) + self.starts
        np.put_along_axis(F, marks, seen.astype(np.float64), axis=1)
        return F

    def _by_column(self, values: Array) -> Array:
        """Sums over the categories of each column."""
        out: Array = np.add.reduceat(values, self.starts, axis=-1)
        return out

    def _posterior(self, S: Array) -> tuple[Array, Array]:
        """Pseudo-counts of the categories, and of the columns."""
        counts = np.maximum(S, 0.0)
        totals = self._by_column(self.pseudo_counts) + self._by_column(counts)
        return self.pseudo_counts + counts, totals

    def _probabilities(self, S: Array) -> Array:
        counts, totals = self._posterior(S)
        out: Array = counts / np.repeat(totals, self.levels, axis=1)
        return out

    def evidence(self, N: Array, S: Array) -> Array:
        counts, totals = self._posterior(S)
        totals0 = self._by_column(self.pseudo_counts)
        out: Array = (gammaln(counts) - gammaln(self.pseudo_counts)).sum(axis=1)
        out -= (gammaln(totals) - gammaln(totals0)).sum(axis=1)
        return out

    def expect(self, N: Array, S: Array) -> Expected:
        counts, totals = self._posterior(S)
        eta = digamma(counts) - np.repeat(digamma(totals), self.levels, axis=1)
        return Expected(eta, np.zeros(len(S)))

    @property
    def log_hyperprior(self) -> float:
        return dirichlet_hyperprior(self.pseudo_counts, self.guess)

    def learned(self, N: Array, S: Array) -> Self:
        if self.guess is None:
            return self
        counts, prior = np.maximum(S, 0.0), self.pseudo_counts
        totals = np.repeat(self._by_column(counts), self.levels, axis=1)
        for _ in range(DIRICHLET_STEPS):
            whole = np.repeat(self._by_column(prior), self.levels)
            prior = dirichlet_step(counts, totals, prior, whole, self.guess)
        return higher(replace(self, pseudo_counts=prior), self, N, S)

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """Mismatches, each over how often two rows of the component mismatch there.

        Doubled, which makes two categories the same as 0 and 1 in `BernoulliFamily`.
        """
        rate = 1.0 - self._by_column(self._probabilities(S) ** 2)[0]
        rate = np.maximum(rate, np.finfo(float).eps)  # a single category
        differs = np.where(np.isnan(X) | np.isnan(seed), np.nan, seed != X)
        return rescaled_sum(differs * (2.0 / rate))

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        out: Array = self.features(X) @ np.log(self._probabilities(S)).T
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        k = np.repeat(np.arange(len(S)), counts)
        parts = self._split(self._probabilities(S))
        columns = [draw_codes(p[k], rng) for p in parts]
        return np.stack(columns, axis=1).astype(np.float64)

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """The likeliest category; ties go to the lower code."""
        out = X.astype(np.float64)
        for x, p in zip(out.T, self._split(self._probabilities(S)), strict=True):
            gaps = np.isnan(x)
            x[gaps] = np.argmax(shares[gaps] @ p, axis=1)
        return out

    def _split(self, values: Array) -> list[Array]:
        return np.split(values, self.starts[1:], axis=1)

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        return {"probabilities_": tuple(self._split(self._probabilities(S)))}
