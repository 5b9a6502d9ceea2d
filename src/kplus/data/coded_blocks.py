"""Blocks of frames, arrays and files with categories, which are codes there.

In a block a category column holds the codes 0, 1, ..., and NaN where a value is
missing. In memory, text and objects are coded once, when a table is opened; numbers are
converted when a block is read, so that arrays may be memory maps. Files are decoded and
coded one piece at a time.
"""

from collections.abc import Iterable, Iterator, Sequence
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
from kplus.data.categories import Coding, ColumnCoder, codes_to_floats
from kplus.data.factors import Column, holds_objects, objects_to_numbers

if TYPE_CHECKING:
    from kplus.data.arrow import Columns

__all__ = [
    "CodedBlocks",
    "ColumnBlocks",
    "FileColumns",
    "MemoryColumns",
    "NumberBlocks",
    "kind_of",
]


class MemoryColumns:
    """The columns of a frame or of an array, which may be a map; see `TypedColumns`.

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
        self.names: list[str] | None = None
        self.columns: list[Any]
        if isinstance(table, np.ndarray):
            self.columns = list(table.T)
            self.labels = [str(j) for j in range(table.shape[1])]
        else:
            frame: nw.DataFrame[Any] = nw.from_native(table, eager_only=True)
            self.columns = list(frame.iter_columns())
            self.names = [str(name) for name in frame.columns]
            self.labels = [repr(name) for name in self.names]
        self.n_rows = len(table)
        self.kinds = [kind_of(column.dtype) for column in self.columns]

    def parts(self, columns: Sequence[int]) -> Iterator[tuple[int, Column]]:
        """Row by row of blocks, so that a map is read once."""
        step = default_block_rows(len(self.columns))
        for start in range(0, self.n_rows if columns else 0, step):
            for j in columns:
                yield j, self.columns[j][start : start + step]

    def numbers(self, j: int) -> Any:
        """A column of numbers; of frames also one that has no values at all."""
        column = self.columns[j]
        if not isinstance(column, np.ndarray):
            if _holds_numbers(column.dtype, [column], self.labels[j]):
                return column
            return np.broadcast_to(np.nan, len(column))
        if holds_objects(column):
            return objects_to_numbers(column.tolist(), self.labels[j])
        return column

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
        coding.check_columns(table.names, self.n_features)
        if table.names is not None:
            self.feature_names = table.names
        # A column is numbers, codes, or numbers that become codes when they are read.
        self._numbers: dict[int, Any] = {}
        self._codes: dict[int, IntArray] = {}
        self._coders: dict[int, ColumnCoder] = {}
        for j, coder in enumerate(coding.coders(table.labels, unknown)):
            column = table.columns[j]
            if coder is None:
                self._numbers[j] = table.numbers(j)
            elif isinstance(column, np.ndarray) and not holds_objects(column):
                self._numbers[j], self._coders[j] = column, coder
            else:
                self._codes[j] = coder.codes(column)

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
                part = self._coders[j].floats(part, numbers)
            elif not isinstance(part, np.ndarray):
                part = as_float_column(part)
            out[:, j] = part
        return out


# ---------------------------------------------------------------- files


class FileColumns:
    """The columns of a table in files; see `TypedColumns`.

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
        self.names: list[str] | None = files.names
        self.labels = [repr(name) for name in files.names]
        types = nw.from_native(files.schema.empty_table(), eager_only=True).schema
        self._types = [types[name] for name in files.names]
        self.kinds = [kind_of(dtype) for dtype in self._types]

    def part(self, j: int, piece: int) -> Any:
        """A column of a piece; text as a dictionary, which is quicker."""
        name = self.files.names[j]
        as_text = str(self.files.schema.field(name).type) in ("string", "large_string")
        column = self.files.column(piece, name, as_dictionary=as_text)
        return nw.from_native(column, series_only=True)

    def parts(self, columns: Sequence[int]) -> Iterator[tuple[int, Column]]:
        for j in columns:
            for piece in range(len(self.files.counts)):
                yield j, self.part(j, piece)

    def holds_numbers(self, j: int) -> bool:
        parts = (part for _, part in self.parts([j]))
        return _holds_numbers(self._types[j], parts, self.labels[j])

    def coded(
        self, coding: Coding, block_rows: int | None = None, unknown: str = "error"
    ) -> "ColumnBlocks":
        return ColumnBlocks(self, coding, block_rows, unknown)


class ColumnBlocks(PieceBlocks):
    """Blocks of columns in files; nulls are read as NaN, categories as codes.

    Parameters
    ----------
    table : FileColumns
    coding : Coding or None
        Has the same columns; None: all of them must be numbers.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    unknown : {"error", "missing"}
        What a value is that is none of the coding's categories.

    Raises
    ------
    DataError
        The columns are others, a number column holds something else, or, when blocks
        are read, a category is not one of the coding's.
    """

    def __init__(
        self,
        table: FileColumns,
        coding: Coding | None = None,
        block_rows: int | None = None,
        unknown: str = "error",
    ) -> None:
        self._table, self._files = table, table.files
        self.remote, self.stamps = self._files.remote, self._files.stamps
        self.feature_names = list(self._files.names)
        n_columns = len(self.feature_names)
        self._coders: list[ColumnCoder | None] = [None] * n_columns
        self._has_values = [True] * n_columns
        if coding is not None:
            coding.check_columns(self.feature_names, n_columns)
            self._coders = coding.coders(table.labels, unknown)
            self._has_values = [
                coder is not None or table.holds_numbers(j)
                for j, coder in enumerate(self._coders)
            ]
        dtype = self._files.float_type() if coding is None else np.float64
        super().__init__(self._files.counts, n_columns, block_rows, dtype)

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
        if coder is not None:
            return coder.floats(self._table.part(j, piece), int(self._starts[piece]))
        if not self._has_values[j]:
            return np.full(self._files.counts[piece], np.nan)
        return self._files.numbers(piece, self.feature_names[j], self._dtype)


class NumberBlocks(ColumnBlocks):
    """Blocks of files with number columns only; float32 where that is exact."""

    def __init__(self, files: "Columns", block_rows: int | None = None) -> None:
        super().__init__(FileColumns(files), None, block_rows)


# ---------------------------------------------------------------- types


def kind_of(dtype: Any) -> str:
    """What a type of numpy or narwhals says of a column; see `TypedColumns`."""
    if isinstance(dtype, np.dtype):
        kinds = {"b": "booleans", **dict.fromkeys("iuf", "numbers")}
        kinds |= dict.fromkeys("OUT", "values")
        if dtype.kind not in kinds:
            raise DataError(
                f"X holds {dtype}, neither numbers nor text; turn it into one of them."
            )
        return kinds[dtype.kind]
    if dtype.is_numeric():
        return "numbers"
    known = {nw.Boolean: "booleans", nw.String: "text", nw.Object: "objects"}
    return next((kind for cls, kind in known.items() if dtype == cls), "others")


def _holds_numbers(dtype: Any, parts: Iterable[Any], label: str) -> bool:
    """Whether a column that held numbers in the fit does so; False: it has no values.

    Raises
    ------
    DataError
        It has values that are no numbers.
    """
    if kind_of(dtype) in ("numbers", "booleans"):
        return True
    if all(part.is_null().all() for part in parts):
        return False
    raise DataError(
        f"Column {label} holds {dtype}, but held numbers in the fit; turn its values "
        f"into numbers."
    )
