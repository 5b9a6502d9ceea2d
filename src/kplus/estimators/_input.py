"""From what users pass to blocks: arrays, sparse matrices, frames, paths."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    validate_data,
)

from kplus.core.errors import DataError
from kplus.core.types import Array, Blocks
from kplus.engine.blocks import ArrayBlocks, FrameBlocks, SparseBlocks
from kplus.engine.categories import Coding
from kplus.engine.chosen import FROM_DTYPE, Choice, chosen_columns
from kplus.engine.coded import Coder, no_names
from kplus.engine.files import open_path

__all__ = [
    "check_features_of_rows",
    "check_weights",
    "describe_infinite",
    "describe_not_finite",
    "open_mixed_table",
    "open_table",
    "refuse_empty_columns",
]


def open_table(
    estimator: Any, X: Any, *, reset: bool, block_rows: int | None = None
) -> Blocks:
    """Check the form of X and cut it into blocks.

    Values are looked at when blocks are read: nothing here passes over the data.
    With `reset` the number and names of columns are noted on the estimator,
    otherwise compared with what was noted.
    """
    if isinstance(X, (str, os.PathLike)):
        blocks = open_path(X, block_rows)
        _note_columns(estimator, blocks, reset)
        return blocks
    if nw.dependencies.is_into_dataframe(X):
        _check_feature_names(estimator, X, reset=reset)
        frame = FrameBlocks(X, block_rows)
        _refuse_empty(estimator, frame)
        _check_n_features(estimator, X, reset=reset)
        return frame
    X = _check_array(estimator, X, reset, "numeric")
    if X.dtype.kind not in "biuf":
        raise DataError(f"X holds {X.dtype}, not numbers; turn it into numbers first.")
    if sp.issparse(X):
        return SparseBlocks(X, block_rows)
    return ArrayBlocks(X, block_rows)


def _check_array(estimator: Any, X: Any, reset: bool, dtype: str | None) -> Any:
    return validate_data(
        estimator,
        X,
        reset=reset,
        dtype=dtype,
        accept_sparse="csr",
        accept_large_sparse=True,
        ensure_all_finite=False,
    )


def open_mixed_table(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    block_rows: int | None = None,
    categorical: Choice = FROM_DTYPE,
    coding: Coding | None = None,
    unknown: str = "error",
) -> tuple[Blocks, Coding | None]:
    """Check the form of X, which may have categories, and cut it into blocks.

    What has categories gives blocks of codes. What has numbers only is opened as by
    `open_table`, without a coding. Parquet files are read by row groups in either case.

    Parameters
    ----------
    estimator : estimator
        With `reset` the number and names of columns are noted on it, otherwise
        compared with what was noted.
    X : array, sparse matrix, data frame or path
    reset : bool
        Whether this is a new fit, so that categories may be found in `X`.
    block_rows : int or None
        Rows of a block.
    categorical : "from_dtype", or names, numbers or a mask of columns
        Columns to take as categories in a new fit, beside those which are so by their
        type: text, booleans, categories.
    coding : Coding or None
        That of the fit, if it had one; `X` is coded by it then.
    unknown : {"error", "missing"}
        What a value is that is none of the categories of `coding`.

    Returns
    -------
    blocks : Blocks
    coding : Coding or None
        None where all columns are numbers.
    """
    coder = Coder(reset, categorical, coding, unknown, block_rows)
    if isinstance(X, (str, os.PathLike)):
        blocks, coding = coder.open_path(Path(X))
        _note_columns(estimator, blocks, reset)
        return blocks, coding
    if nw.dependencies.is_into_dataframe(X):
        _check_feature_names(estimator, X, reset=reset)
        blocks, coding = coder.open_frame(X)
        _refuse_empty(estimator, blocks)
        _check_n_features(estimator, X, reset=reset)
        return blocks, coding
    if coding is not None and not coding.by_position:
        raise no_names(coding, "X has no column names")
    X = _check_array(estimator, _without_loss(X), reset, None)
    if sp.issparse(X):
        return _open_sparse(X, coder), None
    return coder.open_array(X)


def _without_loss(X: Any) -> Any:
    """Lists of text and numbers as objects; numpy would make text of the numbers."""
    if not isinstance(X, (list, tuple)):
        return X
    try:
        turned = np.asarray(X).dtype.kind in "US"
    except ValueError:  # rows of different lengths: told by who checks the form
        return X
    return np.array(X, dtype=object) if turned else X


def _open_sparse(X: Any, coder: Coder) -> Blocks:
    asked = coder.reset and chosen_columns(coder.categorical, X.shape[1]).any()
    if asked or coder.coding is not None:
        raise DataError(
            "Columns of a sparse matrix cannot be categories (categorical_features): "
            "give a dense array or a data frame."
        )
    if X.dtype.kind not in "biuf":
        raise DataError(f"X holds {X.dtype}, not numbers; turn it into numbers first.")
    return SparseBlocks(X, coder.block_rows)


def _note_columns(estimator: Any, blocks: Blocks, reset: bool) -> None:
    """Note or compare the columns of a file."""
    _refuse_empty(estimator, blocks)
    names = getattr(blocks, "feature_names", None)
    if reset:
        estimator.n_features_in_ = blocks.n_features
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    if blocks.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {blocks.n_features} features, but {type(estimator).__name__} is "
            f"expecting {estimator.n_features_in_} features as input."
        )
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        raise ValueError(
            f"The columns {names} are not those of the fit, {list(known)}; give the "
            f"same columns in the same order."
        )


def _refuse_empty(estimator: Any, blocks: Blocks) -> None:
    if blocks.n_rows == 0 or blocks.n_features == 0:
        what = "sample" if blocks.n_rows == 0 else "feature"
        raise DataError(
            f"Found array with 0 {what}(s) (shape=({blocks.n_rows}, "
            f"{blocks.n_features})) while a minimum of 1 is required by "
            f"{type(estimator).__name__}."
        )


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
    missing = _count_by_column(np.isnan, blocks)
    if missing.any():
        where = _name_columns(missing, getattr(estimator, "feature_names_in_", None))
        return DataError(
            f"Input X contains NaN: {where}. {type(estimator).__name__} does not "
            f"accept missing values encoded as NaN; drop those rows or columns, or "
            f"fill them in first (e.g. with scikit-learn's SimpleImputer)."
        )
    return describe_infinite(estimator, blocks)


def describe_infinite(estimator: Any, blocks: Blocks) -> ValueError:
    """Count infinite values by column, for models that take NaN as missing."""
    infinite = _count_by_column(np.isinf, blocks)
    if infinite.any():
        where = _name_columns(infinite, getattr(estimator, "feature_names_in_", None))
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
    for index in range(-(-blocks.n_rows // blocks.block_rows)):
        rows = blocks.read(index)
        if weights is not None:
            start = index * blocks.block_rows
            rows = rows[weights[start : start + len(rows)] > 0.0]
        empty &= np.isnan(rows).all(axis=0)
        if not empty.any():
            return
    where = _name_columns(
        empty * blocks.n_rows, getattr(estimator, "feature_names_in_", None)
    )
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
    for index in range(-(-blocks.n_rows // blocks.block_rows)):
        counts += is_so(blocks.read(index)).sum(axis=0)
    return counts


def _name_columns(counts: Any, names: Any, most: int = 5) -> str:
    """As in: column 'age' (3 rows), column 'size' (1 row)."""
    found = np.flatnonzero(counts)
    parts = []
    for j in found[:most]:
        label = repr(str(names[j])) if names is not None else str(j)
        parts.append(f"column {label} ({counts[j]} row{'' if counts[j] == 1 else 's'})")
    if len(found) > most:
        parts.append(f"and {len(found) - most} more columns")
    return ", ".join(parts)
