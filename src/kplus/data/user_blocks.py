"""Blocks that users write themselves, checked as they are read."""

from typing import Any

import numpy as np

from kplus.core.errors import DataError
from kplus.core.types import Array, Blocks, IntArray
from kplus.data.blocks import Cut, as_floats

__all__ = ["UserBlocks", "looks_like_blocks"]

_NUMBERS = ("n_rows", "n_features", "block_rows")


def looks_like_blocks(X: Any) -> bool:
    """Whether an object has what `Blocks` asks for."""
    return callable(getattr(X, "read", None)) and all(hasattr(X, n) for n in _NUMBERS)


class UserBlocks(Cut):
    """Blocks that are checked as they are read; `take` is made up where it is missing.

    Parameters
    ----------
    source : Blocks
    """

    def __init__(self, source: Blocks) -> None:
        self._source, self._name = source, type(source).__name__
        for name in _NUMBERS:
            value = getattr(source, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise DataError(f"{self._name}.{name} must be an integer, not {value}.")
            if value < (name == "block_rows"):
                raise DataError(f"{self._name}.{name} must not be {value}.")
        super().__init__(*(int(getattr(source, name)) for name in _NUMBERS))
        self.remote = bool(getattr(source, "remote", False))
        names = getattr(source, "feature_names", None)
        if names is not None:
            self.feature_names = [str(name) for name in names]
            if len(self.feature_names) != self.n_features:
                raise DataError(
                    f"{self._name}.feature_names has {len(self.feature_names)} names "
                    f"for {self.n_features} columns."
                )

    def cut(self, block_rows: int | None) -> "UserBlocks":
        if block_rows not in (None, self.block_rows):
            raise DataError(
                f"batch_size={block_rows}, but the blocks of {self._name} have "
                f"{self.block_rows} rows: leave batch_size at None."
            )
        return self

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        return self._checked(self._source.read(index), stop - start, f"read({index})")

    def take(self, rows: IntArray) -> Array:
        if callable(getattr(self._source, "take", None)):
            return self._checked(self._source.take(rows), len(rows), "take(rows)")
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
                f"{self._name}.{call} returned {rows.dtype} of shape "
                f"{rows.shape}; numbers of shape {(n_rows, self.n_features)} are due."
            )
        return as_floats(rows)
