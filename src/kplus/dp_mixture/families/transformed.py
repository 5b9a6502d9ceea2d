"""Columns of numbers in units in which they are nearer to normal.

A column x becomes y = T(x), one-to-one and smooth, so that the density of a row is
p(x) = p(y) Π |T'(x)|: bounds with and without such units compare.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from kplus.core.errors import DataError
from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import label, refuse_categories, refuse_infinite
from kplus.dp_mixture.families.family import Columns, Family, of_columns
from kplus.dp_mixture.families.gaussian import Gaussian
from kplus.dp_mixture.families.inner import InnerFamily
from kplus.dp_mixture.families.learning import resolutions

__all__ = ["KINDS", "Transformed", "TransformedFamily", "recognised"]

KINDS = ("none", "log", "logit")
_NONE, _LOG, _LOGIT = range(len(KINDS))
_SKEWED = 0.3  # quantile skewness from which a column is skewed
_DISTINCT = 0.25  # share of values that must differ: others are steps, not a curve
_FEWEST = 20  # values


@dataclass(frozen=True, eq=False)
class Transformed:
    """Numbers in units of their own: logarithms of skewed columns, logits of shares.

    Parameters
    ----------
    numbers : Likelihood, default=Gaussian()
        What the columns are in their new units.
    transforms : "auto" or dict, default="auto"
        A transform for each column that is to have one, by its name or position:
        "log" (positive and skewed to the right), "logit" (shares between 0 and 1) or
        "none". "auto" takes the columns that look so.

    Notes
    -----
    "auto" takes the logarithm of a column whose values are all positive, of which at
    least a quarter differ, and whose quantile skewness, (q95 + q05 - 2 q50) /
    (q95 - q05), is above 0.3 and nearer to 0 in logarithms; and the logit of one
    between 0 and 1 that is nearer to 0 in logits. Beyond half of the smallest value
    (for shares also beyond half of the rest of the largest) both go on as straight
    lines, so that no later value is out of bounds.

    ``means_`` are in the units of the data (of a logarithm the median), all other
    attributes in the new ones. ``log_columns_`` and ``logit_columns_`` are the
    positions of the columns that have such units.

    Examples
    --------
    >>> from kplus.observations import DiagGaussian, Transformed
    >>> incomes = Transformed(DiagGaussian(), transforms={"income": "log"})
    """

    numbers: Any = field(default_factory=Gaussian)
    transforms: Any = "auto"

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "TransformedFamily":
        refuse_categories(columns, "transformed")
        refuse_infinite(sample, columns.names)
        kinds = recognised(sample)
        if not isinstance(self.transforms, str) or self.transforms != "auto":
            kinds = _given(self.transforms, columns)
        _refuse_outside(sample, kinds, columns.names)
        units = Units.of(sample, kinds)
        inner = self.numbers.resolve(units.transform(sample), weights, columns)
        if np.any(getattr(inner, "resolution", 0.0)):
            # A step of x is one of T'(x) times that, which is not the same everywhere.
            steps = resolutions(sample) * units.mean_square_slopes(sample)
            rounded = (kinds != _NONE) & _has_ties(sample)
            own = inner.resolution * np.ones(len(kinds))
            resolution = np.where(rounded, steps * inner.inv**2, own)
            inner = replace(inner, resolution=resolution)
        return TransformedFamily(units.kinds, units.low, units.high, inner)


def recognised(sample: Array) -> IntArray:
    """What the columns of a sample look like, by the numbers of `KINDS`."""
    kinds = np.zeros(sample.shape[1], np.int64)
    for d, x in enumerate(sample.T.astype(np.float64)):
        x = x[~np.isnan(x)]
        if len(x) < _FEWEST or x.min() <= 0.0:
            continue
        if len(np.unique(x)) < _DISTINCT * len(x):
            continue
        skew, log_skew = _skewness(x), _skewness(np.log(x))
        if x.max() < 1.0 and abs(_skewness(logit(x))) < min(abs(skew), abs(log_skew)):
            kinds[d] = _LOGIT if abs(skew) > _SKEWED else _NONE
        elif skew > _SKEWED and abs(log_skew) < skew:
            kinds[d] = _LOG
    return kinds


def _has_ties(sample: Array) -> NDArray[np.bool_]:
    """Which columns hold a value twice: they were rounded."""
    seen = (x[~np.isnan(x)] for x in sample.T)
    return np.array([len(np.unique(x)) < len(x) for x in seen], np.bool_)


def _skewness(x: Array) -> float:
    """By quantiles, between -1 and 1."""
    low, middle, high = np.quantile(x, [0.05, 0.5, 0.95])
    return float((high + low - 2.0 * middle) / max(high - low, 1e-300))


def _given(transforms: Any, columns: Columns) -> IntArray:
    if not isinstance(transforms, dict):
        raise ValueError(
            f"transforms must be 'auto' or a dict of columns, got {transforms!r}."
        )
    kinds = np.zeros(len(columns.names), np.int64)
    for column, kind in transforms.items():
        known = columns.names if isinstance(column, str) else range(len(kinds))
        if column not in known:
            raise ValueError(
                f"transforms names the column {column!r}, which the table does not "
                f"have among its numbers."
            )
        if kind not in KINDS:
            raise ValueError(
                f"transforms gives {column!r} {kind!r}; it may be one of {KINDS}."
            )
        kinds[known.index(column)] = KINDS.index(kind)
    return kinds


def _refuse_outside(sample: Array, kinds: IntArray, names: tuple[str, ...]) -> None:
    for d in np.flatnonzero(kinds):
        x = sample[:, d]
        if np.any(x <= 0.0) or (kinds[d] == _LOGIT and np.any(x >= 1.0)):
            where = "above 0" if kinds[d] == _LOG else "between 0 and 1"
            raise DataError(
                f"{label(names[d])} holds values that are not {where}, so that it "
                f"cannot be transformed by {KINDS[kinds[d]]!r}; choose another."
            )


@dataclass(frozen=True, eq=False)
class Units:
    """T of each column: curved from `low` to `high`, straight lines beyond."""

    kinds: IntArray
    low: Array
    high: Array

    @classmethod
    def of(cls, sample: Array, kinds: IntArray) -> Self:
        X = sample.astype(np.float64)
        low, high = np.zeros(len(kinds)), np.ones(len(kinds))
        if np.any(kinds != _NONE):
            low = np.where(kinds == _NONE, 0.0, 0.5 * np.fmin.reduce(X, axis=0))
            high = np.where(kinds == _LOGIT, 0.5 + 0.5 * np.fmax.reduce(X, axis=0), 1.0)
        return cls(kinds, low, high)

    def _curved(self) -> IntArray:
        return np.flatnonzero(self.kinds != _NONE)

    def _inside(self, x: Array, d: int) -> Array:
        """Where values are, or the line that they are on begins."""
        top = self.high[d] if self.kinds[d] == _LOGIT else np.inf
        out: Array = np.clip(x, self.low[d], top)
        return out

    def transform(self, X: Array) -> Array:
        """Rows in the new units; NaN stays NaN."""
        out = np.array(X, dtype=np.float64, order="C")
        for d in self._curved():
            x = out[:, d]
            at = self._inside(x, d)
            curve = np.log(at) if self.kinds[d] == _LOG else logit(at)
            out[:, d] = curve + (x - at) * self._slopes(at, d)
        return out

    def inverse_transform(self, Y: Array) -> Array:
        out = np.array(Y, dtype=np.float64)
        for d in self._curved():
            y = out[..., d]
            ends = np.array([self.low[d], self.high[d]])
            if self.kinds[d] == _LOG:
                bottom, top = float(np.log(ends[0])), np.inf
            else:
                bottom, top = (float(v) for v in logit(ends))
            on = np.clip(y, bottom, top)
            with np.errstate(over="ignore"):
                x = np.exp(on) if self.kinds[d] == _LOG else expit(on)
            out[..., d] = x + (y - on) / self._slopes(x, d)
        return out

    def _slopes(self, at: Array, d: int) -> Array:
        """T'(x) of places on the curve."""
        if self.kinds[d] == _LOG:
            return 1.0 / at
        return 1.0 / (at * (1.0 - at))

    def log_slopes(self, X: Array) -> Array:
        """Σ log T'(x) of each row, over the values that it has."""
        out = np.zeros(len(X))
        for d in self._curved():
            at = self._inside(X[:, d].astype(np.float64), d)
            out += np.where(np.isnan(at), 0.0, np.log(self._slopes(at, d)))
        return out

    def mean_square_slopes(self, X: Array) -> Array:
        """Mean of T'(x)² by column."""
        out = np.ones(len(self.kinds))
        for d in self._curved():
            x = X[:, d].astype(np.float64)
            at = self._inside(x[~np.isnan(x)], d)
            out[d] = np.mean(np.square(self._slopes(at, d)))
        return out


@dataclass(frozen=True, eq=False)
class TransformedFamily(InnerFamily):
    """See `Transformed`; everything but log h is that of `inner` in the new units."""

    kinds: IntArray
    low: Array
    high: Array
    inner: Family

    def consistent(self) -> bool:
        D = self.inner.n_columns
        shapes = of_columns(D, self.kinds, self.low, self.high)
        known = np.all((self.kinds >= 0) & (self.kinds < len(KINDS)))
        lows = np.all((self.low > 0.0) | (self.kinds == _NONE))
        return bool(shapes and known and lows and len(self.kinds) == D)

    @property
    def units(self) -> Units:
        return Units(self.kinds, self.low, self.high)

    @property
    def n_columns(self) -> int:
        return self.inner.n_columns

    def _in(self, X: Array) -> Array:
        return self.units.transform(X)

    def check(self, X: Array) -> None:
        self.inner.check(self._in(X))

    def log_base(self, X: Array) -> Array:
        return self.inner.log_base(self._in(X)) + self.units.log_slopes(X)

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        out = self.inner.log_predictive(N, S, self._in(X))
        out += self.units.log_slopes(X)[:, None]
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        return self.units.inverse_transform(self.inner.draw(N, S, counts, rng))

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """Means in the new units, brought back: those of exp(y) may be infinite."""
        return self._out(self.inner.fill(N, S, self._in(X), shares), X)

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        return self._out(self.inner.draw_missing(N, S, self._in(X), components, rng), X)

    def _out(self, Y: Array, X: Array) -> Array:
        """X with what was missing from Y, in the units of the data."""
        return np.where(np.isnan(X), self.units.inverse_transform(Y), X)

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        out = dict(self.inner.attributes(N, S))
        if "means_" in out:
            out["means_"] = self.units.inverse_transform(out["means_"])
        for kind in (_LOG, _LOGIT):
            out[f"{KINDS[kind]}_columns_"] = np.flatnonzero(self.kinds == kind)
        return out
