"""What a user should know of how a table is read."""

from kplus.cli.console import count
from kplus.cli.options import Options
from kplus.cli.tables import STDIN, Table
from kplus.data.paths import find_files
from kplus.data.reading import Reading

__all__ = ["reading_lines", "told"]


def told(table: Table, options: Options) -> list[str]:
    """What a user should know of how a table is read, in a few lines; [] if nothing."""
    rows = count(table.source.n_rows, "row")
    columns = count(table.source.n_features, "column")
    n_numbers = len(table.numbers)
    what = "numbers" if n_numbers else "categories"
    if 0 < n_numbers < table.source.n_features:
        what = f"numbers ({n_numbers}) and categories"
    name = "standard input" if options.data.name == STDIN else options.data.name
    lines = [f"{name}: {rows}, {columns} of {what} used."]
    written = _written(table, options)
    if written is not None:
        lines[0] += f" The file has {written}."
    unnamed = table.index is not None and not table.index_name
    if unnamed:
        lines[0] += " The first column, which has no name, names the rows."
    more = [] if table.reading is None else reading_lines(table.reading)
    return lines + more if more or unnamed or written is not None else []


def reading_lines(reading: Reading) -> list[str]:
    """Which columns are left out or read in another way, and how to change it."""
    lines = []
    if reading.left_out:
        dates = "; --dates parts or --dates age uses dates" if reading.has_dates else ""
        lines.append(
            f"Left out: {reading.left_out_words()}. --keep COL uses a column all the "
            f"same{dates}."
        )
    if reading.made:
        lines.append(
            f"Read {reading.made_words()}. --categorical COL takes a column as "
            f"categories."
        )
    if reading.blanks:
        lines.append(f"{reading.blanks_words()}.")
    if reading.notes:
        lines.append(
            f"Taken as categories: {reading.notes_words()}. --numbers COL reads a "
            f"column as numbers."
        )
    if reading.end:
        lines.append(f"{reading.end} --skip-last 1 leaves it out.")
    return lines


def _written(table: Table, options: Options) -> str | None:
    """How a file of text is written, where that is not as usual."""
    paths = getattr(table.data, "paths", ())
    if not paths or find_files(paths[0]).kind != "csv":
        return None
    from kplus.data.dialect import Dialect

    return Dialect.of(paths[0], (options.skip_first, options.skip_last)).words
