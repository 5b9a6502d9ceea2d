"""Columns of counts that vary more than Poisson's; the prior is beta.

A column of a component has a dispersion α and a chance p to stop counting, and with
r = 1/α its counts have p(x) = Γ(x + r) / (Γ(r) x!) p^r (1 - p)^x. Given α that is an
exponential family with a conjugate prior of p, and α is one of a few values; hence
posterior, evidence and predictive are exact, as sums over these values.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import kl_div

from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture.families.columns import (
    POISSON_STRENGTH,
    Setting,
    count_means,
    draw_codes,
    per_column,
    refuse_no_counts,
    setting,
    sum_over_columns,
)
from kplus.dp_mixture.families.family import Columns, Expected, ObservedFamily
from kplus.dp_mixture.families.learning import learn_two, log_normal
from kplus.dp_mixture.kernels_counts import (
    dispersion_evidence,
    dispersion_expectations,
    log_ways,
)

__all__ = ["NegativeBinomial", "NegativeBinomialFamily"]

# Dispersions that a column of a negative binomial may have: how many, and the largest,
# with which the standard deviation is twice the mean. Fewer, and rows are cut into
# more components than there are, since none of the few fits.
_N_DISPERSIONS = 16
_DISPERSION_MOST = 4.0

# Sparse tables have so many columns that fewer must do, and counts so low that they do.
_MANY_COLUMNS = 500
_FEWER_DISPERSIONS = 6

# What the smallest of them adds to a Poisson's variance, as a share of it, where the
# mean is that of the column and at least 1; yet no dispersion is below the other.
_EXCESS_LEAST = 0.05
_DISPERSION_LEAST = 1e-6


@dataclass(frozen=True)
class NegativeBinomial:
    """Columns of counts that vary more than those of a Poisson distribution.

    Inside a component a column has a mean m and a dispersion α, and its variance is
    m + α m²; with α = 0 it would be a Poisson. Missing values (NaN) are integrated out
    exactly.

    Parameters
    ----------
    dispersion : float, array of shape (n_features,) or None
        α of all components. By default each column of each component has its own, one
        of 16 values (6 beyond 500 columns) between 4 (a standard deviation of twice the
        mean) and what adds 5 % to a Poisson's variance. So a column that varies less
        than a Poisson's, or not at all, is described as if it varied by about as much,
        and what varies yet more than with 4 is cut into several components.
    mean : float, array of shape (n_features,) or None
        Prior mean; by default that of the column (after one more row with half a
        count, so that it is not 0).
    mean_strength : float, array of shape (n_features,) or None
        How many rows the prior mean counts for. By default one row or one count,
        whichever is less.
    learn : bool, default=True
        Learn mean and strength from the data unless one is given, as `Poisson` does.

    Notes
    -----
    The fitted attributes are ``means_`` and ``dispersions_``, the expected means and
    dispersions, both of shape (n_components, n_features).

    Examples
    --------
    >>> from kplus.observations import NegativeBinomial
    >>> NegativeBinomial(dispersion=0.5).dispersion
    0.5
    """

    takes_sparse: ClassVar[bool] = True

    dispersion: Setting = None
    mean: Setting = None
    mean_strength: Setting = None
    learn: bool = True

    def resolve(
        self, sample: Rows, weights: Array | None, columns: Columns
    ) -> "NegativeBinomialFamily":
        """Resolve the prior; see `kplus.dp_mixture.families.family.Likelihood`."""
        means = count_means(sample, weights, columns, "negative_binomial")
        least = np.maximum(_EXCESS_LEAST / np.maximum(means, 1.0), _DISPERSION_LEAST)
        few = len(means) > _MANY_COLUMNS
        n_grid = _FEWER_DISPERSIONS if few else _N_DISPERSIONS
        grid: Array = np.geomspace(_DISPERSION_MOST, least, n_grid, axis=1)
        if self.dispersion is not None:
            grid = per_column("dispersion", self.dispersion, len(means))[:, None]
        means = setting("mean", self.mean, means)
        rows = POISSON_STRENGTH * np.minimum(1.0, 1.0 / means)
        rows = setting("mean_strength", self.mean_strength, rows)
        given = self.mean is not None or self.mean_strength is not None
        guess = None if given or not self.learn else np.stack([rows, rows * means])
        return NegativeBinomialFamily(columns.names, grid, rows, rows * means, guess)


@dataclass(frozen=True, eq=False)
class NegativeBinomialFamily(ObservedFamily):
    """See `NegativeBinomial`; t(x) = [observed, x, log Γ(x + r) / (Γ(r) x!), ...].

    Given r, p ~ Beta(1 + r `rows`, `counts`), so that the mean r (1 - p) / p has the
    expectation ``counts / rows`` whatever r is. A priori all r are as likely.
    """

    shapes: ClassVar[dict[str, str]] = {
        "rows": "d", "counts": "d", "dispersions": "d g",
    }  # fmt: skip

    names: tuple[str, ...]
    dispersions: Array  # 1 / r, (D, G)
    rows: Array
    counts: Array
    guess: Array | None = None  # medians of the hyperpriors of both; None: given

    def consistent(self) -> bool:
        both = (2, self.n_columns)
        fine = self.guess is None or np.shape(self.guess) == both
        return fine and np.shape(self.rows) == both[1:]

    @property
    def n_stats(self) -> int:
        return 2 * self.n_columns + self.dispersions.size

    def check(self, X: Rows) -> None:
        refuse_no_counts(X, self.names, "negative_binomial")

    def features(self, X: Rows) -> Any:
        F, D = super().features(X), self.n_columns
        if isinstance(X, SparseRows):
            return F
        if len(X) == 1:  # in which nothing comes often
            self._ways(F)[0] = log_ways(F[0, D : 2 * D], np.arange(D), self._sizes)
            return F
        for d in range(D):  # counts come often
            x, places = np.unique(F[:, D + d], return_inverse=True)
            column = np.full(len(x), d)
            self._ways(F)[:, d] = log_ways(x, column, self._sizes)[places]
        return F

    @property
    def _sizes(self) -> Array:
        """r = 1 / α, (D, G)."""
        return np.ascontiguousarray(1.0 / self.dispersions)

    def _ways(self, S: Array) -> Array:
        """The part of statistics that belongs to the dispersions, (n, D, G)."""
        return S[:, 2 * self.n_columns :].reshape(-1, *self.dispersions.shape)

    def _known(self, S: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
        """What the kernels take: sums and prior."""
        n, total = self._sums(S)
        ways = np.ascontiguousarray(self._ways(S))
        return n, total, ways, self._sizes, self.rows, self.counts

    def _shares(self, S: Array) -> Array:
        """The posterior of the dispersions, (K, D, G)."""
        out: Array = dispersion_expectations(*self._known(S))[2]
        return out

    def column_evidence(self, S: Array) -> Array:
        out: Array = dispersion_evidence(*self._known(S))
        return out

    def expect(self, N: Array, S: Array) -> Expected:
        stop, more, shares = dispersion_expectations(*self._known(S))
        eta = np.concatenate([stop, more, shares.reshape(len(S), -1)], axis=1)
        return Expected(eta, np.zeros(len(S)))

    @property
    def log_hyperprior(self) -> float:
        return log_normal(np.stack([self.rows, self.counts]), self.guess)

    def learned(self, N: Array, S: Array) -> Self:
        return learn_two(self, N, S, "rows", "counts")

    def dissimilarity(self, X: Rows, seed: Array, N: Array, S: Array) -> Array:
        """Deviance of counts from the seed's, both with the prior's counts added."""
        sizes = 1.0 / self.attributes(N, S)["dispersions_"][0]

        def deviance(x: Array, columns: Any) -> Array:
            a, r = self.counts[columns], sizes[columns]
            x, y = x + a, seed[columns] + a
            out: Array = 2.0 * (kl_div(x, y) - kl_div(x + r, y + r))
            return np.maximum(out, 0.0)

        return sum_over_columns(X, deviance)

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        n, total = self._sums(S)
        rows, b = self.rows + n, self.counts + total
        k, shares = np.repeat(np.arange(len(S)), counts), self._shares(S)
        out = np.empty((len(k), self.n_columns))
        for d, r in enumerate(1.0 / self.dispersions):
            g = draw_codes(shares[k, d], rng)
            odds = rng.gamma(b[k, d]) / rng.gamma(1.0 + r[g] * rows[k, d])
            # numpy draws no more than that
            out[:, d] = rng.poisson(np.minimum(rng.gamma(r[g]) * odds, 1e18))
        return out

    def column_means(self, N: Array, S: Array) -> Array:
        """E[r (1 - p) / p] = counts / rows, whatever r is."""
        n, total = self._sums(S)
        out: Array = (self.counts + total) / (self.rows + n)
        return out

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        shares = self._shares(S)
        return {
            "means_": self.column_means(N, S),
            "dispersions_": (shares * self.dispersions).sum(axis=-1),
        }
