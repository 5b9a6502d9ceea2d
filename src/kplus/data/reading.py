"""How a table is read: which of its columns are used, and as what.

What `roles` recognises becomes a `Reading`, which is applied to the table of a fit, and
later to those of predictions, so that they are read alike. A model keeps it.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from kplus.core.decoding import Decoder
from kplus.core.encoding import Encoder
from kplus.core.errors import ColumnChoiceError
from kplus.core.storable import RECORDS
from kplus.data.blocks import FrameBlocks
from kplus.data.coded_blocks import FileColumns, MemoryColumns
from kplus.data.dates import (
    DateFormat,
    DateNumbers,
    as_dates,
    latest_of,
    parts_of_interest,
)
from kplus.data.ends import odd_end
from kplus.data.factors import MISSING, Values
from kplus.data.roles import Role, Wishes, roles_of
from kplus.data.text_numbers import NumberFormat, is_gap

if TYPE_CHECKING:
    pass

__all__ = [
    "ColumnsWarning",
    "Odd",
    "Reading",
    "YesNo",
    "made_of",
    "makers_of_dates",
    "recognised",
]

_YES = frozenset(("yes", "y", "true", "t", "ja", "j", "wahr", "oui", "si", "sí", "on"))
_EXAMPLES = 3
_MOST_NAMED = 8  # columns of each kind
LEFT_OUT = ("ids", "dates", "free text", "constant", "empty")
"""Kinds of columns that are no features."""
_WHY = {
    "ids": "another value in nearly each row",
    "dates": "dates",
    "free text": "free text",
    "constant": "one value only",
    "empty": "no values",
}


class ColumnsWarning(UserWarning):
    """Columns of a table were left out, or read as something else than they seem."""


@dataclass(frozen=True)
class YesNo:
    """Reads yes and no as 1 and 0."""

    def floats(self, cells: Any) -> Any:
        low = (
            cell.strip().lower() if isinstance(cell, str) else None for cell in cells
        )
        return np.array([np.nan if c is None else float(c in _YES) for c in low])


@dataclass(frozen=True)
class Odd:
    """The cells of a column of numbers that are none."""

    numbers: int
    odd: int
    examples: tuple[str, ...]

    @classmethod
    def of(cls, numbers: int, odd: dict[str, int]) -> "Odd":
        """How many numbers there are, and how often each odd cell comes."""
        most = sorted(odd, key=lambda cell: (-odd[cell], cell))[:_EXAMPLES]
        return cls(numbers, sum(odd.values()), tuple(cell[:40] for cell in most))

    @property
    def words(self) -> str:
        """As in: 1,198 of 1,200 cells, the others are missing, such as 'see note'."""
        shown = ", ".join(map(repr, self.examples))
        return (
            f"{self.numbers:,} of {self.numbers + self.odd:,} cells, the others count "
            f"as missing: {shown}"
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
    """

    left_out: dict[str, str] = field(default_factory=dict)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    odd: dict[str, Odd] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    end: str = ""

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

    def apply(self, table: Any) -> Any:
        """A frame, or the columns of files, as they are to be read."""
        if isinstance(table, FrameBlocks):
            return self._frame(table)
        from kplus.data.read_columns import ReadColumns

        names = self.names(table.names)
        if not names:
            raise _nothing_left(self)
        if set(self.made).isdisjoint(table.names):
            chosen = copy(table) if names == table.names else table.select(names)
        else:
            chosen = ReadColumns(table, self)
        chosen.reading = self
        return chosen

    def _frame(self, table: FrameBlocks) -> FrameBlocks:
        frame, columns = table.frame, []
        for name in frame.columns:
            if name in self.left_out:
                continue
            makers = self.made.get(str(name))
            if makers is None or frame[name].dtype.is_numeric():
                columns.append(frame[name])
                continue
            for new, maker in makers.items():
                values = made_of(frame[name], maker)
                series = nw.new_series(new, values, backend=frame.implementation)
                columns.append(series)
        if not columns:
            raise _nothing_left(self)
        out = frame.select()
        if list(self.names(frame.columns)) == list(frame.columns) and not self.made:
            out = frame
        else:
            out = _frame_of(frame, columns)
        read = FrameBlocks(out.to_native(), table.block_rows)
        read.reading = self
        return read

    # --------------------------------------------------------------- words

    def told(self) -> str:
        """What a user should know, for a warning; "": nothing."""
        told = []
        if self.left_out:
            told.append(
                f"Columns left out: {self.left_out_words()}. kplus.read_table(X, "
                f"keep=[...]) uses them all the same"
                + (", dates='parts' their dates." if self.has_dates else ".")
            )
        if self.made:
            told.append(f"Read {self.made_words()}.")
        if self.notes:
            told.append(f"Taken as categories: {self.notes_words()}.")
        if self.end:
            told.append(f"{self.end} Leave it out if it is no row.")
        return " ".join(told)

    def left_out_words(self) -> str:
        """As in: ids: customer, nr; dates: signup."""
        parts = []
        for kind in LEFT_OUT:
            names = [name for name, why in self.left_out.items() if why == kind]
            if names:
                parts.append(f"{kind}: {_listed(names)}")
        return "; ".join(parts)

    def made_words(self) -> str:
        """What is read as something else than it seems, and which cells are odd."""
        groups: dict[str, list[str]] = {}
        for name, makers in self.made.items():
            maker = next(iter(makers.values()))
            if isinstance(maker, NumberFormat):
                odd = self.odd.get(name)
                told = [maker.words, "" if odd is None else odd.words]
                words = "; ".join(filter(None, told))
                named = f"{name} ({words})" if words else name
                groups.setdefault("text as numbers", []).append(named)
            elif isinstance(maker, YesNo):
                groups.setdefault("yes and no as 1 and 0", []).append(name)
            else:
                of = "ages" if maker.what == "age" else "parts"
                groups.setdefault(f"dates as {of}", []).append(name)
        return "; ".join(f"{what}: {_listed(names)}" for what, names in groups.items())

    def notes_words(self) -> str:
        """What else is to be told."""
        return "; ".join(f"{name!r}: {note}" for name, note in self.notes.items())


def _no_array(name: Any) -> Any:
    raise ValueError(f"there is no array {name!r}")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(str(name) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
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


# ------------------------------------------------------------------- recognise


def recognised(table: Any, wishes: Wishes) -> Any:
    """A table as it should be read; its `reading` says how that is.

    Parameters
    ----------
    table : FrameBlocks or Columns
    wishes : Wishes
    """
    columns: Any = (
        MemoryColumns(table.frame)
        if isinstance(table, FrameBlocks)
        else FileColumns(table)
    )
    kept = getattr(table, "kept", ())
    roles = roles_of(columns, replace(wishes, keep=(*wishes.keep, *kept)))
    names: list[str] = columns.names
    left: dict[str, str] = {}
    made: dict[str, dict[str, Any]] = {}
    notes: dict[str, str] = {}
    for j, (name, role) in enumerate(zip(names, roles, strict=True)):
        if role.note:
            notes[name] = role.note
        makers = _makers(columns, j, role, wishes)
        if makers:
            made[name] = makers
        elif role.kind in LEFT_OUT:
            left[name] = role.kind
    if len(left) == len(names):  # rather constants than nothing
        left = {name: kind for name, kind in left.items() if kind != "constant"}
    reading = Reading(left, made, {}, notes, odd_end(columns))
    read = reading.apply(table)
    if made:
        frame = isinstance(table, FrameBlocks)
        odd = _odd_cells(columns, made) if frame else read.odd_cells()
        read.reading = replace(reading, odd=odd)
    return read


def makers_of_dates(table: Any, wishes: Wishes) -> dict[str, dict[str, Any]]:
    """What is made of the dates of a frame, by the names of their columns."""
    columns = MemoryColumns(table.frame)
    frame_names = table.frame.columns
    made = {}
    for j, role in enumerate(roles_of(columns, wishes)):
        if role.kind == "dates":
            made[frame_names[j]] = _makers(columns, j, role, wishes)
    return made


def _makers(columns: Any, j: int, role: Role, wishes: Wishes) -> dict[str, Any]:
    """What is made of a column, by the names of the new ones; {}: it stays."""
    name = columns.names[j]
    if role.kind == "written numbers":
        return {name: role.form}
    if role.kind == "yes or no" and wishes.numbers_only:
        return {name: YesNo()}
    if role.kind != "dates" or wishes.dates == "ignore":
        return {}
    column = columns.head(j, columns.n_rows).column
    if column.dtype == nw.Duration:
        makers = [DateNumbers("days")]
    else:
        dates = as_dates(column, role.form)
        makers = _of_dates(dates, role.form, wishes)
    return {f"{name} {maker.suffix}": maker for maker in makers}


def _of_dates(dates: Any, form: DateFormat | None, wishes: Wishes) -> list[DateNumbers]:
    if wishes.dates == "age":
        return [DateNumbers("age", latest=latest_of(dates), text=form)]
    makers = []
    for part in parts_of_interest(dates):
        hows = ["names"] if part in ("month", "weekday") else ["sin", "cos"]
        if part == "year":
            hows = [""]
        elif wishes.numbers_only:
            hows = ["sin", "cos"]
        makers += [DateNumbers(part, how, text=form) for how in hows]
    return makers


def made_of(column: Any, maker: Any) -> Any:
    """The values that are made of a column, a Series of narwhals."""
    if isinstance(maker, DateNumbers):
        return maker.of(column)
    factors = Values(column, repr(column.name)).factors
    cells = [None if _is_none(v) else v for v in factors.values]
    floats = np.append(maker.floats(cells), np.nan)
    return np.where(factors.places == MISSING, np.nan, floats[factors.places])


def _is_none(value: Any) -> bool:
    return type(value).__name__ in ("NoneType", "NAType", "NaTType")


def _odd_cells(columns: Any, made: Mapping[str, Mapping[str, Any]]) -> dict[str, Odd]:
    """The cells that are no numbers, counted in the whole of each such column."""
    out = {}
    for name, makers in made.items():
        maker = next(iter(makers.values()))
        if not isinstance(maker, NumberFormat):
            continue
        odd: dict[str, int] = {}
        numbers = 0
        for _, part in columns.parts([columns.names.index(name)]):
            n_good, bad = _odd_of(part, maker)
            numbers += n_good
            for cell, count in bad.items():
                odd[cell] = odd.get(cell, 0) + count
        if odd:
            out[name] = Odd.of(numbers, odd)
    return out


def _odd_of(part: Values, maker: NumberFormat) -> tuple[int, dict[str, int]]:
    """The number of numbers in a part, and its odd cells with their numbers."""
    factors = part.factors
    counts = np.bincount(factors.places + 1, minlength=len(factors.values) + 1)[1:]
    bad: dict[str, int] = {}
    numbers = 0
    cells = [None if _is_none(v) else v for v in factors.values]
    for value, good, count in zip(
        cells, ~np.isnan(maker.floats(cells)), counts.tolist(), strict=True
    ):
        if good:
            numbers += count
        elif count and isinstance(value, str) and not is_gap(value):
            bad[value] = count
    return numbers, bad
