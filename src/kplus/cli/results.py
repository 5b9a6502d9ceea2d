"""What a fit found, be it clusters or features, and words for it."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kplus.base import answers
from kplus.cli.scaling import Profile
from kplus.cli.tables import Table

__all__ = [
    "Results",
    "finite",
    "in_short",
    "most_distinctive",
    "print_summary",
    "print_table",
]

_MAX_COLUMNS = 6
_MAX_RECORDS = 20


class Results:
    """What ``kplus fit`` writes and reports; subclasses know a kind of model.

    `table` has the rows as the model saw them, whether its columns were `scaled` or
    not; `profile` is that of the columns in their own units.
    """

    noun, size, picture = "cluster", "size", "clusters.png"
    headings: tuple[str, ...]  # after the name, the number of rows and the share
    scores: Sequence[str] = ("objective", "penalty")  # attributes; the first counts
    priced: Any = True  # whether to tell the other scores beside the first
    records: Any  # all that was found: a dict for each cluster or feature

    def __init__(
        self, model: Any, table: Table, profile: Profile, scaled: bool = False
    ) -> None:
        self.model, self.table = model, table
        self.profile, self.scaled = profile, scaled

    @property
    def n_found(self) -> int:
        return int(self.model.n_clusters_)

    def pieces(self) -> Iterator[dict[str, NDArray[Any]]]:
        """What is said of each row, some of them after the other.

        `output.write_rows` knows the keys. Run through it once before all else: what
        is reported may be added up on the way.
        """
        labels = self.model.labels_
        for start in range(0, len(labels), answers.PART_ROWS):
            yield {"labels": labels[start : start + answers.PART_ROWS]}

    def tables(self) -> dict[str, Any]:
        """Arrow tables to write as CSV beside the answers, by the stems of files."""
        return {}

    def no_picture(self) -> str | None:
        """Why nothing can be drawn; None if something can."""
        return None

    def plotted(self) -> tuple[tuple[float, float], Callable[..., Any]]:
        """Size of the picture, and what draws it on an `ax`."""
        raise NotImplementedError

    def draw(self, path: Path) -> None:
        # A figure of its own, without pyplot: no screen is needed or touched.
        from matplotlib.figure import Figure

        size, plot = self.plotted()
        figure = Figure(figsize=size, layout="constrained")
        plot(ax=figure.subplots())
        figure.savefig(path, dpi=150)

    def notes(self) -> list[str]:
        """What the user should know."""
        return []

    def measures(self) -> dict[str, Any]:
        """How good it is, for JSON."""
        return {name: finite(getattr(self.model, f"{name}_")) for name in self.scores}

    def quality(self) -> str:
        """How good it is, in words."""
        first, *rest = Results.measures(self).items()
        return ", ".join(
            f"{name.replace('_', ' ')} {value:.6g}"
            for name, value in (*(rest if self.priced else ()), first)
            if value is not None
        )

    def as_json(self) -> dict[str, Any]:
        """The records for JSON, and what else there is."""
        return {f"{self.noun}s": self.records}

    def cells(self, record: dict[str, Any]) -> tuple[str, ...]:
        """What `print` writes of a record under `headings`."""
        raise NotImplementedError

    def print(self, title: str, caption: str = "") -> None:
        """Print what was found, or the largest of very many."""
        records, captions = self.records, [caption] if caption else []
        if len(records) > _MAX_RECORDS:
            by_size = sorted(records, key=lambda record: -record[self.size])
            records = by_size[:_MAX_RECORDS]
            captions.insert(0, f"the largest {_MAX_RECORDS}; --json tells all")
        rows = [
            (
                f"{'base ' if record.get('base') else ''}{record[self.noun]}",
                f"{record[self.size]:,}",
                f"{record['share']:.1%}",
                *self.cells(record),
            )
            for record in records
        ]
        headings = (self.noun, "rows", "share", *self.headings)
        print_table(headings, rows, title, "\n".join(captions))


def finite(value: Any) -> float | None:
    """Return a number that JSON can hold."""
    value = float(value)
    return value if math.isfinite(value) else None


def most_distinctive(columns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the columns of largest `deviation`, not too many."""
    # Less than a twentieth of a standard deviation means nothing; it would print as 0.
    columns = [c for c in columns if abs(c["deviation"] or 0.0) >= 0.05]
    return sorted(columns, key=lambda c: -abs(c["deviation"]))[:_MAX_COLUMNS]


def print_summary(lines: Sequence[dict[str, Any]]) -> None:
    """Print what `summary()` says of groups, or of the largest of very many."""
    noun, caption = next(iter(lines[0])), ""
    if len(lines) > _MAX_RECORDS:
        lines = sorted(lines, key=lambda line: -line["size"])[:_MAX_RECORDS]
        caption = f"the largest {_MAX_RECORDS}; --json tells all"
    rows = [
        (
            str(line[noun]),
            f"{line['size']:,.0f}",
            f"{line['share']:.1%}",
            in_short(line["sureness"]),
            line["set_apart"].replace("; ", "\n") or "-",
        )
        for line in lines
    ]
    headings = (noun, "rows", "share", "sureness", "set apart by")
    print_table(headings, rows, caption=caption)


def in_short(sureness: float | None) -> str:
    """As a table has it."""
    unknown = sureness is None or math.isnan(sureness)
    return "-" if unknown else f"{sureness:.2f}"


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str = "",
    caption: str = "",
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
    if title:
        console.print(Text(title, style="italic"), soft_wrap=True)
    console.print(table)
    if caption:
        console.print(Text(caption, style="dim italic"), soft_wrap=True)
