"""From what users pass to blocks: arrays, sparse matrices, frames, paths."""

import os
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    validate_data,
)

from kplus.core.errors import DataError
from kplus.core.types import Blocks
from kplus.sources.anything import as_table
from kplus.sources.blocks import ArrayBlocks, FrameBlocks, SparseBlocks
from kplus.sources.categories import Coding
from kplus.sources.chosen import FROM_DTYPE, Choice, chosen_columns
from kplus.sources.coded import Coder, no_names
from kplus.sources.files import number_blocks, open_files

__all__ = [
    "open_mixed_table",
    "open_table",
]


def open_table(
    estimator: Any, X: Any, *, reset: bool, block_rows: int | None = None
) -> Blocks:
    """Check the form of X and cut it into blocks.

    Values are looked at when blocks are read: nothing here passes over the data.
    With `reset` the number and names of columns are noted on the estimator,
    otherwise compared with what was noted.
    """
    if (table := _as_table(X)) is not None:
        blocks = number_blocks(table, block_rows)
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


def _as_table(X: Any, open_paths: bool = True) -> Any:
    """A table in files, or blocks of people's own; None: it is something else."""
    if isinstance(X, (str, os.PathLike)):
        return open_files(X) if open_paths else X
    return as_table(X)


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
    X : array, sparse matrix, data frame, path, open table or blocks
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
    if (table := _as_table(X, open_paths=False)) is not None:
        blocks, coding = coder.open_table(table)
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
