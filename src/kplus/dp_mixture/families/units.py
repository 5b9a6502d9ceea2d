"""Units in which columns neither cancel nor overflow, at any offset and scale."""

from dataclasses import dataclass

import numpy as np

from kplus.core.types import Array
from kplus.dp_mixture.families.defaults import CONSTANT_SHARE

__all__ = ["FARTHEST", "LARGEST", "Units", "column_moments"]

LARGEST = 1e153  # squares of numbers up to here are numbers ...
FARTHEST = 1e100  # ... and squares of so many standard deviations can be summed


@dataclass(frozen=True, eq=False)
class Units:
    """How rows are looked at: ``y = (x - origin) * inv``, column by column.

    `inv` holds powers of two, so that scaling is exact.
    """

    origin: Array  # (D,)
    inv: Array  # (D,)

    @classmethod
    def on(cls, origin: Array, variances: Array) -> "Units":
        """About `origin`, with standard deviations brought to between 1/2 and 1."""
        _, exponent = np.frexp(np.sqrt(variances))
        return cls(origin, np.ldexp(1.0, -np.clip(exponent, -1000, 1000)))

    @property
    def log_inv(self) -> Array:
        """What log densities gain, by column, when they go back to the data's units."""
        out: Array = np.log(self.inv)
        return out

    def view(self, X: Array) -> Array:
        """Rows in these units, C-contiguous float64; NaN stays NaN."""
        out: Array = np.subtract(X, self.origin, dtype=np.float64, order="C")
        out *= self.inv
        return out

    def back(self, Y: Array) -> Array:
        """Rows in the units of the data."""
        out: Array = Y / self.inv + self.origin
        return out


def column_moments(sample: Array, weights: Array | None) -> tuple[Array, Array]:
    """Mean and variance of each column's values that are not missing.

    The variance is always positive: a column that is constant in the sample gets the
    square of a thousandth of its value, or 1 where the value is 0. A column without
    any value has mean 0 and variance 1.
    """
    w = np.ones(len(sample)) if weights is None else np.asarray(weights, np.float64)
    seen = ~np.isnan(sample) & (w > 0.0)[:, None]
    X = np.where(seen, sample, 0.0).astype(np.float64)
    # Squares of values near 1 are numbers, whatever those of the values are.
    peak = np.max(np.abs(X), axis=0, initial=0.0)
    _, exponent = np.frexp(peak)
    Y = np.ldexp(X, -exponent)
    share = np.where(seen, w[:, None], 0.0)
    share /= np.maximum(share.sum(axis=0), np.finfo(float).tiny)
    means = np.einsum("nd,nd->d", share, Y)
    variances = np.einsum("nd,nd->d", share, np.square(Y - means))
    low = np.min(Y, axis=0, initial=np.inf, where=seen)
    high = np.max(Y, axis=0, initial=-np.inf, where=seen)
    # A few roundings apart is the same; the sums above may round as much.
    constant = high - low <= 4.0 * np.finfo(float).eps
    stand_in = np.where(
        peak > 0.0, np.square(CONSTANT_SHARE * np.ldexp(peak, -exponent)), 1.0
    )
    variances = np.where(constant, stand_in, variances)
    return np.ldexp(means, exponent), np.ldexp(variances, 2 * exponent)
