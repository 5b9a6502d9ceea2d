"""The input table as it came, with all its columns, also those that are not used."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kplus.cli.console import CommandError
from kplus.cli.tables import Table
from kplus.data.arrow import is_categorical, plain_type
from kplus.data.converted import ConvertedRows
from kplus.data.files import open_files
from kplus.data.open import has_columns, number_blocks
from kplus.data.reading import Reading

__all__ = ["Ahead", "Original", "needs_quotes", "without_views"]


class Ahead:
    """Arrow arrays, read as far as needed."""

    def __init__(self, parts: Iterator[Any]) -> None:
        self._parts, self._left = parts, next(parts)

    def take(self, number: int) -> Any:
        """The next entries."""
        chunks = []
        while number > len(self._left):
            chunks += self._left.chunks
            number -= len(self._left)
            self._left = next(self._parts)
        chunks += self._left[:number].chunks
        self._left = self._left[number:]
        return pa.chunked_array(chunks, type=self._left.type)


class Original:
    """All columns of the files of a `table`; of an array there is none by name.

    Identifiers with leading zeros, dates and the like stay as written; numbers that are
    text, such as "12 %", as well, unless they are to be `as_read`.
    """

    def __init__(self, path: Path, table: Table, *, as_read: bool = False) -> None:
        first, last = table.skip
        self._data = open_files(path, skip_first=first, skip_last=last)
        self.table = table
        self.files: Any = None
        if table.names is None or not has_columns(self._data):
            return
        numbers = {table.column_names[j] for j in table.numbers}
        text = sorted(set(self._data.schema.names) - numbers)
        self.files = open_files(path, text=text, skip_first=first, skip_last=last)
        if as_read and table.reading is not None:
            made = table.reading.made
            plain = Reading(made={old: of for old, of in made.items() if old in of})
            self.files = plain.apply(self.files.select(self.files.schema.names))

    @property
    def names(self) -> list[str]:
        """Of the columns; of an array, those by which its columns go."""
        if self.files is not None:
            return list(self.files.schema.names)
        index = [] if self.table.index is None else [self.table.index_name]
        return [*index, *self.table.column_names]

    def ahead(self) -> dict[str, Ahead]:
        """The columns of the files, or the names of rows, read as far as needed."""
        if self.files is not None:
            return {name: Ahead(self.files.parts(name)) for name in self.names}
        index = self.table.index
        return {} if index is None else {self.table.index_name: Ahead(index())}

    def needs_quotes(self) -> bool:
        """Whether some text has to be quoted in CSV."""
        parts: Iterator[Any] = iter(())
        if self.files is not None:
            text = [f.name for f in self.files.schema if is_categorical(f.type)]
            parts = chain.from_iterable(map(self.files.plain_parts, text))
        elif self.table.index is not None:
            parts = self.table.index()
        return any(map(needs_quotes, parts))

    def reader(self) -> Callable[[int], dict[str, Any]]:
        """Gives the columns of the next rows, so many at a time, as Arrow arrays."""
        if self._data.n_rows != self.table.source.n_rows:
            raise CommandError(
                "--append: the table does not have the rows of its files."
            )
        if self.files is not None:
            ahead = self.ahead()
            return lambda n: {
                name: _plain(part.take(n)) for name, part in ahead.items()
            }
        if isinstance(self._data, ConvertedRows):
            raise CommandError(
                "--append wants the files that were converted; a folder of kplus "
                "convert has the columns to use only."
            )
        blocks, start = number_blocks(self._data), 0

        def take(n: int) -> dict[str, Any]:
            nonlocal start
            rows = blocks.take(np.arange(start, start + n))
            start += n
            return dict(zip(self.names, map(pa.array, rows.T.copy()), strict=True))

        return take


def _plain(column: Any) -> Any:
    """Text and numbers where Arrow has dictionaries, which CSV files have not."""
    return column.cast(plain_type(column.type))


def without_views(column: Any) -> Any:
    """Text as CSV files can have it."""
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def needs_quotes(column: Any) -> bool:
    """Whether some text has a comma, a quote or a line break."""
    column = without_views(column)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return bool(pc.any(pc.match_substring_regex(column, '[,"\r\n]')).as_py())
