"""Files as blocks: ``.npy``, Parquet and CSV."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Blocks
from kplus.sources.blocks import ArrayBlocks, FrameBlocks

__all__ = [
    "SUFFIXES",
    "check_path",
    "has_only_numbers",
    "open_npy",
    "open_path",
    "read_table",
]

SUFFIXES = {
    ".npy": "npy",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
}


def open_path(path: str | os.PathLike[str], block_rows: int | None = None) -> Blocks:
    """Open a file of numbers, one row a line, as blocks.

    ``.npy`` files are mapped into memory and Parquet files read by row groups, so both
    may be larger than memory. CSV files are read whole. Parquet and CSV sources have
    the names of their columns in `feature_names`; the index that pandas stored in a
    Parquet file, and a first column of a CSV file without a name, are left out.

    Parameters
    ----------
    path : str or path-like
        A file whose name ends in ``.npy``, ``.parquet``, ``.pq``, ``.csv`` or
        ``.csv.gz``.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.

    Returns
    -------
    blocks : Blocks

    Raises
    ------
    FileNotFoundError
        There is no such file.
    DataError
        The file is damaged, empty or of an unknown kind, or holds other things than
        numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "points.csv").write_text("x,y\\n1,2\\n3,4\\n")
    >>> blocks = open_path(folder / "points.csv")
    >>> blocks.feature_names
    ['x', 'y']
    >>> blocks.read(0)
    array([[1., 2.],
           [3., 4.]])
    """
    path = Path(path)
    kind = check_path(path)
    if kind == "npy":
        return ArrayBlocks(open_npy(path), block_rows)
    if kind == "parquet":
        return _open_parquet(path, block_rows)
    return FrameBlocks(read_table(path), block_rows)


def check_path(path: Path) -> str:
    """Return the kind of a file (a value of `SUFFIXES`), or say what is wrong."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file.")
    if not path.is_file():
        raise DataError(f"{path} is not a regular file; save the data to one first.")
    for suffix, kind in SUFFIXES.items():
        if path.name.lower().endswith(suffix):
            return kind
    raise DataError(
        f"{path}: the kind of a file is told by the end of its name, which must be one "
        f"of {', '.join(SUFFIXES)}."
    )


def open_npy(path: Path) -> NDArray[Any]:
    """Map a ``.npy`` file with a matrix of numbers into memory, read-only."""
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty.")
    try:
        X: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:  # bad magic, bad header, objects, or too few bytes
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


def has_only_numbers(path: Path) -> bool:
    """Whether a file has number columns only, as far as can be told without reading it.

    Booleans do not count as numbers here, for they may be categories.
    """
    kind = check_path(path)
    if kind != "parquet":
        return kind == "npy"
    from kplus.sources.parquet import is_number

    types = _parquet_types(path).values()
    return all(is_number(dtype) and dtype != "bool" for dtype in types)


def read_table(path: Path, text: Sequence[str] = ()) -> Any:
    """Read a Parquet or CSV file whole, with columns of any type.

    Parameters
    ----------
    path : Path
        The index that pandas stored in a Parquet file, and a first column of a CSV
        file without a name, are left out.
    text : sequence of str
        Columns of a CSV file to keep as they are written, whatever they look like.

    Returns
    -------
    table : pyarrow.Table
        A field of a CSV file with nothing in it is null, in columns of text, too.
    """
    if check_path(path) == "csv":
        from kplus.sources.csv import UNNAMED, read_csv

        table = read_csv(path, text)
        if UNNAMED in table.column_names:
            table = table.drop_columns([UNNAMED])
        return _empty_to_null(table)
    from kplus.sources.parquet import read_columns

    return read_columns(path, list(_parquet_types(path)))


def _parquet_types(path: Path) -> dict[str, Any]:
    """Arrow types of the columns by name, without the index that pandas stored."""
    from kplus.sources.parquet import column_names, read_schema

    schema = read_schema(path)
    return {name: schema.field(name).type for name in column_names(schema)}


def _empty_to_null(table: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    null = pa.scalar(None, pa.string())
    for j, field in enumerate(table.schema):
        if field.type == pa.string():
            column = table.column(j)
            column = pc.if_else(pc.equal(column, ""), null, column)
            table = table.set_column(j, field, column)
    return table


def _open_parquet(path: Path, block_rows: int | None) -> Blocks:
    from kplus.sources.parquet import ParquetBlocks

    blocks = ParquetBlocks(path, block_rows)
    if blocks.n_rows == 0:
        raise DataError(f"{path} has columns but no rows.")
    return blocks
