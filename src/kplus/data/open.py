"""Opens what users pass: the only place that distinguishes kinds of tables.

`open_data` returns either `Columns`, which have names and types of their own, or blocks
of rows (`Cut`). `open_numbers` and `Coder` make blocks of numbers of both, the second
also where some columns hold categories.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeGuard

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from kplus.core.errors import DataError
from kplus.core.types import Blocks
from kplus.data.blocks import ArrayBlocks, Cut, FrameBlocks, SparseBlocks
from kplus.data.categories import Coding
from kplus.data.coded_blocks import FileColumns, MemoryColumns, NumberBlocks
from kplus.data.converted import RecodedBlocks, refuse_categories
from kplus.data.factors import holds_objects
from kplus.data.files import open_files
from kplus.data.reading import Reading
from kplus.data.recognise import recognised
from kplus.data.roles import Wishes
from kplus.data.selection import FROM_DTYPE, CategoricalSpec, categorical_mask
from kplus.data.wrapped import UserBlocks, looks_like_blocks, read_if_small

if TYPE_CHECKING:
    from kplus.data.arrow import Columns

__all__ = [
    "Coder",
    "as_read",
    "column_names",
    "has_columns",
    "is_stored",
    "no_names",
    "number_blocks",
    "open_data",
    "open_numbers",
    "read_as_fitted",
    "row_slices",
    "typed_columns",
]

Opened = tuple[Blocks, Coding | None]
AsMatrix = Callable[[Any], Any]


def _as_matrix(X: Any) -> Any:
    return X if sp.issparse(X) else np.asarray(X)


def has_columns(table: Any) -> TypeGuard["Columns"]:
    """Whether an open table has columns with names and types of their own."""
    arrow = sys.modules.get("kplus.data.arrow")
    return arrow is not None and isinstance(table, arrow.Columns)


def column_names(X: Any) -> tuple[str, ...]:
    """Names of the columns of a frame or an open table; () where they have none."""
    if has_columns(X):
        return tuple(X.names)
    if isinstance(X, FrameBlocks):
        return tuple(X.feature_names)
    if not nw.dependencies.is_into_dataframe(X):
        return ()
    return tuple(str(name) for name in nw.from_native(X, eager_only=True).columns)


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
        from kplus.data.dask import open_collection

        return open_collection(X)
    if looks_like_blocks(X):
        return UserBlocks(X)
    if nw.dependencies.is_polars_lazyframe(X):
        X = X.collect()
    if nw.dependencies.is_into_dataframe(X):
        return FrameBlocks(X)
    X = as_matrix(X)
    return SparseBlocks(X) if sp.issparse(X) else ArrayBlocks(X)


def as_read(
    table: Any,
    reading: Reading | None,
    wishes: Wishes = Wishes(),  # noqa: B008
    numbers: Collection[str] = (),
) -> Any:
    """An open table with the columns to use, and as what they are to be read.

    Parameters
    ----------
    table : Cut or Columns
        Arrays, and tables for which this is settled, stay as they are.
    reading : Reading or None
        That of a fit; None: what the columns are is recognised.
    wishes : Wishes
        What a user said of them.
    numbers : collection of str
        Columns that held numbers in that fit.
    """
    if not (isinstance(table, FrameBlocks) or has_columns(table)):
        return table
    if table.reading is not None or 0 in (table.n_rows, len(column_names(table))):
        return table
    if reading is None:
        return recognised(table, wishes)
    return reading.apply(table, numbers)


def read_as_fitted(model: Any, X: Any) -> Any:
    """A table as a fitted model reads it; what has no names of columns stays."""
    if hasattr(model, "steps") or not (is_stored(X) or column_names(X)):
        return X  # steps of a pipeline read it on their own
    return as_read(open_data(X), getattr(model, "reading_", None) or Reading())


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
    table = as_read(table, None, Wishes(numbers_only=True))
    if isinstance(table, FrameBlocks):
        table.refuse_non_numbers()
    if isinstance(table, ArrayBlocks) and holds_objects(table.array):
        columns = MemoryColumns(table.array)
        numbers = [columns.numbers(j) for j in range(table.n_features)]
        table = ArrayBlocks(np.column_stack(numbers))
    return number_blocks(table, block_rows)


def number_blocks(table: Any, block_rows: int | None = None) -> Blocks:
    """Blocks of an open table with number columns only."""
    if not has_columns(table):
        refuse_categories(getattr(table, "coding", None))
        blocks: Blocks = table.cut(block_rows)
        return blocks
    return NumberBlocks(table, block_rows)


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
    reading : Reading or None
        How the table before it was read.
    every : bool
        Whether all columns that have names are categories.

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
    categorical: CategoricalSpec = FROM_DTYPE
    coding: Coding | None = None
    unknown: str = "error"
    block_rows: int | None = None
    reading: Reading | None = None
    every: bool = False

    def open_data(self, X: Any, *, as_matrix: AsMatrix = _as_matrix) -> Any:
        """As `open_data`; text in CSV files stays so where categories are text."""
        if self.coding is None or not isinstance(X, (str, os.PathLike)):
            return open_data(X, as_matrix=as_matrix)
        coding = self.coding
        if coding.by_position and has_columns(table := open_data(X)):
            coding = coding.named(table.names)
        return open_data(X, text=coding.text_names)

    def read(self, table: Any, wishes: Wishes | None = None) -> tuple[Any, Self]:
        """An open table with the columns to use, and the coder for it."""
        names = column_names(table)
        if not names:
            return table, self
        if not self.reset:
            reading = self.reading or Reading()
            return as_read(table, reading, numbers=self._numbers(names)), self
        mask = categorical_mask(self.categorical, len(names), names)
        chosen = [name for name, is_one in zip(names, mask, strict=True) if is_one]
        wishes = replace(
            wishes or Wishes(), categorical=chosen, categories_only=self.every
        )
        read = as_read(table, None, wishes)
        if self.every:
            chosen = list(column_names(read))
        return read, replace(self, categorical=chosen)

    def _numbers(self, names: Sequence[str]) -> list[str]:
        """The columns that held numbers in the fit."""
        if self.coding is None:
            return list(names)
        coding = self.coding.named(names)
        both = zip(coding.names, coding.categories, strict=True)
        return [name for name, categories in both if categories is None]

    def open(self, X: Any) -> Opened:
        """Blocks of a table, and its coding; None where all columns are numbers."""
        table, coder = self.read(self.open_data(X))
        return coder.coded(table)

    def coded(self, table: Any) -> Opened:
        """The same of an open table that is as it shall be read."""
        if getattr(table, "coding", None) is not None:
            return self._open_coded(table)
        columns = typed_columns(table)
        names = None if columns is None else columns.names
        if self.coding is not None and not self.coding.by_position and names is None:
            raise no_names(self.coding)
        if columns is None:
            mask = categorical_mask(self.categorical, table.n_features)
            if self.coding is not None or (self.reset and mask.any()):
                raise _no_categories(table)
        elif self.coding is not None:
            return self._coded(columns, self.coding.named(names)), self.coding
        elif self.reset:
            coding = Coding.of(columns, self.categorical)
            if coding.has_categories:
                return self._coded(columns, coding), coding
        return open_numbers(table, self.block_rows), None

    def _coded(self, columns: Any, coding: Coding) -> Blocks:
        blocks = columns.coded(coding, self.block_rows, self.unknown)
        if (copy := read_if_small(blocks)) is not None:
            return copy
        if self.coding is not None:
            blocks.check()
        return blocks  # type: ignore[no-any-return]

    def _open_coded(self, table: Any) -> Opened:
        """Open blocks of codes that say what these mean."""
        coding: Coding = table.coding
        table = table.cut(self.block_rows)
        if self.coding is not None:
            named = self.coding.named(coding.names)
            named.check_columns(coding.names, len(coding.names))
            if coding.categories == named.categories:
                return table, self.coding
            blocks = RecodedBlocks(table, coding, named, self.unknown)
            blocks.check()
            return blocks, self.coding
        if not self.reset:
            refuse_categories(coding)
        mask = categorical_mask(self.categorical, len(coding.names), coding.names)
        for name, is_chosen, categories in zip(
            coding.names, mask, coding.categories, strict=True
        ):
            if self.reset and is_chosen and categories is None:
                raise DataError(
                    f"Column {name!r} was converted as numbers; convert the table "
                    f"again, with categorical=[{name!r}]."
                )
        return table, coding if coding.has_categories else None


def typed_columns(table: Any) -> Any:
    """The columns of a table that may be categories; None: they cannot be."""
    if has_columns(table):
        return FileColumns(table)
    if isinstance(table, FrameBlocks):
        return MemoryColumns(table.frame)
    return MemoryColumns(table.array) if isinstance(table, ArrayBlocks) else None


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
