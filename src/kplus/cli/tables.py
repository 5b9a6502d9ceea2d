"""Input files as tables: the columns to use, and what names the rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kplus.cli.console import CommandError
from kplus.core.errors import DataError
from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks, IntArray
from kplus.data.categories import Coding
from kplus.data.converted import ConvertedRows
from kplus.data.open import Coder, has_columns, number_blocks, open_data
from kplus.data.selection import (
    FROM_DTYPE,
    refuse_row_names,
    select_columns,
    unknown_column,
)

if TYPE_CHECKING:
    from kplus.data.arrow import Columns

__all__ = [
    "Choice",
    "Table",
    "how_written",
    "number_columns",
    "open_with_categories",
    "read_once",
    "read_table",
]


@dataclass(frozen=True)
class Choice:
    """Which columns a command uses."""

    index: str | None = None  # names the rows
    columns: Sequence[str] | None = None  # to use; None: all others
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()  # as text, whatever they look like
    weights: str | None = None  # says how much rows count
    accepts: str = "numbers"  # or "mixed", or "categories", which numbers are then, too
    coding: Coding | None = None  # of the fit, if there was one
    unknown: str = "error"  # or "missing": what a value is that `coding` does not have
    empty: bool = False  # whether columns may have no value; they count as numbers

    @property
    def names(self) -> list[str]:
        """Every column that the user named."""
        other = [name for name in (self.index, self.weights) if name is not None]
        return [*other, *(self.columns or ()), *self.drop, *self.categorical]


@dataclass(frozen=True)
class Table:
    """The rows of a file, or of several."""

    source: Blocks  # the columns to use
    data: Any  # the same as estimators take it
    names: list[str] | None  # None for a .npy file
    coding: Coding | None = None  # None: all columns are numbers
    index_name: str = "row"
    index: Callable[[], Iterator[Any]] | None = None
    """Gives the names of rows, piece by piece, as Arrow arrays; None: row numbers."""
    weights: Array | None = None  # how much rows count; None: all the same

    @property
    def column_names(self) -> list[str]:
        """Names to print, also where the file has none."""
        if self.names is not None:
            return self.names
        return [f"column {i}" for i in range(self.source.n_features)]

    @property
    def numbers(self) -> IntArray:
        """Positions of the columns that hold numbers."""
        return number_columns(self.coding, self.source.n_features)

    def parts(self, values: NDArray[Any]) -> Iterator[tuple[Array, NDArray[Any]]]:
        """Blocks of rows, and of `values`, which has an entry per row."""
        for start, rows in read_once(self.source):
            yield rows, values[start : start + len(rows)]

    def indexed(self, files: "Columns", column: str | None) -> "Table":
        """The same with the names of rows that a column of `files` has."""
        if column is None:
            return self
        # How pandas stores an index without a name.
        name = "" if column.startswith("__index_level_") else column
        return replace(self, index_name=name, index=partial(files.plain_parts, column))


def how_written(table: Table) -> str | None:
    """How a file of text is written, where that is not as usual."""
    paths = getattr(table.data, "paths", ())
    if not (paths and ".csv" in [suffix.lower() for suffix in paths[0].suffixes]):
        return None
    from kplus.data.dialect import Dialect

    words = Dialect.of(paths[0]).words
    return None if words is None else f"{paths[0].name} is read with {words}."


def read_once(source: Blocks) -> Iterator[tuple[int, Array]]:
    """As `read_blocks`, but mapped files need not stay in memory."""
    for start, rows in read_blocks(source):
        yield start, rows
        if hasattr(source, "release"):
            source.release(start, start + len(rows))


def number_columns(coding: Coding | None, n_features: int) -> IntArray:
    """Positions of the columns that hold numbers."""
    if coding is None:
        return np.arange(n_features)
    return np.array([j for j, c in enumerate(coding.categories) if c is None], np.int64)


def open_with_categories(path: Path, index: str | None, names: Sequence[str]) -> Any:
    """Open files; row names and columns that are to be categories are text."""
    table = open_data(path, text=[*names, *([] if index is None else [index])])
    if not has_columns(table):
        return table
    from kplus.data.arrow import as_text

    for name in names:
        if name not in table.schema.names:
            raise unknown_column(str(path), name, table.schema.names)
    return as_text(table, names)


def read_table(path: Path, choice: Choice) -> Table:
    """Open input files and pick their columns."""
    data = open_with_categories(path, choice.index, choice.categorical)
    if has_columns(data):
        return _pick(path, data, choice)
    if isinstance(data, ConvertedRows):
        return _converted(path, data, choice)
    if choice.names:
        raise CommandError(
            f"{path} has no column names, so {choice.names[0]!r} cannot be picked."
        )
    return Table(number_blocks(data), data, None)


def _converted(path: Path, data: ConvertedRows, choice: Choice) -> Table:
    """A folder that ``kplus convert`` wrote, where all was chosen already."""
    if choice.weights is not None:
        raise CommandError(
            f"{path} was converted, and holds columns to use only; give the files that "
            f"it was made of for --weights {choice.weights!r}."
        )
    if choice.names:
        raise CommandError(
            f"{path} was converted; choose {choice.names[0]!r} when converting, by "
            f"kplus convert with --columns, --drop, --index and --categorical."
        )
    source, coding = _coded(data, choice)
    table = Table(source, data, getattr(data, "feature_names", None), coding)
    if data.index_path is None:
        return table
    files = open_data(data.index_path)
    assert has_columns(files)
    if files.n_rows != data.n_rows or data.index_name not in files.schema.names:
        raise DataError(
            f"{data.index_path} does not go with the other files of {path}; convert "
            f"the table again."
        )
    return table.indexed(files, data.index_name)


def _pick(path: Path, files: "Columns", choice: Choice) -> Table:
    from kplus.data.arrow import as_missing

    others = () if choice.weights is None else (choice.weights,)
    if choice.weights in (choice.index, *(choice.columns or ())) and others:
        raise CommandError(
            f"--weights names {choice.weights!r}, which --columns or --index has, too; "
            f"weights are no feature."
        )
    features, index = select_columns(
        files,
        columns=choice.columns,
        drop=(*choice.drop, *others),
        index=choice.index,
        where=str(path),
    )
    for name in choice.categorical:
        if name not in features:
            raise CommandError(
                f"--categorical names {name!r}, which is not among the columns to use."
            )
    empty, chosen = _refuse_unfit(files, features, choice), files.select(features)
    if choice.coding is None:  # which else knows what to make of them
        chosen = as_missing(chosen, empty)
    source, coding = _coded(chosen, choice)
    if coding is not None and choice.coding is None and choice.accepts == "mixed":
        refuse_row_names(chosen, coding, choice.categorical)
    table = Table(source, chosen, features, coding).indexed(files, index)
    return replace(table, weights=_row_weights(files, choice.weights))


def _row_weights(files: "Columns", name: str | None) -> Array | None:
    """A column that says how much rows count, checked."""
    from kplus.data.arrow import is_number

    if name is None:
        return None
    dtype = files.schema.field(name).type
    if not is_number(dtype):
        raise CommandError(f"--weights: column {name!r} holds {dtype}, not numbers.")
    parts = [part.cast("float64") for part in files.plain_parts(name)]
    weights = np.concatenate([part.to_numpy(zero_copy_only=False) for part in parts])
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if len(bad):
        value = weights[bad[0]]
        what = "no value" if np.isnan(value) else f"{value:g}"
        raise CommandError(
            f"--weights: column {name!r} has {what} in row {bad[0]}; give every row a "
            f"finite number from 0 on."
        )
    if not weights.any():
        raise CommandError(
            f"--weights: column {name!r} is 0 in all rows; at least one must count."
        )
    return weights


def _coded(table: Any, choice: Choice) -> tuple[Blocks, Coding | None]:
    """Blocks of an open table, and the categories if there are some."""
    if choice.accepts == "numbers":
        return number_blocks(table), None
    every = choice.accepts == "categories" and has_columns(table)
    coder = Coder(
        categorical=table.names if every else FROM_DTYPE,
        coding=choice.coding,
        unknown=choice.unknown,
    )
    return coder.open(table)


def _refuse_unfit(
    files: "Columns", features: Sequence[str], choice: Choice
) -> list[str]:
    """Refuse columns of what the model does not take; return those without a value."""
    from kplus.data.arrow import is_categorical, is_number

    numbers_only, empty = choice.accepts == "numbers", []
    for name in features:
        dtype = files.schema.field(name).type
        if is_number(dtype) or name in choice.categorical:
            continue
        example = _example(files, name)
        if example is None and not (choice.empty or choice.coding):
            raise DataError(
                f"Column {name!r} is empty; leave it out (--drop {name!r})."
            )
        if example is None:
            empty.append(name)
        elif numbers_only or not is_categorical(dtype):
            kind = "not numbers" if numbers_only else "neither numbers nor categories"
            raise DataError(
                f"Column {name!r} holds {dtype}, {kind}, for example "
                f"{str(example)[:40]!r}. Leave it out (--drop {name!r}), name the "
                f"rows with it (--index {name!r}), or say --categorical {name!r} to a "
                f"model that takes categories."
            )
    return empty


def _example(files: "Columns", name: str) -> Any:
    """A value of a column; None: it has none."""
    parts = (part.drop_null()[:1].to_pylist() for part in files.parts(name))
    return next((values[0] for values in parts if values), None)
