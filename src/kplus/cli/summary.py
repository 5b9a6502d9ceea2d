"""What a fit found, be it clusters or features, and words for it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from kplus.cli.scaling import Profile, number_columns, read_once
from kplus.core.types import Array, Blocks, IntArray
from kplus.io import answers
from kplus.sources.categories import Coding

__all__ = [
    "Findings",
    "Rows",
    "column_words",
    "finite",
    "label_pieces",
    "largest",
    "print_table",
    "telling",
]

_MAX_COLUMNS = 6
_MAX_SHOWN = 20


@dataclass(frozen=True)
class Rows:
    """The rows of a fit as the model saw them, and what their columns are.

    Attributes
    ----------
    source : Blocks
    names : sequence of str
        Of the columns.
    coding : Coding or None
        The categories; None: all columns are numbers.
    found : Profile
        Of the columns in their own units.
    scaled : bool
        Whether the model saw standardised columns.
    """

    source: Blocks
    names: Sequence[str]
    coding: Coding | None
    found: Profile
    scaled: bool

    @property
    def numbers(self) -> IntArray:
        return number_columns(self.coding, self.source.n_features)

    def parts(self, values: NDArray[Any]) -> Iterator[tuple[Array, NDArray[Any]]]:
        """Blocks of rows, and of `values`, which has an entry a row."""
        for start, rows in read_once(self.source):
            yield rows, values[start : start + len(rows)]

    def between(self, start: int, stop: int) -> Iterator[tuple[slice, Array]]:
        """Rows from `start` to `stop`, block by block: where among them, and which."""
        size = self.source.block_rows
        for first in range(start // size * size, stop, size):
            rows = self.source.read(first // size)
            begin, end = max(first, start), min(first + len(rows), stop)
            yield slice(begin - start, end - start), rows[begin - first : end - first]
            if hasattr(self.source, "release"):
                self.source.release(first, first + len(rows))


class Findings(Protocol):
    """What ``kplus fit`` writes and tells; the class for a kind of model knows how.

    Attributes
    ----------
    main : str
        Name of the file with what is said of each row.
    picture : str
        Name of the file with the picture.
    """

    main: str
    picture: str

    def pieces(self) -> Iterator[dict[str, NDArray[Any]]]:
        """What is said of each row, some of them after the other.

        `output.write_rows` knows the keys. Run through it once before all else: what
        there is to tell may be added up on the way.
        """

    def tables(self) -> dict[str, Any]:
        """Arrow tables to write as CSV beside the answers, by the stems of files."""

    def no_picture(self) -> str | None:
        """Why nothing can be drawn; None if something can."""

    def draw(self, path: Path) -> None:
        """Write the picture."""

    def notes(self) -> list[str]:
        """What the user should know."""

    def measures(self) -> dict[str, Any]:
        """How many were found and how good they are, for JSON."""

    def records(self) -> dict[str, Any]:
        """All that was found, for JSON."""

    def title(self) -> tuple[str, str]:
        """How many, as in "3 clusters", and how good, in words."""

    def print(self, title: str) -> None:
        """Print what was found."""


def label_pieces(labels: IntArray) -> Iterator[dict[str, NDArray[Any]]]:
    """The labels of some rows after the other; see `Findings.pieces`."""
    for start in range(0, len(labels), answers.PART_ROWS):
        yield {"labels": labels[start : start + answers.PART_ROWS]}


def finite(value: Any) -> float | None:
    """Return a number that JSON can hold."""
    value = float(value)
    return value if math.isfinite(value) else None


def telling(columns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the columns of largest `deviation`, no more than a line or two hold."""
    # Less than a twentieth of a standard deviation tells nothing; it would show as 0.
    told = [c for c in columns if abs(c["deviation"] or 0.0) >= 0.05]
    return sorted(told, key=lambda c: -abs(c["deviation"]))[:_MAX_COLUMNS]


def column_words(columns: Sequence[dict[str, Any]]) -> str:
    """Tell in a line what `telling` returned."""
    return ", ".join(map(_words, columns)) or "-"


def _words(column: dict[str, Any]) -> str:
    if "category" in column:
        return f"{column['name']} {column['category']} {column['share']:.0%}"
    return f"{column['name']} {column['deviation'] or 0:+.1f}"


def largest(
    records: Sequence[dict[str, Any]], key: str
) -> tuple[list[dict[str, Any]], str | None]:
    """Return all records, or the largest of very many and words that say so."""
    if len(records) <= _MAX_SHOWN:
        return list(records), None
    shown = sorted(records, key=lambda record: -record[key])[:_MAX_SHOWN]
    return shown, f"the largest {_MAX_SHOWN}; --json tells all"


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str | None = None,
    caption: str | None = None,
) -> None:
    """Print a table on standard output, its last column to the left."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in headings[:-1]:
        table.add_column(heading, justify="right")
    table.add_column(headings[-1], overflow="fold")
    for row in rows:
        # Text, because names may look like rich's markup.
        table.add_row(*map(Text, row))
    console = Console()
    # A title of the table itself would be no wider than the table.
    if title is not None:
        console.print(Text(title, style="italic"), soft_wrap=True)
    console.print(table)
    if caption is not None:
        console.print(Text(caption, style="dim italic"), soft_wrap=True)
