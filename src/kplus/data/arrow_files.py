"""Parquet and Arrow files, and tables read from CSV files, as one table of columns."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kplus.core.errors import DataError, MissingPackageError
from kplus.data.paths import list_paths
from kplus.data.selection import refuse_twice

try:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingPackageError(
        "Parquet and Arrow files need pyarrow, which is not installed: "
        "pip install 'kplus[parquet]'"
    ) from error

from kplus.data.arrow import Columns, is_number, is_single

__all__ = ["ArrowFiles", "ColumnFiles", "InMemory", "ParquetFiles", "open_columns"]


def open_columns(
    kind: str, paths: Sequence[Path], folders: Sequence[dict[str, Any]] = ()
) -> "ColumnFiles":
    """Open files of a kind, "parquet" or "arrow", as one table of columns."""
    return (ParquetFiles if kind == "parquet" else ArrowFiles)(paths, folders)


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
                schema, piece_rows = self._inspect(number)
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
    def _inspect(self, number: int) -> tuple[Any, list[int]]:
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

    def _inspect(self, number: int) -> tuple[Any, list[int]]:
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

    def _inspect(self, number: int) -> tuple[Any, list[int]]:
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

    def _inspect(self, number: int) -> tuple[Any, list[int]]:
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


# --------------------------------------------------- types of several files


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
    return pa.float32() if is_single(one) and is_single(other) else pa.float64()


def _common_integer(one: Any, other: Any) -> Any:
    """int64, which holds all integers but uint64, and keeps every digit of them."""
    if pa.uint64() not in (one, other):
        return pa.int64()
    both_unsigned = all(map(pa.types.is_unsigned_integer, (one, other)))
    return pa.uint64() if both_unsigned else pa.float64()


def _is_text(dtype: Any) -> bool:
    if pa.types.is_dictionary(dtype):
        return _is_text(dtype.value_type)
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))
