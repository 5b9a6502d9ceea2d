"""How a CSV file is written: its separator, decimal mark, encoding, and first lines.

Spreadsheets write what their country does: semicolons and decimal commas, tabs, UTF-16,
Windows' Latin letters, a title above the names of the columns, or no names at all.
"""

import codecs
import csv
import gzip
import io
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from kplus.data.text_numbers import is_number

__all__ = ["Dialect", "HeldBack", "shape"]

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_DECODED_BYTES = 2**25  # that are looked at for the encoding
_PART_BYTES = 2**20
_RECORDS = 200  # that are looked at for the separator
_MOST_TITLES = 10  # lines before the names of the columns
_FEWEST_BELOW = 3  # records that agree on the number of columns below a title
_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*$")
_POINT = re.compile(r"\s*[-+]?\d*\.\d+\s*$")
_THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2}(,\d{3})+\s*$")


@dataclass(frozen=True)
class Dialect:
    """How a file is written.

    Attributes
    ----------
    delimiter : str
    decimal : str
    encoding : str
        As Python calls it.
    titles : int
        Lines before the names of the columns.
    notes : int
        Lines at the end that are no rows.
    n_unnamed : int
        Number of columns of a file whose first line holds values already; 0 if there
        is a line with names.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    titles: int = 0
    n_unnamed: int = 0
    notes: int = 0

    @classmethod
    def of(cls, path: Path, skip: tuple[int, int] = (0, 0)) -> "Dialect":
        """Look at the first rows of a file, plain or gzipped.

        `skip` are lines at the start and at the end that a user wants to be left out;
        with some at the start no titles are looked for.
        """
        encoding = _encoding(path)
        delimiter, lines, titles = ",", [], 0
        best: tuple[bool, float, int] = (False, 0.0, 1)
        for separator in _SEPARATORS:
            plain = cls(separator, ".", encoding, skip[0])
            found = _records(path, plain)
            skipped, score = shape([fields for _, fields in found], not skip[0])
            if separator == "," or score > best:
                best, delimiter, lines, titles = score, separator, found, skipped
        below = [fields for _, fields in lines[titles:]]
        n_unnamed = 0
        if titles == 0 and len(below) > 1 and _holds_values(below[0], below[1:]):
            n_unnamed = len(below[0])
        above = lines[titles - 1][0] if titles else skip[0]
        decimal = _decimal(below, delimiter)
        return cls(delimiter, decimal, encoding, above, n_unnamed, skip[1])

    def open(self, path: Path) -> TextIO:
        """The text below the titles."""
        # What begins with a byte order mark is UTF-8 all the same.
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        opened = gzip.open if path.suffix.lower() == ".gz" else open
        file: TextIO = opened(path, "rt", encoding=encoding, newline="")
        for _ in range(self.titles):
            file.readline()
        return file

    def records(self, path: Path) -> Iterator[tuple[int, list[str]]]:
        """Its lines as fields, with their numbers; empty ones are passed over."""
        late: deque[tuple[int, list[str]]] = deque()
        with self.open(path) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            for fields in reader:
                if not fields:
                    continue
                late.append((reader.line_num + self.titles, fields))
                if len(late) > self.notes:
                    yield late.popleft()

    @property
    def words(self) -> str | None:
        """What a user should know of; None: it is as files usually are."""
        told = []
        if self.delimiter != ",":
            told.append(f"{_SEPARATORS[self.delimiter]} between columns")
        if self.decimal != ".":
            told.append("decimal commas")
        if self.encoding != "utf-8":
            told.append(f"{self.encoding.upper()} letters")
        if self.titles:
            told.append(f"{_lines(self.titles)} above the names of columns (left out)")
        if self.notes:
            told.append(f"{_lines(self.notes)} below the table (left out)")
        if self.n_unnamed:
            last = self.n_unnamed - 1
            told.append(f"no names of columns (called column 0 to column {last})")
        return ", ".join(told) or None


def _lines(number: int) -> str:
    return "a line" if number == 1 else f"{number} lines"


class HeldBack(io.RawIOBase):
    """The text of a file as UTF-8, but for its last lines."""

    def __init__(self, file: TextIO, n_lines: int) -> None:
        self._file, self._n_lines = file, n_lines
        self._ahead, self._ready, self._ended = "", b"", False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            self._advance()
        out, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(out)] = out
        return len(out)

    def _advance(self) -> None:
        part = self._file.read(_PART_BYTES)
        text = self._ahead + part
        self._ended = not part
        kept = text.rstrip()  # what follows may be blank, too
        end = len(kept)
        for _ in range(self._n_lines):
            end = max(kept.rfind("\n", 0, end), 0)
        end = end + 1 if end else 0  # with the line break before them
        self._ready, self._ahead = text[:end].encode(), text[end:]

    def close(self) -> None:
        self._file.close()
        super().close()


def _encoding(path: Path) -> str:
    """UTF-8 if it can be, UTF-16 by its mark, else what Windows writes in the West."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rb") as file:
        first = file.read(_PART_BYTES)
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            left = _DECODED_BYTES
            while first and left > 0:
                decoder.decode(first)
                left -= len(first)
                first = file.read(_PART_BYTES)
        except UnicodeDecodeError:
            return "cp1252" if _is_text(first) else "utf-8"
    return "utf-8"


def _is_text(part: bytes) -> bool:
    """Whether bytes look like text in an encoding of one byte a letter."""
    if b"\0" in part:
        return False
    try:
        part.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True


def _records(path: Path, dialect: Dialect) -> list[tuple[int, list[str]]]:
    """The first lines; of those that cannot be read, what comes before."""
    out: list[tuple[int, list[str]]] = []
    try:
        for line in islice(dialect.records(path), _RECORDS):
            out.append(line)
    except (UnicodeDecodeError, csv.Error):
        pass
    return out


def shape(
    records: Sequence[Sequence[str]], look: bool = True
) -> tuple[int, tuple[bool, float, int]]:
    """Titles before the names, and how well a separator suits, the higher the better.

    It suits if there are names for just as many columns as most lines have. Unless
    told to `look` for titles, there are none.
    """
    lengths = list(map(len, records))
    if not lengths:
        return 0, (False, 0.0, 1)
    body = lengths[1:] or lengths
    width = Counter(body).most_common(1)[0][0]
    share = body.count(width) / len(body)
    titles = _titles(records, width) if look and width > 2 else 0
    below = lengths[titles:]
    if titles and below.count(width) > _FEWEST_BELOW:
        return titles, (True, below.count(width) / len(below), width)
    return 0, (lengths[0] == width > 1, share, width)


def _titles(records: Sequence[Sequence[str]], width: int) -> int:
    """The number of records before the names of so many columns; 0 if unsure.

    Sheets fill titles up with empty fields.
    """
    for i, fields in enumerate(records[: _MOST_TITLES + 1]):
        there = sum(map(bool, map(str.strip, fields)))
        if there == len(fields) == width:
            return i if _are_names(fields) else 0
        if there > (2 if len(fields) < width else 1):
            return 0
    return 0


def _are_names(fields: Sequence[str]) -> bool:
    names = [field.strip() for field in fields]
    plain = not any(map(is_number, names)) and all(names)
    return plain and len(set(names)) == len(names)


def _holds_values(fields: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Whether a first record has no names: numbers, and text that comes again."""
    text = [
        j for j, field in enumerate(fields) if not is_number(field.replace(",", "."))
    ]
    rows = [row for row in body if len(row) == len(fields)]
    again = all(any(row[j] == fields[j] for row in rows) for j in text)
    return again and len(text) < len(fields)


def _decimal(records: Sequence[Sequence[str]], delimiter: str) -> str:
    fields = [field for record in records for field in record]
    commas = [field for field in fields if _COMMA.match(field)]
    if not commas or any(map(_POINT.match, fields)):
        return "."
    # As in 1,234: where columns are separated by commas, that is a thousand.
    if delimiter == "," and all(map(_THOUSANDS.match, commas)):
        return "."
    return ","
