"""Which files a path names: one file, all of a folder, or those of a pattern."""

import difflib
import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kplus.core.errors import DataError

__all__ = ["SUFFIXES", "Found", "find_files", "shown", "unknown_column"]

SUFFIXES = {
    ".npy": "npy",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".zarr": "zarr",
}
_ZARR = ("zarr.json", ".zarray")  # what tells a Zarr array, format 3 or 2
_MANIFEST = "manifest.json"  # what tells a folder that kplus convert wrote
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Found:
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
        return shown(self.paths)


def shown(paths: Sequence[Path]) -> str:
    """What errors call some files."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"


def find_files(path: str | os.PathLike[str]) -> Found:
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
        return _in_folder(path) if path.is_dir() else _found(path, [path])
    if _PATTERN.search(str(path)):
        matches = [Path(name) for name in glob.glob(str(path), recursive=True)]
        if not matches:
            raise FileNotFoundError(f"{path} matches no file.")
        return _found(path, matches)
    raise FileNotFoundError(f"{path} does not exist.")


def _in_folder(folder: Path) -> Found:
    if _is_zarr(folder):
        return Found("zarr", (folder,))
    if (folder / _MANIFEST).is_file():
        return Found("rows", (folder,))
    inside = list(_walk(folder))
    if not inside:
        raise DataError(f"{folder} is an empty folder; give a file with data.")
    return replace(_found(folder, inside), root=folder)


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


def _found(asked: Path, paths: Sequence[Path]) -> Found:
    kinds = {_kind(path): path for path in sorted(paths, reverse=True)}
    if len(kinds) > 1:
        names = " and ".join(sorted(path.name for path in kinds.values()))
        raise DataError(
            f"{asked} has files of different kinds, {names}; name those of one kind, "
            f"e.g. by a pattern such as *.parquet."
        )
    return Found(next(iter(kinds)), tuple(sorted(paths, key=_by_numbers)))


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
    raise DataError(
        f"{path}: the kind of a file is told by the end of its name, which must be one "
        f"of {', '.join(SUFFIXES)}."
    )


def _is_zarr(path: Path) -> bool:
    return path.is_dir() and any((path / name).exists() for name in _ZARR)


def _by_numbers(path: Path) -> list[tuple[str, int, str]]:
    """By names in which numbers count as such."""
    parts = re.findall(r"(\D*)(\d*)", str(path))
    return [(text, int(number or -1), number) for text, number in parts]


def unknown_column(where: str, name: str, names: Sequence[str]) -> str:
    """Words for a column that is not there, with one that may have been meant."""
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"{where} has no column {name!r}; did you mean {close[0]!r}?"
    shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    return f"{where} has no column {name!r}; its columns are {shown}."
