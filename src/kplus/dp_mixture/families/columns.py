"""What the families share: settings and sums by column, messages that name one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.units import FARTHEST, Units

__all__ = [
    "Setting",
    "draw_codes",
    "label",
    "observed_sums",
    "per_column",
    "positive",
    "refuse_categories",
    "refuse_far",
    "refuse_infinite",
    "refuse_numbers",
    "refuse_values",
    "rescaled_sum",
    "row_weights",
    "setting",
    "varies",
]

# A prior setting: one number for all columns, one for each, or None (from the data).
Setting = float | Sequence[float] | Array | None


def refuse_values(
    X: Array, bad: NDArray[np.bool_], names: tuple[str, ...], why: str
) -> None:
    """Raise at the first entry of `X` that is marked `bad`."""
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(f"{label(names[column])} holds {X[row, column]:.6g}; {why}")


def refuse_infinite(X: Array, names: tuple[str, ...]) -> None:
    """Raise at infinite values."""
    why = "infinite values cannot be used: leave them out, or mark them missing (NaN)."
    refuse_values(X, np.isinf(X), names, why)


def refuse_far(X: Array, units: Units, names: tuple[str, ...]) -> None:
    """Raise at values that are infinite, or so far out that their squares overflow."""
    refuse_infinite(X, names)
    with np.errstate(over="ignore"):
        far = np.abs(units.view(X)) > FARTHEST
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


def row_weights(sample: Array, weights: Array | None) -> Array:
    """The weights of a sample's rows; all 1 where there are none that count."""
    if weights is None or not np.any(weights > 0):
        return np.ones(len(sample))
    return np.asarray(weights, dtype=np.float64)


def observed_sums(sample: Array, weights: Array | None) -> tuple[Array, Array]:
    """Weight of the values that are not missing, and their weighted sum, by column."""
    w = row_weights(sample, weights)
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


def rescaled_sum(parts: Array) -> Array:
    """Sums of rows over the entries that are not NaN, as if all had been there."""
    n_seen = np.count_nonzero(~np.isnan(parts), axis=1)
    out: Array = np.nansum(parts, axis=1) * (parts.shape[1] / np.maximum(n_seen, 1))
    return out
