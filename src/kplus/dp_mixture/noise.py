"""Rows that belong nowhere: one more component, of a density that is the same all over.

The density is uniform over what the columns span, as in Banfield and Raftery,
"Model-based Gaussian and non-Gaussian clustering", Biometrics 49 (1993). It has no
parameters, so that a row costs the same anywhere, also beyond what the sample spanned.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, entr, gammaln

from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture.families.bernoulli import BernoulliFamily
from kplus.dp_mixture.families.categorical import CategoricalFamily
from kplus.dp_mixture.families.columns import (
    column_moments,
    row_totals,
    row_weights,
    sum_over_columns,
)
from kplus.dp_mixture.families.factor_gaussian import compared
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.families.mixed import MixedFamily
from kplus.dp_mixture.families.multinomial import MultinomialFamily
from kplus.dp_mixture.families.negative_binomial import NegativeBinomialFamily
from kplus.dp_mixture.families.normal_gamma import NormalGammaFamily
from kplus.dp_mixture.families.normal_wishart import NormalWishartFamily
from kplus.dp_mixture.families.poisson import PoissonFamily
from kplus.dp_mixture.families.transformed import TransformedFamily

__all__ = ["Noise"]

# Beta prior of a share that is learned: one row of noise among 20. Its density is
# highest at no noise at all, and falls slowly.
_PRIOR = 1.0, 19.0

_WILD = 100  # one of so many values may be wild


@dataclass(frozen=True, eq=False)
class Noise:
    """A uniform density of rows, and what is known of the share ε of such rows.

    Attributes
    ----------
    low, width : arrays of shape (D,)
        Where the values of each column begin, and how far they reach: the length of
        their interval, or the number of values. 1 where `whole` numbers are parts of a
        total.
    whole : bool array of shape (D,)
        Columns of whole numbers.
    totals : tuple of int arrays
        Columns that share out a total between them: given the total all ways to do so
        are as likely.
    means : array of shape (len(totals),)
        Mean totals, for draws.
    logs : tuple of 2 floats or None
        log ε and log(1 - ε) where they are given; None: learned.
    prior : tuple of 2 floats
        The Beta prior of an ε that is learned: rows of noise, and others.
    """

    shapes: ClassVar[dict[str, str]] = {
        "low": "d", "width": "d", "whole": "d", "means": "t",
    }  # fmt: skip

    low: Array
    width: Array
    whole: NDArray[np.bool_]
    totals: tuple[IntArray, ...] = ()
    means: Array | float = 0.0
    logs: tuple[float, float] | None = None
    prior: tuple[float, float] = _PRIOR

    @classmethod
    def resolve(
        cls, share: bool | float, family: Family, sample: Rows, weights: Array | None
    ) -> Self | None:
        """Noise over what the rows of a sample span; None if there is to be none.

        `share` is True for one that is learned, or given.
        """
        if share is False:
            return None
        rows = sample[row_weights(sample, weights) > 0.0]
        D = sample.shape[1]
        box = _Box(np.zeros(D), np.ones(D), np.zeros(D, np.bool_))
        _span(box, family, rows, np.arange(D))
        logs = None if share is True else (np.log(share), np.log1p(-share))
        means = np.array(box.means)
        return cls(box.low, box.width, box.whole, tuple(box.totals), means, logs)

    def consistent(self) -> bool:
        """Whether draws and densities can be computed; see `core.declared`."""
        D = len(self.width)
        alike = len(self.low) == D == len(self.whole) and bool(np.all(self.width > 0))
        inside = all(np.all((j >= 0) & (j < D)) for j in self.totals)
        return bool(alike and inside and np.size(self.means) == len(self.totals))

    def check(self, n_columns: int) -> None:
        """Refuse noise of a model file that is not that of so many columns."""
        if len(self.width) != n_columns or not self.consistent():
            raise ValueError(f"noise is not that of {n_columns} columns.")

    # --------------------------------------------------------------------- rows

    def log_density(self, X: Rows) -> Array:
        """log p₀(x) of each row; what is missing counts for nothing.

        A total of n in d columns can be shared out in (n + d - 1 over n) ways.
        """
        logs = np.log(self.width)
        out = -sum_over_columns(X, lambda x, d: np.where(np.isnan(x), 0.0, logs[d]))
        for j in self.totals:
            # Sparse rows have no other columns.
            n = row_totals(X if isinstance(X, SparseRows) else X[:, j])
            d = len(j)
            out -= gammaln(n + d) - gammaln(d) - gammaln(n + 1.0)
        return out

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Rows of noise."""
        X = self.low + self.width * rng.random((n, len(self.width)))
        X = np.where(self.whole, np.floor(X), X)
        for j, mean in zip(self.totals, np.atleast_1d(self.means), strict=True):
            totals = np.floor(mean + rng.random(n)).astype(np.int64)
            X[:, j] = rng.multinomial(totals, rng.dirichlet(np.ones(len(j)), n))
        return X

    # -------------------------------------------------------------------- share

    @property
    def expected(self) -> float:
        """E[ε] before rows are seen."""
        return self.share(0.0, 0.0)

    def share(self, count: float, mass: float) -> float:
        """E[ε] with `count` rows of noise among rows of summed weight `mass`."""
        if self.logs is not None:
            return float(np.exp(self.logs[0]))
        return float((self.prior[0] + count) / (sum(self.prior) + mass))

    def log_shares(self, count: float, mass: float) -> tuple[float, float]:
        """E[log ε] and E[log(1 - ε)]."""
        if self.logs is not None:
            return self.logs
        ahead, rest = self._counts(count, mass)
        both = digamma(ahead + rest)
        return float(digamma(ahead) - both), float(digamma(rest) - both)

    def evidence(self, count: float, mass: float) -> float:
        """log ∫ ε^n₀ (1 - ε)^(n - n₀) p(ε) dε: what the shares add to the bound."""
        if self.logs is not None:
            return count * self.logs[0] + (mass - count) * self.logs[1]
        return float(betaln(*self._counts(count, mass)) - betaln(*self.prior))

    def _counts(self, count: float, mass: float) -> tuple[float, float]:
        """The Beta posterior of ε."""
        return self.prior[0] + count, self.prior[1] + max(mass - count, 0.0)

    def beside(self, count: float, mass: float) -> Self:
        """The same for the rest of the rows, beside some that have so much noise."""
        return replace(self, prior=self._counts(max(count, 0.0), mass))

    def base(self, weights: Array, log_base: Array, density: Array, r: Array) -> float:
        """Σ (1 - r₀) log h(x) + r₀ log p₀(x) + H(r₀), where r₀ is each row's `r`."""
        each = (1.0 - r) * log_base + r * density + entr(r) + entr(1.0 - r)
        return float(weights @ each)


@dataclass
class _Box:
    """What `Noise` holds, while columns are looked at."""

    low: Array
    width: Array
    whole: NDArray[np.bool_]
    totals: list[IntArray] = field(default_factory=list)
    means: list[float] = field(default_factory=list)


def _span(box: _Box, family: Any, rows: Any, where: IntArray) -> None:
    """Note what the columns `where` of rows span, by what the family takes them for."""
    if isinstance(family, MixedFamily):
        for part, j in zip(family.parts, family.where, strict=True):
            _span(box, part, rows, where[j])
        return
    numbers = NormalWishartFamily | NormalGammaFamily | TransformedFamily
    if isinstance(compared(family), numbers):
        values = rows[:, where].astype(np.float64)
        box.low[where], box.width[where] = _intervals(values)
        return
    box.whole[where] = True
    if isinstance(family, MultinomialFamily):
        box.totals.append(where)
        box.means.append(family.row_total)
    elif isinstance(family, BernoulliFamily):
        box.width[where] = 2.0
    elif isinstance(family, CategoricalFamily):
        box.width[where] = family.levels
    elif isinstance(family, PoissonFamily | NegativeBinomialFamily):
        box.width[where] = _largest(rows, where) + 1.0
    else:
        raise ValueError(
            f"noise=True does not know over what {type(family).__name__} is uniform; "
            f"leave it out."
        )


def _largest(rows: Rows, where: IntArray) -> Array:
    """The largest count of each column; 0 where all are missing."""
    if isinstance(rows, SparseRows):
        out = np.zeros(rows.n_columns)
        np.maximum.at(out, rows.columns, np.nan_to_num(rows.values))
        return out[where]
    x = rows[:, where].astype(np.float64)
    most: Array = np.max(x, axis=0, initial=0.0, where=~np.isnan(x))
    return most


def _intervals(values: Array) -> tuple[Array, Array]:
    """Where uniform columns begin, and their lengths.

    m different values reach (m - 1) / (m + 1) of the interval they are drawn from, on
    average. How often a value is there does not count: rows of weight 2 are as two
    rows. A column of one value has the length that its variance stands for.
    """
    _, variances = column_moments(values, None)
    low, width = np.zeros((2, values.shape[1]))
    for d, x in enumerate(values.T):
        distinct = _without_wild(np.unique(x[~np.isnan(x)]))
        m = len(distinct)
        first, last = (distinct[0], distinct[-1]) if m else (0.0, 0.0)
        width[d] = (last - first) * (m + 1.0) / max(m - 1.0, 1.0)
        if not width[d] > 4.0 * np.finfo(float).eps * max(abs(first), abs(last)):
            width[d] = np.sqrt(12.0 * variances[d])
        low[d] = 0.5 * (first + last) - 0.5 * width[d]
    return low, width


def _without_wild(values: Array) -> Array:
    """Ascending values without the few that lie farther out than all others span.

    A wrong value would make the box so large that nothing in it is noise.
    """
    first, last = 0, len(values) - 1
    for _ in range(len(values) // _WILD):
        below, above = np.diff(values[[first, first + 1, last - 1, last]])[[0, 2]]
        rest = values[last] - values[first] - max(below, above)
        if max(below, above) <= rest:
            break
        first, last = (first + 1, last) if below > above else (first, last - 1)
    return values[first : last + 1]
