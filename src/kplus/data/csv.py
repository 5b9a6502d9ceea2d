"""CSV files: small ones read whole, large ones copied to an Arrow file first.

A fit goes over its rows many times, and text is slow to read.
"""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kplus.core.errors import DataError, MissingPackageError
from kplus.data.arrow import UNNAMED
from kplus.data.dialect import Dialect, HeldBack
from kplus.data.text_numbers import BLANKS
from kplus.data.zeros import zero_led
from kplus.engine.resources import resources_now

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.ipc
    from pyarrow.csv import (
        ConvertOptions,
        ParseOptions,
        ReadOptions,
        open_csv,
        write_csv,
    )
    from pyarrow.csv import read_csv as _read
except ImportError as error:
    raise MissingPackageError(
        "CSV files need pyarrow, which is not installed: pip install 'kplus[parquet]'"
    ) from error

__all__ = ["Spool", "are_small", "blank_to_null", "copy_csv", "read_csv"]


_SMALL_BYTES = 2**25
_COUNTED_BYTES = 2**20  # at a time
_PIECE_BYTES = 2**24  # of text, so that a piece of the copy has some 100,000 rows
# What pyarrow tries for a column, in this order; the first that takes all values is it.
_TYPES = [
    *(pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s")),
    *(pa.timestamp("s"), pa.timestamp("ns")),
    *(pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"), pa.float64(), pa.string()),
]
_FIRST_ROWS = 1000
_MOST_NOTES, _MOST_TITLES = 5, 20  # lines below or above a table that one may mean


def are_small(paths: Sequence[Path]) -> bool:
    """Whether files are better read whole."""
    left = _SMALL_BYTES
    for path in paths:
        with _named(path):
            left -= _text_bytes(path, left)
        if left < 0:
            return False
    return True


def _text_bytes(path: Path, most: int) -> int:
    """Bytes of text, counted up to `most` where they are compressed."""
    if path.suffix.lower() != ".gz":
        return path.stat().st_size
    count = 0
    with gzip.open(path) as file:
        while count <= most and (part := file.read(_COUNTED_BYTES)):
            count += len(part)
    return count


def read_csv(
    path: Path, text: Sequence[str] = (), skip: tuple[int, int] = (0, 0)
) -> Any:
    """Read a CSV file, plain or gzipped, with a line of column names.

    Parameters
    ----------
    path : Path
        The file, as a `Dialect` finds it to be written.
    text : sequence of str
        Columns to keep as they are written, such as identifiers with leading zeros.
        A first column without a name is always kept so.
    skip : (int, int)
        Lines to leave out at the start and at the end.

    Returns
    -------
    table : pyarrow.Table

    Raises
    ------
    DataError
        The file is empty, has no data or no header, or a line of the wrong length.
    """
    with _named(path):
        dialect, header = _header(path, skip)
        try:
            options = _options(dialect, _as_text(path, dialect, header, text))
            table = _read(
                _source(path, dialect), _read_options(dialect, header), **options
            )
        except pa.ArrowInvalid as error:
            raise _explained(path, dialect, error) from error
    if table.num_rows == 0:
        raise DataError(f"{path} has a header but no rows.")
    return table.rename_columns([name.strip() for name in header])


class Spool:
    """A scratch folder for copies, which is gone when nobody uses it any more."""

    def __init__(self) -> None:
        self._folder = resources_now().folder()

    def copies(self, number: int) -> list[Path]:
        return [self._folder.path / f"{i}.arrow" for i in range(number)]


def copy_csv(
    path: Path, copy: Path, text: Sequence[str] = (), skip: tuple[int, int] = (0, 0)
) -> None:
    """Copy a CSV file of any length to an Arrow file, a part at a time.

    Columns get the types that `read_csv` gives them. Those of the first part are tried;
    where a later value does not suit, the types are found in a pass over the whole
    file, and the copy is made anew. A field with nothing in it is null, in columns of
    text, too.

    Parameters
    ----------
    path, text, skip
        As in `read_csv`.
    copy : Path
        The file to write.
    """
    with _named(path):
        dialect, header = _header(path, skip)
        types = _as_text(path, dialect, header, text)
        try:
            n_rows = _Copier(path, dialect, header).copy(copy, types)
        except pa.ArrowInvalid as error:
            raise _explained(path, dialect, error) from error
    if n_rows == 0:
        raise DataError(f"{path} has a header but no rows.")


class _Copier:
    """Copies a file, a part at a time."""

    def __init__(self, path: Path, dialect: Dialect, header: Sequence[str]) -> None:
        self._path, self._dialect, self._header = path, dialect, header

    def copy(self, copy: Path, types: dict[str, Any]) -> int:
        """Copy with types that take all values; returns the number of rows."""
        while True:
            try:
                with self._open_parts(types) as reader:
                    types = dict(zip(self._header, reader.schema.types, strict=True))
                    return _write(reader, copy)
            except pa.ArrowInvalid:
                wider = self._wider(types)
                if wider == types:  # something else is wrong
                    raise
                types = wider

    def _open_parts(self, types: dict[str, Any], **convert: Any) -> Any:
        """A reader of parts; columns without a type get that of the first part."""
        options = _read_options(self._dialect, self._header)
        options.block_size = _PIECE_BYTES
        return open_csv(
            _source(self._path, self._dialect),
            options,
            **_options(self._dialect, types, **convert),
        )

    def _wider(self, types: dict[str, Any]) -> dict[str, Any]:
        """The types that columns need, found in a pass over their text.

        A part whose values do not suit the type so far moves it to the next one of
        those that suit the first rows. If parts in between do not suit it, the copy
        fails.
        """
        header = self._header
        left = [_TYPES[_TYPES.index(types.get(name, _TYPES[0])) :] for name in header]
        as_text = dict.fromkeys(header, pa.string())
        # Fields are written for Arrow's reader with commas in between.
        dialect = replace(self._dialect, delimiter=",", encoding="utf-8")
        with self._open_parts(as_text, strings_can_be_null=True) as reader:
            for number, batch in enumerate(reader):
                for j, column in enumerate(batch.columns):
                    if number == 0:
                        first = column[:_FIRST_ROWS]
                        left[j] = [t for t in left[j] if _takes(t, first, dialect)]
                    while not _takes(left[j][0], column, dialect):
                        del left[j][0]
        return {name: fitting[0] for name, fitting in zip(header, left, strict=True)}


def _takes(dtype: Any, column: Any, dialect: Dialect) -> bool:
    """Whether the reader of CSV files makes values of a type of a column of text."""
    if dtype == pa.string():
        return True
    try:
        if dtype in (pa.int64(), pa.float64()):
            column.cast(dtype)  # quick; the reader takes this, and blanks around it
            return True
    except pa.ArrowInvalid:
        pass
    file = pa.BufferOutputStream()
    write_csv(pa.table({"x": column}), file)
    try:
        _read(pa.BufferReader(file.getvalue()), **_options(dialect, {"x": dtype}))
    except pa.ArrowInvalid:
        return False
    return True


def _write(reader: Any, copy: Path) -> int:
    names = [name.strip() for name in reader.schema.names]
    schema = pa.schema(zip(names, reader.schema.types, strict=True))
    n_rows = 0
    with pa.OSFile(str(copy), "wb") as file, pa.ipc.new_file(file, schema) as out:
        for batch in reader:
            n_rows += batch.num_rows
            out.write_table(blank_to_null(pa.table(batch.columns, schema=schema)))
    return n_rows


def blank_to_null(table: Any) -> Any:
    """A field of text with nothing in it is a missing value."""
    null = pa.scalar(None, pa.string())
    for j, field in enumerate(table.schema):
        if field.type == pa.string():
            column = table.column(j)
            column = pc.if_else(pc.equal(column, ""), null, column)
            table = table.set_column(j, field, column)
    return table


def _header(path: Path, skip: tuple[int, int]) -> tuple[Dialect, list[str]]:
    """How the file is written, and the names of its columns."""
    dialect = Dialect.of(path, skip)
    if dialect.n_unnamed:
        return dialect, [f"column {i}" for i in range(dialect.n_unnamed)]
    _, header = next(dialect.records(path), (0, None))
    if header is None:
        raise DataError(f"{path} is empty.")
    _check_header(path, header)
    return dialect, header


def _as_text(
    path: Path, dialect: Dialect, header: Sequence[str], text: Sequence[str]
) -> dict[str, Any]:
    """Types of the columns to keep as they are written."""
    keep = {raw for raw in header if raw.strip() in text or raw.strip() == UNNAMED}
    keep.update(zero_led(path, dialect, header))
    return {raw: pa.string() for raw in header if raw in keep}


def _source(path: Path, dialect: Dialect) -> Any:
    """What Arrow reads: the file, or its text without the last lines."""
    if not dialect.notes:
        return path
    return io.BufferedReader(HeldBack(dialect.open(path), dialect.notes))


def _read_options(dialect: Dialect, header: Sequence[str]) -> Any:
    unnamed = list(header) if dialect.n_unnamed else None
    if dialect.notes:  # titles are left out already
        return ReadOptions(column_names=unnamed)
    encoding = "utf8" if dialect.encoding == "utf-8" else dialect.encoding
    return ReadOptions(
        encoding=encoding, skip_rows=dialect.titles, column_names=unnamed
    )


def _options(dialect: Dialect, types: dict[str, Any], **convert: Any) -> dict[str, Any]:
    return {
        # Quoted line breaks are rare, but without this they tear a row.
        "parse_options": ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=True
        ),
        "convert_options": ConvertOptions(
            column_types=types,
            decimal_point=dialect.decimal,
            null_values=list(BLANKS),  # but not in columns of text
            **convert,
        ),
    }


def _explained(path: Path, dialect: Dialect, error: Exception) -> DataError:
    _explain(path, dialect)
    return DataError(f"{path} cannot be read as CSV ({error}).")


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Give the name of the file in errors about its encoding and compression."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not text as it seemed to be ({error.reason} in byte "
            f"{error.start}). Save it as UTF-8."
        ) from error
    except (FileNotFoundError, PermissionError):
        raise
    except (OSError, EOFError, zlib.error, csv.Error) as error:  # bad streams
        raise DataError(f"{path} is damaged or cut short ({error}).") from error


def _check_header(path: Path, header: Sequence[str]) -> None:
    names = [name.strip() for name in header]
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{path} has {count} columns called {name!r}; rename them.")
    if UNNAMED in names[1:]:
        raise DataError(f"Column {names.index(UNNAMED) + 1} of {path} has no name.")


def _torn(
    path: Path, dialect: Dialect, number: int, expected: int, found: int
) -> DataError:
    """The error for a line of the wrong length, and what may mend it."""
    words = (
        f"Line {number} of {path}: {expected} fields expected as in the header, "
        f"{found} found."
    )
    after = sum(line >= number for line, _ in dialect.records(path))
    if after <= _MOST_NOTES and found < expected:
        words += f" If a note begins there, leave it out: skip_last={after}."
    elif number <= _MOST_TITLES:
        words += " If titles stand above the header, leave them out: skip_first=1."
    return DataError(words)


def _explain(path: Path, dialect: Dialect) -> None:
    """Raise an error that names the line which could not be read, if it is found."""
    expected, number = 0, dialect.titles
    try:
        for number, fields in dialect.records(path):
            expected = expected or len(fields)
            if len(fields) != expected:
                raise _torn(path, dialect, number, expected, len(fields))
    except csv.Error as error:
        raise DataError(f"Line {number + 1} of {path}: {error}.") from error
    if number <= dialect.titles + 1:
        raise DataError(f"{path} has a header but no rows.")
