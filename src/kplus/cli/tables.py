"""Input files as tables: the columns to use, and what names the rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kplus.cli.console import CommandError
from kplus.core.errors import DataError
from kplus.core.types import Blocks
from kplus.data.categories import Coding
from kplus.data.converted import ConvertedRows, refuse_categories
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
    "ROW",
    "Choice",
    "Table",
    "read_table",
]

ROW = "row"
"""Name of the row numbers, from 0, where nothing else names the rows."""


@dataclass(frozen=True)
class Choice:
    """Which columns a command uses.

    Attributes
    ----------
    index : str or None
        The column that names the rows.
    columns : sequence of str or None
        The columns to use; all others by default.
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns to take as categories, their values as text, whatever they look like.
    accepts : {"numbers", "mixed", "categories"}
        What the columns may hold; with "categories" numbers count as such, too.
    coding : Coding or None
        The categories of the fit, if there was one.
    unknown : {"error", "missing"}
        What a value is that is none of these.
    empty : bool
        Whether a column may have no value at all; it then counts as numbers.
    """

    index: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    accepts: str = "numbers"
    coding: Coding | None = None
    unknown: str = "error"
    empty: bool = False

    @property
    def names(self) -> list[str]:
        """Every column that the user named."""
        index = [] if self.index is None else [self.index]
        return [*index, *(self.columns or ()), *self.drop, *self.categorical]


@dataclass(frozen=True)
class Table:
    """The rows of a file, or of several.

    Attributes
    ----------
    source : Blocks
        The columns to use.
    data : open table
        The same as estimators take it.
    names : list of str or None
        Their names; None for a ``.npy`` file.
    index_name : str
    index : callable or None
        Gives the names of rows, piece by piece, as Arrow arrays; None: row numbers.
    coding : Coding or None
        The categories; None: all columns are numbers.
    """

    source: Blocks
    data: Any
    names: list[str] | None
    index_name: str = ROW
    index: Callable[[], Iterator[Any]] | None = None
    coding: Coding | None = None

    @property
    def column_names(self) -> list[str]:
        """Names to print, also where the file has none."""
        if self.names is not None:
            return self.names
        return [f"column {i}" for i in range(self.source.n_features)]


def read_table(path: Path, choice: Choice) -> Table:
    """Open input files and pick their columns."""
    named = [] if choice.index is None else [choice.index]
    data = open_data(path, text=[*named, *choice.categorical])
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
    if choice.names:
        raise CommandError(
            f"{path} was converted; choose {choice.names[0]!r} when converting, by "
            f"kplus convert with --columns, --drop, --index and --categorical."
        )
    if choice.accepts == "numbers":
        refuse_categories(data.coding)
    coder = Coder(coding=choice.coding, unknown=choice.unknown)
    source, coding = coder.open(data)
    if choice.accepts == "numbers":
        coding = None
    names = getattr(data, "feature_names", None)
    if data.index_path is None:
        return Table(source, data, names, coding=coding)
    files = open_data(data.index_path)
    assert has_columns(files)
    assert data.index_name is not None
    if files.n_rows != data.n_rows or data.index_name not in files.schema.names:
        raise DataError(
            f"{data.index_path} does not go with the other files of {path}; convert "
            f"the table again."
        )
    return Table(source, data, names, *_row_names(files, data.index_name), coding)


def _row_names(
    files: "Columns", column: str
) -> tuple[str, Callable[[], Iterator[Any]]]:
    # How pandas stores an index without a name.
    name = "" if column.startswith("__index_level_") else column
    return name, partial(files.plain_parts, column)


def _pick(path: Path, files: "Columns", choice: Choice) -> Table:
    features, index = select_columns(
        files,
        columns=choice.columns,
        drop=choice.drop,
        index=choice.index,
        where=str(path),
    )
    for name in choice.categorical:
        if name not in files.schema.names:
            raise unknown_column(str(path), name, files.schema.names)
        if name not in features:
            raise CommandError(
                f"--categorical names {name!r}, which is not among the columns to use."
            )
    _refuse_unfit(files, features, choice)
    source, data, coding = _chosen_columns(files.select(features), choice)
    if index is None:
        return Table(source, data, features, coding=coding)
    return Table(source, data, features, *_row_names(files, index), coding)


def _chosen_columns(
    files: "Columns", choice: Choice
) -> tuple[Blocks, "Columns", Coding | None]:
    """The blocks, what estimators take, and the categories if there are some."""
    from kplus.data.arrow import as_missing, as_text

    files = as_text(files, choice.categorical)
    if choice.empty and choice.coding is None:
        files = as_missing(files, _empty(files))
    every = choice.accepts == "categories"
    types = [files.schema.field(name).type for name in files.names]
    if not (every or choice.categorical) and all(_is_plain(t, choice) for t in types):
        return number_blocks(files), files, None
    coder = Coder(
        categorical=files.names if every else FROM_DTYPE,
        coding=choice.coding,
        unknown=choice.unknown,
    )
    source, coding = coder.open(files)
    if coding is not None and choice.coding is None and not every:
        refuse_row_names(files, coding, choice.categorical)
    return source, files, coding


def _empty(files: "Columns") -> list[str]:
    """The columns to use that are no numbers, for they have no value at all."""
    from kplus.data.arrow import is_number

    return [
        name
        for name in files.names
        if not (is_number(files.schema.field(name).type) or _examples(files, name))
    ]


def _is_plain(dtype: Any, choice: Choice) -> bool:
    """Whether an Arrow type counts as numbers; yes and no do where all else does."""
    from kplus.data.arrow import is_number

    return is_number(dtype) and (choice.accepts == "numbers" or str(dtype) != "bool")


def _refuse_unfit(files: "Columns", features: Sequence[str], choice: Choice) -> None:
    """Refuse columns that hold what the model does not take."""
    from kplus.data.arrow import is_categorical, is_number

    numbers_only = choice.accepts == "numbers"
    for name in features:
        dtype = files.schema.field(name).type
        if is_number(dtype) or name in choice.categorical:
            continue
        examples = _examples(files, name)
        if choice.coding is not None and (not examples or is_categorical(dtype)):
            continue  # the coding of the fit knows what to make of it
        if not examples and choice.empty:
            continue
        if not examples:
            raise DataError(
                f"Column {name!r} is empty; leave it out (--drop {name!r})."
            )
        if numbers_only or not is_categorical(dtype):
            kind = "not numbers" if numbers_only else "neither numbers nor categories"
            raise DataError(
                f"Column {name!r} holds {dtype}, {kind}, for example "
                f"{str(examples[0])[:40]!r}. Leave it out (--drop {name!r}), name the "
                f"rows with it (--index {name!r}), or say --categorical {name!r} to a "
                f"model that takes categories."
            )


def _examples(files: "Columns", name: str) -> list[Any]:
    """A value of a column, if it has any."""
    for part in files.parts(name):
        values: list[Any] = part.drop_null()[:1].to_pylist()
        if values:
            return values
    return []
