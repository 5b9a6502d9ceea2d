"""Blocks of a Parquet file, decoded one row group at a time.

A file keeps its rows in row groups, which can only be decoded whole. A block takes
its rows from the groups it overlaps, and every thread remembers the group it decoded
last, so a walk through the blocks decodes each group once. Beyond the file, memory
holds one group a thread: files with groups of about 100 000 rows serve best.
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Array, IntArray
from kplus.sources.blocks import default_block_rows

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "Parquet files need pyarrow, which is not installed: "
        "pip install 'kplus[parquet]'"
    ) from error

__all__ = [
    "ParquetBlocks",
    "RowGroups",
    "column_names",
    "index_columns",
    "is_number",
    "read_columns",
    "read_schema",
    "to_numbers",
]


class RowGroups:
    """Blocks of a Parquet file; who inherits says how a column becomes numbers.

    Parameters
    ----------
    path : Path
        A local file.
    block_rows : int or None
        Rows of a block.
    columns : sequence of str
        The columns to read, in this order.
    dtype : type
        float32 or float64.

    Attributes
    ----------
    feature_names : list of str
    """

    _as_dictionaries: Sequence[str] = ()
    """Columns of text that pyarrow is to decode as dictionaries."""

    def __init__(
        self,
        path: Path,
        block_rows: int | None,
        columns: Sequence[str],
        dtype: type[Any],
    ) -> None:
        self._path = path
        with _open(path) as file:
            self._metadata = file.metadata
        self.feature_names = list(columns)
        self._dtype = dtype
        groups = range(self._metadata.num_row_groups)
        counts = [self._metadata.row_group(i).num_rows for i in groups]
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._last = threading.local()
        self.n_rows = int(self._starts[-1])
        self.n_features = len(self.feature_names)
        self.block_rows = block_rows or default_block_rows(self.n_features)

    def read(self, index: int) -> Array:
        start = index * self.block_rows
        stop = min(start + self.block_rows, self.n_rows)
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        offset = int(self._starts[first])
        if stop <= self._starts[first + 1]:  # inside one group: no copy
            return self._group(first)[start - offset : stop - offset]
        return self.take(np.arange(start, stop))

    def take(self, rows: IntArray) -> Array:
        taken = np.empty((len(rows), self.n_features), self._dtype)
        cuts = np.searchsorted(rows, self._starts)
        for group in np.flatnonzero(np.diff(cuts)):
            part = slice(cuts[group], cuts[group + 1])
            taken[part] = self._group(int(group))[rows[part] - self._starts[group]]
        return taken

    def _group(self, index: int) -> Array:
        """Return a decoded row group, from memory if this thread had it last."""
        if getattr(self._last, "index", None) != index:
            self._last.rows = None  # two groups at once would double the memory
            self._last.rows = self._decode(index)
            self._last.index = index
        rows: Array = self._last.rows
        return rows

    def _decode(self, index: int) -> Array:
        n_rows = int(self._starts[index + 1] - self._starts[index])
        rows = np.empty((n_rows, self.n_features), self._dtype)
        with self._opened() as file:
            for j, name in enumerate(self.feature_names):
                rows[:, j] = self._convert(j, _read_part(file, index, name), index)
        rows.flags.writeable = False  # blocks are views of it
        return rows

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with (
            _damage(self._path),
            _open(self._path, self._metadata, self._as_dictionaries) as file,
        ):
            yield file

    def _parts(self, name: str) -> Iterator[Any]:
        """A column, one row group at a time."""
        with self._opened() as file:
            for index in range(len(self._starts) - 1):
                yield _read_part(file, index, name)

    def _convert(self, j: int, column: Any, group: int) -> NDArray[Any]:
        """Column `j` of a row group, as Arrow has it, as numbers."""
        raise NotImplementedError


class ParquetBlocks(RowGroups):
    """Blocks of a Parquet file with number columns only; nulls are read as NaN.

    Parameters
    ----------
    path : Path
        A local file.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    columns : sequence of str or None
        The columns to read, in this order; by default all but those which pandas
        marked as its index.

    Attributes
    ----------
    feature_names : list of str
    """

    def __init__(
        self,
        path: Path,
        block_rows: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        schema = read_schema(path)
        names = column_names(schema) if columns is None else columns
        super().__init__(path, block_rows, names, _common_dtype(path, schema, names))

    def _convert(self, j: int, column: Any, group: int) -> NDArray[Any]:
        return to_numbers(column, self._dtype)


def _read_part(file: Any, group: int, name: str) -> Any:
    # A column "a" brings "a.b" along, hence the second choice by name.
    table = file.read_row_group(group, columns=[name], use_threads=False)
    return table.column(name)


def read_schema(path: Path) -> Any:
    """Return the Arrow schema of a file, whose column names must be unique."""
    with _open(path) as file:
        schema = file.schema_arrow
    for name, count in Counter(schema.names).items():
        if count > 1:
            raise DataError(f"{path} has {count} columns called {name!r}; rename them.")
    return schema


def read_columns(path: Path, names: Sequence[str]) -> Any:
    """Return some columns, of any type, as an Arrow table."""
    with _damage(path), _open(path) as file:
        table = file.read(columns=list(names), use_threads=False)
    return table.select(list(names))  # in this order, and not "a.b" along with "a"


def index_columns(schema: Any) -> list[str]:
    """Names of the columns that hold the index of the pandas frame once saved."""
    note = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    names = note.get("index_columns", [])
    return [name for name in names if isinstance(name, str) and name in schema.names]


def column_names(schema: Any) -> list[str]:
    """Names of the columns without the index that pandas stored."""
    index = index_columns(schema)
    return [name for name in schema.names if name not in index]


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn what pyarrow raises for a bad file into `DataError`."""
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} cannot be read as Parquet; it is damaged, cut short or of another "
            f"format ({error})."
        ) from error


def _open(path: Path, metadata: Any = None, as_dictionaries: Sequence[str] = ()) -> Any:
    with _damage(path):
        return pq.ParquetFile(
            path, metadata=metadata, read_dictionary=list(as_dictionaries)
        )


def _common_dtype(path: Path, schema: Any, names: Sequence[str]) -> type[Any]:
    """Return float32 if that holds every column exactly, else float64."""
    if not names:
        raise DataError(f"{path} has no columns to read.")
    types = [schema.field(name).type for name in names]
    for name, dtype in zip(names, types, strict=True):
        if not is_number(dtype):
            raise DataError(
                f"Column {name!r} of {path} holds {dtype}, not numbers. Drop it, or "
                f"encode it as numbers first."
            )
    single = all(t in (pa.float16(), pa.float32()) for t in types)
    return np.float32 if single else np.float64


def is_number(dtype: Any) -> bool:
    """Whether an Arrow type holds numbers; yes and no count as 1 and 0."""
    kind = pa.types
    return bool(
        kind.is_integer(dtype)
        or kind.is_floating(dtype)
        or kind.is_boolean(dtype)
        or kind.is_decimal(dtype)
    )


def to_numbers(column: Any, dtype: type[Any]) -> NDArray[Any]:
    """A column of an Arrow table as numbers; nulls become NaN."""
    values: NDArray[Any] = column.cast(
        pa.from_numpy_dtype(dtype), safe=False
    ).to_numpy()
    return values
