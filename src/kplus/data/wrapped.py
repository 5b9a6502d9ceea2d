"""Blocks made of other blocks: changed, some of their rows, checked, in memory."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kplus.core.errors import DataError
from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks, IntArray
from kplus.data.blocks import ArrayBlocks, Cut, as_floats

if TYPE_CHECKING:
    from kplus.data.categories import Coding

__all__ = [
    "CACHE_BYTES",
    "RowRange",
    "ShiftedBlocks",
    "UserBlocks",
    "WrappedBlocks",
    "looks_like_blocks",
    "read_if_small",
]

CACHE_BYTES = 64 * 2**20
"""What a table may take beyond where it comes from, so that passes need no decoding."""

_NUMBERS = ("n_rows", "n_features", "block_rows")


class WrappedBlocks(Cut):
    """The rows of `source`, changed in `_change`; they can be sent where those can."""

    def __init__(self, source: Blocks) -> None:
        super().__init__(source.n_rows, source.n_features, source.block_rows)
        self._source: Any = source
        self.remote = getattr(source, "remote", False)
        self.stamps = getattr(source, "stamps", None)

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        if self.block_rows != self._source.block_rows:
            return self.take(np.arange(start, stop))
        return self._change(self._source.read(index), start)

    def take(self, rows: IntArray) -> Array:
        return self._change(self._source.take(rows), rows)

    def _change(self, part: Array, rows: int | IntArray) -> Array:
        """Some rows of the source as they shall be: their numbers, or the first one."""
        raise NotImplementedError

    def release(self, start: int, stop: int) -> None:
        """Let go of the memory of some mapped rows; they can be read again."""
        if hasattr(self._source, "release"):
            self._source.release(start, stop)


class ShiftedBlocks(WrappedBlocks):
    """The blocks of another table, less an offset for each column; float64."""

    def __init__(self, source: Blocks, offset: Array) -> None:
        super().__init__(source)
        self._offset = offset

    def _change(self, part: Array, rows: int | IntArray) -> Array:
        return part.astype(np.float64) - self._offset


class RowRange(WrappedBlocks):
    """The rows from `start` to `stop` of other blocks, in blocks of the same size.

    A `coding` says what the codes in `source` mean, if it has some.
    """

    def __init__(
        self, source: Blocks, start: int, stop: int, coding: "Coding | None" = None
    ) -> None:
        super().__init__(source)
        self._start, self.n_rows = start, stop - start
        self.coding = coding
        names = getattr(source, "feature_names", None)
        if names is not None:
            self.feature_names = names

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        block, inside = divmod(self._start + start, self._source.block_rows)
        if inside == 0 and self.block_rows == self._source.block_rows:
            rows: Array = self._source.read(block)[: stop - start]
            return rows
        return self.take(np.arange(start, stop))

    def take(self, rows: IntArray) -> Array:
        taken: Array = self._source.take(rows + self._start)
        return taken

    def release(self, start: int, stop: int) -> None:
        super().release(start + self._start, stop + self._start)


# ------------------------------------------------------------ blocks of users


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


# ------------------------------------------------------------------- in memory


def read_if_small(blocks: Blocks) -> Blocks | None:
    """Blocks of float64 in memory if the table is small, else None."""
    shape = blocks.n_rows, blocks.n_features
    if 8 * shape[0] * shape[1] > CACHE_BYTES:
        return None
    rows = np.empty(shape)
    for start, part in read_blocks(blocks):
        rows[start : start + len(part)] = part
    rows.flags.writeable = False  # blocks are views of it
    copy: Any = ArrayBlocks(rows, blocks.block_rows)
    copy.stamps = getattr(blocks, "stamps", None)
    if hasattr(blocks, "feature_names"):
        copy.feature_names = blocks.feature_names
    return copy  # type: ignore[no-any-return]
