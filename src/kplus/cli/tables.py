"""Input files as tables: the columns to cluster, and what names the rows."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kplus.cli.console import CommandError
from kplus.core.errors import DataError
from kplus.core.types import Blocks
from kplus.engine.blocks import ArrayBlocks, FrameBlocks
from kplus.engine.files import check_path, open_npy

__all__ = ["ROW", "Choice", "Table", "column_names", "read_table"]

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
        The columns to cluster; all others by default.
    drop : sequence of str
        Columns to leave out.
    """

    index: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """Every column that the user named."""
        index = [] if self.index is None else [self.index]
        return [*index, *(self.columns or ()), *self.drop]


@dataclass(frozen=True)
class Table:
    """An input file.

    Attributes
    ----------
    source : Blocks
        The columns to cluster.
    data : array, Arrow table or Path
        The same as estimators take it.
    names : list of str or None
        Their names; None for a ``.npy`` file.
    index_name : str
    index : Arrow array or None
        What names the rows; None: their number.
    """

    source: Blocks
    data: Any
    names: list[str] | None
    index_name: str = ROW
    index: Any = None


def column_names(table: Table) -> list[str]:
    """Names to show, also where the file has none."""
    if table.names is not None:
        return table.names
    return [f"column {i}" for i in range(table.source.n_features)]


def read_table(path: Path, choice: Choice) -> Table:
    """Open an input file and pick its columns."""
    kind = check_path(path)
    if kind == "npy":
        if choice.names:
            raise CommandError(
                f"{path} has no column names, so {choice.names[0]!r} cannot be picked."
            )
        X = open_npy(path)
        return Table(ArrayBlocks(X), X, None)
    return (_read_parquet if kind == "parquet" else _read_csv)(path, choice)


def _read_csv(path: Path, choice: Choice) -> Table:
    from kplus.engine.csv import UNNAMED, read_csv

    frame = read_csv(path, text=[] if choice.index is None else [choice.index])
    unnamed = UNNAMED if UNNAMED in frame.column_names else None
    index = unnamed if choice.index is None else choice.index
    features = _features(path, choice, frame.column_names, [unnamed, index])
    _refuse_non_numbers(frame.schema, features, frame.column)
    numbers = frame.select(features)
    return Table(
        FrameBlocks(numbers),
        numbers,
        features,
        ROW if index is None else index,
        None if index is None else frame.column(index),
    )


def _read_parquet(path: Path, choice: Choice) -> Table:
    from kplus.engine.parquet import (
        ParquetBlocks,
        index_columns,
        read_columns,
        read_schema,
    )

    schema = read_schema(path)
    stored = index_columns(schema)
    index = choice.index
    if index is None and len(stored) == 1:
        index = stored[0]
    features = _features(path, choice, schema.names, [*stored, index])
    _refuse_non_numbers(
        schema, features, lambda name: read_columns(path, [name]).column(0)
    )
    source = ParquetBlocks(path, columns=features)
    if source.n_rows == 0:
        raise DataError(f"{path} has columns but no rows.")
    # Estimators read a file by row groups, but take all of its columns.
    whole = features == [name for name in schema.names if name not in stored]
    data = path if whole else read_columns(path, features)
    if index is None:
        return Table(source, data, features)
    # How pandas stores an index without a name.
    name = "" if index.startswith("__index_level_") else index
    return Table(source, data, features, name, read_columns(path, [index]).column(0))


def _features(
    path: Path, choice: Choice, names: Sequence[str], reserved: Sequence[str | None]
) -> list[str]:
    """Return the names of the columns to cluster, after checking the choice."""
    for name in choice.names:
        if name not in names:
            raise CommandError(_unknown_column(path, name, names))
    if choice.columns is None:
        left_out = {*reserved, *choice.drop}
        features = [name for name in names if name not in left_out]
    else:
        features = list(choice.columns)
    twice = {name for name in features if features.count(name) > 1}
    if twice or choice.index in features:
        name = choice.index if choice.index in features else min(twice)
        raise CommandError(f"Column {name!r} is asked for twice.")
    if not features:
        raise CommandError(f"No column of {path} is left to cluster.")
    return features


def _unknown_column(path: Path, name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"{path} has no column {name!r}; did you mean {close[0]!r}?"
    shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    return f"{path} has no column {name!r}; its columns are {shown}."


def _refuse_non_numbers(
    schema: Any, features: Sequence[str], read: Callable[[str], Any]
) -> None:
    from kplus.engine.parquet import is_number

    for name in features:
        dtype = schema.field(name).type
        if is_number(dtype):
            continue
        examples = read(name).drop_null()[:1].to_pylist()
        if not examples:
            raise DataError(
                f"Column {name!r} is empty; leave it out (--drop {name!r})."
            )
        raise DataError(
            f"Column {name!r} holds {dtype}, not numbers, for example "
            f"{str(examples[0])[:40]!r}. Leave it out (--drop), name the rows with it "
            f"(--index), or say --categorical to a model that takes categories."
        )
