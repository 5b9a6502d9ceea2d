"""Last rows of a table that are no rows: totals, and notes below it."""

import re
from typing import Any

import numpy as np

from kplus.data.categories import TypedColumns
from kplus.data.factors import Values, is_missing

__all__ = ["odd_end"]

_TOTALS = re.compile(
    r"(grand |sub|sous-?|zwischen)?(totals?|sum(me)?|gesamt(summe|ergebnis)?|insgesamt|"
    r"suma|totale|somme|overall)\b.{0,20}",
    re.IGNORECASE,
)
_FEWEST_ROWS = 5
_MOST_ROWS = 100_000  # of a table whose columns are summed
_FEW_COLUMNS = 4  # of which one value alone is no sign of a note
_CLOSE = 1e-6
_LOOKED_AT = 10_000  # rows in which the word for totals must not come


def odd_end(columns: TypedColumns) -> str:
    """What is odd about the last row, in a sentence; "": nothing."""
    n_rows, n_columns = columns.n_rows, len(columns.labels)
    if n_rows < _FEWEST_ROWS or columns.names is None:
        return ""
    last = [_value(columns.tail(j)) for j in range(n_columns)]
    there = [value for value in last if value is not None]
    for j, value in enumerate(last):
        text = isinstance(value, str) and _TOTALS.fullmatch(value.strip())
        if text and _is_new(columns, j, value):
            return f"The last row looks like totals, as it says {value[:40]!r}."
    if len(there) == 1 and n_columns >= _FEW_COLUMNS:
        return (
            f"The last row looks like a note, as it has nothing but "
            f"{str(there[0])[:40]!r}."
        )
    if n_rows <= _MOST_ROWS and (summed := _summed(columns, last)):
        listed = ", ".join(columns.labels[j] for j in summed[:3])
        return f"The last row looks like totals: it has the sums of {listed}."
    return ""


def _value(part: Values) -> Any:
    cells = part.column.to_list()  # none in a file that lacks rows it promises
    return cells[0] if cells and not is_missing(cells[0]) else None


def _is_new(columns: TypedColumns, j: int, value: str) -> bool:
    """Whether a value of the last row is none of the first ones."""
    return value not in columns.head(j, min(_LOOKED_AT, columns.n_rows - 1)).column


def _summed(columns: TypedColumns, last: list[Any]) -> list[int]:
    """The columns whose last value is the sum of all others, if these are most."""
    numbers = [
        j for j, value in enumerate(last)
        if columns.kinds[j] == "numbers" and isinstance(value, (int, float)) and value
    ]  # fmt: skip
    sums = dict.fromkeys(numbers, 0.0)
    for j, part in columns.parts(numbers):
        values = columns.floats(part)
        with np.errstate(all="ignore"):
            sums[j] += float(np.nansum(values))
    found = [
        j for j in numbers if abs(sums[j] - 2.0 * last[j]) <= _CLOSE * abs(last[j])
    ]
    return found if len(found) >= max(2, len(numbers) // 2) else []
