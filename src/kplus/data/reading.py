"""How a table is read: which of its columns are used, and as what.

What `recognise` finds becomes a `Reading`, which is applied to the table of a fit, and
later to those of predictions, so that they are read alike. A model keeps it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kplus.core.decoding import Decoder
from kplus.core.encoding import Encoder
from kplus.core.errors import ColumnChoiceError
from kplus.core.storable import RECORDS
from kplus.data.blocks import FrameBlocks
from kplus.data.coded_blocks import FileColumns, MemoryColumns
from kplus.data.dates import DateNumbers
from kplus.data.factors import MISSING, Values, is_missing
from kplus.data.text_numbers import NumberFormat, is_blank, is_gap

__all__ = [
    "LEFT_OUT",
    "ColumnsWarning",
    "Odd",
    "Reading",
    "YesNo",
    "made_of",
    "odd_words",
]

_YES = frozenset(("yes", "y", "true", "t", "ja", "j", "wahr", "oui", "si", "sí", "on"))
_NO = frozenset(("no", "n", "false", "f", "nein", "falsch", "non", "off"))
_EXAMPLES = 3
_MOST_NAMED = 8  # columns of a kind whose loss is none: empty ones, say
_HALF = 0.5  # share of numbers in a column that held numbers in the fit
_LOOKED_AT = 10_000  # cells of such a column
LEFT_OUT = ("ids", "dates", "free text", "constant", "empty")
"""Kinds of columns that are no features."""


class ColumnsWarning(UserWarning):
    """Columns of a table were left out, or read as something else than they seem."""


@dataclass(frozen=True)
class YesNo:
    """Reads yes and no as 1 and 0; other cells are missing."""

    def floats(self, cells: Any) -> Any:
        return np.array([_yes_or_no(cell) for cell in cells], dtype=np.float64)


def _yes_or_no(cell: Any) -> float:
    low = cell.strip().lower() if isinstance(cell, str) else None
    return float(low in _YES) if low in _YES or low in _NO else np.nan


@dataclass(frozen=True)
class Odd:
    """The cells of a column of numbers or dates that are none."""

    numbers: int
    odd: int
    examples: tuple[str, ...]

    @classmethod
    def of(cls, numbers: int, odd: Mapping[str, int]) -> "Odd":
        """How many numbers there are, and how often each odd cell comes."""
        most = sorted(odd, key=lambda cell: (-odd[cell], cell))[:_EXAMPLES]
        return cls(numbers, sum(odd.values()), tuple(cell[:40] for cell in most))

    @property
    def words(self) -> str:
        """As in: 1,198 of 1,200 cells, the others are missing, such as 'see note'."""
        shown = ", ".join(map(repr, self.examples))
        others = "the other counts" if self.odd == 1 else "the others count"
        return (
            f"{self.numbers:,} of {self.numbers + self.odd:,} cells, {others} as "
            f"missing: {shown}"
        )


@dataclass(frozen=True)
class Reading:
    """Which columns of a table are used, and as what.

    Attributes
    ----------
    left_out : dict
        Columns that are not used, with what they are: "ids", "dates", "free text",
        "constant" or "empty".
    made : dict
        For columns that are read as something else, what is made of them: a dict of
        the names of the new columns and of what makes them.
    odd : dict
        For columns of numbers with a few cells that are none, how many there were in
        the fit, and some of them.
    notes : dict
        For other columns what a user should know.
    end : str
        What is odd about the last row of the fit: totals, or a note.
    blanks : dict
        For columns of categories a word among them, such as "NA", that counts as
        missing.
    """

    left_out: dict[str, str] = field(default_factory=dict)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    odd: dict[str, Odd] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    end: str = ""
    blanks: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        makers = [each for of in self.made.values() for each in of.values()]
        for maker in makers:
            if not isinstance(maker, NumberFormat | DateNumbers | YesNo):
                raise ValueError(f"{maker!r} makes no column")

    def __bool__(self) -> bool:
        return bool(self.left_out or self.made)

    @property
    def has_dates(self) -> bool:
        """Whether dates are left out."""
        return "dates" in self.left_out.values()

    def to_json(self) -> Any:
        """What files of JSON keep of it."""
        return Encoder("a manifest", RECORDS).encode(self, "reading")

    @classmethod
    def from_json(cls, node: Any) -> "Reading":
        """What `to_json` returned, checked; raises ValueError."""
        found = Decoder(_no_array, RECORDS).decode(node)
        if not isinstance(found, cls):
            raise ValueError("it is no reading of a table")
        return found

    # ------------------------------------------------------------- columns

    def names(self, known: Sequence[str]) -> list[str]:
        """The columns that a table with these becomes."""
        out: list[str] = []
        for name in known:
            if name not in self.left_out:
                out += self.made.get(name, (name,))
        return out

    def sources(self, names: Sequence[str]) -> list[str]:
        """The columns of a table that become those of `names`."""
        source = {new: old for old, made in self.made.items() for new in made}
        return list(dict.fromkeys(source.get(name, name) for name in names))

    def apply(self, table: Any, numbers: Collection[str] = ()) -> Any:
        """A frame, or the columns of files, as they are to be read.

        Of `numbers`, columns that held numbers in a fit, those that are text here are
        read as numbers, if most of their cells are some.
        """
        frame = isinstance(table, FrameBlocks)
        made = self.made
        if numbers:
            columns: Any = MemoryColumns(table.frame) if frame else FileColumns(table)
            made = made | self._numbers_in_text(columns, numbers)
        reading = self if made is self.made else replace(self, made=made)
        read = reading._frame(table) if frame else reading._files(table)
        read.reading = self
        return read

    def _numbers_in_text(
        self, columns: Any, numbers: Collection[str]
    ) -> dict[str, dict[str, Any]]:
        found = {}
        for j, name in enumerate(columns.names):
            settled = name in self.made or name in self.left_out
            if settled or name not in numbers or not _is_text(columns.kinds[j]):
                continue
            head = columns.head(j, _LOOKED_AT).column.to_list()
            cells = [cell for cell in head if not (is_missing(cell) or is_gap(cell))]
            text = [cell for cell in cells if isinstance(cell, str)]
            decimal = getattr(columns, "decimal", ".")
            form = NumberFormat.of(text, decimal, _HALF)
            if form is not None or len(text) < _HALF * len(cells):
                found[name] = {name: form or NumberFormat(decimal)}
        return found

    def _files(self, table: Any) -> Any:
        from kplus.data.read_columns import ReadColumns

        names = self.names(table.names)
        if not names:
            raise _nothing_left(self)
        if not set(self.made).isdisjoint(table.names):
            return ReadColumns(table, self)
        return copy(table) if names == table.names else table.select(names)

    def _frame(self, table: FrameBlocks) -> FrameBlocks:
        frame, columns, odd = table.frame, [], dict[str, Odd]()
        names = list(map(str, frame.columns))
        if self.names(names) == names and set(self.made).isdisjoint(names):
            return FrameBlocks(frame.to_native(), table.block_rows)
        for name, column in zip(names, frame.iter_columns(), strict=True):
            makers = self.made.get(name)
            if name in self.left_out:
                continue
            if makers is None or column.dtype.is_numeric():
                columns.append(column)
                continue
            for new, maker in makers.items():
                values = made_of(column, maker)
                made = nw.new_series(new, values, backend=frame.implementation)
                columns.append(made)
            if found := _odd_cells(column, values):
                odd[name] = found
        if not columns:
            raise _nothing_left(self)
        read = FrameBlocks(_frame_of(frame, columns).to_native(), table.block_rows)
        read.odd = odd
        return read

    # --------------------------------------------------------------- words

    def told(self) -> str:
        """What a user should know, for a warning; "": nothing."""
        told = []
        if self.left_out:
            dates = ", dates='parts' makes columns of dates" if self.has_dates else ""
            told.append(
                f"Columns left out: {self.left_out_words()}. To use one, fit "
                f"kplus.read_table(X, keep=[NAME]){dates}."
            )
        if self.made:
            told.append(f"Read {self.made_words()}.")
        if self.blanks:
            told.append(f"{self.blanks_words()}.")
        if self.notes:
            told.append(
                f"Taken as categories: {self.notes_words()}; "
                f"kplus.read_table(X, numbers=[NAME]) reads numbers."
            )
        if self.end:
            told.append(f"{self.end} Leave it out if it is no row.")
        return " ".join(told)

    def left_out_words(self) -> str:
        """As in: ids: customer, nr; dates: signup."""
        parts = []
        for kind in LEFT_OUT:
            names = [name for name, why in self.left_out.items() if why == kind]
            most = len(names) if kind in ("ids", "free text") else _MOST_NAMED
            if names:
                parts.append(f"{kind}: {_listed(names, most)}")
        return "; ".join(parts)

    def made_words(self) -> str:
        """What is read as something else than it seems, and which cells are odd."""
        groups: dict[str, list[str]] = {}
        for name, makers in self.made.items():
            maker = next(iter(makers.values()))
            odd = self.odd.get(name)
            told = ["" if odd is None else odd.words]
            if isinstance(maker, NumberFormat):
                what, told = "as numbers", [maker.words, *told]
            elif isinstance(maker, YesNo):
                what = "yes and no as 1 and 0"
            else:
                what = "dates as " + ("ages" if maker.what == "age" else "parts")
            words = "; ".join(filter(None, told))
            groups.setdefault(what, []).append(f"{name} ({words})" if words else name)
        return "; ".join(f"{what}: {', '.join(n)}" for what, n in groups.items())

    def blanks_words(self) -> str:
        """As in: 'NA' counts as missing: island, sex."""
        words = dict.fromkeys(self.blanks.values())
        return "; ".join(
            f"{word!r} counts as missing: "
            + _listed([name for name, own in self.blanks.items() if own == word])
            for word in words
        )

    def notes_words(self) -> str:
        """What else is to be told."""
        return "; ".join(f"{name!r}: {note}" for name, note in self.notes.items())


def _no_array(name: Any) -> Any:
    raise ValueError(f"there is no array {name!r}")


def _listed(names: Sequence[str], most: int = _MOST_NAMED) -> str:
    shown = ", ".join(str(name) for name in names[:most])
    more = len(names) - most
    return shown + (f" and {more} more" if more > 0 else "")


def _nothing_left(reading: Reading) -> ColumnChoiceError:
    why = reading.left_out_words()
    return ColumnChoiceError(f"No column is left to use; there are {why}.")


def _frame_of(frame: Any, columns: Sequence[Any]) -> Any:
    """A frame of the same kind and with the same index, if it has one."""
    native = frame.to_native()
    if frame.implementation.is_pandas_like():
        made = {}
        for series in columns:
            own = series.to_native()
            made[series.name] = own.set_axis(native.index)
        return nw.from_native(type(native)(made, index=native.index), eager_only=True)
    return nw.from_dict({series.name: series for series in columns})


# ----------------------------------------------------------------- what is made


def made_of(column: Any, maker: Any) -> Any:
    """The values that are made of a column, a Series of narwhals."""
    if isinstance(maker, DateNumbers):
        return maker.of(column)
    factors = Values(column, repr(str(column.name))).factors
    cells = [None if is_missing(v) else v for v in factors.values]
    floats = np.append(maker.floats(cells), np.nan)
    return np.where(factors.places == MISSING, np.nan, floats[factors.places])


def _odd_cells(column: Any, values: Any) -> Odd | None:
    """The cells of a column of text of which no value is made, and are not blank."""
    missing = values == None if values.dtype == object else np.isnan(values)  # noqa: E711
    if not missing.any():
        return None
    cells = column.filter(missing.tolist()).to_list()
    odd = Counter(c for c in cells if isinstance(c, str) and not is_blank(c))
    return Odd.of(int(np.count_nonzero(~missing)), odd) if odd else None


def _is_text(kind: str) -> bool:
    return kind in ("text", "objects")


def odd_words(odd: Mapping[str, Odd]) -> str:
    """What to say of cells of a table for predictions that are no numbers; or ""."""
    named = "; ".join(f"{name} ({found.words})" for name, found in odd.items())
    return f"Read as numbers: {named}." if named else ""
