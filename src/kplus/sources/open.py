"""What users pass, opened: the one place that tells it apart.

`open_data` returns either `Columns`, which have names and types of their own, or blocks
of rows (`Cut`). `open_numbers` and `Coder` make blocks of numbers of both, the second
also where some columns hold categories.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from kplus.core.errors import DataError
from kplus.core.types import Blocks
from kplus.sources.blocks import ArrayBlocks, Cut, FrameBlocks, SparseBlocks
from kplus.sources.categories import CodedFrameBlocks, Coding, check_names
from kplus.sources.chosen import FROM_DTYPE, Choice, chosen_columns
from kplus.sources.coded_arrays import (
    CodedArrayBlocks,
    array_coding,
    holds_objects,
    objects_to_numbers,
)
from kplus.sources.converted import RecodedBlocks, refuse_categories
from kplus.sources.files import has_columns, number_blocks, open_files
from kplus.sources.own import OwnBlocks, looks_like_blocks

if TYPE_CHECKING:
    from kplus.sources.arrow import Columns

__all__ = [
    "Coder",
    "is_stored",
    "no_names",
    "open_data",
    "open_numbers",
    "row_slices",
]

Opened = tuple[Blocks, Coding | None]
AsMatrix = Callable[[Any], Any]


def _as_matrix(X: Any) -> Any:
    return X if sp.issparse(X) else np.asarray(X)


def is_stored(X: Any) -> bool:
    """Whether rows are read from elsewhere when needed: files, blocks, Dask."""
    return (
        isinstance(X, (str, os.PathLike, Cut))
        or has_columns(X)
        or _is_dask(X)
        or looks_like_blocks(X)
    )


def open_data(
    X: Any, *, text: Sequence[str] = (), as_matrix: AsMatrix = _as_matrix
) -> Any:
    """Open whatever a user may pass as a table. Values are not looked at.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, path, open table, Dask collection, blocks
    text : sequence of str
        Columns of CSV files to keep as they are written.
    as_matrix : callable
        Makes an array or a sparse matrix of what is none of the others.

    Returns
    -------
    table : Cut or Columns

    Examples
    --------
    >>> import polars as pl
    >>> open_data(pl.DataFrame({"a": [1, 2]})).feature_names
    ['a']
    >>> open_data([[1, 2], [3, 4]]).read(0)
    array([[1., 2.],
           [3., 4.]])
    """
    if isinstance(X, (str, os.PathLike)):
        return open_files(X, text=text)
    if isinstance(X, Cut) or has_columns(X):
        return X
    if _is_dask(X):
        from kplus.sources.dask import open_collection

        return open_collection(X)
    if looks_like_blocks(X):
        return OwnBlocks(X)
    if nw.dependencies.is_into_dataframe(X):
        return FrameBlocks(X)
    X = as_matrix(X)
    return SparseBlocks(X) if sp.issparse(X) else ArrayBlocks(X)


def open_numbers(
    X: Any, block_rows: int | None = None, *, as_matrix: AsMatrix = _as_matrix
) -> Blocks:
    """Open a table with number columns only, and cut it into blocks.

    Raises
    ------
    DataError
        A column holds something else.
    """
    table = open_data(X, as_matrix=as_matrix)
    if isinstance(table, FrameBlocks):
        table.refuse_non_numbers()
    return number_blocks(table, block_rows)


def row_slices(X: Any, step: int) -> tuple[int, Iterator[Any]]:
    """The number of rows of a table in memory, and its slices of `step` rows.

    Slices are of the same kind as the table; lists stay whole.
    """
    if nw.dependencies.is_into_dataframe(X):
        frame: Any = nw.from_native(X, eager_only=True)
        n = len(frame)
        return n, (frame[i : i + step].to_native() for i in range(0, n, step))
    if not (sp.issparse(X) or isinstance(X, np.ndarray)):
        return len(X), iter([X])
    rows, n = (X.tocsr() if sp.issparse(X) else X), X.shape[0]
    return n, (rows[i : i + step] for i in range(0, n, step))


def _is_dask(X: Any) -> bool:
    return type(X).__module__.startswith("dask")


# ---------------------------------------------------------------- categories


@dataclass(frozen=True)
class Coder:
    """How a table that may have categories is to be opened.

    Parameters
    ----------
    reset : bool
        Whether categories may be found in the table; otherwise it is coded as the
        table before it, which had numbers only if there is no `coding`.
    categorical : "from_dtype", or names, numbers or a mask of columns
        Columns in which to find categories beside those whose type says so.
    coding : Coding or None
        A coding to use.
    unknown : {"error", "missing"}
        What a value is that is none of the categories of `coding`.
    block_rows : int or None
        Rows of a block.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"room": [7, 9], "color": ["red", "blue"]})
    >>> blocks, coding = Coder(categorical=["room"]).open(frame)
    >>> coding.categories
    ((7, 9), ('blue', 'red'))
    >>> later = pl.DataFrame({"room": [9], "color": ["pink"]})
    >>> blocks, _ = Coder(coding=coding, unknown="missing").open(later)
    >>> blocks.read(0)
    array([[ 1., nan]])
    """

    reset: bool = True
    categorical: Choice = FROM_DTYPE
    coding: Coding | None = None
    unknown: str = "error"
    block_rows: int | None = None

    def open_data(self, X: Any, *, as_matrix: AsMatrix = _as_matrix) -> Any:
        """As `open_data`; text in CSV files stays so where categories are text."""
        if self.coding is None or not isinstance(X, (str, os.PathLike)):
            return open_data(X, as_matrix=as_matrix)
        coding = self.coding
        if coding.by_position and has_columns(table := open_data(X)):
            coding = _name(coding, table.names)
        return open_data(X, text=coding.text_names)

    def open(self, X: Any) -> Opened:
        """Blocks of a table, and its coding; None where all columns are numbers."""
        table = self.open_data(X)
        if has_columns(table):
            return self._open_columns(table)
        if isinstance(table, FrameBlocks):
            return self._open_frame(table)
        if getattr(table, "coding", None) is not None:
            return self._open_coded(table)
        if self.coding is not None and not self.coding.by_position:
            raise no_names(self.coding)
        if isinstance(table, ArrayBlocks):
            return self._open_array(table)
        chosen = chosen_columns(self.categorical, table.n_features)
        if self.coding is not None or (self.reset and chosen.any()):
            raise _no_categories(table)
        return table.cut(self.block_rows), None

    def _open_frame(self, table: FrameBlocks) -> Opened:
        if self.coding is not None:
            named = _name(self.coding, table.feature_names)
            blocks = CodedFrameBlocks(table.frame, named, self.block_rows, self.unknown)
            return blocks, self.coding
        if self.reset:
            coding = Coding.of(table.frame, self.categorical)
            if coding.has_categories:
                return CodedFrameBlocks(table.frame, coding, self.block_rows), coding
        return open_numbers(table, self.block_rows), None

    def _open_array(self, table: ArrayBlocks) -> Opened:
        X = table.array
        if not (holds_objects(X) or X.dtype.kind in "biuf"):
            raise DataError(
                f"X holds {X.dtype}, neither numbers nor text; turn it into one of "
                f"them."
            )
        if self.coding is not None:
            blocks = CodedArrayBlocks(X, self.coding, self.block_rows, self.unknown)
            blocks.check()
            return blocks, self.coding
        if self.reset:
            coding = array_coding(X, self.categorical)
            if coding.has_categories:
                return CodedArrayBlocks(X, coding, self.block_rows), coding
        if holds_objects(X):
            table = ArrayBlocks(objects_to_numbers(X))
        return table.cut(self.block_rows), None

    def _open_coded(self, table: Any) -> Opened:
        """Open blocks of codes that say what these mean."""
        own: Coding = table.coding
        table = table.cut(self.block_rows)
        if self.coding is not None:
            named = _name(self.coding, own.names)
            check_names(list(own.names), named)
            if own.categories == named.categories:
                return table, self.coding
            blocks = RecodedBlocks(table, own, named, self.unknown)
            blocks.check()
            return blocks, self.coding
        if not self.reset:
            refuse_categories(own)
        chosen = chosen_columns(self.categorical, len(own.names), own.names)
        for name, asked, found in zip(own.names, chosen, own.categories, strict=True):
            if self.reset and asked and found is None:
                raise DataError(
                    f"Column {name!r} was converted as numbers; convert the table "
                    f"again, with categorical=[{name!r}]."
                )
        return table, own if own.has_categories else None

    def _open_columns(self, files: "Columns") -> Opened:
        from kplus.sources.coded_columns import CodedColumnBlocks, columns_coding

        if self.coding is not None:
            named = _name(self.coding, files.names)
            blocks = CodedColumnBlocks(files, named, self.block_rows, self.unknown)
            blocks.check()
            return blocks, self.coding
        if self.reset:
            coding = columns_coding(files, self.categorical)
            if coding.has_categories:
                return CodedColumnBlocks(files, coding, self.block_rows), coding
        return number_blocks(files, self.block_rows), None


def no_names(coding: Coding) -> DataError:
    """The error for a table without names after one with them."""
    return DataError(
        f"X has no column names, but the fit was on a table with categories: give a "
        f"data frame or a file with the columns {list(coding.names)}, so that "
        f"categories can be told by their values."
    )


def _no_categories(table: Cut) -> DataError:
    if isinstance(table, SparseBlocks):
        return DataError(
            "Columns of a sparse matrix cannot be categories (categorical_features): "
            "give a dense array or a data frame."
        )
    return DataError(
        "Columns of several .npy files, of Zarr arrays and of blocks of your own "
        "cannot be categories: give one .npy file, or Parquet files."
    )


def _name(coding: Coding, names: Sequence[str]) -> Coding:
    """The coding of an array for a table of as many columns that have names."""
    if coding.by_position and len(names) == len(coding.names):
        return replace(coding, names=tuple(str(name) for name in names))
    return coding
