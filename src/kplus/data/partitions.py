"""Columns that are kept in the names of folders, as Hive, Spark and Dask write them."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

__all__ = ["folder_columns"]


def folder_columns(
    folders: Sequence[Path], text: Collection[str] = ()
) -> list[dict[str, Any]]:
    """What the names of folders say of each file, by the name of the column.

    Parameters
    ----------
    folders : sequence of Path
        Of each file, the folders it is in, such as ``year=2026/month=5``.
    text : collection of str
        Columns to keep as text. Others are integers if all their values are.

    Returns
    -------
    columns : list of dict
        Of each file, the value (a scalar of pyarrow) of each such column.

    Examples
    --------
    >>> folder_columns([Path("year=2025"), Path("year=2026")])
    [{'year': <pyarrow.Int64Scalar: 2025>}, {'year': <pyarrow.Int64Scalar: 2026>}]
    """
    parts = [part for folder in folders for part in folder.parts if "=" in part[1:]]
    names = list(dict.fromkeys(unquote(part.split("=")[0]) for part in parts))
    columns: list[dict[str, Any]] = [{} for _ in folders]
    if not names:
        return columns
    import pyarrow.dataset as ds  # slow to import

    scheme = ds.HivePartitioning(pa.schema([(name, pa.string()) for name in names]))
    keys = [ds.get_partition_keys(scheme.parse(f"/{f.as_posix()}/")) for f in folders]
    for name in names:
        those = [i for i, values in enumerate(keys) if name in values]
        column = pa.array([keys[i][name] for i in those], pa.string())
        for i, value in zip(those, _typed(column, name in text), strict=True):
            columns[i][name] = value
    return columns


def _typed(column: Any, text: bool) -> Any:
    try:
        return column if text else column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
