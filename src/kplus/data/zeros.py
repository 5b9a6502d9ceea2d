"""Columns of CSV files in which digits begin with 0, as in postcodes: they are text.

Arrow's reader would make numbers of them, and the zeros would be lost.
"""

import csv
import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kplus.data.dialect import Dialect

__all__ = ["zero_led"]

_WHOLE_BYTES = 2**25  # of a file that is looked at whole; of a longer one ...
_PARTS, _PART_BYTES = 16, 2**18  # ... so many parts, evenly spread
_LINES = 5_000  # with such digits, that are looked at
_DIGITS = re.compile(r"\s*0\d+\s*", re.ASCII)


def zero_led(path: Path, dialect: Dialect, header: Sequence[str]) -> list[str]:
    """The columns in which some digits begin with 0.

    Files of up to 32 MB are looked at whole, longer ones in 16 places.
    """
    found: set[int] = set()
    for fields in csv.reader(_lines(path, dialect), delimiter=dialect.delimiter):
        if len(fields) == len(header):  # else a line in parts, or one that is torn
            found.update(j for j, cell in enumerate(fields) if _DIGITS.fullmatch(cell))
    return [header[j] for j in sorted(found)]


def _lines(path: Path, dialect: Dialect) -> Iterator[str]:
    """Lines that may have such digits."""
    mark = re.escape(dialect.delimiter)
    before = re.compile(rf'(?:^|[{mark}])\s*"?0\d+"?\s*(?=$|[{mark}])', re.M | re.A)
    left = _LINES
    for text in _texts(path, dialect):
        last = -1
        for match in before.finditer(text):
            if match.start() <= last:
                continue
            start = text.rfind("\n", 0, match.start() + 1) + 1
            last = text.find("\n", match.end())
            last = len(text) if last < 0 else last
            yield text[start:last].rstrip("\r")
            left -= 1
            if left == 0:
                return


def _texts(path: Path, dialect: Dialect) -> Iterable[str]:
    """A file whole, or some parts of it."""
    encoding = "utf-8" if dialect.encoding == "utf-8" else dialect.encoding
    packed = path.suffix.lower() == ".gz"
    with (gzip.open if packed else open)(path, "rb") as file:
        size = path.stat().st_size
        if packed or encoding == "utf-16" or size <= _WHOLE_BYTES:
            yield file.read(_WHOLE_BYTES).decode(encoding, errors="replace")
            return
        for place in range(_PARTS):
            file.seek(place * (size - _PART_BYTES) // (_PARTS - 1))
            text = file.read(_PART_BYTES).decode(encoding, errors="replace")
            yield text[text.find("\n") : text.rfind("\n")]
