"""Files with categories that Arrow reads, coded one piece at a time.

The categories are found in one pass over their columns, which keeps the different
values and nothing else in memory.
"""

from collections.abc import Collection, Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Array
from kplus.sources.arrow import Columns
from kplus.sources.categories import (
    Coding,
    check_names,
    find_categories,
    holds_numbers,
)
from kplus.sources.chosen import FROM_DTYPE, Choice, chosen_columns
from kplus.sources.column_blocks import ColumnBlocks, to_numbers
from kplus.sources.factors import MISSING, Column, encode
from kplus.sources.kept import is_small

__all__ = ["CodedColumnBlocks", "columns_coding", "refuse_row_names"]


def columns_coding(files: Columns, categorical: Choice = FROM_DTYPE) -> Coding:
    """Find the categories of a table in files, just as `Coding.of` does in memory.

    Parameters
    ----------
    files : Columns
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
    >>> from kplus.sources.arrow import open_columns
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.parquet"
    >>> pq.write_table(pa.table({"size": [1.5, 2.0], "color": ["red", "blue"]}), path)
    >>> files = open_columns("parquet", [path])
    >>> coding = columns_coding(files)
    >>> coding.categories
    (None, ('blue', 'red'))
    >>> CodedColumnBlocks(files, coding).read(0)
    array([[1.5, 1. ],
           [2. , 0. ]])
    """
    names = files.names
    chosen = chosen_columns(categorical, len(names), names)
    return Coding(
        tuple(names),
        tuple(
            find_categories(
                _dtype(files, name), _parts(files, name), repr(name), bool(asked)
            )
            for name, asked in zip(names, chosen, strict=True)
        ),
    )


class CodedColumnBlocks(ColumnBlocks):
    """Blocks of a table in files with numbers and categories.

    Blocks are decoded and coded when they are read; those of a small table all at once.

    Parameters
    ----------
    files : Columns
        A table with the columns of `coding`, in that order.
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
        is not one of the coding's; large tables tell the last when blocks are read.
    """

    def __init__(
        self,
        files: Columns,
        coding: Coding,
        block_rows: int | None = None,
        unknown: str = "error",
    ) -> None:
        super().__init__(files, block_rows, files.names, np.float64)
        check_names(self.feature_names, coding)
        self._categories = coding.categories
        self._unknown = unknown
        self._has_values = [
            categories is not None
            or holds_numbers(_dtype(files, name), _parts(files, name), repr(name))
            for name, categories in zip(
                self.feature_names, coding.categories, strict=True
            )
        ]
        self._kept: list[Array] | None = None
        if is_small(self.n_rows, self.n_features):
            self.remote = False  # pickled with all that is kept
            self._kept = [self._made(i) for i in range(len(files.counts))]

    def check(self) -> None:
        """Read all categories, so that unknown ones are refused now and not later."""
        if self._kept is not None:
            return
        for j, categories in enumerate(self._categories):
            if categories is not None:
                for piece in range(len(self._files.counts)):
                    self._column(j, piece)

    def _decoded(self, piece: int) -> Array:
        if self._kept is not None:
            return self._kept[piece]
        return super()._decoded(piece)

    def _column(self, j: int, piece: int) -> NDArray[Any]:
        name, categories = self.feature_names[j], self._categories[j]
        if categories is None:
            if self._has_values[j]:
                return to_numbers(self._files.column(piece, name), self._dtype)
            return np.full(self._files.counts[piece], np.nan)
        column, first_row = _coded(self._files, piece, name), int(self._starts[piece])
        codes = encode(column, repr(name), categories, self._unknown, first_row)
        return np.where(codes == MISSING, np.nan, codes)


def refuse_row_names(files: Columns, coding: Coding, asked: Collection[str]) -> None:
    """Refuse categories that are others in each row, unless they were asked for."""
    for name, levels in zip(coding.names, coding.levels, strict=True):
        if levels is None or levels < 2 or name in asked:
            continue
        if levels == _count_values(files, name, levels + 1):
            present = (part.drop_null() for part in files.parts(name))
            example = next(str(part[0]) for part in present if len(part))
            raise DataError(
                f"Column {name!r} has another value in each row, for example "
                f"{example[:40]!r}. Leave it out (drop=[{name!r}]), name the rows with "
                f"it (index={name!r}), or say categorical=[{name!r}] to use it all the "
                f"same."
            )


def _count_values(files: Columns, name: str, most: int) -> int:
    """Values of a column that are there, counted until they are `most`."""
    count = 0
    for part in files.parts(name):
        count += len(part) - part.null_count
        if count >= most:
            break
    return count


def _dtype(files: Columns, name: str) -> Any:
    return _series(files.schema.empty_table().column(name)).dtype


def _parts(files: Columns, name: str) -> Iterator[Column]:
    return (_coded(files, piece, name) for piece in range(len(files.counts)))


def _coded(files: Columns, piece: int, name: str) -> Column:
    as_dictionary = str(files.schema.field(name).type) in ("string", "large_string")
    return _series(files.column(piece, name, as_dictionary=as_dictionary))


def _series(column: Any) -> Column:
    series: Column = nw.from_native(column, series_only=True)
    return series
