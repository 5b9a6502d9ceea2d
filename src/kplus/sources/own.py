"""Tables of people's own, as blocks that keep what they promise."""

from typing import Any

import numpy as np

from kplus.core.errors import DataError
from kplus.core.types import Array, Blocks, IntArray
from kplus.sources.blocks import Cut, as_floats

__all__ = ["OwnBlocks", "looks_like_blocks"]

_NUMBERS = ("n_rows", "n_features", "block_rows")


def looks_like_blocks(X: Any) -> bool:
    """Whether an object has what `Blocks` asks for."""
    return callable(getattr(X, "read", None)) and all(hasattr(X, n) for n in _NUMBERS)


class OwnBlocks(Cut):
    """Blocks that are checked as they are read; `take` is made up where it is missing.

    Parameters
    ----------
    own : Blocks
    """

    def __init__(self, own: Blocks) -> None:
        for name in _NUMBERS:
            value = getattr(own, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise DataError(f"{_name(own)}.{name} must be an integer, not {value}.")
            if value < (name == "block_rows"):
                raise DataError(f"{_name(own)}.{name} must not be {value}.")
        super().__init__(int(own.n_rows), int(own.n_features), int(own.block_rows))
        self._own = own
        self.remote = bool(getattr(own, "remote", False))
        names = getattr(own, "feature_names", None)
        if names is not None:
            self.feature_names = [str(name) for name in names]
            if len(self.feature_names) != self.n_features:
                raise DataError(
                    f"{_name(own)}.feature_names has {len(self.feature_names)} names "
                    f"for {self.n_features} columns."
                )

    def cut(self, block_rows: int | None) -> "OwnBlocks":
        if block_rows not in (None, self.block_rows):
            raise DataError(
                f"batch_size={block_rows}, but the blocks of {_name(self._own)} have "
                f"{self.block_rows} rows: leave batch_size at None."
            )
        return self

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        return self._checked(self._own.read(index), stop - start, f"read({index})")

    def take(self, rows: IntArray) -> Array:
        if callable(getattr(self._own, "take", None)):
            return self._checked(self._own.take(rows), len(rows), "take(rows)")
        taken = []
        blocks = rows // self.block_rows
        for index in np.unique(blocks):
            inside = rows[blocks == index] - index * self.block_rows
            taken.append(self.read(int(index))[inside])
        return np.concatenate(taken) if taken else np.empty((0, self.n_features))

    def _checked(self, rows: Any, n_rows: int, call: str) -> Array:
        rows = np.asarray(rows)
        if rows.shape != (n_rows, self.n_features) or rows.dtype.kind not in "biuf":
            raise DataError(
                f"{_name(self._own)}.{call} returned {rows.dtype} of shape "
                f"{rows.shape}; numbers of shape {(n_rows, self.n_features)} are due."
            )
        return as_floats(rows)


def _name(own: Any) -> str:
    return type(own).__name__
