"""How the columns of a mixed table become numbers and codes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray
from kplus.craft.kernels import Columns, Encoded
from kplus.craft.kernels_encode import Categories, Numbers, encode_rows, yeo_johnson

__all__ = ["Layout", "Rows", "sample_size"]

_N_BINS = 6
_SAMPLE_VALUES = 2**21
_FEWEST_SAMPLE_ROWS = 2_000


@dataclass(frozen=True)
class Rows:
    """Encoded rows: see `kplus.craft.kernels_encode`."""

    numbers: Array
    codes: IntArray
    weights: Array

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def encoded(self) -> Encoded:
        """As the kernels want them."""
        return Encoded(self.numbers, self.codes, self.weights)

    def take(self, rows: IntArray) -> "Rows":
        return Rows(self.numbers[rows], self.codes[rows], self.weights[rows])


@dataclass(frozen=True)
class Layout:
    """Which columns count as numbers, which as categories, and in what units.

    The features of the kernels are the scored numbers, then the categories. A number
    column that is cut into categories, or transformed, is noted in its own units as
    well, for reports; it is not scored twice.

    Attributes
    ----------
    levels : tuple of (int or None)
        Number of categories of each column of the table; None: numbers.
    numeric : {"gaussian", "quantile", "yeo-johnson"}
        How numbers are seen.
    numbers : (P,) int
        Columns of the numbers, the scored ones first.
    scored : int
        How many of them count.
    powers, origins, scales : (P,) float
        Exponent of Yeo and Johnson (NaN: none), and the units.
    categories : (Q,) int
        Columns of the categories, and of the numbers that are cut.
    edges : (Q, most) float
        Where numbers are cut; NaN where there is no cut.
    widths : (Q,) int
        Number of categories.
    """

    levels: tuple[int | None, ...]
    numeric: str
    numbers: IntArray
    scored: int
    powers: Array
    origins: Array
    scales: Array
    categories: IntArray
    edges: Array
    widths: IntArray

    @classmethod
    def of(
        cls, X: Array, weights: Array, levels: tuple[int | None, ...], numeric: str
    ) -> "Layout":
        """The layout of a table of which X are rows."""
        plain = np.array([d for d, n in enumerate(levels) if n is None], dtype=np.int64)
        coded = np.array(
            [d for d, n in enumerate(levels) if n is not None], dtype=np.int64
        )
        widths = np.array([levels[d] for d in coded], dtype=np.int64)
        edges = np.full((len(coded), _N_BINS - 1), np.nan)
        units = [_units(X[:, d], weights) for d in plain]
        numbers, powers, scored = plain, np.full(len(plain), np.nan), len(plain)
        if numeric == "yeo-johnson":
            powers = np.array([_power(X[:, d]) for d in plain])
            changed = [
                _units(_transformed(X[:, d], p), weights)
                for d, p in zip(plain, powers, strict=True)
            ]
            numbers, units = np.concatenate([plain, plain]), changed + units
            powers = np.concatenate([powers, np.full(len(plain), np.nan)])
        elif numeric == "quantile":
            scored = 0
            cuts = [_cuts(X[:, d], weights) for d in plain]
            padded = np.full((len(plain), _N_BINS - 1), np.nan)
            for line, cut in zip(padded, cuts, strict=True):
                line[: len(cut)] = cut
                if not len(cut):  # one part only, but it is one of numbers
                    line[0] = np.inf
            coded = np.concatenate([coded, plain])
            edges = np.vstack([edges, padded])
            widths = np.concatenate(
                [widths, np.array([len(cut) + 1 for cut in cuts], dtype=np.int64)]
            )
        origins, scales = np.array(units).reshape(-1, 2).T
        return cls(
            levels, numeric, numbers, scored, powers,
            np.ascontiguousarray(origins), np.ascontiguousarray(scales),
            coded, edges, widths,
        )  # fmt: skip

    @cached_property
    def starts(self) -> IntArray:
        """Where the places of each category column begin; each has one for missing."""
        starts: IntArray = np.concatenate(
            [[0], np.cumsum(self.widths + 1)[:-1]]
        ).astype(np.int64)[: len(self.widths)]
        return starts

    @property
    def P(self) -> int:
        return len(self.numbers)

    @property
    def sums(self) -> Columns:
        """Where the sums of columns are, for the kernels."""
        return Columns(self.P, self.scored, self.starts, self.widths)

    @cached_property
    def n_sums(self) -> int:
        """Length of the sums of a cluster."""
        return 3 * self.P + int(np.sum(self.widths + 1))

    @cached_property
    def columns(self) -> IntArray:
        """The column of each feature of the kernels."""
        columns: IntArray = np.concatenate(
            [self.numbers[: self.scored], self.categories]
        )
        return columns

    def by_column(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reorder the last axis from one entry per feature to one entry per column."""
        out = np.empty_like(values)
        out[..., self.columns] = values
        return out

    def places(self, q: int) -> slice:
        """Where the sums of a category column are."""
        first = 3 * self.P + int(self.starts[q])
        return slice(first, first + int(self.widths[q]))

    def missing(self, sums: Array, total: float) -> Array:
        """Weight of the rows without a value in each column of the table."""
        out = np.empty(len(self.levels))
        for p in range(self.P):
            out[self.numbers[p]] = total - sums[p]
        for q in range(len(self.widths)):
            out[self.categories[q]] = sums[self.places(q).stop]
        # Weights that are no whole numbers leave rounding.
        return np.where(np.abs(out) < 1e-9 * total, 0.0, out)

    def moments(self, sums: Array, column: int) -> tuple[float, float, float]:
        """Weight, mean and standard deviation of numbers, in units of the data."""
        plain = (self.numbers == column) & np.isnan(self.powers)
        p = int(np.flatnonzero(plain)[0])
        n = float(sums[p])
        if n <= 0.0:
            return 0.0, 0.0, 0.0
        z = float(sums[self.P + p]) / n
        spread = max(float(sums[2 * self.P + p]) / n - z * z, 0.0)
        scale = float(self.scales[p])
        return n, float(self.origins[p]) + scale * z, scale * float(np.sqrt(spread))

    def check(self, n_columns: int) -> None:
        """Refuse parts that do not fit together; they may come from a damaged file."""
        P, Q = len(self.numbers), len(self.categories)
        right = bool(
            len(self.levels) == n_columns
            and 0 <= self.scored <= P
            and all(len(part) == P for part in (self.powers, self.origins, self.scales))
            and len(self.widths) == Q
            and self.edges.shape == (Q, _N_BINS - 1)
            and np.array_equal(np.sort(self.columns), np.arange(n_columns))
            and np.all((self.numbers >= 0) & (self.numbers < n_columns))
            and np.all((self.widths >= 1) & (self.widths <= 2**31))
        )
        for q in range(Q if right else 0):
            wide = self.levels[self.categories[q]]
            cut = not np.isnan(self.edges[q, 0])
            parts = np.count_nonzero(np.isfinite(self.edges[q])) + 1
            right &= cut == (wide is None)
            right &= bool(self.widths[q] == (parts if wide is None else wide))
        if not right:
            raise ValueError("the layout's parts do not fit together.")

    def encode(self, X: Array, weights: Array | None = None) -> Rows:
        X = np.ascontiguousarray(X, dtype=np.float64)
        numbers = np.empty((len(X), 3 * self.P))
        codes = np.empty((len(X), len(self.widths)), dtype=np.int64)
        plain = Numbers(self.numbers, self.powers, self.origins, self.scales)
        coded = Categories(self.categories, self.starts, self.widths, self.edges)
        encode_rows(X, plain, coded, numbers, codes)
        return Rows(numbers, codes, np.ones(len(X)) if weights is None else weights)


def sample_size(most: int, n_features: int) -> int:
    """How many rows are taken into memory: of wide tables fewer."""
    return min(most, max(_SAMPLE_VALUES // n_features, _FEWEST_SAMPLE_ROWS))


def _units(x: Array, weights: Array) -> tuple[float, float]:
    """Mean and standard deviation of what is there; 1 where all is the same."""
    there = ~np.isnan(x)
    if not np.any(weights[there] > 0.0):
        return 0.0, 1.0
    x, weights = x[there], weights[there]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.average(x, weights=weights))
        scale = float(np.sqrt(np.average((x - mean) ** 2, weights=weights)))
    good = np.isfinite(scale) and scale > 1e-14 * abs(mean)
    return mean if np.isfinite(mean) else 0.0, scale if good else 1.0


def _transformed(x: Array, power: float) -> Array:
    if np.isnan(power):
        return x
    out = np.empty_like(x)
    yeo_johnson(np.ascontiguousarray(x), power, out)
    return out


def _power(x: Array) -> float:
    """The exponent that makes a column most like a Gaussian, in its likelihood."""
    x = x[np.isfinite(x)]
    if len(x) < 3 or np.ptp(x) == 0.0:
        return np.nan
    slope = np.sum(np.sign(x) * np.log1p(np.abs(x)))

    def against(power: float) -> float:
        spread = float(np.var(_transformed(x, power)))
        if not np.isfinite(spread) or spread <= 0.0:
            return np.inf
        return float(0.5 * len(x) * np.log(spread) - (power - 1.0) * slope)

    from scipy.optimize import minimize_scalar  # imports take .1 s

    return float(minimize_scalar(against, bounds=(-3.0, 5.0), method="bounded").x)


def _cuts(x: Array, weights: Array) -> Array:
    """Where to cut a column into parts of about the same weight; values stay whole."""
    there = np.isfinite(x) & (weights > 0.0)
    values, at = np.unique(x[there], return_inverse=True)
    if len(values) < 2:
        return np.empty(0)
    below = np.cumsum(np.bincount(at, weights=weights[there]))
    targets = below[-1] * np.arange(1, _N_BINS) / _N_BINS
    last = np.unique(np.minimum(np.searchsorted(below, targets), len(values) - 2))
    cuts: Array = 0.5 * (values[last] + values[last + 1])
    return cuts
