"""Blocks of frames and arrays with categories, which are codes there.

In a block a category column holds the codes 0, 1, ..., and NaN where a value is
missing. Text and objects are coded once, when a table is opened; numbers are converted
when a block is read, so that arrays may be memory maps.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kplus.core.errors import DataError
from kplus.core.reading import n_blocks
from kplus.core.types import Array, IntArray
from kplus.data.blocks import Cut, as_float_column, default_block_rows
from kplus.data.categories import Coding, ColumnCoder, codes_to_floats
from kplus.data.factors import Column, holds_objects, objects_to_numbers

__all__ = ["CodedBlocks", "MemoryColumns", "holds_numbers", "kind_of"]


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
            if holds_numbers(column.dtype, [column], self.labels[j]):
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
        not one of the coding's. Arrays of numbers tell the last when blocks are read.
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


def holds_numbers(dtype: Any, parts: Iterable[Any], label: str) -> bool:
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
