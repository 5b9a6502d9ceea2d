"""What is refused, and in which words: weights, values, shapes, settings."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval

from kplus.core.errors import DataError
from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks

__all__ = [
    "check_features_of_rows",
    "check_shapes",
    "check_weights",
    "column_name",
    "describe_infinite",
    "describe_not_finite",
    "refuse_bools",
    "refuse_empty_columns",
    "refuse_fewer_rows",
    "refuse_other_columns",
]


# ------------------------------------------------------------------- settings


def refuse_bools(estimator: Any) -> None:
    """Refuse True and False for whole numbers, which they are in Python."""
    for name, allowed in estimator._parameter_constraints.items():
        whole = any(isinstance(c, Interval) and c.type is Integral for c in allowed)
        if whole and isinstance(getattr(estimator, name), bool):
            raise ValueError(f"{name} must be an int of at least 1, not a bool.")


def refuse_fewer_rows(estimator: Any, name: str, n_rows: int) -> None:
    """Refuse more groups than there are rows; `name` is the parameter."""
    wished = getattr(estimator, name)
    if wished is not None and wished > n_rows:
        raise ValueError(f"n_samples={n_rows} should be >= {name}={wished}.")


def refuse_other_columns(n_features: int, last: int) -> None:
    """Refuse a warm start on a table with another number of columns."""
    if n_features != last:
        raise ValueError(
            f"warm_start=True, but X has {n_features} features and the last fit had "
            f"{last}; fit a fresh estimator."
        )


def check_shapes(parts: dict[str, tuple[Any, tuple[int, ...]]]) -> None:
    """Refuse parts of a model file of other shapes than expected, by name."""
    for name, (part, expected) in parts.items():
        if part.shape != expected:
            raise ValueError(f"{name} has shape {part.shape}, not {expected}.")


# ----------------------------------------------------------------------- rows


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return weights as float64, or None where every row counts as one."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "biuf":
        weights = _numbers_only(weights)
    weights = weights.astype(np.float64, copy=False)
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!"
        )
    if not np.all(np.isfinite(weights)):
        bad = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise ValueError(
            f"sample_weight holds NaN or infinity (first at row {bad}); give a finite "
            f"weight for every row."
        )
    if np.any(weights < 0.0):
        bad = int(np.flatnonzero(weights < 0.0)[0])
        raise ValueError(
            f"Negative values in data passed to `sample_weight` (first at row {bad}); "
            f"use 0 to leave a row out."
        )
    if not np.any(weights > 0.0):
        raise ValueError("Every sample_weight is zero; at least one row must count.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError("The sum of sample_weight exceeds float64; scale it down.")
    if np.all(weights == 1.0):
        return None
    return np.ascontiguousarray(weights)


def _numbers_only(weights: Any) -> Any:
    """Numbers kept as objects pass, anything else is refused."""
    if weights.dtype == object:
        try:
            return weights.astype(np.float64)
        except (TypeError, ValueError):
            pass
    raise ValueError(f"sample_weight holds {weights.dtype}, not numbers.")


def describe_not_finite(estimator: Any, blocks: Blocks) -> ValueError:
    """Count missing and infinite values by column and say what to do about them."""
    return _describe_missing(estimator, blocks) or describe_infinite(estimator, blocks)


def _describe_missing(estimator: Any, blocks: Blocks) -> ValueError | None:
    """Count missing values by column and say what to do; None if there are none."""
    missing = _count_by_column(np.isnan, blocks)
    if not missing.any():
        return None
    where = _name_columns(estimator, missing)
    return DataError(
        f"Input X contains NaN: {where}. {type(estimator).__name__} does not "
        f"accept missing values encoded as NaN; drop those rows or columns, or "
        f"fill them in first (e.g. with scikit-learn's SimpleImputer)."
    )


def describe_infinite(estimator: Any, blocks: Blocks) -> ValueError:
    """Count infinite values by column, for models that take NaN as missing."""
    infinite = _count_by_column(np.isinf, blocks)
    if infinite.any():
        where = _name_columns(estimator, infinite)
        return DataError(
            f"Input X contains infinity: {where}. Replace or drop those values."
        )
    return DataError(
        "Input X contains values so large that their squares exceed float64, i.e. "
        "infinity: divide the columns by a common scale first."
    )


def refuse_empty_columns(estimator: Any, blocks: Blocks, weights: Array | None) -> None:
    """Refuse columns without any value, for models that take NaN as missing.

    Reads no more blocks than it takes to see a value in every column.
    """
    empty = np.ones(blocks.n_features, dtype=bool)
    for start, rows in read_blocks(blocks):
        if weights is not None:
            rows = rows[weights[start : start + len(rows)] > 0.0]
        empty &= np.isnan(rows).all(axis=0)
        if not empty.any():
            return
    where = _name_columns(estimator, empty * blocks.n_rows)
    raise DataError(
        f"Input X contains NaN only, in rows that have a weight: {where}. Drop columns "
        f"that were never observed."
    )


def check_features_of_rows(estimator: Any, Z: Any) -> Any:
    """What `inverse_transform` takes: a column for each feature of the fit."""
    Z = check_array(
        Z, accept_sparse=("csr", "csc"), dtype=np.float64, ensure_min_features=0
    )
    if Z.shape[1] != estimator.n_components_:
        raise ValueError(
            f"X has {Z.shape[1]} columns, but this {type(estimator).__name__} has "
            f"{estimator.n_components_} features (n_components_); give what transform "
            f"returned."
        )
    return Z


def _count_by_column(is_so: Callable[[Any], Any], blocks: Blocks) -> Any:
    """In how many rows each column holds a value that is so."""
    counts = np.zeros(blocks.n_features, dtype=np.int64)
    for _, rows in read_blocks(blocks):
        counts += is_so(rows).sum(axis=0)
    return counts


def _name_columns(estimator: Any, counts: Any, most: int = 5) -> str:
    """As in: column 'age' (3 rows), column 'size' (1 row)."""
    columns = np.flatnonzero(counts)
    parts = [
        f"{column_name(estimator, j)} ({counts[j]} row{'' if counts[j] == 1 else 's'})"
        for j in columns[:most]
    ]
    if len(columns) > most:
        parts.append(f"and {len(columns) - most} more columns")
    return ", ".join(parts)


def column_name(estimator: Any, j: int) -> str:
    """As in: column 'age', or column 3 where columns have no names."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"column {j}" if names is None else f"column {str(names[j])!r}"
