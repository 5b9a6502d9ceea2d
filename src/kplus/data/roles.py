"""What the columns of a table are: numbers, categories, or nothing that tells groups.

Columns that name rows, dates, free text, constants and empty columns are no features;
numbers may be written as text. All is told by the first rows, and by more of them only
where these leave it open.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kplus.data.categories import TypedColumns
from kplus.data.dates import DateFormat, is_date
from kplus.data.factors import is_missing
from kplus.data.text_numbers import NumberFormat, is_blank, is_gap

__all__ = ["Role", "Wishes", "roles_of"]

_ROWS = 10_000  # that are looked at first, ...
_MORE_ROWS = 2**20  # ... and at most, to see whether values come again
_FEW = 10  # rows of which nobody can tell whether values come again, or differ
_SEQUENCE = 20  # rows from which on 1, 2, 3, ... are no accident, ...
_LONG_SEQUENCE = 200  # ... or 10001, 10002, 10003, ...
_DISTINCT = 0.9  # different values per row, where they name it, ...
_DISTINCT_TEXT = 0.5  # ... or are long
_LONG = 40  # letters of free text, on average
_HALF = 0.5  # share of numbers from which on a column of text is suspicious
_TOGETHER = 10  # columns such as pixel1, pixel2, ..., which stay together
_YES_NO = (
    {"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"}, {"ja", "nein"},
    {"j", "n"}, {"wahr", "falsch"}, {"oui", "non"}, {"si", "no"}, {"sí", "no"},
    {"on", "off"},
)  # fmt: skip
_ID_WORDS = {
    "id", "ids", "nr", "no", "num", "number", "nummer", "numero", "key", "pk", "uuid",
    "guid", "index", "idx", "row", "rownum", "rowid", "rownumber", "record", "zip",
    "zipcode", "postcode", "plz", "phone", "telephone", "iban", "isbn", "ean",
    "barcode", "sku",
}  # fmt: skip
_ID_ENDS = ("nummer", "nr", "_id", "-id", " id")


@dataclass(frozen=True)
class Wishes:
    """What a user said of columns.

    Parameters
    ----------
    keep : collection of str
        To use, whatever they are.
    categorical : collection of str
        To take as categories.
    numbers : collection of str
        To read as numbers.
    dates : {"ignore", "parts", "age"}
        What to make of dates.
    categories_only : bool
        Whether all columns are to be categories.
    numbers_only : bool
        Whether categories cannot be used.
    constants : bool
        Whether columns of one number are of use.
    """

    keep: Collection[str] = ()
    categorical: Collection[str] = ()
    numbers: Collection[str] = ()
    dates: str = "ignore"
    categories_only: bool = False
    numbers_only: bool = False
    constants: bool = False


@dataclass(frozen=True)
class Role:
    """What a column is.

    Parameters
    ----------
    kind : str
        "numbers", "categories", "yes or no", "written numbers", "dates", "ids",
        "free text", "constant", "empty" or "other".
    form : NumberFormat, DateFormat or None
        How numbers or dates are written that are text.
    note : str
        What a user should know of it.
    blank : str
        A word among its categories that counts as missing.
    """

    kind: str
    form: Any = None
    note: str = ""
    blank: str = ""


def roles_of(columns: TypedColumns, wishes: Wishes) -> list[Role]:
    """The roles of all columns."""
    together = _together(columns)
    return [
        _Column(columns, j, wishes, name in together).role()
        for j, name in enumerate(columns.names or columns.labels)
    ]


def _together(columns: TypedColumns) -> set[str]:
    """Columns of numbers that are told by numbers in their names: pixels, channels."""
    names = [
        name
        for name, kind in zip(columns.names or (), columns.kinds, strict=False)
        if kind == "numbers"
    ]
    stem = {name: re.sub(r"\d+", "#", name) for name in names}
    counts = Counter(stem[name] for name in names if "#" in stem[name])
    return {name for name in names if counts[stem[name]] >= _TOGETHER}


class _Column:
    """Looks at one column, at more of it where needed."""

    def __init__(
        self, columns: TypedColumns, j: int, wishes: Wishes, together: bool
    ) -> None:
        self._columns, self._j, self._wishes = columns, j, wishes
        self._name = columns.names[j] if columns.names is not None else str(j)
        self._kind, self._dtype = columns.kinds[j], columns.dtypes[j]
        self._together = together

    def role(self) -> Role:
        """What the column is, or is to be by the wishes."""
        wishes = self._wishes
        chosen = self._name in wishes.categorical
        if chosen and self._kind != "others":
            return Role("categories")
        found = self._found()
        if found.kind in ("ids", "free text", "constant") and (
            chosen or self._name in wishes.keep
        ):
            return Role("numbers" if self._is_numbers else "categories")
        if found.kind == "written numbers" and wishes.categories_only:
            return Role("categories")
        return found

    @property
    def _is_numbers(self) -> bool:
        return self._kind in ("numbers", "booleans")

    def _found(self) -> Role:
        head = self._columns.head(self._j, _ROWS).column
        if is_date(self._dtype):
            return Role("dates") if self._has_values(head) else Role("empty")
        if self._is_numbers:
            return self._of_numbers(head)
        if self._kind == "others" and self._dtype not in (nw.Categorical, nw.Enum):
            return Role("other") if self._has_values(head) else Role("empty")
        cells = [value for value in head.to_list() if not is_missing(value)]
        if all(map(is_gap, cells)):
            cells = next(self._cells(), [])
        return self._of_cells(cells) if cells else Role("empty")

    # -------------------------------------------------------------- numbers

    def _of_numbers(self, head: Any) -> Role:
        values = _there(head)
        if not len(values):
            values = next((part for part in self._arrays() if len(part)), values)
        if not len(values):
            return Role("empty")
        if values.min() == values.max():
            unused = not (self._together or self._wishes.constants)
            if unused and self._columns.n_rows >= _FEW and self._is_constant(values[0]):
                return Role("constant")
        return Role("ids" if self._numbers_rows(values) else "numbers")

    def _is_constant(self, value: Any) -> bool:
        parts = self._arrays()
        return all(not len(part) or bool(np.all(part == value)) for part in parts)

    def _numbers_rows(self, values: Any) -> bool:
        """Whether whole numbers are those of rows: 1, 2, 3, ..., or called so."""
        n, first = len(values), values[0]
        if values.dtype.kind not in "iuf" or not np.all(values == np.rint(values)):
            return False
        least = _SEQUENCE if first in (0, 1) else _LONG_SEQUENCE
        counted = n >= least and np.all(np.diff(values) == 1)
        if counted and not self._together:
            expected = first
            for part in self._arrays():
                if not np.array_equal(part, np.arange(expected, expected + len(part))):
                    return False
                expected += len(part)
            return bool(expected - first == self._columns.n_rows)
        return self._is_called_id(len(np.unique(values)), n)

    def _is_called_id(self, distinct: int, n: int) -> bool:
        called = n >= _FEW and _says_id(self._name)
        return called and self._is_distinct(distinct, n)

    def _arrays(self) -> Iterator[Any]:
        """The numbers that are there, part by part."""
        for _, part in self._columns.parts([self._j]):
            yield _there(part.column)

    # ----------------------------------------------------------------- text

    def _of_cells(self, cells: Sequence[Any]) -> Role:
        text = [cell for cell in cells if isinstance(cell, str)]
        rest = len(cells) - len(text)
        declared = self._dtype in (nw.Categorical, nw.Enum)
        if rest and not text:
            return Role("categories") if declared else self._of_objects(cells)
        note = ""
        if not declared:
            written = self._written(text, rest)
            if written is not None:
                return written
            dates = None if rest else DateFormat.of(text)
            if dates is not None:
                return Role("dates", dates)
            note = _suspicious(text, rest)
        if rest:  # refused where categories are found
            return Role("other")
        distinct = set(text)
        if len(distinct) == 1 and self._is_one_text():
            return Role("constant")
        known = {value.strip().lower() for value in distinct if not is_gap(value)}
        if known in _YES_NO:
            return Role("yes or no", blank=self._blank(distinct))
        if len(text) >= _FEW:
            long = sum(map(len, text)) >= _LONG * len(text)
            least = _DISTINCT_TEXT if long else _DISTINCT
            if self._is_distinct(len(distinct), len(text), least):
                return Role("free text" if long else "ids")
        return Role("categories", note=note, blank=self._blank(distinct))

    @staticmethod
    def _of_objects(cells: Sequence[Any]) -> Role:
        """Objects of which none is text."""
        if all(isinstance(cell, (date, time, timedelta)) for cell in cells):
            return Role("dates")
        if any(isinstance(cell, (bool, np.bool_)) for cell in cells):
            return Role("categories")
        numbers = all(isinstance(cell, (Real, Decimal)) for cell in cells)
        return Role("written numbers", NumberFormat()) if numbers else Role("other")

    def _blank(self, distinct: set[str]) -> str:
        """A word that counts as missing, unless it is among declared categories."""
        if self._dtype in (nw.Categorical, nw.Enum):
            return ""
        return min(filter(None, filter(is_blank, distinct)), default="")

    def _written(self, text: Sequence[str], rest: int) -> Role | None:
        """Numbers among which some are text."""
        decimal = getattr(self._columns, "decimal", ".")
        if self._name in self._wishes.numbers:
            form = NumberFormat.of(text, decimal, 0.0)
            return Role("written numbers", form or NumberFormat(decimal))
        form = NumberFormat.of(text, decimal)
        if form is None and rest and rest >= 9 * sum(not is_gap(c) for c in text):
            form = NumberFormat(decimal)  # numbers with a little text among them
        if form is None:
            return None
        distinct = set(text)
        varies = rest or len(distinct) > 1 or self._wishes.constants
        if not varies and self._is_one_text():
            return Role("constant")
        values = form.floats(distinct)
        whole = np.all(np.isnan(values) | (values == np.rint(values)))
        rows = len(text) + rest
        if whole and not form.unit and self._is_called_id(len(distinct) + rest, rows):
            return Role("ids")
        return Role("written numbers", form)

    def _is_one_text(self) -> bool:
        """Whether all cells of a table that is not tiny have the same text."""
        if self._columns.n_rows < _FEW:
            return False
        seen: set[Any] = set()
        for _, part in self._columns.parts([self._j]):
            seen.update(part.factors.occurring())
            if len(seen) > 1:
                return False
        return True

    def _cells(self) -> Iterator[list[Any]]:
        """Cells that are there, of parts that have more than gaps."""
        for _, part in self._columns.parts([self._j]):
            cells = [v for v in part.column.to_list() if not is_missing(v)]
            first = next((i for i, v in enumerate(cells) if not is_gap(v)), None)
            if first is not None:
                yield cells[first : first + _ROWS]

    # ----------------------------------------------------------------- both

    def _has_values(self, head: Any) -> bool:
        if not head.is_null().all():
            return True
        parts = self._columns.parts([self._j])
        return any(not part.column.is_null().all() for _, part in parts)

    def _is_distinct(self, distinct: int, n: int, least: float = _DISTINCT) -> bool:
        """Whether nearly each row has another value, by more rows if there are."""
        if distinct < least * n:
            return False
        if self._columns.n_rows <= _ROWS:
            return True
        seen: set[Any] = set()
        column = self._columns.head(self._j, _MORE_ROWS).column
        there = column.drop_nulls()
        seen.update(there.unique().to_list())
        return len(seen) >= least * len(there)


def _there(column: Any) -> Any:
    """The numbers of a column that are not missing."""
    if not isinstance(column, np.ndarray):
        if column.dtype == nw.Decimal:
            column = column.cast(nw.Float64())
        column = column.drop_nulls().to_numpy()
    if column.dtype.kind == "f":
        column = column[~np.isnan(column)]
    return column


def _says_id(name: str) -> bool:
    """Whether a name is that of a number which names rows."""
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    low = [word.lower() for word in words]
    if not low:
        return False
    return low[-1] in _ID_WORDS or low[0] == "id" or name.lower().endswith(_ID_ENDS)


def _suspicious(text: Sequence[str], rest: int) -> str:
    """What to say of text among which there are many numbers."""
    cells = [cell for cell in text if not is_gap(cell)]
    form = NumberFormat.of(cells, share=_HALF)
    if form is None or rest:
        return ""
    good = int(np.count_nonzero(~np.isnan(form.floats(cells))))
    return f"{good:,} of {len(cells):,} are numbers"
