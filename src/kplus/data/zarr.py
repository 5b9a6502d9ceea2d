"""Zarr arrays, decoded one chunk of rows at a time."""

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kplus.core.errors import DataError, MissingPackageError
from kplus.core.types import Array
from kplus.data.blocks import PieceBlocks

try:
    import zarr
except ImportError as error:
    raise MissingPackageError(
        "Zarr arrays need zarr, which is not installed: pip install 'kplus[zarr]'"
    ) from error

__all__ = ["ZarrBlocks"]

_MOST_CHUNKS = 10**7
_MOST_COLUMNS = 10**8


class ZarrBlocks(PieceBlocks):
    """Blocks of a Zarr array with two dimensions; a piece is a chunk of rows.

    Parameters
    ----------
    path : Path
        The folder of the array.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    """

    remote = True

    def __init__(self, path: Path, block_rows: int | None = None) -> None:
        _refuse_empty_chunks(path)
        try:
            self._array: Any = zarr.open_array(str(path), mode="r")
        except Exception as error:  # zarr has no common class for its errors
            raise DataError(
                f"{path} cannot be read as a Zarr array ({error}). Of a group, give "
                f"the folder of one array."
            ) from error
        self._path = path
        _check(path, self._array)
        n_rows, n_features = self._array.shape
        self._step = int(self._array.chunks[0])
        counts = [min(self._step, n_rows - i) for i in range(0, n_rows, self._step)]
        dtype = np.float32 if self._array.dtype == np.float32 else np.float64
        super().__init__(counts, n_features, block_rows, dtype)

    def decode(self, piece: int) -> Array:
        start = piece * self._step
        try:
            rows = self._array[start : start + self._step]
        except Exception as error:
            raise DataError(
                f"Rows from {start} on of {self._path} cannot be read ({error}); the "
                f"array is damaged."
            ) from error
        return np.array(rows, dtype=self._dtype, order="C")


def _refuse_empty_chunks(path: Path) -> None:
    """Some versions of zarr read chunks of size 0 as 1, and all values as the fill."""
    chunks: Any = []
    with suppress(
        OSError, ValueError, TypeError, KeyError
    ):  # zarr raises its own error
        if (path / ".zarray").exists():
            chunks = json.loads((path / ".zarray").read_text())["chunks"]
        else:
            note = json.loads((path / "zarr.json").read_text())
            chunks = note["chunk_grid"]["configuration"]["chunk_shape"]
    if isinstance(chunks, list) and 0 in chunks:
        raise DataError(f"{path} holds no data: its chunks are of {tuple(chunks)}.")


def _check(path: Path, array: Any) -> None:
    if array.dtype.kind not in "biuf":
        raise DataError(f"{path} holds {array.dtype}, not real numbers.")
    if array.ndim != 2:
        raise DataError(
            f"{path} has {array.ndim} dimensions; a matrix (rows, columns) is needed."
        )
    if 0 in array.shape:
        raise DataError(f"{path} holds no data: its shape is {array.shape}.")
    chunks = math.prod(
        -(-n // step) for n, step in zip(array.shape, array.chunks, strict=True)
    )
    if chunks > _MOST_CHUNKS or array.shape[1] > _MOST_COLUMNS:
        raise DataError(
            f"{path} claims {array.shape[1]:,} columns, and {chunks:,} chunks of "
            f"{array.chunks[0]:,} rows: it is damaged, or should be written anew with "
            f"more rows per chunk, about 100,000."
        )
