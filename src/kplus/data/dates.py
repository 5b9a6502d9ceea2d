"""Dates and times: recognised in text, and as numbers that a model can use."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals import Series
from numpy.typing import NDArray

from kplus.core.types import Array
from kplus.data.text_numbers import is_gap

__all__ = ["PARTS", "DateFormat", "DateNumbers", "is_date", "parts_of_interest"]

PARTS = ("year", "month", "weekday", "hour")
_MONTHS = (
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "jan feb mär apr mai jun jul aug sep okt nov dez",
    "jan fév mar avr mai jun jul aoû sep oct nov déc",
    "ene feb mar abr may jun jul ago sep oct nov dic",
)
_MONTH = {name: i + 1 for line in _MONTHS for i, name in enumerate(line.split())} | {
    "juin": 6,
    "juil": 7,
    "mrz": 3,
    "maer": 3,
}
_CLOCK = (
    r"(?:(?:T|,?\s+)(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?:Z|UTC|GMT|[A-Z]{3,4}|[+-]\d{2}:?\d{0,2})?)?"
)
_WEEKDAY = r"(?:[^\W\d_]{2,10}\.?,?\s+)?"
_NAME = r"(?P<b>[^\W\d_]{3,9})"
_SHAPES = {  # each with the order of its parts
    "ymd": r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})",
    "dmy": r"(?P<d>\d{1,2})[-/.]\s?(?P<m>\d{1,2})[-/.]\s?(?P<y>\d{4}|\d{2})",
    "mdy": r"(?P<m>\d{1,2})[-/](?P<d>\d{1,2})[-/](?P<y>\d{4}|\d{2})",
    "dby": rf"{_WEEKDAY}(?P<d>\d{{1,2}})\.?[-\s]+{_NAME}\.?[-\s,]+"
    r"(?P<y>\d{4}|\d{2})",
    "bdy": rf"{_WEEKDAY}{_NAME}\.?\s+(?P<d>\d{{1,2}}),?\s+(?P<y>\d{{4}})",
}
_FEWEST = 0.9  # share of the cells that are dates, where a column holds such
_LOOKED_AT = 50
_PIVOT = 69  # years of two digits from here on are of the last century
_DAYS_OF_MONTHS = 75.0  # spans from which on months, and ...
_DAYS_OF_WEEKDAYS = 21.0  # ... days of the week may tell something
_WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_YEAR = tuple(name.title() for name in _MONTHS[0].split())
_NAT = np.datetime64("NaT", "s")

Dates = NDArray[np.datetime64]


def is_date(dtype: Any) -> bool:
    """Whether a type of narwhals holds dates, times or spans of time."""
    return any(dtype == cls for cls in (nw.Date, nw.Datetime, nw.Duration, nw.Time))


@dataclass(frozen=True)
class DateFormat:
    """How dates in text are written.

    Parameters
    ----------
    order : str
        Of year, month (m, or b if it has a name) and day: a key of the known shapes.

    Examples
    --------
    >>> found = DateFormat.of(["31.12.2025", "1.2.2026 17:05", "?"])
    >>> found.order
    'dmy'
    >>> found.dates(["1.2.2026 17:05", "?"])
    array(['2026-02-01T17:05:00',                 'NaT'], dtype='datetime64[s]')
    """

    order: str

    def __post_init__(self) -> None:
        if self.order not in _SHAPES:
            raise ValueError(f"{self.order!r} is no order of dates")

    @classmethod
    def of(cls, cells: Sequence[str]) -> "DateFormat | None":
        """The format of a column of text, by some of its cells; None: no dates.

        Where day and month may be either, as in 3/4/2026, the month comes first
        between slashes, the day otherwise.
        """
        cells = [cell.strip() for cell in cells if not is_gap(cell)]
        first = cells[:: max(1, len(cells) // _LOOKED_AT)]
        counts = {}
        for order in _SHAPES:
            found = cls(order)
            if found._number(first) >= _FEWEST / 2 * len(first) > 0:
                counts[order] = found._number(cells)
        if not counts:
            return None
        slashes = sum("/" in cell for cell in first) > len(first) / 2
        ties = ("mdy", "dmy") if slashes else ("dmy", "mdy")
        best = max(counts, key=lambda order: (counts[order], order == ties[0]))
        return cls(best) if counts[best] >= _FEWEST * len(cells) else None

    def dates(self, cells: Iterable[Any]) -> Dates:
        """Cells as dates; NaT where one is missing or odd. Hours are those written."""
        found = [self._date(cell) for cell in cells]
        return np.array(found, dtype="datetime64[s]").reshape(-1)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(_SHAPES[self.order] + _CLOCK)

    def _number(self, cells: Sequence[str]) -> int:
        return sum(self._date(cell) is not None for cell in cells)

    def _date(self, cell: Any) -> datetime | None:
        match = self._pattern.fullmatch(cell.strip()) if isinstance(cell, str) else None
        if match is None:
            return None
        part = match.groupdict()
        month = int(part.get("m") or 0) or _month(part.get("b") or "")
        year, hour = int(part["y"]), int(part["H"] or 0)
        if len(part["y"]) == 2:
            year += 1900 if year >= _PIVOT else 2000
        if part["half"]:
            hour = hour % 12 + 12 * (part["half"][0] in "Pp")
        try:
            return datetime(
                year, month, int(part["d"]), hour, int(part["M"] or 0),
                int(part["S"] or 0),
            )  # fmt: skip
        except ValueError:
            return None


def _month(name: str) -> int:
    low = name.lower()
    return _MONTH.get(low[:4], _MONTH.get(low[:3], 0))


# ------------------------------------------------------------------ as numbers


@dataclass(frozen=True)
class DateNumbers:
    """One number, or one name, of each date of a column.

    Parameters
    ----------
    what : str
        "year", "month", "weekday" or "hour"; "age", the days until `latest`; "days", of
        a span of time.
    how : str
        Months, weekdays and hours are "names", or go round: "sin" or "cos" of their
        place in the year, week or day.
    latest : float
        Days since 1970 to which ages count.
    text : DateFormat or None
        How dates are written that are text.
    """

    what: str
    how: str = ""
    latest: float = 0.0
    text: DateFormat | None = None

    def __post_init__(self) -> None:
        known = self.what in (*PARTS, "age", "days") and self.how in (
            "",
            "names",
            "sin",
            "cos",
        )
        if not known or not isinstance(self.text, DateFormat | None):
            raise ValueError(f"{self.what!r}, {self.how!r} is no part of dates")

    @property
    def suffix(self) -> str:
        """What the column is called, behind the name of the dates."""
        if self.what in ("age", "days"):
            return "age (days)" if self.what == "age" else "(days)"
        return self.what + (f" ({self.how})" if self.how in ("sin", "cos") else "")

    def of(self, column: Any) -> Any:
        """The numbers of a column; of names an array of objects."""
        dates = as_dates(column, self.text)
        missing = np.isnat(dates)
        if self.what in ("age", "days"):
            days = _days(dates)
            return days if self.what == "days" else self.latest - days
        place, number = _place(
            np.where(missing, np.datetime64(0, "s"), dates), self.what
        )
        if self.how == "names" and self.what in ("month", "weekday"):
            names = np.array(_YEAR if self.what == "month" else _WEEK, dtype=object)
            return np.where(missing, None, names[place.astype(int)])
        if self.how in ("sin", "cos"):
            angle = 2.0 * np.pi * place / number
            place = np.sin(angle) if self.how == "sin" else np.cos(angle)
        return np.where(missing, np.nan, place)


def _place(dates: Dates, what: str) -> tuple[Array, int]:
    """Where dates are in a year, week or day, and how many places there are."""
    day = dates.astype("datetime64[D]")
    if what == "year":
        return dates.astype("datetime64[Y]").astype(float) + 1970.0, 0
    if what == "month":
        return (dates.astype("datetime64[M]").astype(int) % 12).astype(float), 12
    if what == "weekday":
        return ((day.astype(int) + 3) % 7).astype(float), 7
    return (dates - day).astype(float) / 3600.0, 24


def _days(dates: Dates) -> Array:
    """Days since 1970; NaN where a date is missing."""
    seconds = dates.astype("datetime64[s]").astype(np.int64)
    return np.where(np.isnat(dates), np.nan, seconds / 86_400.0)


def latest_of(dates: Dates) -> float:
    """Days since 1970 of the latest date; 0 if there is none."""
    there = dates[~np.isnat(dates)]
    return float(_days(there.max())) if len(there) else 0.0


def parts_of_interest(dates: Dates) -> list[str]:
    """The parts of some dates that may tell them apart."""
    there = dates[~np.isnat(dates)]
    if not len(there):
        return ["year"]
    span = float(_days(there.max()) - _days(there.min()))
    years = np.unique(there.astype("datetime64[Y]"))
    hours = np.unique(there - there.astype("datetime64[D]"))
    told = {
        "year": len(years) > 1,
        "month": span >= _DAYS_OF_MONTHS,
        "weekday": span >= _DAYS_OF_WEEKDAYS,
        "hour": len(hours) > 1,
    }
    return [part for part in PARTS if told[part]] or ["weekday"]


def as_dates(column: Any, text: DateFormat | None) -> Dates:
    """A column as dates without a zone, to the second; times are of 1970-01-01."""
    if text is not None:
        return text.dates(column.to_list())
    series: Series[Any] = column
    if series.dtype == nw.Datetime and getattr(series.dtype, "time_zone", None):
        series = series.dt.replace_time_zone(None)  # the time of the day there
    if series.dtype in (nw.Time, nw.Duration, nw.Object):
        return np.array(list(map(_plain, series.to_list())), dtype="datetime64[s]")
    found: Dates = np.asarray(series.to_numpy()).astype("datetime64[s]")
    return found


def _plain(value: Any) -> Any:
    """A date, a time or a span, as Python has them, as a date."""
    if value is None or value != value:
        return _NAT
    if isinstance(value, time):
        return datetime.combine(date(1970, 1, 1), value)
    if isinstance(value, timedelta):
        return np.datetime64(round(value.total_seconds()), "s")
    return value
