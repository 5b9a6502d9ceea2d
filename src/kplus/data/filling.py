"""Tables with their gaps filled: of the kind that was passed, all else untouched."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from narwhals import Series
from numpy.typing import NDArray

from kplus.core.reading import read_all
from kplus.core.types import Array, Blocks, IntArray
from kplus.data.categories import Coding
from kplus.data.factors import Values, holds_objects, is_missing
from kplus.data.frames import frame_of
from kplus.data.open import is_stored

__all__ = ["Gaps", "filled"]


class Gaps(NamedTuple):
    """Missing entries, row by row, and what to put there; codes for categories."""

    rows: IntArray
    columns: IntArray
    values: Array

    def of_column(self, j: int) -> tuple[IntArray, Array]:
        """The rows and values of one column."""
        here = self.columns == j
        return self.rows[here], self.values[here]


def filled(X: Any, source: Blocks, coding: Coding | None, gaps: Gaps) -> Any:
    """What was passed as `X`, with its gaps filled.

    Arrays give arrays, lists too, sparse matrices give such, data frames give frames
    of the same library with the same columns, types and index. What is kept in files or
    blocks gives an array if all columns are numbers, else a data frame.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, path, blocks
    source : Blocks
        Its rows, as they were read.
    coding : Coding or None
        What codes in `source` mean; None: all columns are numbers.
    gaps : Gaps
    """
    if is_stored(X):
        rows = np.array(read_all(source))
        rows[gaps.rows, gaps.columns] = gaps.values
        return rows if coding is None else _as_frame(rows, source, coding)
    if nw.dependencies.is_into_dataframe(X):
        return _frame(nw.from_native(X, eager_only=True), coding, gaps)
    if sp.issparse(X):
        return _sparse(X, gaps)
    return _array(np.array(X), coding, gaps)


def _as_values(coding: Coding | None, j: int, values: Array) -> Any:
    """Values of a column as the table has them: categories for codes."""
    categories = None if coding is None else coding.categories[j]
    if categories is None:
        return values
    return [categories[code] for code in values.astype(np.int64)]


# ---------------------------------------------------------------- in memory


def _array(out: NDArray[Any], coding: Coding | None, gaps: Gaps) -> NDArray[Any]:
    for j in np.unique(gaps.columns):
        rows, values = gaps.of_column(j)
        there = [is_missing(value) for value in out[rows, j].tolist()]
        if not all(there):  # a category that the fit has not seen is no gap
            rows, values = rows[there], values[there]
        out[rows, j] = _as_values(coding, j, values)
    return out.astype(np.float64) if coding is None and holds_objects(out) else out


def _sparse(X: Any, gaps: Gaps) -> Any:
    """Zeros that are not stored are values, as everywhere; gaps are stored NaN."""
    out = X.tocsr(copy=True)
    out.sum_duplicates()  # which also sorts the columns of each row
    if len(gaps.values):
        out.data[np.isnan(out.data)] = gaps.values
    return out.asformat(X.format)


def _frame(frame: "nw.DataFrame[Any]", coding: Coding | None, gaps: Gaps) -> Any:
    new = []
    for j in np.unique(gaps.columns):
        column: Series[Any] = frame[:, int(j)]
        rows, values = gaps.of_column(j)
        missing = column.is_null()
        if column.dtype.is_float():
            missing = missing | column.is_nan()
        there = missing.to_numpy()[rows]  # not so for an unseen category
        new.append(_column(column, rows[there], _as_values(coding, j, values[there])))
    return frame.with_columns(*new).to_native()


def _column(column: Series[Any], rows: IntArray, values: Any) -> Series[Any]:
    """A column with other values in some rows, of the same type if it holds them."""
    dtype, library = column.dtype, column.implementation
    if library.is_pyarrow():
        from kplus.data.arrow import replaced

        native = replaced(column.to_native(), rows, values)
        new: Series[Any] = nw.from_native(native, series_only=True)
        return new.alias(column.name)
    if dtype.is_integer():
        limits = np.iinfo(str(dtype).lower())
        values = np.clip(np.rint(values), limits.min, limits.max)
    elif dtype == nw.Boolean:
        values = np.asarray(values) >= 0.5
    declared = Values(column, column.name).declared
    undeclared = declared is not None and not set(values) <= set(declared)
    if dtype == nw.Unknown or undeclared:
        whole = column.to_list()
        for row, value in zip(rows, values, strict=True):
            whole[row] = value
        return nw.new_series(column.name, whole, backend=library)
    if dtype.is_numeric():
        values = nw.new_series(column.name, values, backend=library).cast(dtype)
    return column.scatter(rows, values)


# ------------------------------------------------------------------- stored


def _as_frame(rows: Array, source: Blocks, coding: Coding) -> Any:
    """A frame of whichever library is there."""
    names: Sequence[str] = getattr(source, "feature_names", coding.names)
    columns = {
        name: _as_values(coding, j, rows[:, j].copy()) for j, name in enumerate(names)
    }
    return frame_of(columns, "A table with categories")
