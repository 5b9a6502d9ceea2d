"""What ``kplus convert`` writes: one matrix of numbers and codes, mapped into memory.

A folder holds ``rows.npy``, the matrix; ``manifest.json``, which says what its columns
are; and ``index.parquet`` with the names of rows, where they have some.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError, NotNumbersError
from kplus.core.reading import n_blocks
from kplus.core.types import Array, IntArray
from kplus.data.blocks import ArrayBlocks, Cut, as_floats
from kplus.data.categories import Category, Coding, ColumnCoder
from kplus.data.factors import MISSING, Factors
from kplus.data.paths import Stamps
from kplus.data.reading import Reading
from kplus.data.wrapped import WrappedBlocks

__all__ = [
    "FORMAT",
    "INDEX",
    "MANIFEST",
    "ROWS",
    "VERSION",
    "ConvertedRows",
    "RecodedBlocks",
    "refuse_categories",
]

FORMAT, VERSION = "kplus-rows", 1
ROWS, MANIFEST, INDEX = "rows.npy", "manifest.json", "index.parquet"
_KEYS = ("n_rows", "columns", "categories", "index")
_MOST_BYTES = 2**30  # of a manifest: a forged one shall not fill the memory


class ConvertedRows(ArrayBlocks):
    """Blocks of a folder that ``kplus convert`` wrote.

    Parameters
    ----------
    folder : Path

    Attributes
    ----------
    feature_names : list of str
        If the columns have names.
    coding : Coding or None
        Says what codes mean; None where columns have no names.
    index_name : str or None
        What the names of rows are called, if they have some.

    Raises
    ------
    DataError
        Files are damaged or do not go together.
    """

    def __init__(self, folder: Path) -> None:
        from kplus.data.files import open_npy

        self.folder = folder
        manifest = _read_manifest(folder)
        rows = folder / ROWS
        if not rows.is_file():
            raise _damaged(rows, "it is not there")
        X = open_npy(rows)
        names, categories = manifest["columns"], manifest["categories"]
        if X.dtype not in (np.float32, np.float64) or not X.flags.c_contiguous:
            raise _damaged(rows, "it is no matrix of floating-point numbers by rows")
        if X.shape != (manifest["n_rows"], len(categories)):
            raise _damaged(
                rows,
                f"its shape is {X.shape}, but {MANIFEST} says "
                f"{(manifest['n_rows'], len(categories))}",
            )
        super().__init__(X, reopen=partial(open_npy, rows))
        self.stamps = Stamps([rows, folder / MANIFEST])
        self.index_name = manifest["index"]
        self.reading = _reading(folder / MANIFEST, manifest.get("reading"))
        self.coding: Coding | None = None
        if names is not None:
            self.feature_names = names
            self.coding = Coding(tuple(names), categories)
        self._coded = [j for j, values in enumerate(categories) if values is not None]
        self._levels = np.array([len(categories[j]) for j in self._coded], np.float64)

    @property
    def index_path(self) -> Path | None:
        """The file with the names of rows, if they have some."""
        if self.index_name is None:
            return None
        path = self.folder / INDEX
        if not path.is_file():
            raise _damaged(path, "it is not there")
        return path

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        return self._checked(self.array[start:stop], start)

    def take(self, rows: IntArray) -> Array:
        return self._checked(super().take(rows), None)

    def _checked(self, part: NDArray[Any], start: int | None) -> Array:
        """As they are; with categories in float64, and no code that means nothing."""
        if not self._coded:
            return as_floats(part)
        codes = part[:, self._coded]
        good = (codes >= 0) & (codes < self._levels) & (codes == np.floor(codes))
        good |= np.isnan(codes)
        if not good.all():
            i, k = np.argwhere(~good)[0]
            row = "" if start is None else f" (row {start + i})"
            name = self.feature_names[self._coded[k]]
            raise _damaged(
                self.folder / ROWS,
                f"column {name!r} holds {codes[i, k]:g}{row}, which is the code of no "
                f"category",
            )
        return as_floats(part, np.float64)


class RecodedBlocks(WrappedBlocks):
    """Coded blocks with the codes of another coding, by the values of categories.

    Parameters
    ----------
    source : Cut
    source_coding, coding : Coding
        That of `source`, and the one to use; both have the same columns.
    unknown : {"error", "missing"}
        What a category is that `coding` does not have.
    """

    def __init__(
        self, source: Cut, source_coding: Coding, coding: Coding, unknown: str
    ) -> None:
        super().__init__(source)
        self.feature_names = list(coding.names)
        self.coding = coding
        self._unknown = unknown
        # Of columns with other codes: the values of their codes, and the new ones.
        self._coders: dict[int, tuple[list[Category], ColumnCoder]] = {}
        for j, (here, there) in enumerate(
            zip(source_coding.categories, coding.categories, strict=True)
        ):
            if (here is None) != (there is None):
                _refuse_kind(source_coding.names[j], here is None)
            if here is not None and there is not None and here != there:
                coder = ColumnCoder(repr(coding.names[j]), there, unknown)
                self._coders[j] = list(here), coder

    def check(self) -> None:
        """Read everything if some categories are unknown, to refuse them now."""
        coders = self._coders.values()
        unknown = (set(values) - set(coder.categories) for values, coder in coders)
        if self._unknown == "error" and any(unknown):
            for index in range(n_blocks(self)):
                self.read(index)

    def _change(self, part: Array, rows: int | IntArray) -> Array:
        out = part.astype(np.float64)
        for j, (values, coder) in self._coders.items():
            places = np.nan_to_num(part[:, j], nan=MISSING).astype(np.int64)
            out[:, j] = coder.floats(Factors(places, values), rows)
        return out


def _refuse_kind(name: str, numbers: bool) -> None:
    here, there = ("numbers", "categories") if numbers else ("categories", "numbers")
    how = "with" if numbers else "without"
    raise DataError(
        f"Column {name!r} holds {here}, but held {there} in the fit; convert the table "
        f"again, {how} categorical=[{name!r}]."
    )


def refuse_categories(coding: Coding | None) -> None:
    """Refuse a table in which some columns hold categories; yes and no are 1 and 0."""
    if coding is None:
        return
    for name, categories in zip(coding.names, coding.categories, strict=True):
        if categories is not None and not _are_booleans(categories):
            listed = ", ".join(repr(value)[:40] for value in categories[:3])
            raise NotNumbersError(
                f"Column {name!r} holds categories ({listed}), not numbers. Convert "
                f"the table again without it (drop=[{name!r}])."
            )


def _are_booleans(categories: tuple[Category, ...]) -> bool:
    return categories == (False, True) and all(isinstance(c, bool) for c in categories)


# ------------------------------------------------------------------ manifests


def _read_manifest(folder: Path) -> dict[str, Any]:
    """What the manifest says, checked."""
    path = folder / MANIFEST
    if path.stat().st_size > _MOST_BYTES:
        raise _damaged(path, "it is larger than any manifest")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it cannot be read as JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(
            f"{path} is not one of kplus convert; to read the other files of the "
            f"folder, give a pattern such as {folder / '*.parquet'}."
        )
    if manifest.get("version") != VERSION:
        raise DataError(
            f"{path} has version {str(manifest.get('version'))[:20]!r}, and this kplus "
            f"reads version {VERSION}: update kplus, or convert the table again."
        )
    problem = _problem(manifest)
    if problem is not None:
        raise _damaged(path, problem)
    manifest["categories"] = tuple(
        None if values is None else tuple(values) for values in manifest["categories"]
    )
    return manifest


def _problem(manifest: dict[str, Any]) -> str | None:
    """What is wrong with a manifest."""
    for key in _KEYS:
        if key not in manifest:
            return f"it lacks {key!r}"
    names, categories = manifest["columns"], manifest["categories"]
    if type(manifest["n_rows"]) is not int or manifest["n_rows"] < 1:
        return "n_rows is no number of rows"
    if not isinstance(manifest["index"], str | None):
        return "index is no name"
    if not isinstance(categories, list) or not categories:
        return "categories is no list"
    if names is None:
        if any(values is not None for values in categories):
            return "columns without names have categories"
    elif (
        not isinstance(names, list)
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) != len(names)
        or len(names) != len(categories)
    ):
        return "columns are not as many different names as there are categories"
    for values in categories:
        if values is not None and not _are_categories(values):
            return "the categories of a column are no list of different values"
    return None


def _reading(path: Path, node: Any) -> Reading | None:
    """How the table was read that was converted."""
    try:
        return None if node is None else Reading.from_json(node)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise _damaged(path, f"its reading: {error}") from error


def _are_categories(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) > 0
        and all(isinstance(v, str | int | float) and v == v for v in values)
        and len(set(values)) == len(values)
    )


def _damaged(path: Path, problem: str) -> DataError:
    return DataError(f"{path} is damaged ({problem}); convert the table again.")
