"""Tables of Excel sheets and of JSON records, read whole."""

import json
import zipfile
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from kplus.core.errors import DataError, MissingPackageError
from kplus.data.dialect import shape
from kplus.data.selection import refuse_twice

__all__ = ["read_excel", "read_json"]

_LOOKED_AT = 200  # rows by which titles are told
_DATES = (date, datetime, time, timedelta)


def read_excel(
    path: Path, text: Sequence[str] = (), skip: tuple[int, int] = (0, 0)
) -> Any:
    """The first sheet of an Excel file as an Arrow table.

    Parameters
    ----------
    path : Path
    text : sequence of str
        Columns to keep as text.
    skip : (int, int)
        Rows to leave out at the start and at the end.
    """
    rows = _rows(path)[skip[0] :]
    if skip[1]:
        rows = rows[: -skip[1]]
    if not rows:
        raise DataError(f"{path} is empty: its first sheet has no cells.")
    width = max(map(_length, rows))
    fields = [["" if c is None else str(c) for c in row] for row in rows[:_LOOKED_AT]]
    lengths = [row[: _length(cells)] for row, cells in zip(fields, rows, strict=False)]
    titles, _ = shape(lengths, not skip[0])
    header, body = rows[titles][:width], rows[titles + 1 :]
    if not body:
        raise DataError(f"{path} has a header but no rows.")
    columns = {}
    for j, name in enumerate(header):
        cells = [row[j] if j < len(row) else None for row in body]
        label = "" if name is None else str(name).strip()
        if not label and j:
            if all(cell is None for cell in cells):
                continue
            raise DataError(f"Column {j + 1} of {path} has no name.")
        if label in columns:
            refuse_twice(str(path), [str(each) for each in header])
        columns[label] = _column(cells, label in text)
    return pa.table(columns)


def _rows(path: Path) -> list[tuple[Any, ...]]:
    """The rows of the first sheet that have some cell."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingPackageError(
            "Excel files need openpyxl, which is not installed: "
            "pip install 'kplus[excel]'"
        ) from error
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            rows = list(book.worksheets[0].iter_rows(values_only=True))
        finally:
            book.close()
    except (zipfile.BadZipFile, KeyError, ValueError, IndexError, OSError) as error:
        if isinstance(error, (FileNotFoundError, PermissionError)):
            raise
        raise DataError(
            f"{path} cannot be read as an Excel file; it is damaged, protected or of "
            f"another format ({error})."
        ) from error
    return [row for row in rows if _length(row)]


def _length(row: Sequence[Any]) -> int:
    """The number of cells up to the last one that is not empty."""
    return max((j + 1 for j, cell in enumerate(row) if cell is not None), default=0)


def _column(cells: Sequence[Any], as_text: bool) -> Any:
    """Cells of one type as they are, others as text."""
    types = {type(cell) for cell in cells if cell is not None}
    numbers = types and types <= {int, float}
    dates = types and types <= set(_DATES) and len(types) == 1
    if not as_text and (numbers or dates or types == {bool}):
        if float in types:
            cells = [None if c is None else float(c) for c in cells]
        return pa.array(cells)
    return pa.array([None if c is None else _text(c) for c in cells], pa.string())


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat(" ") if isinstance(cell, datetime) else str(cell)


def read_json(path: Path) -> Any:
    """An object per line, or a list of objects, as an Arrow table."""
    with open(path, "rb") as file:
        first = file.read(4096).lstrip()[:1]
    try:
        if first == b"[":
            table = _of_records(path)
        else:
            from pyarrow.json import ParseOptions
            from pyarrow.json import read_json as read

            table = read(path, parse_options=ParseOptions(newlines_in_values=True))
    except (pa.ArrowException, ValueError, RecursionError) as error:
        raise DataError(
            f"{path} cannot be read as JSON: an object per line is needed, or a list "
            f"of objects ({error})."
        ) from error
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    refuse_twice(str(path), table.column_names)
    if table.num_rows == 0 or table.num_columns == 0:
        raise DataError(f"{path} has no rows.")
    return table


def _of_records(path: Path) -> Any:
    records = json.loads(path.read_text(encoding="utf-8-sig"))
    if not all(isinstance(record, dict) for record in records):
        raise ValueError("not all of the list are objects")
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {n: _values([record.get(n) for record in records]) for n in names}
    return pa.table(columns)


def _values(cells: list[Any]) -> Any:
    try:
        return pa.array(cells)
    except pa.ArrowInvalid:  # of several types
        return _column(cells, as_text=False)
