"""Tables of typed columns that Arrow reads, kept in one or several files."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError, MissingPackageError, NotNumbersError
from kplus.data.paths import Stamps, list_paths
from kplus.data.selection import refuse_twice, unknown_column

try:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingPackageError(
        "Parquet and Arrow files need pyarrow, which is not installed: "
        "pip install 'kplus[parquet]'"
    ) from error

__all__ = [
    "UNNAMED",
    "ArrowFiles",
    "ColumnFiles",
    "Columns",
    "InMemory",
    "as_missing",
    "as_text",
    "is_categorical",
    "is_number",
    "open_columns",
    "plain_type",
]

UNNAMED = ""
"""Name of a first column without one: the row names that pandas and R write."""


def open_columns(
    kind: str, paths: Sequence[Path], folders: Sequence[dict[str, Any]] = ()
) -> "ColumnFiles":
    """Open files of a kind, "parquet" or "arrow", as one table of columns."""
    return (ParquetFiles if kind == "parquet" else ArrowFiles)(paths, folders)


class Columns(ABC):
    """A table of typed columns, kept in pieces of rows.

    Parameters
    ----------
    schema : pyarrow.Schema
    counts : sequence of int
        Rows of each piece.
    """

    def __init__(self, schema: Any, counts: Sequence[int]) -> None:
        self.schema = self._common = schema
        self.counts = list(counts)
        self._selected: list[str] | None = None
        self.stamps: Stamps | None = None

    @property
    def remote(self) -> bool:
        """Whether workers elsewhere can read it; see `Cut`."""
        return False

    @abstractmethod
    def _column(self, piece: int, name: str, as_dictionary: bool) -> Any:
        """A column of a piece as it is stored; text may be a dictionary if asked."""

    def column(self, piece: int, name: str, *, as_dictionary: bool = False) -> Any:
        """A column of a piece; text as a dictionary if asked, which is quicker."""
        common, wanted = (t.field(name).type for t in (self._common, self.schema))
        column = self._column(piece, name, as_dictionary and common == wanted)
        if as_dictionary and column.type == pa.dictionary(pa.int32(), wanted):
            return column
        column = _cast(_cast(column, common), wanted)
        return column.dictionary_encode() if as_dictionary else column

    @property
    def n_rows(self) -> int:
        return sum(self.counts)

    @property
    def index_names(self) -> list[str]:
        """Names of the columns that hold the index of the frame once saved."""
        names = [UNNAMED, *_noted_index(self.schema.metadata or {})]
        return [n for n in names if isinstance(n, str) and n in self.schema.names]

    @property
    def names(self) -> list[str]:
        """Names of the columns to use: those selected, or all but the index."""
        if self._selected is not None:
            return self._selected
        index = self.index_names
        return [name for name in self.schema.names if name not in index]

    def select(self, names: Sequence[str] | None) -> Self:
        """The same table with these `names` only, in this order; None: as it is."""
        if names is None:
            return self
        for name in names:
            if name not in self.schema.names:
                raise unknown_column(str(self), name, self.schema.names)
        refuse_twice(str(self), names)
        other = copy(self)
        other._selected = list(names)
        return other

    def retype(self, types: dict[str, Any]) -> Self:
        """The same table with other types of some columns."""
        if not types:
            return self
        other = copy(self)
        for name, dtype in types.items():
            place = other.schema.get_field_index(name)
            other.schema = other.schema.set(place, pa.field(name, dtype))
        return other

    def parts(self, name: str) -> Iterator[Any]:
        """A column, piece by piece."""
        for piece in range(len(self.counts)):
            yield self.column(piece, name)

    def plain_parts(self, name: str) -> Iterator[Any]:
        """As `parts`; dictionaries and views of text as plain text."""
        for part in self.parts(name):
            yield part.cast(plain_type(part.type))

    def numbers(self, piece: int, name: str, dtype: type[Any]) -> NDArray[Any]:
        """A column of numbers of a piece; a null is NaN."""
        column = self.column(piece, name).cast(pa.from_numpy_dtype(dtype), safe=False)
        return column.to_numpy()  # type: ignore[no-any-return]

    def float_type(self) -> type[Any]:
        """float32 if that holds every column to use exactly, else float64."""
        if not self.names:
            raise DataError(f"{self} has no columns to read.")
        types = {name: self.schema.field(name).type for name in self.names}
        for name, dtype in types.items():
            if not is_number(dtype):
                raise NotNumbersError(
                    f"Column {name!r} of {self} holds {dtype}, not numbers. Drop it, "
                    f"or encode it as numbers first."
                )
        return np.float32 if all(map(_is_single, types.values())) else np.float64

    def read(self, names: Sequence[str]) -> Any:
        """Some columns, of any type, whole, as an Arrow table."""
        fields = [self.schema.field(name) for name in names]
        whole = [
            pa.chunked_array(
                [chunk for part in self.parts(field.name) for chunk in part.chunks],
                type=field.type,
            )
            for field in fields
        ]
        return pa.table(whole, schema=pa.schema(fields))


def as_text(files: Columns, names: Iterable[str]) -> Columns:
    """Numbers and dates that are to be categories as text, as CSV files have them."""
    types = {name: files.schema.field(name).type for name in names}
    return files.retype(
        {name: pa.string() for name, t in types.items() if not is_categorical(t)}
    )


def as_missing(files: Columns, names: Iterable[str]) -> Columns:
    """Columns without any value as numbers, all of them missing."""
    return files.retype(dict.fromkeys(names, pa.float64()))


class ColumnFiles(Columns):
    """Columns in one or several files.

    All files must have the same columns; numbers may be of other types in each.

    Parameters
    ----------
    paths : sequence of Path
        Local files, in the order of their rows.
    folders : sequence of dict
        Of each file, the columns that the names of its folders hold: a scalar each.
    """

    _FORMAT = "a table"

    def __init__(
        self, paths: Sequence[Path], folders: Sequence[dict[str, Any]] = ()
    ) -> None:
        self.paths = tuple(paths)
        self._folders = list(folders) or [{} for _ in paths]
        self._places: list[tuple[int, int]] = []  # of each piece: file, number in it
        schemas: list[Any] = []
        counts: list[int] = []
        for number, path in enumerate(self.paths):
            with self._damage(path):
                schema, piece_rows = self._look(number)
                for name, value in self._folders[number].items():
                    schema = schema.append(pa.field(name, value.type))
                names = schema.names
            refuse_twice(str(path), names)
            schemas.append(schema)
            self._places += [(number, part) for part in range(len(piece_rows))]
            counts += piece_rows
        super().__init__(_common_schema(self.paths, schemas), counts)

    def __str__(self) -> str:
        return list_paths(self.paths)

    @abstractmethod
    def _look(self, number: int) -> tuple[Any, list[int]]:
        """Schema of a file, and the rows of its pieces."""

    @abstractmethod
    def _read(self, number: int, part: int, name: str, as_dictionary: bool) -> Any:
        """A column of a piece of a file."""

    def _column(self, piece: int, name: str, as_dictionary: bool) -> Any:
        number, part = self._places[piece]
        if name in self._folders[number]:
            value = self._folders[number][name]
            return pa.chunked_array([pa.repeat(value, self.counts[piece])])
        with self._damage(self.paths[number]):
            column = self._read(number, part, name, as_dictionary)
            column.validate(full=True)  # as Arrow trusts offsets, and UTF-8
        return column

    @contextmanager
    def _damage(self, path: Path) -> Iterator[None]:
        """Turn what pyarrow raises for a bad file into `DataError`."""
        try:
            yield
        except (FileNotFoundError, PermissionError):
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataError(
                f"{path} cannot be read as {self._FORMAT}; it is damaged, cut short or "
                f"of another format ({error})."
            ) from error


class InMemory(ColumnFiles):
    """Arrow tables that were read from files whole."""

    def __init__(self, tables: Sequence[Any], *where: Any) -> None:
        self._tables = list(tables)
        super().__init__(*where)

    def _look(self, number: int) -> tuple[Any, list[int]]:
        table = self._tables[number]
        return table.schema, [table.num_rows]

    def _read(self, number: int, part: int, name: str, as_dictionary: bool) -> Any:
        return self._tables[number].column(name)


class ParquetFiles(ColumnFiles):
    """Parquet files; the pieces are their row groups."""

    _FORMAT = "Parquet"

    def __init__(self, *where: Any) -> None:
        self._metadata: list[Any] = []
        super().__init__(*where)

    @property
    def remote(self) -> bool:
        return True

    def _look(self, number: int) -> tuple[Any, list[int]]:
        with pq.ParquetFile(self.paths[number]) as file:
            metadata = file.metadata
            self._metadata.append(metadata)
            groups = range(metadata.num_row_groups)
            return file.schema_arrow, [metadata.row_group(i).num_rows for i in groups]

    def _read(self, number: int, part: int, name: str, as_dictionary: bool) -> Any:
        with pq.ParquetFile(
            self.paths[number],
            metadata=self._metadata[number],
            read_dictionary=[name] if as_dictionary else [],
        ) as file:
            # A column "a" brings "a.b" along, hence the second choice by name.
            table = file.read_row_group(part, columns=[name], use_threads=False)
        return table.column(name)


class ArrowFiles(ColumnFiles):
    """Files in Arrow's own format (IPC, Feather), mapped; pieces are its batches.

    With a `spool` the files are copies of those in `paths`, and kept for as long as
    the table is.
    """

    _FORMAT = "an Arrow file"

    def __init__(self, paths: Sequence[Path], *where: Any, spool: Any = None) -> None:
        self._spool = spool
        self._mapped = paths if spool is None else spool.copies(len(paths))
        super().__init__(paths, *where)

    @property
    def remote(self) -> bool:
        return self._spool is None

    def _look(self, number: int) -> tuple[Any, list[int]]:
        with pa.memory_map(str(self._mapped[number])) as mapped:
            if mapped.read(4) == b"\xff" * 4:
                raise DataError(
                    f"{self.paths[number]} is an Arrow stream, of which no part can be "
                    f"read alone; write a file (pyarrow.ipc.new_file)."
                )
            file = pa.ipc.open_file(mapped)
            batches = range(file.num_record_batches)
            return file.schema, [file.get_batch(i).num_rows for i in batches]

    def _read(self, number: int, part: int, name: str, as_dictionary: bool) -> Any:
        with pa.memory_map(str(self._mapped[number])) as mapped:
            batch = pa.ipc.open_file(mapped).get_batch(part)
            return pa.chunked_array([batch.column(name)])


# ------------------------------------------------------------------- types


def is_number(dtype: Any) -> bool:
    """Whether an Arrow type holds numbers; yes and no count as 1 and 0."""
    kind = pa.types
    return bool(
        kind.is_integer(dtype)
        or kind.is_floating(dtype)
        or kind.is_boolean(dtype)
        or kind.is_decimal(dtype)
    )


def is_categorical(dtype: Any) -> bool:
    """Whether an Arrow type holds text, categories, or yes and no."""
    kind = pa.types
    return bool(
        kind.is_string(dtype)
        or kind.is_large_string(dtype)
        or kind.is_string_view(dtype)
        or kind.is_dictionary(dtype)
        or kind.is_boolean(dtype)
    )


def _is_single(dtype: Any) -> bool:
    return dtype in (pa.float16(), pa.float32())


def plain_type(dtype: Any) -> Any:
    """The type of the values of a dictionary; plain text for views of it."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return pa.string() if pa.types.is_string_view(dtype) else dtype


def _cast(column: Any, dtype: Any) -> Any:
    if column.null_count == len(column):  # of any type
        return pa.chunked_array([pa.nulls(len(column), dtype)])
    return column if column.type == dtype else column.cast(dtype)


def _is_text(dtype: Any) -> bool:
    if pa.types.is_dictionary(dtype):
        return _is_text(dtype.value_type)
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def _noted_index(metadata: dict[bytes, bytes]) -> list[Any]:
    """What pandas noted of its index; a note that makes no sense is none."""
    try:
        note = json.loads(metadata.get(b"pandas", b"{}"))
    except (ValueError, RecursionError):
        return []
    names = note.get("index_columns") if isinstance(note, dict) else None
    return names if isinstance(names, list) else []


def _common_schema(paths: Sequence[Path], schemas: Sequence[Any]) -> Any:
    """Types that hold the columns of all files, which must have the same names."""
    first = schemas[0]
    for path, schema in zip(paths[1:], schemas[1:], strict=True):
        for one, other, where in ((first, schema, path), (schema, first, paths[0])):
            lacking = [name for name in one.names if name not in other.names]
            if lacking:
                raise DataError(
                    f"{where} has no column {lacking[0]!r}, as other files of the "
                    f"table have; all must have the same columns."
                )
    fields = []
    for name in first.names:
        common = first.field(name).type
        for path, schema in zip(paths[1:], schemas[1:], strict=True):
            other = schema.field(name).type
            both = _common_type(common, other)
            if both is None:
                raise DataError(
                    f"Column {name!r} holds {common} in {paths[0]}, but {other} in "
                    f"{path}; make them alike."
                )
            common = both
        fields.append(pa.field(name, common))
    return pa.schema(fields, metadata=first.metadata)


def _common_type(one: Any, other: Any) -> Any:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if _is_text(one) and _is_text(other):
        return pa.string()
    bools = pa.types.is_boolean(one) or pa.types.is_boolean(other)
    if bools or not (is_number(one) and is_number(other)):
        return None
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return _common_integer(one, other)
    return pa.float32() if _is_single(one) and _is_single(other) else pa.float64()


def _common_integer(one: Any, other: Any) -> Any:
    """int64, which holds all integers but uint64, and keeps every digit of them."""
    if pa.uint64() not in (one, other):
        return pa.int64()
    both_unsigned = all(map(pa.types.is_unsigned_integer, (one, other)))
    return pa.uint64() if both_unsigned else pa.float64()
