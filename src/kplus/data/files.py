"""Files as tables: ``.npy``, Parquet, Arrow, CSV, Excel, JSON, Zarr."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Blocks
from kplus.data.blocks import ArrayBlocks, Cut, StackedBlocks
from kplus.data.converted import ConvertedRows
from kplus.data.dialect import Dialect
from kplus.data.paths import FileSet, Stamps, find_files, folder_columns

if TYPE_CHECKING:
    from kplus.data.arrow import Columns

__all__ = ["open_files", "open_npy"]


def open_files(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    text: Sequence[str] = (),
    skip_first: int = 0,
    skip_last: int = 0,
) -> "Blocks | Columns":
    """Open files as one table, which every estimator takes as it takes a path.

    A path does as well; use this for some of the columns, or to open a table once and
    use it often.

    - ``.npy`` files are mapped into memory, and so are Arrow files (``.arrow``,
      ``.feather``).
    - Parquet files and Zarr arrays are decoded by row groups and by chunks: memory
      holds one of them per thread.
    - CSV files (``.csv``, ``.csv.gz``) of more than 32 MB are copied to an Arrow file
      in the scratch folder of `resources`, or that for temporary files, which is
      deleted when the table is not used any more.
    - Excel files (``.xlsx``, of which the first sheet is taken, by openpyxl) and JSON
      files (an object per line, ``.jsonl`` or ``.ndjson``, or a list of objects,
      ``.json``) are read into memory.
    - Folders that `convert` wrote are mapped into memory: they are the quickest to
      read.

    Parameters
    ----------
    path : str or path-like
        A file, a folder of files of one kind, a Zarr array, or a pattern such as
        ``"data/part-*.parquet"``. Rows are taken in the order of names, in which
        numbers count as such: ``part-2`` before ``part-10``. Folders inside a folder
        are read, too, and names such as ``year=2026`` (Hive partitions) become columns
        after those of the files: integers if all values are, else text. A pattern,
        such as ``"data/**/*.parquet"``, leaves such columns out.
    columns : sequence of str, optional
        The columns to use, in this order. By default all; the index that pandas stored
        in a Parquet file, and a first column of a CSV file without a name, are left
        out.
    text : sequence of str
        Columns of CSV files, or of the names of their folders, to keep as they are
        written, whatever they look like.
    skip_first, skip_last : int
        Lines of CSV files, or rows of Excel files, to leave out: titles above the names
        of the columns, totals and notes below the table.

    Returns
    -------
    table : object
        Give it to `fit`, `predict` and so on.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    DataError
        A file is damaged, empty or of an unknown kind, files do not go together, or a
        column is not there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kplus
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for i in range(3):
    ...     _ = (folder / f"{i}.csv").write_text(f"id,x,y\\na{i},0,{i}\\nb{i},9,{i}\\n")
    >>> table = kplus.open_files(folder, columns=["x", "y"])
    >>> kplus.DPMeans(penalty=20).fit(table).labels_
    array([0, 1, 0, 1, 0, 1], dtype=int32)
    """
    files, skip = find_files(path), (skip_first, skip_last)
    if any(skip) and files.kind not in ("csv", "excel"):
        raise DataError(
            f"skip_first and skip_last are for CSV and Excel files, not for {files}."
        )
    if files.kind == "rows":
        return _open_converted(files, columns)
    if files.kind in ("npy", "zarr"):
        if columns is not None:
            raise DataError(
                f"{files} has no names of columns, so that {list(columns)[:3]} cannot "
                f"be chosen."
            )
        matrices = _open_matrices(files)
        matrices.stamps = Stamps(files.paths)
        return matrices
    if files.kind == "csv":
        return _chosen(_open_csv(files, text, skip), columns)
    if files.kind in ("excel", "json"):
        return _chosen(_open_whole(files, text, skip), columns)
    from kplus.data.arrow_files import open_columns

    folders = folder_columns(files.folders)
    table = _chosen(open_columns(files.kind, files.paths, folders), columns)
    table.stamps = Stamps(files.paths)
    if not table.names:
        raise DataError(f"{files} has no columns to read.")
    if table.n_rows == 0:
        raise DataError(f"{files} has columns but no rows.")
    return table


def _chosen(table: "Columns", columns: Sequence[str] | None) -> "Columns":
    """The columns that a user asked for, which are used whatever they are."""
    table = table.select(columns)
    table.kept = tuple(columns or ())
    return table


def _open_converted(files: FileSet, columns: Sequence[str] | None) -> Blocks:
    table = ConvertedRows(files.paths[0])
    table.stamps = Stamps([files.paths[0] / "rows.npy"])
    names = getattr(table, "feature_names", None)
    if columns is not None and list(columns) != names:
        raise DataError(
            f"{files} was converted with its columns {(names or [])[:5]}: choose "
            f"columns when converting, not afterwards."
        )
    return table


def _open_csv(files: FileSet, text: Sequence[str], skip: tuple[int, int]) -> "Columns":
    from kplus.data.arrow_files import ArrowFiles, InMemory
    from kplus.data.csv import Spool, are_small, blank_to_null, copy_csv, read_csv

    folders = folder_columns(files.folders, text)
    if are_small(files.paths):
        tables = [blank_to_null(read_csv(path, text, skip)) for path in files.paths]
        return _of_text(InMemory(tables, files.paths, folders))
    spool = Spool()
    for path, copy in zip(files.paths, spool.copies(len(files.paths)), strict=True):
        copy_csv(path, copy, text, skip)
    return _of_text(ArrowFiles(files.paths, folders, spool=spool))


def _of_text(table: Any) -> "Columns":
    """Text of files with decimal commas is read so where it leaves that open."""
    table.decimal = Dialect.of(table.paths[0]).decimal
    return table  # type: ignore[no-any-return]


def _open_whole(
    files: FileSet, text: Sequence[str], skip: tuple[int, int]
) -> "Columns":
    """Excel and JSON files, which are read whole."""
    from kplus.data.arrow_files import InMemory
    from kplus.data.csv import blank_to_null
    from kplus.data.sheets import read_excel, read_json

    if files.kind == "excel":
        tables = [read_excel(path, text, skip) for path in files.paths]
    else:
        tables = [read_json(path) for path in files.paths]
    folders = folder_columns(files.folders, text)
    return InMemory(list(map(blank_to_null, tables)), files.paths, folders)


# ------------------------------------------------------------------- matrices


def _open_matrices(files: FileSet) -> Cut:
    for folder in files.folders:
        if "=" in str(folder):
            raise DataError(
                f"{files} is in a folder {folder}, which names a column, but matrices "
                f"have no such columns. Leave it out by a pattern, such as "
                f"{files.root}/**/*.{files.kind}."
            )
    if files.kind == "zarr":
        from kplus.data.zarr import ZarrBlocks

        if len(files.paths) > 1:
            raise DataError(f"{files}: give one Zarr array.")
        return ZarrBlocks(files.paths[0])
    arrays = _open_all(files.paths)
    if len(arrays) == 1:
        return ArrayBlocks(arrays[0], reopen=partial(open_npy, files.paths[0]))
    for path, X in zip(files.paths, arrays, strict=True):
        if X.shape[1] != arrays[0].shape[1]:
            raise DataError(
                f"{path} has {X.shape[1]} columns, but {files.paths[0]} has "
                f"{arrays[0].shape[1]}; all files must have as many."
            )
    return StackedBlocks(arrays, reopen=partial(_open_all, files.paths))


def _open_all(paths: Sequence[Path]) -> list[NDArray[Any]]:
    return [open_npy(path) for path in paths]


# What numpy raises for a bad magic, a bad header, objects, or too few bytes.
_DAMAGE = (
    *(ValueError, TypeError, OverflowError, RecursionError, MemoryError),
    *(SyntaxError, TokenError),
)


def open_npy(path: Path) -> NDArray[Any]:
    """Map a ``.npy`` file with a matrix of numbers into memory, read-only."""
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty.")
    try:
        X: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except _DAMAGE as error:
        raise DataError(
            f"{path} cannot be read as .npy; it is damaged, cut short or holds no "
            f"plain array ({error})."
        ) from error
    if X.dtype.kind not in "biuf":
        raise DataError(f"{path} holds {X.dtype}, not real numbers.")
    if X.ndim != 2:
        raise DataError(
            f"{path} has {X.ndim} dimensions; a matrix (rows, columns) is needed."
        )
    if 0 in X.shape:
        raise DataError(f"{path} holds no data: its shape is {X.shape}.")
    return X
