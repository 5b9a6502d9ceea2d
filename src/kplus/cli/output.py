"""Files that appear whole or not at all."""

import csv
import io
import os
import re
import secrets
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kplus.cli.console import CommandError
from kplus.cli.original import Ahead, Original, needs_quotes, without_views
from kplus.cli.tables import Table
from kplus.persist.atomic import atomic_file

__all__ = [
    "check_file",
    "check_folder",
    "check_index_name",
    "opened",
    "staged_folder",
    "write_rows",
    "write_table",
    "write_tables",
]

_KINDS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_ANSWER = re.compile(r"cluster|(share|feature|probability) \d+")
_COLUMNS = {"shares": "share", "features": "feature", "probabilities": "probability"}


def check_folder(folder: Path, names: Collection[str], force: bool) -> None:
    """Refuse a folder that cannot take the files, or has them already."""
    if str(folder) == "-":
        return
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file; -o needs the name of a folder.")
    there = sorted(name for name in names if (folder / name).exists())
    if there and not force:
        raise CommandError(
            f"{folder} already has {', '.join(there)}. Give another folder with -o, "
            f"or --force to replace what is there."
        )


def check_file(path: Path | None, force: bool) -> None:
    """Refuse a file that a table cannot be written to; None is standard output."""
    if path is None or str(path) == "-":
        return
    if path.suffix.lower() not in _KINDS:
        raise CommandError(f"{path}: -o needs a name in {', '.join(_KINDS)}.")
    if path.is_dir():
        raise CommandError(f"{path} is a folder; -o needs the name of a file.")
    if path.exists() and not force:
        raise CommandError(f"{path} is there already; --force replaces it.")


def check_index_name(table: Table) -> None:
    """Refuse row names in a column that is called as one of the answers may be."""
    if _ANSWER.fullmatch(table.index_name):
        raise CommandError(
            f"The column that names the rows is called {table.index_name!r}, as a "
            f"column of the output may be; rename it or pick another with --index."
        )


@contextmanager
def staged_folder(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """A new folder whose files move to `folder` if the block succeeds.

    Of `names`, the files that a run may write, those in `folder` which this run did not
    write are removed: they belong to an earlier one.
    """
    # Beside or inside the target: only within one file system is a move atomic.
    folder = Path(os.path.abspath(folder))
    home = next(place for place in (folder, *folder.parents) if place.exists())
    stage = home / f".kplus-{secrets.token_hex(8)}.tmp"
    stage.mkdir()
    try:
        yield stage
        if home != folder:
            folder.parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage, folder)
            return
        written = sorted(path.name for path in stage.iterdir())
        for name in written:
            os.replace(stage / name, folder / name)
        for name in set(names).difference(written):
            (folder / name).unlink(missing_ok=True)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def opened(path: Path | None) -> Iterator[tuple[BinaryIO, str]]:
    """A file to write, and its format by its name; None: print CSV."""
    if path is None or str(path) == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer, "csv"
        sys.stdout.buffer.flush()
        return
    with atomic_file(path) as file:
        yield file, _KINDS[path.suffix.lower()]


def write_rows(
    table: Table,
    pieces: Iterable[Mapping[str, NDArray[Any]]],
    file: BinaryIO,
    kind: str,
    path: Path | None = None,
) -> None:
    """Write what a model says of each row beside what names the rows.

    With a `path`, that of the table, it is written beside all columns of the table.

    Of the answers in `pieces`, for some rows after the other, "labels" give a column
    `cluster`; "shares", "features" and "probabilities" a column for each cluster or
    feature: `share 0`, `feature 0`, `probability 0` and so on.
    """
    if path is None:
        quoted = table.index is not None and any(map(needs_quotes, table.index()))
        write_tables(_row_tables(table, pieces), file, kind, quoted)
        return
    original = Original(path, table)
    tables = _appended(original, pieces)
    write_tables(tables, file, kind, original.needs_quotes())


def write_table(table: Any, file: BinaryIO, kind: str) -> None:
    """Write an Arrow table as "csv" or "parquet"."""
    write_tables([table], file, kind, any(map(needs_quotes, table.columns)))


def _row_tables(
    table: Table, pieces: Iterable[Mapping[str, NDArray[Any]]]
) -> Iterator[Any]:
    start = 0
    names = None if table.index is None else Ahead(table.index())
    for answers in pieces:
        n_rows = len(next(iter(answers.values())))
        numbers = np.arange(start, start + n_rows)
        index = pa.array(numbers) if names is None else names.take(n_rows)
        yield pa.table({table.index_name: index} | _columns(answers))
        start += n_rows


def _appended(
    original: Original, pieces: Iterable[Mapping[str, NDArray[Any]]]
) -> Iterator[Any]:
    """All columns of a table, and after them the answers."""
    read, taken = original.reader(), set(original.names)
    for answers in pieces:
        columns = _columns(answers)
        names = list(columns)
        while taken.intersection(names):  # a column of the table is called so
            names = [f"kplus {name}" for name in names]
        beside = read(len(next(iter(answers.values()))))
        yield pa.table(beside | dict(zip(names, columns.values(), strict=True)))


def _columns(answers: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """A column for each of the answers."""
    columns = {}
    for kind, values in answers.items():
        if kind == "labels":
            columns["cluster"] = pa.array(values, pa.int32())
            continue
        for k, part in enumerate(values.T):
            columns[f"{_COLUMNS[kind]} {k}"] = pa.array(part)
    return columns


def write_tables(
    tables: Iterable[Any], file: BinaryIO, kind: str, quoted: bool
) -> None:
    """Write tables one below the other.

    `quoted` is whether text has to be quoted in CSV: pyarrow quotes all text of a
    column or none, and mostly none is nicer to read.
    """
    rest = iter(tables)
    first = next(rest)
    if kind == "parquet":
        with pq.ParquetWriter(file, first.schema) as writer:
            for table in chain([first], rest):
                writer.write_table(table)
        return
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(first.column_names)
    file.write(header.getvalue().encode())
    quoting = "needed" if quoted else "none"
    options = pacsv.WriteOptions(include_header=False, quoting_style=quoting)
    for table in chain([first], rest):
        columns = list(map(without_views, table.columns))
        plain = pa.Table.from_arrays(columns, names=table.column_names)
        pacsv.write_csv(plain, file, options)
