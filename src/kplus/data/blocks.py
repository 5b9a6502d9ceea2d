"""Tables cut into blocks of rows: arrays, sparse matrices, data frames, pieces.

Whatever the source, block ``i`` is the same rows in the same order, so the result
of a fit does not depend on where its rows are kept. Blocks are converted when they
are read: beyond the table itself, memory holds one block per thread.
"""

import mmap
import threading
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from narwhals import Series
from numpy.typing import NDArray

from kplus.core.errors import DataError, NotNumbersError
from kplus.core.types import Array, IntArray
from kplus.data.paths import Stamps
from kplus.data.selection import refuse_twice

__all__ = [
    "ArrayBlocks",
    "Cut",
    "FrameBlocks",
    "PieceBlocks",
    "SparseBlocks",
    "StackedBlocks",
    "as_float_column",
    "as_floats",
    "default_block_rows",
    "holding",
    "release_rows",
    "take_mapped",
]

_BLOCK_BYTES = 8 * 2**20
_LISTED = 8  # columns in an error
_SCATTERED, _SPAN_BYTES = 1000, 16 * 2**20  # rows here and there in a large file


def default_block_rows(n_features: int) -> int:
    """Rows in a block: a power of two that fills about eight megabytes."""
    rows = _BLOCK_BYTES // (8 * max(n_features, 1))
    return int(2 ** np.clip(np.log2(max(rows, 1)).astype(int), 5, 16))


def as_floats(rows: NDArray[Any], dtype: type[Any] | None = None) -> Array:
    """C-contiguous float32 or float64, without a copy where the rows are so already."""
    if dtype is None:
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
    return np.ascontiguousarray(rows, dtype=dtype)


def take_mapped(X: Any, rows: IntArray) -> NDArray[Any]:
    """Rows of a memory map, a few at a time where they are far between.

    The system maps much around each of them, and would hold on to it.
    """
    taken = np.empty((len(rows), X.shape[1]), X.dtype)
    for first in range(0, len(rows), _SCATTERED):
        some = rows[first : first + _SCATTERED]
        taken[first : first + _SCATTERED] = X[some]
        start, stop = int(some[0]), int(some[-1]) + 1
        if (stop - start) * abs(X.strides[0]) > _SPAN_BYTES:
            release_rows(X, start, stop)
    return taken


def release_rows(X: Any, start: int, stop: int) -> None:
    """Give pages of a memory map back to the system, which keeps them if it can."""
    mapped = getattr(X, "_mmap", None)
    advice = getattr(mmap, "MADV_DONTNEED", None)  # not everywhere
    if mapped is None or advice is None or not X.flags.c_contiguous:
        return
    first = (X.offset % mmap.ALLOCATIONGRANULARITY) + start * X.strides[0]
    begin = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (first + (stop - start) * X.strides[0]) // mmap.PAGESIZE * mmap.PAGESIZE
    if length > begin:
        mapped.madvise(advice, begin, length - begin)


class Cut:
    """Where the blocks of a table begin and end.

    Attributes
    ----------
    remote : bool
        Whether it can be pickled without its rows, so that workers elsewhere read them.
    stamps : Stamps or None
        Of the files that it is in.
    """

    remote = False
    stamps: Stamps | None = None

    def __init__(self, n_rows: int, n_features: int, block_rows: int | None) -> None:
        self.n_rows = n_rows
        self.n_features = n_features
        self.block_rows = block_rows or default_block_rows(n_features)

    def cut(self, block_rows: int | None) -> Self:
        """The same rows in other blocks; None: as they are."""
        if block_rows in (None, self.block_rows):
            return self
        other = copy(self)
        other.block_rows = block_rows
        return other

    def bounds(self, index: int) -> tuple[int, int]:
        start = index * self.block_rows
        return start, min(start + self.block_rows, self.n_rows)

    def read(self, index: int) -> Array:
        """See `Blocks`."""
        raise NotImplementedError

    def take(self, rows: IntArray) -> Array:
        """See `Blocks`."""
        raise NotImplementedError


class ArrayBlocks(Cut):
    """Blocks of an ndarray or memory map, of any number type, order or writability.

    With `reopen`, a function without arguments, the array is not pickled but opened
    again.
    """

    def __init__(
        self,
        X: NDArray[Any],
        block_rows: int | None = None,
        *,
        reopen: Callable[[], NDArray[Any]] | None = None,
    ) -> None:
        super().__init__(X.shape[0], X.shape[1], block_rows)
        self.array = X
        self._reopen = reopen
        self.remote = reopen is not None

    def release(self, start: int, stop: int) -> None:
        """Let go of the memory of some mapped rows; they can be read again."""
        if self._reopen is not None:
            release_rows(self.array, start, stop)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._reopen is not None:
            del state["array"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        if self._reopen is not None:
            self.array = self._reopen()

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        return as_floats(self.array[start:stop])

    def take(self, rows: IntArray) -> Array:
        if self._reopen is None:
            return as_floats(self.array[rows])
        return as_floats(take_mapped(self.array, rows))


class SparseBlocks(Cut):
    """Blocks of a scipy sparse matrix or array, made dense one block at a time."""

    def __init__(self, X: Any, block_rows: int | None = None) -> None:
        super().__init__(X.shape[0], X.shape[1], block_rows)
        self.matrix = sp.csr_array(X)

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        return as_floats(self.matrix[start:stop].toarray())

    def take(self, rows: IntArray) -> Array:
        return as_floats(self.matrix[rows].toarray())


class FrameBlocks(Cut):
    """Blocks of a pandas, polars or Arrow table; only numbers can be read."""

    def __init__(self, frame: Any, block_rows: int | None = None) -> None:
        try:
            self.frame: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
        except nw.exceptions.DuplicateError as error:
            names = getattr(frame, "column_names", frame.columns)  # of Arrow, pandas
            refuse_twice("The table", list(map(str, names)))
            raise DataError(f"Names of columns must differ ({error}).") from error
        super().__init__(*self.frame.shape, block_rows)
        self.reading: Any = None  # how it is read, if that is settled
        self.odd: dict[str, Any] = {}

    def odd_cells(self) -> dict[str, Any]:
        """The cells that are missing now, as they were no numbers."""
        return self.odd

    def refuse_non_numbers(self) -> None:
        """Refuse columns that hold anything else."""
        bad = [
            (str(name), str(dtype))
            for name, dtype in self.frame.schema.items()
            if not (dtype.is_numeric() or dtype == nw.Boolean)
        ]
        if bad:
            raise NotNumbersError(
                f"{holding(bad)}, not numbers. Leave out what is no number, or encode "
                f"it as numbers first (e.g. with scikit-learn's OneHotEncoder); "
                f"DPMixture and CRAFT take categories."
            )

    @property
    def feature_names(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        return self._numbers(self.frame[start:stop])

    def take(self, rows: IntArray) -> Array:
        return self._numbers(self.frame[rows])

    @staticmethod
    def _numbers(part: "nw.DataFrame[Any]") -> Array:
        """To numbers, column by column."""
        columns = [as_float_column(column) for column in part.iter_columns()]
        return np.ascontiguousarray(np.column_stack(columns))


def holding(columns: Sequence[tuple[str, str]], where: str = "") -> str:
    """As in: Column 'a' of x.csv holds string, 'b' holds date32."""
    (first, dtype), *others = columns[:_LISTED]
    words = [f"Column {first!r}{where and f' of {where}'} holds {dtype}"]
    words += [f"{name!r} holds {dtype}" for name, dtype in others]
    more = len(columns) - _LISTED
    return ", ".join(words) + (f", and so do {more} more columns" if more > 0 else "")


def as_float_column(column: Series[Any]) -> Array:
    """A column of numbers as float64; a null of any kind becomes NaN."""
    return column.cast(nw.Float64()).to_numpy().astype(np.float64, copy=False)


class PieceBlocks(Cut):
    """Blocks of a table whose rows come in pieces, each of which is decoded whole.

    The row groups of a Parquet file are such pieces, or the chunks of a Zarr array. A
    block takes its rows from the pieces it overlaps, and every thread remembers the
    piece it decoded last, so that a walk through the blocks decodes each piece once.
    Memory holds one piece per thread: pieces of about 100,000 rows serve best. A
    subclass says in `decode` how a piece becomes numbers.

    Parameters
    ----------
    counts : sequence of int
        Rows of each piece.
    n_features : int
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    dtype : type
        float32 or float64.
    """

    def __init__(
        self,
        counts: Sequence[int],
        n_features: int,
        block_rows: int | None,
        dtype: type[Any],
    ) -> None:
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._dtype = dtype
        self._last = threading.local()
        super().__init__(int(self._starts[-1]), n_features, block_rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_last"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._last = threading.local()

    def decode(self, piece: int) -> Array:
        """Make the rows of a piece, C-contiguous."""
        raise NotImplementedError

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        piece = int(np.searchsorted(self._starts, start, side="right")) - 1
        offset = int(self._starts[piece])
        if stop <= self._starts[piece + 1]:  # inside one piece: no copy
            return self._slice(piece, start - offset, stop - offset)
        return self.take(np.arange(start, stop))

    def take(self, rows: IntArray) -> Array:
        taken = np.empty((len(rows), self.n_features), self._dtype)
        cuts = np.searchsorted(rows, self._starts)
        for piece in np.flatnonzero(np.diff(cuts)):
            part = slice(cuts[piece], cuts[piece + 1])
            taken[part] = self._pick(int(piece), rows[part] - self._starts[piece])
        return taken

    def _slice(self, piece: int, start: int, stop: int) -> Array:
        """Consecutive rows of a piece."""
        return self._decoded(piece)[start:stop]

    def _pick(self, piece: int, rows: IntArray) -> NDArray[Any]:
        """Some rows of a piece."""
        return self._decoded(piece)[rows]

    def _decoded(self, piece: int) -> Array:
        """A decoded piece, from memory if this thread had it last."""
        if getattr(self._last, "piece", None) != piece:
            self._last.piece = self._last.rows = None  # two would double the memory
            self._last.rows, self._last.piece = self._made(piece), piece
        rows: Array = self._last.rows
        return rows

    def _made(self, piece: int) -> Array:
        rows = self.decode(piece)
        rows.flags.writeable = False  # blocks are views of it
        return rows


class StackedBlocks(PieceBlocks):
    """Blocks of arrays or memory maps with as many columns, their rows in this order.

    Parameters
    ----------
    arrays : sequence of ndarray
        Of any number types; rows are float32 if all are.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    reopen : callable, optional
        Returns the arrays again, so that they need not be pickled.
    """

    def __init__(
        self,
        arrays: Sequence[NDArray[Any]],
        block_rows: int | None = None,
        *,
        reopen: Callable[[], list[NDArray[Any]]] | None = None,
    ) -> None:
        self._arrays = list(arrays)
        self._reopen = reopen
        self.remote = reopen is not None
        single = all(X.dtype == np.float32 for X in self._arrays)
        dtype = np.float32 if single else np.float64
        counts = list(map(len, self._arrays))
        super().__init__(counts, self._arrays[0].shape[1], block_rows, dtype)

    def release(self, start: int, stop: int) -> None:
        """As of `ArrayBlocks`."""
        if self._reopen is None:
            return
        for X, offset in zip(self._arrays, self._starts, strict=False):
            first, last = max(start - offset, 0), min(stop - offset, len(X))
            if first < last:
                release_rows(X, int(first), int(last))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if self._reopen is not None:
            del state["_arrays"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._reopen is not None:
            self._arrays = self._reopen()

    def _slice(self, piece: int, start: int, stop: int) -> Array:
        return as_floats(self._arrays[piece][start:stop], self._dtype)

    def _pick(self, piece: int, rows: IntArray) -> NDArray[Any]:
        return take_mapped(self._arrays[piece], rows)
