"""Parquet files with categories, decoded one row group at a time.

The categories are found in one pass over their columns, which keeps the different
values and nothing else in memory.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array
from kplus.sources.categories import (
    Coding,
    check_names,
    find_categories,
    holds_numbers,
)
from kplus.sources.chosen import FROM_DTYPE, Choice, chosen_columns
from kplus.sources.factors import MISSING, Column, encode
from kplus.sources.kept import is_small
from kplus.sources.parquet import RowGroups, column_names, read_schema, to_numbers

__all__ = ["CodedParquetBlocks", "parquet_coding"]


def parquet_coding(path: Path, categorical: Choice = FROM_DTYPE) -> Coding:
    """Find the categories of a Parquet file, just as `Coding.of` does in memory.

    Parameters
    ----------
    path : Path
        A local file.
    categorical : "from_dtype", or names, numbers or a mask of columns
        Further columns to take as categories, such as integers that are codes.

    Raises
    ------
    DataError
        A column holds dates, lists or the like or no value at all, or `categorical`
        asks for a column that is not there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.parquet"
    >>> pq.write_table(pa.table({"size": [1.5, 2.0], "color": ["red", "blue"]}), path)
    >>> coding = parquet_coding(path)
    >>> coding.categories
    (None, ('blue', 'red'))
    >>> CodedParquetBlocks(path, coding).read(0)
    array([[1.5, 1. ],
           [2. , 0. ]])
    """
    source = _Columns(path)
    names = source.feature_names
    chosen = chosen_columns(categorical, len(names), names)
    return Coding(
        tuple(names),
        tuple(
            find_categories(dtype, source.column(name), repr(name), bool(asked))
            for name, dtype, asked in zip(names, source.dtypes, chosen, strict=True)
        ),
    )


class _Columns(RowGroups):
    """The columns of a file, part by part, and what types they have."""

    def __init__(self, path: Path, block_rows: int | None = None) -> None:
        schema = read_schema(path)
        super().__init__(path, block_rows, column_names(schema), np.float64)
        empty = schema.empty_table()
        self.dtypes = [_series(empty.column(name)).dtype for name in self.feature_names]
        self._as_dictionaries = [
            name
            for name in self.feature_names
            if str(schema.field(name).type) in ("string", "large_string")
        ]

    def column(self, name: str) -> Iterator[Column]:
        return map(_series, self._parts(name))


class CodedParquetBlocks(_Columns):
    """Blocks of a Parquet file with numbers and categories.

    Blocks are decoded and coded when they are read; those of a small file all at once.

    Parameters
    ----------
    path : Path
        A local file, which has the columns of `coding`, in that order.
    coding : Coding
        Says which columns are categories, and their codes.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    unknown : {"error", "missing"}
        What a value is that is none of the coding's categories.

    Raises
    ------
    DataError
        The columns are others, a number column holds something else, or a category
        is not one of the coding's; large files tell the last when blocks are read.
    """

    def __init__(
        self,
        path: Path,
        coding: Coding,
        block_rows: int | None = None,
        unknown: str = "error",
    ) -> None:
        super().__init__(path, block_rows)
        check_names(self.feature_names, coding)
        self._categories = coding.categories
        self._unknown = unknown
        self._has_values = [
            categories is not None
            or holds_numbers(dtype, self.column(name), repr(name))
            for name, dtype, categories in zip(
                self.feature_names, self.dtypes, coding.categories, strict=True
            )
        ]
        self._decoded: list[Array] | None = None
        if is_small(self.n_rows, self.n_features):
            self._decoded = [self._decode(i) for i in range(len(self._starts) - 1)]

    def check(self) -> None:
        """Read all categories, so that unknown ones are refused now and not later."""
        if self._decoded is not None:
            return
        for j, name in enumerate(self.feature_names):
            if self._categories[j] is not None:
                for group, part in enumerate(self._parts(name)):
                    self._convert(j, part, group)

    def _group(self, index: int) -> Array:
        if self._decoded is not None:
            return self._decoded[index]
        return super()._group(index)

    def _convert(self, j: int, column: Any, group: int) -> NDArray[Any]:
        categories = self._categories[j]
        if categories is None:
            if self._has_values[j]:
                return to_numbers(column, self._dtype)
            return np.full(len(column), np.nan)
        label, first_row = repr(self.feature_names[j]), int(self._starts[group])
        codes = encode(_series(column), label, categories, self._unknown, first_row)
        return np.where(codes == MISSING, np.nan, codes)


def _series(column: Any) -> Column:
    series: Column = nw.from_native(column, series_only=True)
    return series
