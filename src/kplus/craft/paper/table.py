"""The table as Algorithms 1 and 2 see it: settings, constants, columns, costs."""

from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError, NotFiniteError
from kplus.core.types import Array, IntArray
from kplus.craft.paper.kernels import (
    Clusters,
    Columns,
    Penalties,
    Rules,
    Sums,
    cost_table,
    fit_clusters,
    sum_rows,
    total_cost,
    walk_rows,
)

__all__ = ["Constants", "Mask", "PaperSpec", "PaperTable", "constants", "known_rows"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class PaperSpec:
    """Settings of a fit.

    Attributes
    ----------
    levels : tuple of (int or None)
        Number of categories of each column; None: numbers.
    fraction : float
        m: the share of features that each cluster chooses; 1: all of them.
    rho : float or None
        ρ in (0, m(1−m)); None: max(.01, m(1−m) − .01).
    penalty : float or None
        λ; None: by farthest-first, for about `n_clusters`.
    n_clusters : int or None
    smoothing : float
        How many rows the frequencies of the whole table count in a cluster.
    variance_floor : float
        The least σ² of a cluster, relative to the variance of the column.
    category_threshold : float or None
        ε_c: choose the categories with (G_d − G_kd) > ε_c G_d, however many.
    variance_threshold : float or None
        ε_v: choose the numbers with σ² < ε_v, in units of the data squared.
    start : {"random", "mean"}
        Begin with a random row, or with the mean of all rows.
    max_iter : int
    fixed_variance : float or None
        σ² of every number in every cluster, in units of the data squared. With m = 1
        and ½ this is DP-means.
    """

    levels: tuple[int | None, ...]
    fraction: float = 0.5
    rho: float | None = None
    penalty: float | None = None
    n_clusters: int | None = None
    smoothing: float = 1.0
    variance_floor: float = 1e-3
    category_threshold: float | None = None
    variance_threshold: float | None = None
    start: str = "random"
    max_iter: int = 100
    fixed_variance: float | None = None

    def __post_init__(self) -> None:
        constants(self.fraction, self.rho)
        if self.penalty is None and self.n_clusters is None:
            raise ValueError("Give a penalty, or n_clusters to find one.")
        if self.penalty is not None and not self.penalty >= 0.0:
            raise ValueError(f"penalty must be 0 or more; got {self.penalty}.")
        if not self.smoothing >= 0.0:
            raise ValueError(f"smoothing must be 0 or more; got {self.smoothing}.")
        if not self.variance_floor > 0.0:
            raise ValueError(
                f"variance_floor must be above 0; got {self.variance_floor}."
            )
        if self.start not in ("random", "mean"):
            raise ValueError(f"start must be 'random' or 'mean'; got {self.start!r}.")


class Constants(NamedTuple):
    """Eq. 1, F_Δ = F_1 − F_0."""

    F0: float
    F_delta: float
    a0: float
    b0: float
    a1: float
    b1: float


def constants(m: float, rho: float | None = None) -> Constants:
    """What choosing features costs, for a Beta prior of mean m and variance ρ.

    Examples
    --------
    >>> constants(0.5, rho=0.05)
    Constants(F0=3.37, F_delta=0.0, a0=2.0, b0=3.0, a1=3.0, b1=2.0)
    """
    if not 0.0 < m <= 1.0:
        raise ValueError(f"feature_fraction (m) must be in (0, 1]; got {m}.")
    most = m * (1.0 - m)
    if m == 1.0:
        if rho is not None:
            raise ValueError("rho must be None where all features are chosen (m = 1).")
        return Constants(0.0, 0.0, 1.0, 0.0, 1.0, 0.0)
    if rho is None:
        rho = max(0.01, most - 0.01) if most > 0.01 else most / 2.0
    if not 0.0 < rho < most:
        raise ValueError(f"rho must be in (0, m(1 - m)) = (0, {most:.6g}); got {rho}.")
    a0, b1 = m * (most / rho - 1.0), (1.0 - m) * (most / rho - 1.0)
    a1, b0 = a0 + 1.0, b1 + 1.0
    F0, F1 = _entropy(a0, b0), _entropy(a1, b1)
    return Constants(F0, F1 - F0, a0, b0, a1, b1)


def _entropy(a: float, b: float) -> float:
    return sum(x * log((a + b) / x) for x in (a, b) if x > 0.0)


# -------------------------------------------------------------------------- table


@dataclass(frozen=True)
class PaperTable:
    """Rows of positive weight, statistics of their columns, and the settings."""

    X: Array
    weights: Array
    columns: Columns
    spec: PaperSpec
    constants: Constants

    @classmethod
    def of(cls, X: Array, weights: Array | None, spec: PaperSpec) -> "PaperTable":
        X = _checked(X, len(spec.levels))
        weights = np.ones(len(X)) if weights is None else weights.astype(np.float64)
        _refuse_codes(X, spec.levels)
        X, weights = X[weights > 0.0], weights[weights > 0.0]
        if not len(X):
            raise DataError("No row has a positive weight; give at least one.")
        columns = _columns(X, weights, spec.levels)
        return cls(X, weights, columns, spec, constants(spec.fraction, spec.rho))

    @property
    def D(self) -> int:
        return int(self.X.shape[1])

    @cached_property
    def rules(self) -> Rules:
        spec, numbers = self.spec, int(np.count_nonzero(self.columns.first < 0))
        return Rules(
            float(spec.smoothing),
            float(spec.variance_floor),
            _or_nan(spec.fixed_variance),
            _budget(spec.fraction, numbers),
            _budget(spec.fraction, self.D - numbers),
            _or_nan(spec.variance_threshold),
            _or_nan(spec.category_threshold),
        )

    def start(self, rng: np.random.Generator) -> Array:
        """A random row, or one of missing values: its centre is the mean."""
        if self.spec.start == "mean":
            return np.full(self.D, np.nan)
        shares = self.weights / self.weights.sum()
        row: Array = self.X[rng.choice(len(shares), p=shares)]
        return row

    def opened(self, row: Array, chosen: Mask) -> Clusters:
        """A cluster centred at a row, with σ = 1."""
        only = np.zeros(1, dtype=np.int64)
        new = self._fitted(row[None], np.ones(1), only, 1)
        new.chosen[0] = chosen
        if self.spec.fixed_variance is None:
            new.variances[0] = self.columns.units
        return new

    def update(self, labels: IntArray, K: int) -> Clusters:
        """Means, frequencies, variances and features of clusters, from their rows."""
        return self._fitted(self.X, self.weights, labels, K)

    def _fitted(self, X: Array, weights: Array, labels: IntArray, K: int) -> Clusters:
        T = len(self.columns.costs)
        sums = _empty_sums(K, self.D, T)
        sum_rows(X, weights, labels, self.columns.first, sums)
        chosen = np.zeros((K, self.D), dtype=np.bool_)
        means, variances = np.zeros((2, K, self.D))
        clusters = Clusters(chosen, means, variances, np.zeros((K, T)))
        fit_clusters(sums, self.columns, self.rules, clusters)
        return clusters

    def walk(
        self, row: int, clusters: Clusters, K: int, limit: float, labels: IntArray
    ) -> int:
        """Assign rows from `row` on; the first that costs more than `limit`."""
        stop: int = walk_rows(
            self.X, self.weights, row, clusters, K, self.columns,
            Penalties(self.constants.F_delta, limit), labels,
        )  # fmt: skip
        return stop

    def objective(self, clusters: Clusters, labels: IntArray, penalty: float) -> float:
        """The objective as printed in section 2."""
        rows = total_cost(self.X, self.weights, labels, clusters, self.columns)
        opening = (penalty + self.D * self.constants.F0) * len(clusters.chosen)
        features = self.constants.F_delta * np.count_nonzero(clusters.chosen)
        return float(rows + opening + features)

    def mean_costs(self, row: Array) -> Array:
        """What rows cost in a cluster opened by `row`, on average over v."""
        without, within = np.empty((2, len(self.X), 1))
        for out, choice in ((without, False), (within, True)):
            cluster = self.opened(row, np.full(self.D, choice))
            cost_table(self.X, cluster, self.columns, self.constants.F_delta, out)
        m = self.spec.fraction
        average: Array = (1.0 - m) * without[:, 0] + m * within[:, 0]
        return average


def _columns(X: Array, weights: Array, levels: tuple[int | None, ...]) -> Columns:
    first, widths = _layout(levels)
    whole = _empty_sums(1, X.shape[1], int(widths.sum()))
    sum_rows(X, weights, np.zeros(len(X), dtype=np.int64), first, whole)
    seen, means = np.maximum(whole.seen[0], 1e-300), whole.means[0]
    variances = whole.squares[0] / seen
    constant = variances <= 1e-24 * means**2
    with np.errstate(divide="ignore"):  # categories that no row has
        costs = -np.log(whole.counts[0] / np.repeat(seen, widths))
    units = np.where(constant, 1.0, variances)
    return Columns(first, widths, means, units, constant, costs)


def _layout(levels: tuple[int | None, ...]) -> tuple[IntArray, IntArray]:
    """Where each column's categories begin (-1: numbers), and how many they are."""
    widths = np.array([level or 0 for level in levels], dtype=np.int64)
    return np.where(widths > 0, np.cumsum(widths) - widths, -1), widths


def _empty_sums(K: int, D: int, T: int) -> Sums:
    return Sums(np.zeros((K, D)), np.zeros((K, D)), np.zeros((K, D)), np.zeros((K, T)))


def _checked(X: Array, n_columns: int) -> Array:
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != n_columns:
        raise DataError(f"Rows must have {n_columns} columns; got shape {X.shape}.")
    if np.isinf(X).any():
        column = int(np.flatnonzero(np.isinf(X).any(axis=0))[0])
        raise NotFiniteError(f"Column {column} holds infinity; make it NaN, missing.")
    return X


def _refuse_codes(X: Array, levels: tuple[int | None, ...]) -> None:
    for d, level in enumerate(levels):
        codes = X[:, d]
        if level is not None and np.any((codes < 0.0) | (codes >= level)):
            raise DataError(f"Column {d} must hold codes from 0 to {level - 1}.")


def known_rows(X: Array, columns: Columns) -> Array:
    """Rows with NaN in place of categories that the fit did not see."""
    X = _checked(X, len(columns.first)).copy()
    for d in np.flatnonzero(columns.first >= 0):
        first, width = columns.first[d], columns.widths[d]
        seen = np.flatnonzero(np.isfinite(columns.costs[first : first + width]))
        X[~np.isin(X[:, d], seen), d] = np.nan
    return X


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _budget(m: float, n: int) -> int:
    return max(1, int(m * n + 0.5)) if n else 0
