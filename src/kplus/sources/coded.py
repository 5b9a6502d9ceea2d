"""From tables to blocks of numbers and codes, wherever the rows are kept."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Blocks
from kplus.sources.blocks import ArrayBlocks, FrameBlocks
from kplus.sources.categories import CodedFrameBlocks, Coding, check_names
from kplus.sources.chosen import FROM_DTYPE, Choice, chosen_columns
from kplus.sources.coded_arrays import (
    CodedArrayBlocks,
    array_coding,
    holds_objects,
    objects_to_numbers,
)
from kplus.sources.converted import RecodedBlocks, refuse_categories
from kplus.sources.files import has_columns, open_files

if TYPE_CHECKING:
    from kplus.sources.arrow import Columns

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

    def open_table(self, table: Any) -> Opened:
        """Open what a path names, or `open_files` returned."""
        if isinstance(table, (str, os.PathLike)):
            table = self._open_path(table)
        if has_columns(table):
            return self._open_columns(table)
        if getattr(table, "coding", None) is not None:
            return self._open_coded(table)
        if self.coding is not None and not self.coding.by_position:
            raise no_names(self.coding, "The table has no column names")
        if isinstance(table, ArrayBlocks):
            blocks, coding = self.open_array(table.array)
            return (table.cut(self.block_rows) if coding is None else blocks), coding
        chosen = chosen_columns(self.categorical, table.n_features)
        if self.coding is not None or (self.reset and chosen.any()):
            raise DataError(
                "Columns of several .npy files, of Zarr arrays and of blocks of your "
                "own cannot be categories: give one .npy file, or Parquet files."
            )
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

    def _open_path(self, path: str | os.PathLike[str]) -> Any:
        """In CSV files text stays as it is written where categories are text."""
        if self.coding is None:
            return open_files(path)
        coding = self.coding
        if coding.by_position and has_columns(table := open_files(path)):
            coding = _name(coding, table.names)
        return open_files(path, text=coding.text_names)

    def _open_columns(self, files: "Columns") -> Opened:
        from kplus.sources.coded_columns import CodedColumnBlocks, columns_coding
        from kplus.sources.column_blocks import NumberBlocks

        if self.coding is not None:
            named = _name(self.coding, files.names)
            blocks = CodedColumnBlocks(files, named, self.block_rows, self.unknown)
            blocks.check()
            return blocks, self.coding
        if self.reset:
            coding = columns_coding(files, self.categorical)
            if coding.has_categories:
                return CodedColumnBlocks(files, coding, self.block_rows), coding
        return NumberBlocks(files, self.block_rows), None


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
