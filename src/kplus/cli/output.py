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
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kplus.cli.console import CommandError
from kplus.cli.tables import Table
from kplus.io.atomic import atomic_file

__all__ = [
    "check_file",
    "check_folder",
    "check_index_name",
    "put_rows",
    "put_table",
    "staged_folder",
    "write_labels",
    "write_rows",
]

_KINDS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_ANSWER = re.compile(r"cluster|(share|feature|probability) \d+")
_COLUMNS = {"shares": "share", "features": "feature", "probabilities": "probability"}


def check_folder(folder: Path, names: Collection[str], force: bool) -> None:
    """Refuse a folder that cannot take the files, or has them already."""
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
    if path is None:
        return
    if path.suffix.lower() not in _KINDS:
        raise CommandError(f"{path}: -o needs a name in {', '.join(_KINDS)}.")
    if path.is_dir():
        raise CommandError(f"{path} is a folder; -o needs the name of a file.")
    if path.exists() and not force:
        raise CommandError(f"{path} is there already; --force replaces it.")


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


def check_index_name(table: Table) -> None:
    """Refuse row names in a column that is called as one of the answers may be."""
    if _ANSWER.fullmatch(table.index_name):
        raise CommandError(
            f"The column that names the rows is called {table.index_name!r}, as a "
            f"column of the output may be; rename it or pick another with --index."
        )


def _row_tables(
    table: Table, pieces: Iterable[Mapping[str, NDArray[Any]]]
) -> Iterator[Any]:
    """Put what a model says of each row beside what names the rows.

    Parameters
    ----------
    table : Table
    pieces : iterable of mappings of str to array
        The answers for some rows after the other. "labels" gives a column `cluster`;
        "shares", "features" and "probabilities" have a column for each cluster or
        feature, and give `share 0`, `feature 0`, `probability 0` and so on.

    Yields
    ------
    table : Arrow table
        Of each piece.
    """
    start = 0
    names = None if table.index is None else _Ahead(table.index.parts())
    for answers in pieces:
        n_rows = len(next(iter(answers.values())))
        numbers = np.arange(start, start + n_rows)
        index = pa.array(numbers) if names is None else names.take(n_rows)
        yield pa.table({table.index_name: index} | _columns(answers))
        start += n_rows


def _columns(answers: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    columns = {}
    for kind, values in answers.items():
        if kind == "labels":
            columns["cluster"] = pa.array(values, pa.int32())
            continue
        name = _COLUMNS[kind]
        columns |= {f"{name} {k}": pa.array(part) for k, part in enumerate(values.T)}
    return columns


class _Ahead:
    """Arrow arrays, read as far as needed."""

    def __init__(self, parts: Iterator[Any]) -> None:
        self._parts, self._left = parts, next(parts)

    def take(self, number: int) -> Any:
        """The next entries."""
        chunks = []
        while number > len(self._left):
            chunks += self._left.chunks
            number -= len(self._left)
            self._left = next(self._parts)
        chunks += self._left[:number].chunks
        self._left = self._left[number:]
        return pa.chunked_array(chunks, type=self._left.type)


def write_rows(
    table: Table,
    pieces: Iterable[Mapping[str, NDArray[Any]]],
    file: BinaryIO,
    kind: str,
) -> None:
    """Write what a model says of each row; see `_row_tables`."""
    quoted = table.index is not None and _has_quotes(table.index.parts())
    _write_tables(_row_tables(table, pieces), file, kind, quoted)


def put_rows(
    table: Table, pieces: Iterable[Mapping[str, NDArray[Any]]], path: Path | None
) -> None:
    """The same to a file, in the format of its name; None: print as CSV."""
    with _opened(path) as (file, kind):
        write_rows(table, pieces, file, kind)


def put_table(table: Any, path: Path | None) -> None:
    """Write a table to a file, in the format of its name, or print it as CSV."""
    with _opened(path) as (file, kind):
        write_labels(table, file, kind)


@contextmanager
def _opened(path: Path | None) -> Iterator[tuple[BinaryIO, str]]:
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer, "csv"
        sys.stdout.buffer.flush()
        return
    with atomic_file(path) as file:
        yield file, _KINDS[path.suffix.lower()]


def write_labels(table: Any, file: BinaryIO, kind: str) -> None:
    """Write a table of labels, or another one, as "csv" or "parquet"."""
    _write_tables([table], file, kind, _has_quotes(table.columns))


def _write_tables(
    tables: Iterable[Any], file: BinaryIO, kind: str, quoted: bool
) -> None:
    """Write tables one below the other; `quoted` is whether CSV has to quote text."""
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
        pacsv.write_csv(_without_views(table), file, options)


def _without_views(table: Any) -> Any:
    """Text as CSV files can have it."""
    for j, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            column = table.column(j).cast(pa.string())
            table = table.set_column(j, field.name, column)
    return table


def _has_quotes(columns: Iterable[Any]) -> bool:
    """Whether text in columns, or pieces of one, has to be quoted in CSV files.

    pyarrow quotes all text of a column or none; mostly none is nicer to read.
    """
    return any(map(_needs_quotes, columns))


def _needs_quotes(column: Any) -> bool:
    """Whether some text has a comma, a quote or a line break."""
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return bool(pc.any(pc.match_substring_regex(column, '[,"\r\n]')).as_py())
