"""What a mixture needs from observations: an exponential family with its conjugate.

A component is known by two sums over its rows, N_k = Σ r_nk and S_k = Σ r_nk t(x_n).
Its posterior, its expected log-likelihood and its evidence are functions of these.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture.families.sparse_features import SparseFeatures
from kplus.dp_mixture.kernels import add_features, score_candidates

__all__ = [
    "ByComponent",
    "Columns",
    "Expected",
    "Family",
    "FeatureFamily",
    "Likelihood",
    "ObservedFamily",
    "of_columns",
]


class Columns(NamedTuple):
    """What is known of a table's columns before its rows are read.

    Attributes
    ----------
    names : tuple of str
        To name a column in messages; ``"column 3"`` where the table has no names.
    levels : tuple of (int or None)
        Number of categories of a column of codes 0, 1, ...; None: numbers.
    """

    names: tuple[str, ...]
    levels: tuple[int | None, ...]


class ByComponent(NamedTuple):
    """Rows gathered by component: rows ``rows[starts[k]:starts[k + 1]]`` count for k
    with `weights` (responsibility times sample weight)."""

    starts: IntArray  # (K + 1,) int64
    rows: IntArray  # int64
    weights: Array  # float64

    @property
    def owners(self) -> IntArray:
        """The component of each row gathered."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


@dataclass(frozen=True)
class Expected:
    """E_q[log p(x | φ_k)] = t(x) · eta_k + bias_k + log h(x), with q from N_k, S_k."""

    shapes: ClassVar[dict[str, str]] = {"eta": "K m", "bias": "K"}

    eta: Array  # (K, M)
    bias: Array  # (K,)

    def total(self, N: Array, S: Array) -> Array:
        """Σ_n r_nk E_q[log p(x_n | φ_k)] for each component, without log h."""
        out: Array = np.einsum("km,km->k", self.eta, S) + self.bias * N
        return out


class Expectations(Protocol):
    """What a family expects of the rows of its components, under q(φ); `Expected`."""

    @property
    def eta(self) -> Array: ...

    @property
    def bias(self) -> Array: ...

    def total(self, N: Array, S: Array) -> Array:
        """Σ_n r_nk E_q[log p(x_n | φ_k)] for each component, without log h."""


class Likelihood(Protocol):
    """A user's choice of observations: a small frozen dataclass of prior settings."""

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "Family":
        """Resolve the prior, from a sample of rows where the user left it open.

        NaN in the sample is a missing value. Raises `DataError`, naming the column,
        where the columns do not suit the family.
        """


class Family(Protocol):
    """A likelihood with a resolved prior; a frozen dataclass of arrays and scalars.

    Arrays over components have K rows. `X` is float32 or float64, may be read-only,
    and holds NaN where a value is missing. Where the likelihood has `takes_sparse`,
    the rows of a sparse table are `SparseRows`, and t(x) is `SparseFeatures`.
    """

    @property
    def n_columns(self) -> int: ...

    @property
    def n_stats(self) -> int: ...

    @property
    def n_free(self) -> int:
        """How many numbers a component is known by."""

    def check(self, X: Array) -> None:
        """Raise `DataError`, naming the column, at values that the family forbids."""

    def log_base(self, X: Array) -> Array:
        """log h(x) of each row: what no component changes."""

    def features(self, X: Array) -> Array:
        """t(x) of each row, (n, n_stats) in float64."""

    def hides(self, S: Array) -> bool:
        """Whether rows with these sums have hidden parts.

        Sums of two components are then not those that their rows would have as one.
        """

    def evidence(self, N: Array, S: Array) -> Array:
        """log ∫ p(rows | φ) p(φ) dφ without log h; 0 for an empty component."""

    def expect(self, N: Array, S: Array) -> Any:
        """The `Expected` log-likelihood under the posterior."""

    def scores(
        self, expected: Any, X: Array, candidates: IntArray | None = None
    ) -> Array:
        """E_q[log p(x | φ_k)] without log h: (n, K), or of `candidates` (n, C) only.

        Where a candidate is -1 the score is -inf.
        """

    def shortlist(
        self, expected: Any, X: Array, log_weights: Array, margin: float
    ) -> IntArray | None:
        """Candidates (n, C) that hold all whose score comes within `margin` of the
        best; None where it is as quick to score every component."""

    def sums(self, X: Array, members: ByComponent, expected: Any = None) -> Array:
        """S_k of the rows given, (K, n_stats).

        Rows may have hidden parts, such as missing values; `expected` is what is known
        of those at the moment. None: nothing is, but who the members are.
        """

    def dissimilarity(self, X: Array, seed: Array, N: Array, S: Array) -> Array:
        """How ill rows suit a component seeded by one row, for D² sampling (n,).

        `N` and `S` (K = 1) describe the rows as one component, which gives the
        scale. At least 0; 0 for the seed itself.
        """

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        """log p(x | rows of k), parameters integrated out, (n, K), with log h."""

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        """Draw ``counts[k]`` rows from each component's posterior predictive, in order
        of components, in the units of the data."""

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """X with Σ_k r_nk E[x | observed x, rows of k] where a value is missing.

        In columns of categories with the likeliest, the mode of Σ_k r_nk p_k. The
        `shares` r (n, K) of a row sum to 1. Bits and counts are not rounded.
        """

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        """X with missing values drawn jointly from the predictive of one component of
        each row, given what is observed there."""

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        """Fitted attributes that describe the components, by name."""

    @property
    def log_hyperprior(self) -> float:
        """log density of the prior's parameters that are learned, up to a constant."""

    def learned(self, N: Array, S: Array) -> Self:
        """The same with a prior that these components favour more.

        Their evidence and the hyperprior together do not fall. See `learning.py`.
        """


def of_columns(D: int, *settings: Any) -> bool:
    """Whether settings are numbers, or arrays with one for each of D columns.

    What a family from a file must be before kernels may read its arrays; see
    `kplus.core.declared`.
    """
    return all(np.shape(setting) in ((), (1,), (D,)) for setting in settings)


class FeatureFamily:
    """Scores and sums through t(x), for families whose t(x) is short."""

    names: tuple[str, ...]  # of the columns

    @property
    def log_hyperprior(self) -> float:
        return 0.0

    def learned(self, N: Array, S: Array) -> Self:
        """A prior that is given stays."""
        return self

    @property
    def n_columns(self) -> int:
        return len(self.names)

    @property
    def n_stats(self) -> int:
        raise NotImplementedError

    @property
    def n_free(self) -> int:
        return self.n_stats

    def hides(self, S: Array) -> bool:
        return False

    def features(self, X: Any) -> Any:
        raise NotImplementedError

    def check(self, X: Any) -> None:
        """Every number is allowed."""

    def log_base(self, X: Any) -> Array:
        return np.zeros(len(X))

    def scores(
        self, expected: Expected, X: Any, candidates: IntArray | None = None
    ) -> Array:
        F = self.features(X)
        if candidates is None or isinstance(F, SparseFeatures):
            out: Array = F @ expected.eta.T
            out += expected.bias
            return out if candidates is None else _chosen(out, candidates)
        out = np.empty(candidates.shape)
        score_candidates(F, candidates, expected.eta, expected.bias, out)
        return out

    def shortlist(
        self, expected: Expected, X: Array, log_weights: Array, margin: float
    ) -> IntArray | None:
        return None

    def sums(self, X: Any, members: ByComponent, expected: Any = None) -> Array:
        F = self.features(X)
        if isinstance(F, SparseFeatures):
            return F.sums(members)
        out = np.zeros((len(members.starts) - 1, F.shape[1]))
        add_features(F, members.starts, members.rows, members.weights, out)
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        raise NotImplementedError

    def column_means(self, N: Array, S: Array) -> Array:
        """Means of the predictive, (K, D), for families of independent columns."""
        raise NotImplementedError

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """Columns are independent: what is observed says nothing beyond `shares`."""
        return np.where(np.isnan(X), shares @ self.column_means(N, S), X)

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        """As new rows of these components are drawn, since columns are independent."""
        drawn = np.empty(X.shape)
        order = np.argsort(components, kind="stable")
        drawn[order] = self.draw(N, S, np.bincount(components, minlength=len(N)), rng)
        return np.where(np.isnan(X), drawn, X)


def _chosen(scores: Array, candidates: IntArray) -> Array:
    """Those of the candidates; -inf where there is none."""
    chosen = np.take_along_axis(scores, np.maximum(candidates, 0), axis=1)
    return np.where(candidates >= 0, chosen, -np.inf)


class ObservedFamily(FeatureFamily):
    """Columns on their own; t(x) = [observed, x, maybe more].

    Zeros stand where a value is missing. A subclass has the evidence of each column,
    from which the predictive follows. Its arrays by column are those that `shapes`
    names, and `guess`, which only learning needs.
    """

    shapes: ClassVar[dict[str, str]]

    @property
    def n_stats(self) -> int:
        return 2 * self.n_columns

    def features(self, X: Rows) -> Any:
        if isinstance(X, SparseRows):
            return self._sparse_features(X)
        D, seen = self.n_columns, ~np.isnan(X)
        F = np.empty((len(X), self.n_stats))
        F[:, :D] = seen
        F[:, D : 2 * D] = np.where(seen, X, 0.0)
        return F

    def some(self, columns: Any) -> Self:
        """The same of some columns, of which any may come several times."""
        n = np.arange(self.n_columns)[columns].size
        own = {name: getattr(self, name)[columns] for name in self.shapes}
        return replace(self, names=("",) * n, guess=None, **own)  # type: ignore[type-var]

    def _some_stats(self, S: Any, columns: Any) -> Any:
        """Statistics as the family of `some` columns has them."""
        n, D = len(S), self.n_columns
        first, more = S[:, : 2 * D].reshape(n, 2, D), S[:, 2 * D :].reshape(n, D, -1)
        parts = first[:, :, columns], more[:, columns]
        return np.hstack([part.reshape(n, -1) for part in parts])

    def _sparse_features(self, X: SparseRows) -> SparseFeatures:
        """Each pair is a column of its own, in a single row."""
        P, M, own = len(X.values), self.n_stats, self.some(X.columns)
        change = own.features(X.values[None]) - own.features(np.zeros((1, P)))
        pair = np.repeat(np.arange(P), M // self.n_columns - 2)
        pair = np.concatenate([np.arange(P), np.arange(P), pair])
        place = self._some_stats(np.arange(M)[None], X.columns)
        kept = change[0] != 0.0
        entries = change[0, kept], (pair[kept], place[0, kept])
        changes = sp.coo_array(entries, shape=(P, M)).tocsr()
        zero = self.features(np.zeros((1, self.n_columns)))[0]
        return SparseFeatures(X, changes, zero)

    def _sums(self, S: Array) -> tuple[Array, Array]:
        """How many values each column has, and their sum; (K, D)."""
        D = self.n_columns
        return np.maximum(S[:, :D], 0.0), np.maximum(S[:, D : 2 * D], 0.0)

    def column_evidence(self, S: Array) -> Array:
        """What each column adds to the evidence, (K, D)."""
        raise NotImplementedError

    def _gains(self, S: Array, values: Array, columns: Any) -> Array:
        """What one more value of each of some columns adds to the evidence."""
        own, before = self.some(columns), self._some_stats(S, columns)
        after = own.column_evidence(before + own.features(values[None]))
        out: Array = (after - own.column_evidence(before))[0]
        return out

    def evidence(self, N: Array, S: Array) -> Array:
        out: Array = self.column_evidence(S).sum(axis=1)
        return out

    def log_predictive(self, N: Array, S: Array, X: Rows) -> Array:
        """By how much one more value raises the evidence of its column."""
        if isinstance(X, SparseRows):
            gains = [X.sums(partial(self._gains, row[None])) for row in S]
            return self.log_base(X)[:, None] + np.column_stack(gains)
        table, places = _distinct(X)
        F, before = self.features(table), self.column_evidence(S)
        out = np.repeat(self.log_base(X)[:, None], len(S), axis=1)
        for k in range(len(S)):  # one at a time, to save memory
            gains = self.column_evidence(S[k] + F) - before[k]
            out[:, k] += np.take_along_axis(gains, places, axis=0).sum(axis=1)
        return out


def _distinct(X: Array) -> tuple[Array, IntArray]:
    """The values of each column, once each, and where in them each value is.

    Columns are filled up with NaN. Counts come often, so that what is costly is better
    done for these few than for all rows.
    """
    columns = [np.unique(x, return_inverse=True) for x in X.T]
    table = np.full((max(len(values) for values, _ in columns), X.shape[1]), np.nan)
    for d, (values, _) in enumerate(columns):
        table[: len(values), d] = values
    return table, np.stack([places for _, places in columns], axis=1)
