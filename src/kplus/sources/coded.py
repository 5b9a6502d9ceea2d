"""From tables to blocks of numbers and codes, wherever the rows are kept."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Blocks
from kplus.sources.blocks import ArrayBlocks, FrameBlocks
from kplus.sources.categories import CodedFrameBlocks, Coding
from kplus.sources.chosen import FROM_DTYPE, Choice, chosen_columns
from kplus.sources.coded_arrays import (
    CodedArrayBlocks,
    array_coding,
    holds_objects,
    objects_to_numbers,
)
from kplus.sources.files import (
    check_path,
    has_only_numbers,
    open_npy,
    open_path,
    read_table,
)

__all__ = ["Coder", "no_names"]

Opened = tuple[Blocks, Coding | None]


@dataclass(frozen=True)
class Coder:
    """How a table that may have categories is to be opened.

    Each way to open one returns its blocks, and its coding; None where all columns
    are numbers.

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
    >>> blocks, coding = Coder(categorical=["room"]).open_frame(frame)
    >>> coding.categories
    ((7, 9), ('blue', 'red'))
    >>> later = pl.DataFrame({"room": [9], "color": ["pink"]})
    >>> blocks, _ = Coder(coding=coding, unknown="missing").open_frame(later)
    >>> blocks.read(0)
    array([[ 1., nan]])
    """

    reset: bool = True
    categorical: Choice = FROM_DTYPE
    coding: Coding | None = None
    unknown: str = "error"
    block_rows: int | None = None

    def open_frame(self, frame: Any) -> Opened:
        """Open a pandas, polars or Arrow table."""
        if self.coding is not None:
            names = nw.from_native(frame, eager_only=True).columns
            named = _name(self.coding, names)
            blocks = CodedFrameBlocks(frame, named, self.block_rows, self.unknown)
            return blocks, self.coding
        if self.reset:
            coding = Coding.of(frame, self.categorical)
            if coding.has_categories:
                return CodedFrameBlocks(frame, coding, self.block_rows), coding
        return FrameBlocks(frame, self.block_rows), None

    def open_array(self, X: NDArray[Any]) -> Opened:
        """Open a matrix of numbers, booleans, text or objects."""
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
            X = objects_to_numbers(X)
        return ArrayBlocks(X, self.block_rows), None

    def open_path(self, path: Path) -> Opened:
        """Open a file: ``.npy`` and Parquet piece by piece, CSV whole."""
        kind = check_path(path)
        if kind == "npy":
            if self.coding is not None and not self.coding.by_position:
                raise no_names(self.coding, f"{path} has no column names")
            return self.open_array(open_npy(path))
        if kind == "parquet":
            return self._open_parquet(path)
        if self.coding is not None:
            return self.open_frame(_read_coded(path, self.coding))
        if not self.reset:
            return open_path(path, self.block_rows), None
        return self.open_frame(read_table(path))

    def _open_parquet(self, path: Path) -> Opened:
        numbers = has_only_numbers(path)  # says so if pyarrow is not there
        from kplus.sources.coded_parquet import CodedParquetBlocks, parquet_coding
        from kplus.sources.parquet import column_names, read_schema

        names = column_names(read_schema(path))
        if self.coding is not None:
            named = _name(self.coding, names)
            blocks = CodedParquetBlocks(path, named, self.block_rows, self.unknown)
            blocks.check()
            return blocks, self.coding
        if self.reset:
            chosen = chosen_columns(self.categorical, len(names), names)
            if chosen.any() or not numbers:
                coding = parquet_coding(path, chosen)
                if coding.has_categories:
                    return CodedParquetBlocks(path, coding, self.block_rows), coding
        return open_path(path, self.block_rows), None


def no_names(coding: Coding, problem: str) -> DataError:
    """The error for a table without names after one with them."""
    return DataError(
        f"{problem}, but the fit was on a table with categories: give a data frame or "
        f"a file with the columns {list(coding.names)}, so that categories can be told "
        f"by their values."
    )


def _name(coding: Coding, names: Sequence[str]) -> Coding:
    """The coding of an array for a table of as many columns that have names."""
    if coding.by_position and len(names) == len(coding.names):
        return replace(coding, names=tuple(str(name) for name in names))
    return coding


def _read_coded(path: Path, coding: Coding) -> Any:
    """Read a CSV file, with text as it is written where categories are text."""
    if coding.by_position:
        coding = _name(coding, read_table(path).column_names)
    return read_table(path, text=coding.text_names)
