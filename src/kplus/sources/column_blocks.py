"""Blocks of tables of typed columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Array
from kplus.sources.arrow import Columns, is_number, is_single
from kplus.sources.pieces import PieceBlocks

__all__ = ["ColumnBlocks", "NumberBlocks", "to_numbers"]


class ColumnBlocks(PieceBlocks):
    """Blocks of columns in files; who inherits says how a column becomes numbers.

    Attributes
    ----------
    feature_names : list of str
    """

    def __init__(
        self,
        files: Columns,
        block_rows: int | None,
        columns: Sequence[str],
        dtype: type[Any],
    ) -> None:
        self._files = files
        self.remote, self.stamps = files.remote, files.stamps
        self.feature_names = list(columns)
        super().__init__(files.counts, len(self.feature_names), block_rows, dtype)

    def decode(self, piece: int) -> Array:
        first = self._whole_column(0, piece)
        rows = np.empty((len(first), self.n_features), self._dtype)
        rows[:, 0] = first
        for j in range(1, self.n_features):
            rows[:, j] = self._whole_column(j, piece)
        return rows

    def _whole_column(self, j: int, piece: int) -> NDArray[Any]:
        column, n_rows = self._column(j, piece), self._files.counts[piece]
        if len(column) != n_rows:
            raise DataError(
                f"{self._files} is damaged: column {self.feature_names[j]!r} has "
                f"{len(column)} values where there are {n_rows} rows."
            )
        return column

    def _column(self, j: int, piece: int) -> NDArray[Any]:
        """Column `j` of a piece as numbers."""
        raise NotImplementedError


class NumberBlocks(ColumnBlocks):
    """Blocks of files with number columns only; nulls are read as NaN.

    Parameters
    ----------
    files : ColumnFiles
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    columns : sequence of str or None
        The columns to read, in this order; by default all but those which pandas
        marked as its index.
    """

    def __init__(
        self,
        files: Columns,
        block_rows: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        names = files.names if columns is None else columns
        super().__init__(files, block_rows, names, _common_float(files, names))

    def _column(self, j: int, piece: int) -> NDArray[Any]:
        return to_numbers(self._files.column(piece, self.feature_names[j]), self._dtype)


def to_numbers(column: Any, dtype: type[Any]) -> NDArray[Any]:
    """A column of an Arrow table as numbers; nulls become NaN."""
    values: NDArray[Any] = column.cast(
        pa.from_numpy_dtype(dtype), safe=False
    ).to_numpy()
    return values


def _common_float(files: Columns, names: Sequence[str]) -> type[Any]:
    """Return float32 if that holds every column exactly, else float64."""
    if not names:
        raise DataError(f"{files} has no columns to read.")
    types = [files.schema.field(name).type for name in names]
    for name, dtype in zip(names, types, strict=True):
        if not is_number(dtype):
            raise DataError(
                f"Column {name!r} of {files} holds {dtype}, not numbers. Drop it, or "
                f"encode it as numbers first."
            )
    return np.float32 if all(is_single(t) for t in types) else np.float64
