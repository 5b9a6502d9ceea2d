"""Files on disk: which ones a path names, the columns of their folders, changes."""

import glob
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from kplus.core.errors import DataError

__all__ = [
    "SUFFIXES",
    "FileSet",
    "Stamps",
    "find_files",
    "folder_columns",
    "list_paths",
]

_TEXT = (".csv", ".tsv", ".tab", ".txt")
SUFFIXES = {
    ".npy": "npy",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    **{f"{end}{gz}": "csv" for end in _TEXT for gz in ("", ".gz")},
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".zarr": "zarr",
}
_ZARR = ("zarr.json", ".zarray")  # files of a Zarr array, format 3 or 2
_MANIFEST = "manifest.json"  # file of a folder that kplus convert wrote
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class FileSet:
    """Files of one kind, in the order of their rows.

    The kind is a value of `SUFFIXES`, or "rows" for a folder of ``kplus convert``. The
    root is the folder that was named, if it was one.
    """

    kind: str
    paths: tuple[Path, ...]
    root: Path | None = None

    @property
    def folders(self) -> list[Path]:
        """The folders from the root to each file, whose names may hold columns."""
        return [
            path.parent.relative_to(self.root or path.parent) for path in self.paths
        ]

    def __str__(self) -> str:
        return list_paths(self.paths)


def list_paths(paths: Sequence[Path]) -> str:
    """What errors call some files."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"


def find_files(path: str | os.PathLike[str]) -> FileSet:
    """The files that a path names, or what is wrong with it.

    Parameters
    ----------
    path : str or path-like
        A file, a Zarr array, a folder of files of one kind, also in folders inside, or
        a pattern with ``*``, ``?``, ``[...]`` or ``**``. Of several files the rows are
        taken in the order of their names, in which numbers count as such: ``part-2``
        before ``part-10``.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    DataError
        The kind of a file is unknown, or files are of different kinds.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("part-10.csv", "part-2.csv"):
    ...     _ = (folder / name).write_text("x\\n1\\n")
    >>> [path.name for path in find_files(folder).paths]
    ['part-2.csv', 'part-10.csv']
    """
    path = Path(path)
    if path.exists():
        return _in_folder(path) if path.is_dir() else _one_kind(path, [path])
    if _PATTERN.search(str(path)):
        matches = [Path(name) for name in glob.glob(str(path), recursive=True)]
        if not matches:
            raise FileNotFoundError(f"{path} matches no file.")
        return _one_kind(path, matches)
    raise FileNotFoundError(f"{path} does not exist.")


def _in_folder(folder: Path) -> FileSet:
    if _is_zarr(folder):
        return FileSet("zarr", (folder,))
    if (folder / _MANIFEST).is_file():
        return FileSet("rows", (folder,))
    inside = list(_walk(folder))
    if not inside:
        raise DataError(f"{folder} is an empty folder; give a file with data.")
    return replace(_one_kind(folder, inside), root=folder)


def _walk(folder: Path) -> Iterator[Path]:
    """The files and Zarr arrays of a folder and of those in it, but no hidden ones."""
    for item in folder.iterdir():
        if item.name[0] in "._":
            continue
        if not item.is_dir() or _is_zarr(item):
            yield item
            continue
        if item.is_symlink() and folder.resolve().is_relative_to(item.resolve()):
            raise DataError(f"{item} leads back to a folder that it is in; remove it.")
        yield from _walk(item)


def _one_kind(path: Path, paths: Sequence[Path]) -> FileSet:
    kinds = {_kind(file): file for file in sorted(paths, reverse=True)}
    if len(kinds) > 1:
        names = " and ".join(sorted(file.name for file in kinds.values()))
        raise DataError(
            f"{path} has files of different kinds, {names}; name those of one kind, "
            f"e.g. by a pattern such as *.parquet."
        )
    return FileSet(next(iter(kinds)), tuple(sorted(paths, key=_by_numbers)))


def _kind(path: Path) -> str:
    if path.is_dir():
        if _is_zarr(path):
            return "zarr"
        raise DataError(f"{path} is a folder; name files, or this folder alone.")
    if not path.is_file():
        raise DataError(f"{path} is not a regular file; save the data to one first.")
    for suffix, kind in SUFFIXES.items():
        if path.name.lower().endswith(suffix):
            return kind
    if path.suffix.lower() in (".xls", ".xlsb", ".ods"):
        raise DataError(f"{path}: save the sheet as .xlsx or .csv first.")
    raise DataError(
        f"{path}: the end of its name must say what kind of file it is; known are "
        f"{', '.join(SUFFIXES)}."
    )


def _is_zarr(path: Path) -> bool:
    return path.is_dir() and any((path / name).exists() for name in _ZARR)


def _by_numbers(path: Path) -> list[tuple[str, int, str]]:
    """By names in which numbers count as such."""
    parts = re.findall(r"(\D*)(\d*)", str(path))
    return [(text, int(number or -1), number) for text, number in parts]


# ------------------------------------------------- columns in names of folders


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
    import pyarrow as pa
    import pyarrow.dataset as ds  # slow to import

    scheme = ds.HivePartitioning(pa.schema([(name, pa.string()) for name in names]))
    keys = [ds.get_partition_keys(scheme.parse(f"/{f.as_posix()}/")) for f in folders]
    for name in names:
        files = [i for i, values in enumerate(keys) if name in values]
        column = pa.array([keys[i][name] for i in files], pa.string())
        for i, value in zip(files, _typed(column, name in text), strict=True):
            columns[i][name] = value
    return columns


def _typed(column: Any, text: bool) -> Any:
    try:
        return column if text else column.cast("int64")
    except ValueError:  # what pyarrow raises for text that is no integer
        return column


# -------------------------------------------------------------------- changes


class Stamps:
    """Sizes and times of change of some files."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._known = {path: _stamp(path) for path in paths}

    @property
    def plain(self) -> list[tuple[int, int]] | None:
        """Sizes and times, in order; None with folders, whose times mean nothing."""
        if not all(path.is_file() for path in self._known):
            return None
        return [stamp for stamp in self._known.values() if stamp is not None]

    def check(self) -> None:
        """Refuse files that were changed meanwhile: sums would be of two tables."""
        for path, known in self._known.items():
            if _stamp(path) != known:
                raise DataError(
                    f"{path} has changed since it was opened. Leave files alone while "
                    f"they are used, and begin anew."
                )


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns
