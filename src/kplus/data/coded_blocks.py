"""Blocks of frames, arrays and files with categories, which are codes there.

In a block a category column holds the codes 0, 1, ..., and NaN where a value is
missing. In memory, text and objects are coded once, when a table is opened; numbers are
converted when a block is read, so that arrays may be memory maps. Files are decoded and
coded one piece at a time.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.reading import n_blocks
from kplus.core.types import Array, IntArray
from kplus.data.blocks import (
    Cut,
    PieceBlocks,
    as_float_column,
    default_block_rows,
)
from kplus.data.categories import (
    Coding,
    ColumnCoder,
    TypedColumns,
    codes_to_floats,
)
from kplus.data.factors import Values, holds_objects

if TYPE_CHECKING:
    from kplus.data.arrow import Columns

__all__ = [
    "CodedBlocks",
    "ColumnBlocks",
    "FileColumns",
    "MemoryColumns",
    "NumberBlocks",
]


class MemoryColumns(TypedColumns):
    """The columns of a frame or of an array, which may be a map.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"size": [1.5, 2.0], "color": ["red", "blue"]})
    >>> coding = Coding.of(MemoryColumns(frame))
    >>> coding.categories
    (None, ('blue', 'red'))
    >>> MemoryColumns(frame).coded(coding).read(0)
    array([[1.5, 1. ],
           [2. , 0. ]])
    >>> Coding.of(MemoryColumns(np.array([[0.5, 7], [1.5, 9]])), [1]).categories
    (None, (7, 9))
    """

    def __init__(self, table: Any) -> None:
        if isinstance(table, np.ndarray):
            columns: list[Any] = list(table.T)
            super().__init__(None, [table.dtype] * len(columns))
        else:
            frame: nw.DataFrame[Any] = nw.from_native(table, eager_only=True)
            columns = list(frame.iter_columns())
            super().__init__(frame.columns, [column.dtype for column in columns])
        self.n_rows = len(table)
        self.columns = list(map(Values, columns, self.labels))

    def head(self, j: int, n_rows: int) -> Values:
        return Values(self.columns[j].column[:n_rows], self.labels[j])

    def tail(self, j: int) -> Values:
        return Values(self.columns[j].column[-1:], self.labels[j])

    def is_mappable(self, j: int) -> bool:
        """Whether a column is an array of numbers, which may be a memory map."""
        column = self.columns[j].column
        return isinstance(column, np.ndarray) and not holds_objects(column)

    def parts(self, columns: Sequence[int]) -> Iterator[tuple[int, Values]]:
        """Columns whole; arrays of numbers by blocks, so that a map is read once."""
        mappable = [j for j in columns if self.is_mappable(j)]
        for j in columns if self.n_rows else ():
            if j not in mappable:
                yield j, self.columns[j]
        step = default_block_rows(len(self.columns))
        for start in range(0, self.n_rows if mappable else 0, step):
            for j in mappable:
                part = self.columns[j].column[start : start + step]
                yield j, Values(part, self.labels[j])

    def numbers(self, j: int) -> Any:
        """A column of numbers; of frames also one that has no values at all."""
        values = self.columns[j]
        if self.is_mappable(j):
            return values.column
        if isinstance(values.column, np.ndarray):
            return values.floats()
        if self.holds_numbers(j):
            return values.column
        return np.broadcast_to(np.nan, self.n_rows)

    def coded(
        self, coding: Coding, block_rows: int | None = None, unknown: str = "error"
    ) -> "CodedBlocks":
        return CodedBlocks(self, coding, block_rows, unknown)


class CodedBlocks(Cut):
    """Blocks of a frame or an array that has the columns of `coding`, in that order.

    Raises
    ------
    DataError
        The columns are others, a number column holds something else, or a category is
        not one of the coding's. Arrays of numbers raise the last when blocks are read.
    """

    def __init__(
        self,
        table: MemoryColumns,
        coding: Coding,
        block_rows: int | None = None,
        unknown: str = "error",
    ) -> None:
        super().__init__(table.n_rows, len(table.columns), block_rows)
        coders = table.coders(coding, unknown)
        if table.names is not None:
            self.feature_names = table.names
        # A column is numbers, codes, or numbers that become codes when they are read.
        self._numbers: dict[int, Any] = {}
        self._codes: dict[int, IntArray] = {}
        self._coders: dict[int, ColumnCoder] = {}
        for j, coder in enumerate(coders):
            if coder is None:
                self._numbers[j] = table.numbers(j)
            elif table.is_mappable(j):
                self._numbers[j], self._coders[j] = table.columns[j].column, coder
            else:
                self._codes[j] = coder.codes(table.columns[j].factors)

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        return self._gather(slice(start, stop), stop - start)

    def take(self, rows: IntArray) -> Array:
        return self._gather(rows, len(rows))

    def check(self) -> None:
        """Read what is not coded yet, so that what is unknown is refused now."""
        for index in range(n_blocks(self) if self._coders else 0):
            self.read(index)

    def _gather(self, rows: slice | IntArray, n_rows: int) -> Array:
        out = np.empty((n_rows, self.n_features))
        numbers = rows.start if isinstance(rows, slice) else rows
        for j, codes in self._codes.items():
            out[:, j] = codes_to_floats(codes[rows])
        for j, column in self._numbers.items():
            part = column[rows]
            if j in self._coders:
                coder = self._coders[j]
                part = coder.floats(Values(part, coder.label).factors, numbers)
            elif not isinstance(part, np.ndarray):
                part = as_float_column(part)
            out[:, j] = part
        return out


# ---------------------------------------------------------------- files


class FileColumns(TypedColumns):
    """The columns of a table in files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from kplus.data.arrow_files import open_columns
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.parquet"
    >>> pq.write_table(pa.table({"size": [1.5, 2.0], "color": ["red", "blue"]}), path)
    >>> columns = FileColumns(open_columns("parquet", [path]))
    >>> coding = Coding.of(columns)
    >>> coding.categories
    (None, ('blue', 'red'))
    >>> columns.coded(coding).read(0)
    array([[1.5, 1. ],
           [2. , 0. ]])
    """

    def __init__(self, files: "Columns") -> None:
        self.files = files
        types = nw.from_native(files.schema.empty_table(), eager_only=True).schema
        super().__init__(files.names, [types[name] for name in files.names])

    @property
    def n_rows(self) -> int:
        return self.files.n_rows

    @property
    def decimal(self) -> str:
        """The decimal mark of the file, where numbers leave it open."""
        return self.files.decimal

    def head(self, j: int, n_rows: int) -> Values:
        column = self.files.head(self.files.names[j], n_rows)
        return Values(nw.from_native(column, series_only=True), self.labels[j])

    def tail(self, j: int) -> Values:
        piece = max(i for i, count in enumerate(self.files.counts) if count)
        column = self.files.column(piece, self.files.names[j])
        last = column[len(column) - 1 :]
        return Values(nw.from_native(last, series_only=True), self.labels[j])

    def part(self, j: int, piece: int) -> Values:
        """A column of a piece; text as a dictionary, which is quicker."""
        name = self.files.names[j]
        as_text = str(self.files.schema.field(name).type) in ("string", "large_string")
        column = self.files.column(piece, name, as_dictionary=as_text)
        return Values(nw.from_native(column, series_only=True), self.labels[j])

    def parts(self, columns: Sequence[int]) -> Iterator[tuple[int, Values]]:
        for j in columns:
            for piece in range(len(self.files.counts)):
                yield j, self.part(j, piece)

    def coded(
        self, coding: Coding, block_rows: int | None = None, unknown: str = "error"
    ) -> "ColumnBlocks":
        from kplus.data.arrow import as_missing

        coders = self.coders(coding, unknown)
        numbers = [j for j, coder in enumerate(coders) if coder is None]
        empty = [self.files.names[j] for j in numbers if not self.holds_numbers(j)]
        table = FileColumns(as_missing(self.files, empty))
        return ColumnBlocks(table, coders, block_rows, np.float64)


class ColumnBlocks(PieceBlocks):
    """Blocks of columns in files; nulls are read as NaN, categories as codes.

    Parameters
    ----------
    table : FileColumns
    coders : sequence of (ColumnCoder or None)
        For each column what turns it into codes; None: it must be numbers.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    dtype : type
        float32 or float64.
    """

    def __init__(
        self,
        table: FileColumns,
        coders: Sequence[ColumnCoder | None],
        block_rows: int | None,
        dtype: type[Any],
    ) -> None:
        self._table, self._files = table, table.files
        self._coders = list(coders)
        self.remote, self.stamps = self._files.remote, self._files.stamps
        self.feature_names = list(self._files.names)
        super().__init__(self._files.counts, len(self._coders), block_rows, dtype)

    def check(self) -> None:
        """Read all categories, so that unknown ones are refused now and not later."""
        for j, coder in enumerate(self._coders):
            for piece in range(len(self._files.counts) if coder is not None else 0):
                self._column(j, piece)

    def decode(self, piece: int) -> Array:
        rows = np.empty((self._files.counts[piece], self.n_features), self._dtype)
        for j in range(self.n_features):
            column = self._column(j, piece)
            if len(column) != len(rows):
                raise DataError(
                    f"{self._files} is damaged: column {self.feature_names[j]!r} has "
                    f"{len(column)} values where there are {len(rows)} rows."
                )
            rows[:, j] = column
        return rows

    def _column(self, j: int, piece: int) -> NDArray[Any]:
        coder = self._coders[j]
        if coder is None:
            return self._files.numbers(piece, self.feature_names[j], self._dtype)
        factors = self._table.part(j, piece).factors
        return coder.floats(factors, int(self._starts[piece]))


class NumberBlocks(ColumnBlocks):
    """Blocks of files with number columns only; float32 where that is exact."""

    def __init__(self, files: "Columns", block_rows: int | None = None) -> None:
        dtype = files.float_type()
        super().__init__(
            FileColumns(files), [None] * len(files.names), block_rows, dtype
        )
