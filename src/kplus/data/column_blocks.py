"""Blocks of tables of typed columns, decoded and coded one piece at a time."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kplus.core.errors import DataError, NotNumbersError
from kplus.core.types import Array
from kplus.data.arrow import Columns, is_number, is_single
from kplus.data.categories import Coding, ColumnCoder
from kplus.data.coded_blocks import holds_numbers, kind_of
from kplus.data.factors import Column
from kplus.data.pieces import PieceBlocks

__all__ = ["ColumnBlocks", "FileColumns", "NumberBlocks", "refuse_row_names"]


class FileColumns:
    """The columns of a table in files; see `TypedColumns`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow.parquet as pq
    >>> from kplus.data.arrow import open_columns
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

    def __init__(self, files: Columns) -> None:
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
        return holds_numbers(self._types[j], parts, self.labels[j])

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
        dtype = _common_float(self._files) if coding is None else np.float64
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
        column = self._files.column(piece, self.feature_names[j])
        numbers = column.cast(pa.from_numpy_dtype(self._dtype), safe=False)
        return numbers.to_numpy()  # type: ignore[no-any-return]


class NumberBlocks(ColumnBlocks):
    """Blocks of files with number columns only; float32 where that is exact."""

    def __init__(self, files: Columns, block_rows: int | None = None) -> None:
        super().__init__(FileColumns(files), None, block_rows)


def _common_float(files: Columns) -> type[Any]:
    """Return float32 if that holds every column exactly, else float64."""
    if not files.names:
        raise DataError(f"{files} has no columns to read.")
    types = {name: files.schema.field(name).type for name in files.names}
    for name, dtype in types.items():
        if not is_number(dtype):
            raise NotNumbersError(
                f"Column {name!r} of {files} holds {dtype}, not numbers. Drop it, or "
                f"encode it as numbers first."
            )
    return np.float32 if all(map(is_single, types.values())) else np.float64


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
