"""Rows of counts that share out a total, as words of a text; the prior is Dirichlet."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, gammaln, rel_entr

from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture.families.columns import (
    Setting,
    log_factorials,
    observed_sums,
    per_column,
    refuse_categories,
    refuse_no_counts,
    refuse_values,
    row_totals,
    row_weights,
    sum_over_columns,
    values,
)
from kplus.dp_mixture.families.family import Columns, Expected, FeatureFamily
from kplus.dp_mixture.families.learning import (
    EMPTY,
    best_step,
    higher,
    log_strength,
    strength_slope,
    worth,
)
from kplus.dp_mixture.families.sparse_features import SparseFeatures
from kplus.dp_mixture.kernels_counts import log_gains

__all__ = ["Multinomial", "MultinomialFamily"]

# Counts per column that the prior of multinomial proportions is worth.
_PSEUDO_COUNT = 0.5

_PROFILE_STEPS = 2

_ROUNDING = 1e-12  # divergences up to that are none


@dataclass(frozen=True)
class Multinomial:
    """Rows of counts, given their totals: a component has proportions of the columns.

    For rows whose total says nothing, such as the words of texts of various lengths.
    The prior of the proportions is Dirichlet(`pseudo_counts`). A row of zeros suits
    every component alike. Values cannot be missing; `Poisson` takes columns one by one
    and allows it.

    Parameters
    ----------
    pseudo_counts : float, array of shape (n_features,) or None
        How many counts of each column the prior is worth. By default half a count
        per column, but in all no more than a row holds on average, in proportion to
        the counts of the data (after half a count more for each column).
    learn : bool, default=True
        Learn pseudo-counts that are not given from the data: a profile of the columns,
        and a strength that all of them share. Nothing holds the strength back, so that
        components may be alike in nearly all columns.

    Notes
    -----
    The fitted attribute is ``probabilities_``, the expected proportions, of shape
    (n_components, n_features). Rows drawn by ``sample`` hold as many counts as the
    rows of their component hold on average, since the model says nothing of totals.

    Examples
    --------
    >>> from kplus.observations import Multinomial
    >>> Multinomial(pseudo_counts=0.1)
    Multinomial(pseudo_counts=0.1, learn=True)
    """

    takes_sparse: ClassVar[bool] = True

    pseudo_counts: Setting = None
    learn: bool = True

    def resolve(
        self, sample: Rows, weights: Array | None, columns: Columns
    ) -> "MultinomialFamily":
        """Resolve the prior; see `kplus.dp_mixture.families.family.Likelihood`."""
        refuse_categories(columns, "multinomial")
        _refuse_no_counts(sample, columns.names)
        D = sample.shape[1]
        w = row_weights(sample, weights)
        totals = observed_sums(sample, weights)[1]
        row_total = float(totals.sum() / w.sum())
        prior: Any = self.pseudo_counts
        if prior is None:
            strength = min(_PSEUDO_COUNT * D, max(row_total, 1.0))
            prior = strength * (totals + 0.5) / (totals + 0.5).sum()
        prior = per_column("pseudo_counts", prior, D)
        guess = prior if self.learn and self.pseudo_counts is None else None
        return MultinomialFamily(columns.names, prior, row_total, guess)


def _refuse_no_counts(X: Rows, names: tuple[str, ...]) -> None:
    why = (
        "a missing count leaves the total of its row unknown, which "
        "observations='multinomial' needs; use 'poisson', which takes columns one by "
        "one, or fill it in."
    )
    refuse_values(X, np.isnan(values(X)), names, why)
    refuse_no_counts(X, names, "multinomial")


def _more(prior: Array, counts: Array) -> Array:
    """ψ(a + n) - ψ(a)."""
    out: Array = digamma(prior + counts) - digamma(prior)
    return out


@dataclass(frozen=True, eq=False)
class MultinomialFamily(FeatureFamily):
    """See `Multinomial`. t(x) = x."""

    shapes: ClassVar[dict[str, str]] = {"pseudo_counts": "d", "guess": "d"}

    names: tuple[str, ...]
    pseudo_counts: Array
    row_total: float  # of the sample, on average
    guess: Array | None = None  # mode of the pseudo-counts' hyperprior; None: given

    def consistent(self) -> bool:
        return len(self.names) == len(self.pseudo_counts)

    @property
    def n_stats(self) -> int:
        return len(self.pseudo_counts)

    def check(self, X: Rows) -> None:
        _refuse_no_counts(X, self.names)

    def log_base(self, X: Rows) -> Array:
        out: Array = gammaln(row_totals(X) + 1.0) - log_factorials(X)
        return out

    def features(self, X: Rows) -> Any:
        if isinstance(X, SparseRows):
            entries = X.values, X.columns, np.arange(len(X.values) + 1)
            shape = len(X.values), self.n_stats
            zero = np.zeros(self.n_stats)
            return SparseFeatures(X, sp.csr_array(entries, shape=shape), zero)
        return np.ascontiguousarray(X, dtype=np.float64)

    def _posterior(self, S: Array) -> tuple[Array, Array]:
        """Pseudo-counts of the columns, and their sum."""
        counts = np.maximum(S, 0.0)
        return self.pseudo_counts + counts, self.pseudo_counts.sum() + counts.sum(1)

    def evidence(self, N: Array, S: Array) -> Array:
        counts = np.maximum(S, 0.0)
        strength, totals = self.pseudo_counts.sum(), counts.sum(axis=1)
        out: Array = log_gains(self.pseudo_counts, counts).sum(axis=1)
        out -= gammaln(strength + totals) - gammaln(strength)
        return out

    def expect(self, N: Array, S: Array) -> Expected:
        counts, totals = self._posterior(S)
        eta = digamma(counts) - digamma(totals)[:, None]
        return Expected(eta, np.zeros(len(S)))

    @property
    def log_hyperprior(self) -> float:
        """Of the profile a Dirichlet density; of the strength see `log_strength`."""
        if self.guess is None:
            return 0.0
        strength, usual = self.pseudo_counts.sum(), self.guess.sum()
        ratios = self.pseudo_counts / strength * (usual / self.guess)
        return float(self.guess @ np.log(ratios)) + log_strength(strength / usual)

    def learned(self, N: Array, S: Array) -> Self:
        if self.guess is None:
            return self
        N, S = N[N > EMPTY], S[N > EMPTY]
        best = self._other_profile(np.maximum(S, 0.0))._other_strength(
            N, S, self.guess.sum()
        )
        return higher(best, self, N, S)

    def _other_profile(self, counts: Array) -> Self:
        """A better profile, of the same strength (Minka's fixed point).

        A bound from below of the evidence is linear in the logarithms of pseudo-counts.
        """
        prior = self.pseudo_counts
        for _ in range(_PROFILE_STEPS):
            share = prior * _more(prior, counts).sum(axis=0) + self.guess
            prior = share * (prior.sum() / share.sum())
        return replace(self, pseudo_counts=prior)

    def _other_strength(self, N: Array, S: Array, usual: float) -> Self:
        """A strength at which the same profile is not worse.

        A step of its logarithm, and from there to the top of a parabola.
        """
        counts, prior = np.maximum(S, 0.0), self.pseudo_counts
        slope = float(_more(prior, counts).sum(axis=0) @ prior)
        strength, totals = prior.sum(), counts.sum(axis=1)
        slope -= strength * float(_more(strength, totals).sum())
        slope += strength_slope(strength / usual)

        def at(step: float) -> Any:
            return replace(self, pseudo_counts=prior * np.exp(step))

        step = best_step(lambda x: worth(at(x), N, S), slope)
        best: Self = at(step) if step else self
        return best

    def dissimilarity(self, X: Rows, seed: Array, N: Array, S: Array) -> Array:
        """Divergence of the proportions from the seed's, times the counts of the row.

        Twice, as a deviance is. To both one count is added, shared out as the counts
        of the component are, so that no proportion is 0.
        """
        counts, totals = self._posterior(S)
        share = counts[0] / totals[0]
        p, more = (seed + share) / (seed.sum() + 1.0), row_totals(X) + 1.0

        def divergence(x: Array, columns: Any) -> Array:
            out: Array = rel_entr(x + share[columns], p[columns])
            return out

        # What a row is to itself is 0 but for rounding.
        each = sum_over_columns(X, divergence) / more - np.log(more)
        return np.where(each > _ROUNDING, 2.0 * (more - 1.0) * each, 0.0)

    def log_predictive(self, N: Array, S: Array, X: Rows) -> Array:
        """A Dirichlet-multinomial; counts of 0 add nothing and are skipped."""
        counts, totals = self._posterior(S)
        length = row_totals(X)[:, None]
        pairs = X if isinstance(X, SparseRows) else SparseRows.of(X)
        out: Array = self.log_base(X)[:, None] + gammaln(totals)
        out = out - gammaln(totals + length)
        for k in range(len(S)):
            a = counts[k, pairs.columns]
            out[:, k] += pairs.marks @ (gammaln(a + pairs.values) - gammaln(a))
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        pseudo, _ = self._posterior(S)
        fallback = np.full(len(N), self.row_total)
        means = np.divide(S.sum(axis=1), N, out=fallback, where=N > 0)
        parts = []
        for k, count in enumerate(counts):
            # Rounded up or down at random, which keeps the mean.
            totals = np.floor(means[k] + rng.random(count)).astype(np.int64)
            parts.append(rng.multinomial(totals, rng.dirichlet(pseudo[k], count)))
        return np.concatenate(parts).astype(np.float64)

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        counts, totals = self._posterior(S)
        return {"probabilities_": counts / totals[:, None]}
