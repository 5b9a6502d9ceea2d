"""Tables of any kind as one matrix in a file, which is the quickest to read."""

import json
import os
import secrets
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks
from kplus.data.categories import Coding
from kplus.data.converted import FORMAT, INDEX, MANIFEST, ROWS, VERSION
from kplus.data.open import Coder, has_columns, is_stored, open_data
from kplus.data.paths import find_files
from kplus.data.reading import ColumnsWarning, Reading
from kplus.data.roles import Wishes
from kplus.data.selection import FROM_DTYPE, CategoricalSpec, select_columns

__all__ = ["convert"]

_MOST_IN_SINGLE = 2**24  # codes that float32 holds exactly


def convert(
    data: Any,
    folder: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    index: str | None = None,
    categorical: CategoricalSpec = FROM_DTYPE,
    numbers: Sequence[str] = (),
    keep: Sequence[str] = (),
    dates: str = "ignore",
    dtype: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write a table to a folder from which every estimator reads it quickly.

    The folder holds ``rows.npy``, one matrix, in which categories are codes and NaN is
    missing, ``manifest.json``, which says what its columns are, and, where rows have
    names, ``index.parquet``. Give its path to `fit`: the result is the same as with
    the table itself, bit for bit. Memory holds one block of rows at a time; the folder
    is there whole or not at all.

    Parameters
    ----------
    data : path-like, open table, Dask collection or blocks
        Anything that `open_files` takes or returns, and whatever else is not in memory.
    folder : path-like
        The folder to write.
    columns : sequence of str, optional
        The columns to use, in this order; by default all but those that are no
        features, as in `read_table`.
    drop : sequence of str
        Columns to leave out.
    index : str, optional
        The column that names the rows. By default the index that pandas stored, or a
        first column of a CSV file without a name.
    categorical : "from_dtype", or names, numbers or a mask of columns
        Columns to take as categories beside those of text, categories and booleans.
    numbers, keep, dates
        As in `read_table`.
    dtype : {"float32", "float64"}, optional
        Of the matrix; by default float32 if that is the type of all columns.
    force : bool
        Replace the folder if it is one that was converted.

    Returns
    -------
    manifest : dict
        What ``manifest.json`` holds.

    Raises
    ------
    DataError
        A column holds what a table cannot have, or is not there.
    FileExistsError
        The folder is there already.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import kplus
    >>> home = pathlib.Path(tempfile.mkdtemp())
    >>> text = "size,color\\n1,red\\n8,blue\\n2,red\\n9,blue\\n"
    >>> _ = (home / "t.csv").write_text(text)
    >>> kplus.convert(home / "t.csv", home / "rows")["categories"]
    [None, ['blue', 'red']]
    >>> kplus.CRAFT(n_clusters=2).fit(home / "rows").labels_
    array([0, 1, 0, 1], dtype=int32)
    """
    folder = Path(folder)
    check_target(folder, force)
    if dtype not in (None, "float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', not {dtype!r}.")
    if not is_stored(data):
        raise DataError(
            f"convert takes the path of a table, or one that is open, not a "
            f"{type(data).__name__}; tables in memory need no converting."
        )
    table = open_data(data, text=[] if index is None else [index])
    sources = _paths_of(data)
    if not has_columns(table):
        _refuse_choice(columns, drop, index, categorical)
        return _write_matrix(table.cut(None), sources, folder, dtype)
    names, index = select_columns(table, columns=columns, drop=drop, index=index)
    chosen = [*(columns or ()), *getattr(table, "kept", ()), *keep]
    wishes = Wishes(keep=chosen, numbers=numbers, dates=dates)
    read, coder = Coder(categorical=categorical).read(table.select(names), wishes)
    if words := read.reading.told():
        warnings.warn(words, ColumnsWarning, stacklevel=2)
    blocks, coding = coder.coded(read)
    if coding is None:
        coding = Coding(tuple(read.names), (None,) * len(read.names))
    with _staged(folder) as stage:
        row_type = _write_rows(stage / ROWS, blocks, coding, dtype)
        if index is not None:
            _write_index(stage / INDEX, table, index)
        return _write_manifest(
            stage, blocks, row_type, coding, index, sources, read.reading
        )


def _paths_of(data: Any) -> Sequence[Path]:
    """The files of a table, if it has some."""
    if isinstance(data, (str, os.PathLike)):
        return find_files(data).paths
    return getattr(data, "paths", ())


def check_target(folder: Path, force: bool) -> None:
    """Refuse a folder that is there, unless it may and can be replaced."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; give the name of a folder.")
    inside = {path.name for path in folder.iterdir()}
    if not inside:
        return
    if not force:
        raise FileExistsError(f"{folder} is there already; force=True replaces it.")
    if MANIFEST not in inside or not inside <= {ROWS, MANIFEST, INDEX}:
        raise FileExistsError(
            f"{folder} is not a folder that was converted, so that it is not replaced; "
            f"give another name, or delete it."
        )


def _write_matrix(
    blocks: Blocks, paths: Sequence[Path], folder: Path, dtype: str | None
) -> dict[str, Any]:
    """The same for a table without names of columns, or one that was converted."""
    coding: Coding | None = getattr(blocks, "coding", None)
    names = getattr(blocks, "feature_names", None)
    if coding is None and names is not None:
        coding = Coding(tuple(names), (None,) * len(names))
    with _staged(folder) as stage:
        row_type = _write_rows(stage / ROWS, blocks, coding, dtype)
        index = getattr(blocks, "index_name", None)
        if index is not None:
            shutil.copyfile(blocks.index_path, stage / INDEX)  # type: ignore[attr-defined]
        return _write_manifest(stage, blocks, row_type, coding, index, paths)


def _refuse_choice(
    columns: Sequence[str] | None,
    drop: Sequence[str],
    index: str | None,
    categorical: CategoricalSpec,
) -> None:
    by_dtype = isinstance(categorical, str) and categorical == FROM_DTYPE
    if columns is None and not drop and index is None and by_dtype:
        return
    raise DataError(
        "The table has no names of columns, or was converted before, so that none can "
        "be chosen."
    )


# ------------------------------------------------------------------- writing


def _write_rows(
    path: Path, blocks: Blocks, coding: Coding | None, dtype: str | None
) -> np.dtype[Any]:
    """Write the matrix block by block; returns its type."""
    row_type: np.dtype[Any] | None = None if dtype is None else np.dtype(dtype)
    with open(path, "xb") as file:
        for start, rows in read_blocks(blocks):
            if start == 0:
                row_type = rows.dtype if row_type is None else row_type
                _check_levels(coding, row_type)
                _write_header(file, row_type, (blocks.n_rows, blocks.n_features))
            file.write(_cast(rows, row_type, blocks, start).data)
        file.flush()
        os.fsync(file.fileno())
    assert row_type is not None
    return row_type


def _write_header(
    file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, int]
) -> None:
    fields = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, fields)


def _cast(
    rows: Array, dtype: np.dtype[Any] | None, blocks: Blocks, start: int
) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        cast = np.ascontiguousarray(rows, dtype=dtype)
    lost = np.isinf(cast) & np.isfinite(rows)
    if lost.any():
        i, j = np.argwhere(lost)[0]
        names = getattr(blocks, "feature_names", None)
        name = str(j) if names is None else repr(names[j])
        raise DataError(
            f"Column {name} holds {rows[i, j]:g} (row {start + i}), which is too large "
            f"for float32; say dtype='float64'."
        )
    return cast


def _check_levels(coding: Coding | None, dtype: np.dtype[Any]) -> None:
    if coding is None or dtype != np.float32:
        return
    for name, levels in zip(coding.names, coding.levels, strict=True):
        if levels is not None and levels > _MOST_IN_SINGLE:
            raise DataError(
                f"Column {name!r} has {levels:,} categories, more than float32 can "
                f"tell; say dtype='float64'."
            )


def _write_index(path: Path, table: Any, name: str) -> None:
    """Write the names of rows, piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from kplus.data.arrow import plain_type

    schema = pa.schema([(name, plain_type(table.schema.field(name).type))])
    with pq.ParquetWriter(path, schema) as writer:
        for part in table.plain_parts(name):
            writer.write_table(pa.table([part], schema=schema))


def _write_manifest(
    stage: Path,
    blocks: Blocks,
    dtype: np.dtype[Any],
    coding: Coding | None,
    index: str | None,
    paths: Sequence[Path],
    reading: Reading | None = None,
) -> dict[str, Any]:
    columns: list[str] | None = None
    categories: list[list[Any] | None] = [None] * blocks.n_features
    if coding is not None:
        columns = list(coding.names)
        categories = [None if c is None else list(c) for c in coding.categories]
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "n_rows": blocks.n_rows,
        "dtype": dtype.name,
        "columns": columns,
        "categories": categories,
        "index": index,
        "sources": [
            {"path": os.path.abspath(path), "bytes": _size(path)} for path in paths
        ],
    }
    if reading:
        manifest["reading"] = reading.to_json()
    text = json.dumps(manifest, indent=1)
    (stage / MANIFEST).write_text(text, encoding="utf-8")
    return manifest


def _size(path: Path) -> int:
    """Bytes of a file, or of all files of a folder, as Zarr arrays are."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """A new folder that takes the place of `folder` if the block succeeds."""
    folder = Path(os.path.abspath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target: only within one file system is a move atomic.
    stage, old = (
        folder.parent / f".kplus-{secrets.token_hex(8)}.tmp" for _ in range(2)
    )
    stage.mkdir()
    try:
        yield stage
        if folder.exists():
            os.replace(folder, old)
        os.replace(stage, folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
