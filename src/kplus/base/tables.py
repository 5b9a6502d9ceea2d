"""From what users pass to blocks, with the columns noted on the estimator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    validate_data,
)

from kplus.base.warn import warn
from kplus.core.errors import DataError, NotNumbersError
from kplus.core.types import Blocks
from kplus.data.blocks import FrameBlocks
from kplus.data.categories import Coding
from kplus.data.open import (
    Coder,
    as_read,
    column_names,
    no_names,
    open_data,
    open_numbers,
)
from kplus.data.reading import ColumnsWarning, Reading, odd_words
from kplus.data.roles import Wishes
from kplus.data.selection import FROM_DTYPE, CategoricalSpec

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
    check = _array_check(estimator, reset, "numeric")
    table = open_data(X, as_matrix=check)
    if reset:
        read = as_read(table, None, _wishes(estimator, numbers_only=True))
    else:
        reading = getattr(estimator, "reading_", None) or Reading()
        read = as_read(table, reading, numbers=column_names(table))
    _tell(table, read, reset)
    table = read
    _check_names_of_frame(estimator, table, reset)
    blocks = open_numbers(table, block_rows)
    _note_columns(estimator, table, blocks, reset)
    return blocks


def _wishes(estimator: Any, *, numbers_only: bool) -> Wishes:
    """What an estimator wants of columns."""
    # To those that take rows apart, constants are a part, too.
    parts = getattr(estimator, "_groups", "clusters") != "clusters"
    # What is constant in the first batch of a stream need not stay so.
    constants = parts or getattr(estimator, "_streaming", False)
    return Wishes(numbers_only=numbers_only, constants=constants)


def _tell(before: Any, read: Any, reset: bool) -> None:
    """Say which columns of a table are not used in a fit, or not as they seem."""
    if read is before:
        return
    words = read.reading.told() if reset else odd_words(read.odd_cells())
    if words:
        warn(words, ColumnsWarning)


def _array_check(
    estimator: Any, reset: bool, dtype: str | None
) -> Callable[[Any], Any]:
    """How scikit-learn checks arrays and sparse matrices."""

    def check(X: Any) -> Any:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=dtype,
            accept_sparse="csr",
            accept_large_sparse=True,
            ensure_all_finite=False,
        )
        if (dtype == "numeric" or sp.issparse(checked)) and (
            checked.dtype.kind not in "biuf"
        ):
            raise NotNumbersError(
                f"X holds {checked.dtype}, not numbers; turn it into numbers first."
            )
        return checked

    return check


def open_mixed_table(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    block_rows: int | None = None,
    categorical: CategoricalSpec = FROM_DTYPE,
    coding: Coding | None = None,
    unknown: str = "error",
    every: bool = False,
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
        Whether this is a new fit, so that `X` defines the categories.
    block_rows : int or None
        Rows of a block.
    categorical : "from_dtype", or names, numbers or a mask of columns
        Columns to take as categories in a new fit, beside those which are so by their
        type: text, booleans, categories.
    coding : Coding or None
        That of the fit, if it had one; `X` is coded by it then.
    unknown : {"error", "missing"}
        What a value is that is none of the categories of `coding`.
    every : bool
        Whether all columns that have names are categories.

    Returns
    -------
    blocks : Blocks
    coding : Coding or None
        None where all columns are numbers.
    """
    reading = getattr(estimator, "reading_", None)
    coder = Coder(reset, categorical, coding, unknown, block_rows, reading, every)
    check = _array_check(estimator, reset, None)

    def as_matrix(X: Any) -> Any:
        if coding is not None and not coding.by_position:
            raise no_names(coding)
        return check(_without_loss(X))

    table = coder.open_data(X, as_matrix=as_matrix)
    read, coder = coder.read(table, _wishes(estimator, numbers_only=False))
    _tell(table, read, reset)
    _check_names_of_frame(estimator, read, reset)
    blocks, coding = coder.coded(read)
    _note_columns(estimator, read, blocks, reset)
    return blocks, coding


def _without_loss(X: Any) -> Any:
    """Lists of text and numbers as objects; numpy would make text of the numbers."""
    if not isinstance(X, (list, tuple)):
        return X
    try:
        turned = np.asarray(X).dtype.kind in "US"
    except ValueError:  # rows of different lengths: refused later
        return X
    return np.array(X, dtype=object) if turned else X


def _check_names_of_frame(estimator: Any, table: Any, reset: bool) -> None:
    if isinstance(table, FrameBlocks):
        _check_feature_names(estimator, table.frame.to_native(), reset=reset)


def _note_columns(estimator: Any, table: Any, blocks: Blocks, reset: bool) -> None:
    """Note or compare the columns; those of frames as scikit-learn does."""
    _refuse_empty(estimator, blocks)
    if reset:
        _note_reading(estimator, getattr(table, "reading", None))
    if isinstance(table, FrameBlocks):
        _check_n_features(estimator, table.frame.to_native(), reset=reset)
        return
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


def _note_reading(estimator: Any, reading: Reading | None) -> None:
    if reading:
        estimator.reading_ = reading
    elif hasattr(estimator, "reading_"):
        del estimator.reading_


def _refuse_empty(estimator: Any, blocks: Blocks) -> None:
    if blocks.n_rows == 0 or blocks.n_features == 0:
        what = "sample" if blocks.n_rows == 0 else "feature"
        raise DataError(
            f"Found array with 0 {what}(s) (shape=({blocks.n_rows}, "
            f"{blocks.n_features})) while a minimum of 1 is required by "
            f"{type(estimator).__name__}."
        )
