"""Columns of numbers with a spike: many are 0, or another number, the rest continuous.

Whether a value is at the spike is one more column, of bits; at the spike the number
itself says nothing, and counts as missing, which integrates it out. So the density of
a row is that of its bits and of the numbers away from spikes, with respect to a point
mass at each spike beside lengths.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.bernoulli import Bernoulli
from kplus.dp_mixture.families.columns import refuse_categories, refuse_infinite
from kplus.dp_mixture.families.family import Columns, of_columns
from kplus.dp_mixture.families.gaussian import Gaussian
from kplus.dp_mixture.families.inner import InnerFamily
from kplus.dp_mixture.families.mixed import MixedFamily

__all__ = ["Spiked", "SpikedFamily", "spikes_of"]

_SHARE = 0.1  # of the values, that a spike has at least
_DISTINCT = 0.25  # share of the other values that must differ, and ...
_FEWEST = 20  # ... how many there must be


@dataclass(frozen=True, eq=False)
class Spiked:
    """Numbers of which some columns have a spike beside a continuous part.

    Rainfall, spending or hours of work are often exactly 0, and continuous where they
    are not. Each component has its own probability of the spike, and its own numbers
    away from it.

    Parameters
    ----------
    numbers : Likelihood, default=Gaussian()
        What the columns are away from their spikes, such as `Transformed` for numbers
        that are skewed there.
    spikes : "auto" or dict, default="auto"
        The value of the spike for each column that has one, by its name or position;
        None for a column that is to have none.

    Notes
    -----
    "auto" takes a column if at least a tenth of its values are 0, or its least value,
    or its largest, and of the other values, 20 or more, at least a quarter differ.

    Fitted attributes are those of `numbers`, for rows away from the spikes, and
    ``spike_columns_``, the positions of the columns with spikes, ``spike_values_``,
    where the spikes are, and ``spike_probabilities_`` (n_components,
    n_spikes), whose prior is that of `Bernoulli`.

    A density with point masses does not compare with one without: `lower_bound_` and
    `score` tell nothing beside those of families that have no spikes.

    Examples
    --------
    >>> from kplus.observations import Spiked, Transformed
    >>> spending = Spiked(Transformed(), spikes={"spending": 0})
    """

    numbers: Any = field(default_factory=Gaussian)
    spikes: Any = "auto"

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "SpikedFamily":
        refuse_categories(columns, "spiked")
        refuse_infinite(sample, columns.names)
        found = spikes_of(sample)
        if not isinstance(self.spikes, str) or self.spikes != "auto":
            found = _given(self.spikes, columns)
        where = np.flatnonzero(~np.isnan(found))
        expanded = _expanded(sample, where, found[where])
        D = sample.shape[1]
        groups = [("number", self.numbers, np.arange(D))]
        if len(where):
            groups.append(("spike", Bernoulli(), D + np.arange(len(where))))
        names = (*columns.names, *(f"spike of {columns.names[d]}" for d in where))
        parts = tuple(
            likelihood.resolve(
                np.ascontiguousarray(expanded[:, j]),
                weights,
                Columns(tuple(names[i] for i in j), (None,) * len(j)),
            )
            for _, likelihood, j in groups
        )
        inner = MixedFamily(
            tuple(name for name, _, _ in groups), tuple(j for _, _, j in groups), parts
        )
        return SpikedFamily(where, found[where], inner)


def spikes_of(sample: Array) -> Array:
    """Where the columns of a sample have a spike, (D,); NaN where they have none."""
    out = np.full(sample.shape[1], np.nan)
    for d, x in enumerate(sample.T.astype(np.float64)):
        x = x[~np.isnan(x)]
        for value in {0.0, x.min(), x.max()} if len(x) else ():
            rest = x[x != value]
            few = len(rest) < _FEWEST or len(np.unique(rest)) < _DISTINCT * len(rest)
            if len(x) - len(rest) >= _SHARE * len(x) and not few:
                out[d] = value
    return out


def _given(spikes: Any, columns: Columns) -> Array:
    if not isinstance(spikes, dict):
        raise ValueError(f"spikes must be 'auto' or a dict of columns, got {spikes!r}.")
    out = np.full(len(columns.names), np.nan)
    for column, value in spikes.items():
        known = columns.names if isinstance(column, str) else range(len(out))
        if column not in known:
            raise ValueError(
                f"spikes names the column {column!r}, which the table does not have "
                f"among its numbers."
            )
        number = np.nan if value is None else float(value)
        if value is not None and not np.isfinite(number):
            raise ValueError(f"spikes gives {column!r} {value!r}, which is no number.")
        out[known.index(column)] = number
    return out


def _expanded(X: Array, where: IntArray, values: Array) -> Array:
    """Numbers, missing at spikes, and bits that say what is there."""
    out = np.empty((len(X), X.shape[1] + len(where)))
    out[:, : X.shape[1]] = X
    numbers = X[:, where]
    bits = (numbers == values.astype(X.dtype, copy=False)).astype(np.float64)
    out[:, where] = np.where(bits > 0.0, np.nan, numbers)
    out[:, X.shape[1] :] = np.where(np.isnan(numbers), np.nan, bits)
    return out


@dataclass(frozen=True, eq=False)
class SpikedFamily(InnerFamily):
    """See `Spiked`; `inner` has the numbers, then a column of bits for each spike.

    Attributes
    ----------
    where : array of shape (J,)
        The columns with a spike.
    values : array of shape (J,)
        Where it is.
    """

    where: IntArray
    values: Array
    inner: MixedFamily

    def consistent(self) -> bool:
        J, D = len(self.where), self.n_columns
        bits = sum(len(j) for j in self.inner.where[1:]) == J
        inside = np.all((self.where >= 0) & (self.where < D))
        return bool(of_columns(J, self.where, self.values) and bits and inside)

    @property
    def n_columns(self) -> int:
        return len(self.inner.where[0])

    def expanded(self, X: Array) -> Array:
        """Rows as `inner` has them."""
        return _expanded(np.asarray(X), self.where, self.values)

    def _in(self, X: Array) -> Array:
        return self.expanded(X)

    def _out(self, rows: Array) -> Array:
        """What rows of `inner` are in the table."""
        out = rows[:, : self.n_columns].copy()
        bits = rows[:, self.n_columns :] > 0.5
        out[:, self.where] = np.where(bits, self.values, out[:, self.where])
        return out

    def check(self, X: Array) -> None:
        self.inner.check(self._in(X))

    def log_base(self, X: Array) -> Array:
        return self.inner.log_base(self._in(X))

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        return self.inner.log_predictive(N, S, self._in(X))

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        return self._out(self.inner.draw(N, S, counts, rng))

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """The mean of spike and numbers, by component: these depend on each other."""
        rows, total = self._in(X), np.zeros(X.shape)
        for k, share in enumerate(shares.T):
            alone = np.zeros(shares.shape)
            alone[:, k] = 1.0
            filled = self.inner.fill(N, S, rows, alone)
            numbers, chance = np.split(filled, [self.n_columns], axis=1)
            away = (1.0 - chance) * numbers[:, self.where]
            numbers[:, self.where] = away + chance * self.values
            total += share[:, None] * numbers
        return np.where(np.isnan(X), total, X)

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        drawn = self.inner.draw_missing(N, S, self._in(X), components, rng)
        return np.where(np.isnan(X), self._out(drawn), X)

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        own = self.inner.split(S)
        out = dict(self.inner.parts[0].attributes(N, own[0]))
        chances = np.zeros((len(N), 0))
        if len(self.where):
            chances = self.inner.parts[1].attributes(N, own[1])["probabilities_"]
        return out | {
            "spike_columns_": self.where,
            "spike_values_": self.values,
            "spike_probabilities_": chances,
        }
