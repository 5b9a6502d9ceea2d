"""Numbers written as text: amounts of money, percent, thousands, decimal commas.

A `NumberFormat` is found in some cells of a column and then reads all of them. What it
does not take is odd: not a number of this column, such as "see note" or an amount in
another currency.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kplus.core.types import Array

__all__ = ["BLANKS", "NumberFormat", "is_blank", "is_gap", "is_number"]

BLANKS = (
    *("", "NA", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "<NA>", "#NA"),
    *("#N/A N/A", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN"),
)
"""What programs write where there is no value, of any kind."""

_BLANKS = frozenset(BLANKS)
_GAPS = _BLANKS | {
    *("-", "--", "?", ".", "na", "n/a", "N/A", "n.a.", "N.A.", "k.A.", "none", "None"),
    *("unknown", "Unknown", "missing", "Missing", "#N/A", "#DIV/0!", "#VALUE!"),
    *("#REF!", "#NUM!", "#NAME?"),
}  # what people, and sheets, write besides where a number should be
_SPACES = " \u00a0\u202f\u2009"
_CODES = (
    "EUR|USD|GBP|JPY|CHF|INR|CNY|RUB|BRL|AUD|CAD|SEK|NOK|DKK|PLN|CZK|HUF|TRY|MXN|ZAR|"
    "KRW|SGD|HKD|NZD|RON|ILS|AED|SAR|THB|IDR|MYR|PHP|UAH"
)
_CURRENCY = (
    rf"US\$|CA\$|AU\$|A\$|C\$|R\$|[€$£¥₹₽₩₺₪฿₫₴]|zł|Kč|kr\.?|Fr\.?|Ft|Rs\.?|{_CODES}"
)
_ANY = re.compile(
    rf"[(+\-−]?[{_SPACES}]*(?P<before>{_CURRENCY})?[{_SPACES}+\-−(]*"
    rf"(?P<digits>[.,]?\d[\d.,'’{_SPACES}]*)(?:[eE][+-]?\d+)?"
    rf"[{_SPACES}]*(?P<after>%|{_CURRENCY})?[)\-]?",
    re.ASCII,
)
_CODE = re.compile(r"0\d+", re.ASCII)  # such as a postcode
_FEWEST = 0.9  # share of the cells that are numbers, where a column holds such
_LOOKED_AT = 50  # cells that show whether a column may hold numbers at all
_MANY_CODES = 0.01  # share of the cells that begin with 0


def is_number(text: str) -> bool:
    """Whether text is a number as programs write it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_blank(cell: Any) -> bool:
    """Whether a cell of text is what programs write for no value of any kind."""
    return isinstance(cell, str) and cell.strip() in _BLANKS


def is_gap(cell: Any) -> bool:
    """Whether a cell of text among numbers or dates stands for no value."""
    return isinstance(cell, str) and cell.strip() in _GAPS


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal : str
        The decimal mark, "." or ",". The other one, spaces and apostrophes may stand
        between thousands.
    unit : str
        A currency, before or behind the number; "%", behind it; or "".

    Examples
    --------
    >>> cells = ["€1,234.56", "(€7)", "€0.5", "?"]
    >>> found = NumberFormat.of(cells)
    >>> found
    NumberFormat(decimal='.', unit='€')
    >>> found.floats(cells).tolist()
    [1234.56, -7.0, 0.5, nan]
    """

    decimal: str = "."
    unit: str = ""

    def __post_init__(self) -> None:
        units = re.fullmatch(rf"%|{_CURRENCY}|", str(self.unit))
        if self.decimal not in (".", ",") or units is None:
            raise ValueError(f"{self.decimal!r}, {self.unit!r} is no format of numbers")

    @classmethod
    def of(
        cls, cells: Sequence[str], decimal: str = ".", share: float = _FEWEST
    ) -> "NumberFormat | None":
        """The format of a column of text, by some of its cells.

        Parameters
        ----------
        cells : sequence of str
        decimal : str
            The decimal mark where the cells leave it open, as 1,234 does.
        share : float
            Least share of numbers among the cells that are no gaps.

        Returns
        -------
        format : NumberFormat or None
            None: the column does not hold numbers, or codes that begin with 0.
        """
        cells = [cell.strip() for cell in cells if cell.strip() not in _GAPS]
        first = cells[:: max(1, len(cells) // _LOOKED_AT)]
        hopeful = sum(map(bool, map(_ANY.fullmatch, first)))
        if hopeful < share / 2 * len(first) or not hopeful or _are_codes(cells):
            return None
        matches = list(filter(None, map(_ANY.fullmatch, cells)))
        units = Counter(match["before"] or match["after"] or "" for match in matches)
        unit = units.most_common(1)[0][0]
        if not unit:  # where some amounts have none, as 0
            other, number = units.most_common(2)[-1]
            unit = other if number > (1 - share) * len(matches) else ""
        marks = Counter(filter(None, (_mark(match["digits"]) for match in matches)))
        if marks:
            decimal = marks.most_common(1)[0][0]
        found = cls(decimal, unit)
        good = sum(map(bool, map(found._pattern.fullmatch, cells)))
        return found if good >= share * len(cells) else None

    @property
    def words(self) -> str:
        """What is special about it, in words."""
        unit = {"": "", "%": "percent"}.get(self.unit, f"amounts in {self.unit}")
        comma = "decimal commas" if self.decimal == "," else ""
        return ", ".join(filter(None, [unit, comma]))

    @cached_property
    def _shape(self) -> str:
        """A regular expression for cells, as Python and Arrow both have them."""
        mark = re.escape(self.decimal)
        between = f"[{',' if self.decimal == '.' else '.'}'’{_SPACES}]"
        whole = rf"(?:\d{{1,3}}(?:{between}\d{{2,3}})*{between}\d{{3}}|\d+)"
        number = rf"(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?"
        blank, sign = f"[{_SPACES}]*", "[+−-]"
        if self.unit == "%":
            zero = rf"0(?:{mark}0*)?"
            signed = rf"{sign}?{number}{blank}%|{number}{blank}%-"
            return rf"(?:{signed}|\({number}{blank}%\)|{zero})"
        unit = f"(?:{re.escape(self.unit)})?" if self.unit else ""
        plain = rf"{unit}{blank}{number}{blank}{unit}"
        signed = rf"(?:{sign}{blank})?{plain}|{plain}-|\({plain}\)"
        if not unit:
            return f"(?:{signed})"
        inside = rf"{unit}{blank}(?:{sign}{blank}{number}|\({number}\))"
        return f"(?:{signed}|{inside})"

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._shape, re.ASCII)

    @cached_property
    def _noise(self) -> dict[int, str | None]:
        """What is between digits, to be left out."""
        between = "'’" + _SPACES + ("," if self.decimal == "." else ".")
        return dict.fromkeys(map(ord, between)) | {ord("−"): "-"}

    @cached_property
    def _steps(self) -> list[tuple[str, str]]:
        """The same for Arrow: what is replaced, one after the other."""
        noise = f"['’{_SPACES}{',' if self.decimal == '.' else '.'}]"
        return [
            *([(re.escape(self.unit), "")] if self.unit else []),
            (noise, ""),
            *([(",", ".")] if self.decimal == "," else []),
            ("−", "-"),
            (r"^\((.*)\)$", r"-\1"),
            (r"^(.*)-$", r"-\1"),
        ]

    def floats(self, cells: Iterable[Any]) -> Array:
        """Cells as numbers, if they are none; NaN where one is missing or odd."""
        return np.array([self._float(cell) for cell in cells], dtype=np.float64)

    def _float(self, cell: Any) -> float:
        if not isinstance(cell, str):
            return np.nan if cell is None else float(cell)
        text = cell.strip()
        if not self._pattern.fullmatch(text):
            return np.nan
        text = text.replace(self.unit, "").translate(self._noise).replace(",", ".")
        if text[0] == "(":
            text = f"-{text[1:-1]}"
        return -float(text[:-1]) if text[-1] == "-" else float(text)

    def of_arrow(self, column: Any) -> Any:
        """The same of an Arrow column of text; null where a cell is missing or odd."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.utf8_trim_whitespace(column)
        good = pc.match_substring_regex(text, f"^{self._shape}$")
        text = pc.if_else(good, text, pa.scalar(None, text.type))
        for old, new in self._steps:
            text = pc.replace_substring_regex(text, old, new)
        return text.cast(pa.float64())


def _are_codes(cells: Sequence[str]) -> bool:
    """Whether cells such as 01067 tell that digits are no number."""
    codes = sum(map(bool, map(_CODE.fullmatch, cells)))
    if not codes:
        return False
    return codes > _MANY_CODES * len(cells) or len(set(map(len, cells))) == 1


def _mark(digits: str) -> str | None:
    """The decimal mark that a number shows; None: it may be either."""
    digits = digits.strip(_SPACES)
    comma, point = digits.rfind(","), digits.rfind(".")
    if comma < 0 and point < 0:
        return None
    if comma >= 0 and point >= 0:
        return "," if comma > point else "."
    mark = "," if comma >= 0 else "."
    before, _, behind = digits.rpartition(mark)
    if mark in before:  # as in 1,234,567
        return "." if mark == "," else ","
    thousands = len(behind) == 3 and 1 <= len(before) <= 3 and before[0] != "0"
    return None if thousands else mark
