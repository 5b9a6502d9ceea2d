"""Units of columns of numbers: one-to-one, smooth, and what suits a column.

Beyond the values seen logarithms and logits go on as straight lines. A power, by Yeo
and Johnson (2000), about the least value takes off a tail to the right, about the
largest one to the left; it is defined for all numbers.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import boxcox1p, expit, inv_boxcox1p, logit

from kplus.core.types import Array, IntArray

__all__ = ["KINDS", "LOG", "LOGIT", "NONE", "POWER", "Units", "recognised", "suiting"]

KINDS = ("none", "log", "logit", "power")
NONE, LOG, LOGIT, POWER = range(len(KINDS))
_SKEWED = 0.3  # quantile skewness from which a column looks skewed
_DISTINCT = 0.25  # share of values that must differ: others are steps, not a curve
_FEWEST = 20  # values
_POWERS = (0.0, 1.0 / 3.0)  # of a tail to the right; 2 less these to the left
_SCALES = (0.1, 0.5)  # quantiles that tell how far from the end a tail is bent


@dataclass(frozen=True, eq=False)
class Units:
    """y = T(x) of each column.

    Attributes
    ----------
    kinds : array of shape (D,)
        Numbers of `KINDS`.
    low, high : arrays of shape (D,)
        Where a curve begins and ends; of a power its centre and its scale.
    powers : array of shape (D,)
    """

    kinds: IntArray
    low: Array
    high: Array
    powers: Array

    @classmethod
    def of(cls, sample: Array, kinds: IntArray) -> Self:
        """Logarithms and logits of columns with these values."""
        X = sample.astype(np.float64)
        low, high = np.zeros(len(kinds)), np.ones(len(kinds))
        if np.any(kinds != NONE):
            low = np.where(kinds == NONE, 0.0, 0.5 * np.fmin.reduce(X, axis=0))
            high = np.where(kinds == LOGIT, 0.5 + 0.5 * np.fmax.reduce(X, axis=0), 1.0)
        return cls(kinds, low, high, np.ones(len(kinds)))

    def changed(self, d: int, other: "Units") -> "Units":
        """The same with the only column of `other` in place of column d."""
        arrays = [array.copy() for array in vars(self).values()]
        for mine, its in zip(arrays, vars(other).values(), strict=True):
            mine[d] = its[0]
        return Units(*arrays)

    def same(self, other: "Units") -> bool:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(np.array_equal(one, two) for one, two in pairs)

    def _curved(self) -> IntArray:
        return np.flatnonzero(self.kinds != NONE)

    def _inside(self, x: Array, d: int) -> Array:
        """Where values are, or the line that they are on begins."""
        if self.kinds[d] == POWER:
            return x
        top = self.high[d] if self.kinds[d] == LOGIT else np.inf
        out: Array = np.clip(x, self.low[d], top)
        return out

    def transform(self, X: Array) -> Array:
        """Rows in the new units; NaN stays NaN."""
        out = np.array(X, dtype=np.float64, order="C")
        for d in self._curved():
            x = out[:, d]
            if self.kinds[d] == POWER:
                z, power = (x - self.low[d]) / self.high[d], self.powers[d]
                right = boxcox1p(np.maximum(z, 0.0), power)
                left = -boxcox1p(np.maximum(-z, 0.0), 2.0 - power)
                out[:, d] = np.where(z >= 0.0, right, left)
                continue
            at = self._inside(x, d)
            curve = np.log(at) if self.kinds[d] == LOG else logit(at)
            out[:, d] = curve + (x - at) * np.exp(self._log_slopes(at, d))
        return out

    def inverse_transform(self, Y: Array) -> Array:
        out = np.array(Y, dtype=np.float64)
        for d in self._curved():
            y = out[..., d]
            if self.kinds[d] == POWER:
                out[..., d] = self._power_back(y, d)
                continue
            ends = np.array([self.low[d], self.high[d]])
            if self.kinds[d] == LOG:
                bottom, top = float(np.log(ends[0])), np.inf
            else:
                bottom, top = (float(v) for v in logit(ends))
            on = np.clip(y, bottom, top)
            with np.errstate(over="ignore"):
                x = np.exp(on) if self.kinds[d] == LOG else expit(on)
            out[..., d] = x + (y - on) / np.exp(self._log_slopes(x, d))
        return out

    def _power_back(self, y: Array, d: int) -> Array:
        power = self.powers[d]
        with np.errstate(over="ignore"):
            right = inv_boxcox1p(np.maximum(y, 0.0), power)
            left = -inv_boxcox1p(np.maximum(-y, 0.0), 2.0 - power)
        out: Array = np.where(y >= 0.0, right, left) * self.high[d] + self.low[d]
        return out

    def _log_slopes(self, at: Array, d: int) -> Array:
        """log T'(x) of places on the curve."""
        if self.kinds[d] == LOG:
            return -np.log(at)
        if self.kinds[d] == LOGIT:
            return -np.log(at * (1.0 - at))
        z = (at - self.low[d]) / self.high[d]
        bent = (self.powers[d] - 1.0) * np.sign(z) * np.log1p(np.abs(z))
        out: Array = bent - np.log(self.high[d])
        return out

    def log_slopes(self, X: Array) -> Array:
        """Σ log T'(x) of each row, over the values that it has."""
        out = np.zeros(len(X))
        for d in self._curved():
            at = self._inside(X[:, d].astype(np.float64), d)
            out += np.where(np.isnan(at), 0.0, self._log_slopes(at, d))
        return out

    def mean_square_slopes(self, X: Array) -> Array:
        """Mean of T'(x)² by column."""
        out = np.ones(len(self.kinds))
        for d in self._curved():
            x = X[:, d].astype(np.float64)
            at = self._inside(x[~np.isnan(x)], d)
            out[d] = np.mean(np.exp(2.0 * self._log_slopes(at, d)))
        return out


def _is_curve(x: Array) -> bool:
    """Whether a column's values differ enough to have a shape."""
    many = len(x) >= _FEWEST and len(np.unique(x)) >= _DISTINCT * len(x)
    return bool(many and np.ptp(x) > 1e-9 * np.abs(x).max())


def suiting(x: Array) -> list[Units]:
    """What a column may be measured in, each as units of one column; its own first."""
    column, x = x.astype(np.float64)[:, None], x[~np.isnan(x)].astype(np.float64)
    kinds = [NONE]
    if not _is_curve(x):
        return [Units.of(column, np.array(kinds))]
    kinds += [LOG] if x.min() > 0.0 else []
    kinds += [LOGIT] if x.min() > 0.0 and x.max() < 1.0 else []
    out = [Units.of(column, np.array([kind])) for kind in kinds]
    for end, side, turn in ((x.min(), 1.0, 0.0), (x.max(), -1.0, 2.0)):
        for quantile in _SCALES:
            far = float(np.quantile(np.abs(x - end), quantile))
            if far > 1e-6 * np.ptp(x):
                out += [
                    Units(
                        np.array([POWER]), np.array([end]), np.array([far]),
                        np.array([turn + side * power]),
                    )
                    for power in _POWERS
                ]  # fmt: skip
    return out


def recognised(sample: Array) -> IntArray:
    """What the columns of a sample look like as a whole, by the numbers of `KINDS`."""
    kinds = np.zeros(sample.shape[1], np.int64)
    for d, x in enumerate(sample.T.astype(np.float64)):
        x = x[~np.isnan(x)]
        if not _is_curve(x) or x.min() <= 0.0:
            continue
        skew, log_skew = _skewness(x), _skewness(np.log(x))
        if x.max() < 1.0 and abs(_skewness(logit(x))) < min(abs(skew), abs(log_skew)):
            kinds[d] = LOGIT if abs(skew) > _SKEWED else NONE
        elif skew > _SKEWED and abs(log_skew) < skew:
            kinds[d] = LOG
    return kinds


def _skewness(x: Array) -> float:
    """By quantiles, between -1 and 1."""
    low, middle, high = np.quantile(x, [0.05, 0.5, 0.95])
    return float((high + low - 2.0 * middle) / max(high - low, 1e-300))
