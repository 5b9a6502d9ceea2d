"""CSV files, read whole into an Arrow table."""

import csv
import gzip
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from kplus.core.errors import DataError

try:
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions
    from pyarrow.csv import read_csv as _read
except ImportError as error:
    raise ImportError(
        "CSV files need pyarrow, which is not installed: pip install 'kplus[parquet]'"
    ) from error

__all__ = ["UNNAMED", "read_csv"]

UNNAMED = ""
"""Name of a first column without one: the row names that pandas and R write."""


def read_csv(path: Path, text: Sequence[str] = ()) -> Any:
    """Read a CSV file, plain or gzipped, with a line of column names.

    Parameters
    ----------
    path : Path
        The file: UTF-8, fields separated by commas.
    text : sequence of str
        Columns to keep as they are written, such as identifiers with leading zeros.
        A first column without a name is always kept so.

    Returns
    -------
    table : pyarrow.Table

    Raises
    ------
    DataError
        The file is empty, has no data or no header, or a line of the wrong length.
    """
    with _named(path):
        header = _read_header(path)
        _check_header(path, header)
        names = [name.strip() for name in header]
        as_text = {
            raw: pa.string()
            for raw, name in zip(header, names, strict=True)
            if name in text or name == UNNAMED
        }
        try:
            table = _read(
                path,
                # Quoted line breaks are rare, but without this they tear a row.
                parse_options=ParseOptions(newlines_in_values=True),
                convert_options=ConvertOptions(column_types=as_text),
            )
        except pa.ArrowInvalid as error:
            _explain(path)
            raise DataError(f"{path} cannot be read as CSV ({error}).") from error
    if table.num_rows == 0:
        raise DataError(f"{path} has a header but no rows.")
    return table.rename_columns(names)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Give the name of the file in errors about its encoding and compression."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text ({error.reason} in byte {error.start}). "
            f"Save it as UTF-8, e.g. with iconv -f latin1 -t utf-8."
        ) from error
    except (FileNotFoundError, PermissionError):
        raise
    except (OSError, EOFError) as error:  # how gzip and pyarrow tell of bad streams
        raise DataError(f"{path} is damaged or cut short ({error}).") from error


def _open_text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _read_header(path: Path) -> list[str]:
    with _open_text(path) as file:
        for fields in csv.reader(file):
            if fields:  # pyarrow, too, skips empty lines
                return fields
    raise DataError(f"{path} is empty.")


def _check_header(path: Path, header: Sequence[str]) -> None:
    names = [name.strip() for name in header]
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and mark in header[0]:
            raise DataError(
                f"{path} separates its columns by {word}; kplus reads commas."
            )
    if all(map(_is_number, names)):
        raise DataError(
            f"Line 1 of {path} holds numbers; kplus expects the names of the columns "
            f"there. Add a line with names."
        )
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{path} has {count} columns called {name!r}; rename them.")
    if UNNAMED in names[1:]:
        raise DataError(f"Column {names.index(UNNAMED) + 1} of {path} has no name.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _explain(path: Path) -> None:
    """Raise an error that names the line which pyarrow could not read, if found."""
    with _open_text(path) as file:
        reader = csv.reader(file)
        expected = 0
        try:
            for fields in reader:
                expected = expected or len(fields)
                if fields and len(fields) != expected:
                    raise DataError(
                        f"Line {reader.line_num} of {path}: {expected} fields expected "
                        f"as in the header, {len(fields)} found."
                    )
        except csv.Error as error:
            raise DataError(f"Line {reader.line_num} of {path}: {error}.") from error
        if reader.line_num <= 1:
            raise DataError(f"{path} has a header but no rows.")
