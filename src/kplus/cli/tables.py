"""Input files as tables: the columns to use, and what names the rows."""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kplus.cli.console import CommandError
from kplus.cli.options import Options
from kplus.core.errors import DataError
from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks, IntArray
from kplus.data.categories import Coding
from kplus.data.converted import ConvertedRows
from kplus.data.files import open_files
from kplus.data.open import Coder, as_read, has_columns, number_blocks, open_data
from kplus.data.reading import Reading
from kplus.data.roles import Wishes
from kplus.data.selection import FROM_DTYPE, select_columns, unknown_column
from kplus.engine.resources import resources_now

if TYPE_CHECKING:
    from kplus.data.arrow import Columns

__all__ = [
    "STDIN",
    "Choice",
    "Table",
    "from_stdin",
    "number_columns",
    "open_with_categories",
    "read_once",
    "read_table",
    "reading_options",
    "skipped",
]

STDIN = "standard-input.csv"
_LISTED = 8  # columns in an error


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
    numbers: Sequence[str] = ()  # columns to read as numbers, whatever they look like
    keep: Sequence[str] = ()  # columns to use, whatever they are
    dates: str = "ignore"  # what to make of dates
    constants: bool = False  # whether columns of one value are of use
    skip: tuple[int, int] = (0, 0)  # lines to leave out at the start and the end
    reading: Reading | None = None  # of the fit, if there was one

    @property
    def names(self) -> list[str]:
        """Every column that the user named."""
        other = [name for name in (self.index, self.weights) if name is not None]
        as_what = (*self.categorical, *self.numbers, *self.keep)
        return [*other, *(self.columns or ()), *self.drop, *as_what]

    @property
    def known_numbers(self) -> Sequence[str]:
        """The columns that held numbers in the fit, if there was one."""
        if self.reading is None:
            return ()
        if self.coding is None:
            return self.columns or ()
        both = zip(self.coding.names, self.coding.categories, strict=True)
        return [name for name, categories in both if categories is None]

    @property
    def wishes(self) -> Wishes:
        """The same for what recognises columns."""
        return Wishes(
            keep=(*self.keep, *(self.columns or ())),
            categorical=self.categorical,
            numbers=self.numbers,
            dates=self.dates,
            categories_only=self.accepts == "categories",
            numbers_only=self.accepts == "numbers",
            constants=self.constants,
        )


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
    reading: Reading | None = None  # what was recognised; None: there are no names
    skip: tuple[int, int] = (0, 0)  # lines left out at the start and the end

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


def reading_options(options: Options) -> dict[str, Any]:
    """What columns hold, and lines at the ends of a table; checked."""
    if options.dates not in ("ignore", "parts", "age"):
        raise CommandError(f"--dates is ignore, parts or age, not {options.dates!r}.")
    return {
        "numbers": tuple(options.numbers or ()),
        "keep": tuple(options.keep or ()),
        "dates": options.dates,
        "skip": skipped(options),
    }


def skipped(options: Options) -> tuple[int, int]:
    """How many lines are left out at the ends of a table."""
    for name in ("skip_first", "skip_last"):
        if getattr(options, name) < 0:
            flag = f"--{name.replace('_', '-')}"
            raise CommandError(f"{flag} is a number of lines from 0 on.")
    return options.skip_first, options.skip_last


@contextmanager
def from_stdin(options: Options) -> Iterator[None]:
    """Standard input as a file, if it is to be read."""
    if str(options.data) != "-":
        yield
        return
    folder = resources_now().folder()
    options.data = folder.path / STDIN
    with open(options.data, "xb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    try:
        yield
    finally:
        options.data.unlink()


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


def open_with_categories(
    path: Path,
    index: str | None,
    names: Sequence[str],
    skip: tuple[int, int] = (0, 0),
) -> Any:
    """Open files; row names and columns that are to be categories are text."""
    text = [*names, *([] if index is None else [index])]
    table = open_files(path, text=text, skip_first=skip[0], skip_last=skip[1])
    if not has_columns(table):
        return table
    from kplus.data.arrow import as_text

    for name in names:
        if name not in table.schema.names:
            raise unknown_column(str(path), name, table.schema.names)
    return as_text(table, names)


def read_table(path: Path, choice: Choice) -> Table:
    """Open input files and pick their columns."""
    data = open_with_categories(path, choice.index, choice.categorical, choice.skip)
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
    names = getattr(data, "feature_names", None)
    table = Table(source, data, names, coding, reading=data.reading)
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
    for name in (*choice.keep, *choice.numbers):
        if name not in features:
            raise unknown_column(str(path), name, features)
    chosen = as_read(
        files.select(features), choice.reading, choice.wishes, choice.known_numbers
    )
    empty = _refuse_unfit(chosen, choice)
    if choice.coding is None:  # which else knows what to make of them
        chosen = as_missing(chosen, empty)
    source, coding = _coded(chosen, choice)
    table = Table(source, chosen, chosen.names, coding, reading=chosen.reading)
    weights = _row_weights(files, choice.weights)
    return replace(table.indexed(files, index), weights=weights, skip=choice.skip)


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


def _refuse_unfit(files: "Columns", choice: Choice) -> list[str]:
    """Refuse columns of what the model does not take; return those without a value."""
    from kplus.data.arrow import is_categorical, is_number

    numbers_only = choice.accepts == "numbers"
    empty: list[str] = []
    unfit: list[str] = []
    for name in files.names:
        dtype = files.schema.field(name).type
        if is_number(dtype) or name in choice.categorical:
            continue
        example = _example(files, name)
        if example is None:
            empty.append(name)
        elif numbers_only or not is_categorical(dtype):
            unfit.append(f"{name!r} holds {dtype}, for example {str(example)[:40]!r}")
    words = []
    if unfit:
        kind = "not numbers" if numbers_only else "neither numbers nor categories"
        remedy = (
            "name the rows with one (--index COL), or use kplus fit with --model "
            "dp-mixture or craft, which take categories"
        )
        remedy = remedy if numbers_only else "turn them into text or numbers"
        more = f", and so do {len(unfit) - _LISTED} more" * (len(unfit) > _LISTED)
        words.append(
            f"Column {', '.join(unfit[:_LISTED])}{more}: {kind}. Leave "
            f"{'it' if len(unfit) == 1 else 'them'} out (--drop COL), {remedy}."
        )
    if empty and not (choice.empty or choice.coding):
        listed = ", ".join(map(repr, empty))
        words.append(f"Column {listed} is empty; leave it out (--drop {empty[0]!r}).")
    if words:
        raise DataError(" ".join(words))
    return empty


def _example(files: "Columns", name: str) -> Any:
    """A value of a column; None: it has none."""
    parts = (part.drop_null()[:1].to_pylist() for part in files.parts(name))
    return next((values[0] for values in parts if values), None)
