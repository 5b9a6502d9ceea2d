"""Files that appear whole or not at all."""

import csv
import io
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from kplus.cli.console import CommandError
from kplus.cli.tables import Table
from kplus.core.types import Array, IntArray

__all__ = [
    "check_folder",
    "check_index_name",
    "label_table",
    "staged_folder",
    "write_labels",
]

_CLUSTER = "cluster"


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
    """Refuse row names in a column that is called as the labels will be."""
    if table.index_name == _CLUSTER:
        raise CommandError(
            "The column that names the rows is called 'cluster', as the labels are to "
            "be; rename it or pick another with --index."
        )


def label_table(table: Table, labels: IntArray, shares: Array | None = None) -> Any:
    """Put the labels, and the shares of the clusters, beside what names the rows."""
    index = pa.array(np.arange(len(labels))) if table.index is None else table.index
    if pa.types.is_dictionary(index.type):
        index = index.cast(index.type.value_type)
    columns = {table.index_name: index, _CLUSTER: pa.array(labels, pa.int32())}
    if shares is not None:
        columns |= {f"share {k}": pa.array(share) for k, share in enumerate(shares.T)}
    return pa.table(columns)


def write_labels(table: Any, file: BinaryIO, kind: str) -> None:
    """Write a table of labels as "csv" or "parquet"."""
    if kind == "parquet":
        pq.write_table(table, file)
        return
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(table.column_names)
    file.write(header.getvalue().encode())
    quoting = "needed" if _needs_quotes(table.column(0)) else "none"
    options = pacsv.WriteOptions(include_header=False, quoting_style=quoting)
    pacsv.write_csv(table, file, options)


def _needs_quotes(column: Any) -> bool:
    """Whether some text has a comma, a quote or a line break.

    pyarrow quotes all text of a column or none; mostly none is nicer to read.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return bool(pc.any(pc.match_substring_regex(column, '[,"\r\n]')).as_py())
