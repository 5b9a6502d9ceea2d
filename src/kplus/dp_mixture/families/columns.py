"""What families share about columns: default priors, scaling, settings, checks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kplus.core.errors import DataError
from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.kernels import count_beyond

__all__ = [
    "CATEGORY_STRENGTH",
    "DOF",
    "FARTHEST",
    "LARGEST",
    "MEAN_STRENGTH",
    "POISSON_STRENGTH",
    "VARIANCE_SHARE",
    "Scaling",
    "Setting",
    "column_moments",
    "contiguous",
    "count_means",
    "draw_codes",
    "label",
    "log_factorials",
    "observed_sums",
    "per_column",
    "positive",
    "refuse_categories",
    "refuse_empty",
    "refuse_far",
    "refuse_infinite",
    "refuse_no_counts",
    "refuse_numbers",
    "refuse_values",
    "rescaled_sum",
    "row_totals",
    "row_weights",
    "setting",
    "sum_over_columns",
    "values",
    "varies",
]

# Expected variance inside a component, as a share of the column's variance.
VARIANCE_SHARE = 0.5

# Rows that the prior mean of a component is worth. Small, so that a component ten
# times narrower than expected may still lie anywhere among the data.
MEAN_STRENGTH = 0.01

# Degrees of freedom of the prior of one column's variance: the smallest whole number
# with which the variance has an expectation. D columns that share one have D - 1 more.
DOF = 3.0

# Standard deviation that stands in for that of a constant column, as a share of the
# size of its value; 1 where the value is 0.
_CONSTANT_SHARE = 1e-3

# Rows that the prior of a column of categories is worth.
CATEGORY_STRENGTH = 2.0

# Rows, and counts, that the prior of a Poisson rate is worth at most.
POISSON_STRENGTH = 1.0

LARGEST = 1e153  # squares of numbers up to here are numbers ...
FARTHEST = 1e100  # ... and squares of so many standard deviations can be summed


@dataclass(frozen=True, eq=False)
class Scaling:
    """Scaled units of rows: ``y = (x - origin) * inv``, column by column.

    `inv` holds powers of two, so that scaling is exact.
    """

    origin: Array  # (D,)
    inv: Array  # (D,)

    @classmethod
    def from_moments(cls, origin: Array, variances: Array) -> "Scaling":
        """About `origin`, with standard deviations brought to between 1/2 and 1."""
        _, exponent = np.frexp(np.sqrt(variances))
        return cls(origin, np.ldexp(1.0, -np.clip(exponent, -1000, 1000)))

    @property
    def log_inv(self) -> Array:
        """What log densities gain, by column, when they go back to the data's units."""
        out: Array = np.log(self.inv)
        return out

    def holds(self, X: Array, gaps: bool = False) -> bool:
        """Whether rows are surely not too far out; `gaps` says whether NaN may be.

        False where only a closer look can tell.
        """
        with np.errstate(over="ignore"):
            farthest = np.min(FARTHEST / self.inv - np.abs(self.origin))
        flat = contiguous(X).reshape(-1)
        n_beyond, n_missing = count_beyond(flat, min(LARGEST, float(farthest)))
        return n_beyond == 0 and (gaps or n_missing == 0)

    def transform(self, X: Array) -> Array:
        """Rows in scaled units, C-contiguous float64; NaN stays NaN."""
        out: Array = np.subtract(X, self.origin, dtype=np.float64, order="C")
        out *= self.inv
        return out

    def inverse_transform(self, Y: Array) -> Array:
        """Rows in the units of the data."""
        out: Array = Y / self.inv + self.origin
        return out


def contiguous(X: Array) -> Array:
    """Rows as kernels take them, C-contiguous in float32 or float64."""
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    return np.ascontiguousarray(X, dtype=dtype)


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
        peak > 0.0, np.square(_CONSTANT_SHARE * np.ldexp(peak, -exponent)), 1.0
    )
    variances = np.where(constant, stand_in, variances)
    return np.ldexp(means, exponent), np.ldexp(variances, 2 * exponent)


# A prior setting: one number for all columns, one for each, or None (from the data).
Setting = float | Sequence[float] | Array | None


def refuse_values(
    X: Rows, bad: NDArray[np.bool_], names: tuple[str, ...], why: str
) -> None:
    """Raise at the first of the `values` of `X` that is marked `bad`."""
    if bad.any():
        place = tuple(np.argwhere(bad)[0])
        column = X.columns[place] if isinstance(X, SparseRows) else place[1]
        raise DataError(f"{label(names[column])} holds {values(X)[place]:.6g}; {why}")


def values(X: Rows) -> Array:
    """What rows hold: all of it, or of sparse rows each pair's value, once."""
    return X.values if isinstance(X, SparseRows) else X


def refuse_infinite(X: Array, names: tuple[str, ...]) -> None:
    """Raise at infinite values."""
    why = "infinite values cannot be used: leave them out, or mark them missing (NaN)."
    refuse_values(X, np.isinf(X), names, why)


def refuse_empty(sample: Array, names: tuple[str, ...], family: str) -> None:
    """Raise at a column without any value, of which matrices would know nothing."""
    empty = np.isnan(sample).all(axis=0)
    if empty.any():
        raise DataError(
            f"{label(names[int(np.argmax(empty))])} has no value in any of the rows "
            f"that observations={family!r} looked at; leave it out, or give "
            f"observations='diag_gaussian'."
        )


def refuse_far(X: Array, scaling: Scaling, names: tuple[str, ...]) -> None:
    """Raise at values that are infinite, or so far out that their squares overflow."""
    if scaling.holds(X, gaps=True):
        return
    refuse_infinite(X, names)
    with np.errstate(over="ignore"):
        far = np.abs(scaling.transform(X)) > FARTHEST
    why = "so far from the rest of the column no density can be computed; leave it out."
    refuse_values(X, far, names, why)


def refuse_categories(columns: Columns, family: str) -> None:
    """Raise where a column holds categories, for families of numbers."""
    for name, levels in zip(columns.names, columns.levels, strict=True):
        if levels is not None:
            raise DataError(
                f"{label(name)} holds categories, but observations={family!r} takes "
                "numbers; use 'mixed' for numbers and categories together, or "
                "'categorical' where all columns are categories."
            )


def refuse_numbers(columns: Columns, family: str) -> None:
    """Raise where a column does not hold categories, for families of categories."""
    for name, levels in zip(columns.names, columns.levels, strict=True):
        if levels is None:
            raise DataError(
                f"{label(name)} holds numbers, but observations={family!r} takes "
                "categories; use 'mixed' for numbers and categories together, or make "
                "it a column of text or categories in a data frame."
            )
        if levels < 1:
            raise DataError(f"{label(name)} has no values at all; leave it out.")


def label(name: str) -> str:
    """A column's name to begin a message with."""
    if name.startswith("column "):  # a table without names
        return name.capitalize()
    return f"Column {name!r}"


def positive(name: str, value: float, above: float = 0.0) -> float:
    """A setting that must be a finite number above `above`."""
    number = float(value)
    if not (above < number < np.inf):
        raise ValueError(f"{name} must be a number above {above:g}, got {value!r}.")
    return number


def per_column(name: str, value: Any, n_columns: int, sign: bool = False) -> Array:
    """A setting as one number for each column: above 0, or of any `sign`."""
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape not in ((), (n_columns,)):
        raise ValueError(
            f"{name} must be one number or one for each of the {n_columns} columns, "
            f"got an array of shape {numbers.shape}."
        )
    if not np.all(np.isfinite(numbers)) or not (sign or np.all(numbers > 0)):
        kind = "finite numbers" if sign else "finite numbers above 0"
        raise ValueError(f"{name} must hold {kind}, got {value!r}.")
    return np.full(n_columns, numbers)


def setting(name: str, value: Setting, default: Array) -> Array:
    """The user's setting as `per_column` has it, or the default where it is None."""
    return default if value is None else per_column(name, value, len(default))


def row_weights(sample: Rows, weights: Array | None) -> Array:
    """The weights of a sample's rows; all 1 where there are none that count."""
    if weights is None or not np.any(weights > 0):
        return np.ones(len(sample))
    return np.asarray(weights, dtype=np.float64)


def observed_sums(sample: Rows, weights: Array | None) -> tuple[Array, Array]:
    """Weight of the values that are not missing, and their weighted sum, by column."""
    w = row_weights(sample, weights)
    if isinstance(sample, SparseRows):
        gaps = sample.missing
        n = w.sum() - sample.by_column(w, gaps.astype(np.float64))
        return n, sample.by_column(w, np.where(gaps, 0.0, sample.values))
    seen = ~np.isnan(sample)
    return w @ seen, w @ np.where(seen, sample, 0.0).astype(np.float64)


def varies(sample: Array, weights: Array | None) -> NDArray[np.bool_]:
    """Which columns hold values that differ by more than a few roundings."""
    rows = sample[row_weights(sample, weights) > 0]
    low = np.min(rows, axis=0, initial=np.inf, where=~np.isnan(rows))
    high = np.max(rows, axis=0, initial=-np.inf, where=~np.isnan(rows))
    rounding = 2.0 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
    out: NDArray[np.bool_] = 0.5 * high - 0.5 * low > rounding
    return out


def draw_codes(shares: Array, rng: np.random.Generator) -> IntArray:
    """A category for each row of probabilities; the last one takes the rest."""
    steps = np.cumsum(shares, axis=1)[:, :-1]
    out: IntArray = (rng.random((len(shares), 1)) >= steps).sum(axis=1)
    return out


def sum_over_columns(X: Rows, function: Callable[[Array, Any], Array]) -> Array:
    """Σ_d f(x_nd, d) of each row, f a function of values and their columns.

    Where f is NaN, as if the other columns were all.
    """
    if isinstance(X, SparseRows):
        return X.sums(function)
    return rescaled_sum(function(X, slice(None)))


def row_totals(X: Rows) -> Array:
    """The sum of each row."""
    if isinstance(X, SparseRows):
        totals: Array = X.marks @ X.values
        return totals
    out: Array = X.sum(axis=1, dtype=np.float64)
    return out


def rescaled_sum(parts: Array) -> Array:
    """Sums of rows over the entries that are not NaN, as if all had been there."""
    n_seen = np.count_nonzero(~np.isnan(parts), axis=1)
    out: Array = np.nansum(parts, axis=1) * (parts.shape[1] / np.maximum(n_seen, 1))
    return out


def refuse_no_counts(X: Rows, names: tuple[str, ...], family: str) -> None:
    """Raise at numbers that are no counts."""
    x = values(X)
    bad = ~((x >= 0) & (np.floor(x) == x) & np.isfinite(x) | np.isnan(x))
    why = (
        f"observations={family!r} takes counts, whole numbers from 0 on; use "
        "'diag_gaussian' or 'gaussian' for other numbers, or 'mixed' for both."
    )
    refuse_values(X, bad, names, why)


def count_means(
    sample: Rows, weights: Array | None, columns: Columns, family: str
) -> Array:
    """Means of columns that are checked to be counts.

    After one more row with half a count, so that none is 0.
    """
    refuse_categories(columns, family)
    refuse_no_counts(sample, columns.names, family)
    n, total = observed_sums(sample, weights)
    out: Array = (total + 0.5) / (n + 1.0)
    return out


def log_factorials(X: Rows) -> Array:
    """Σ log x! over the counts of each row that are not missing."""
    counts = np.where(np.isnan(values(X)), 0.0, values(X)).astype(np.float64)
    logs: Array = gammaln(counts + 1.0)
    out: Array = X.marks @ logs if isinstance(X, SparseRows) else logs.sum(axis=1)
    return out
