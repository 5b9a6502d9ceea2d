"""Some rows of whatever users pass as a table, of the same kind."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from kplus.core.types import IntArray
from kplus.data.blocks import ArrayBlocks, FrameBlocks
from kplus.data.categories import Coding
from kplus.data.open import has_columns, is_stored, open_data, open_numbers

__all__ = ["MemoryRows", "Rows", "drawn", "some_of"]


class MemoryRows(ArrayBlocks):
    """Rows in memory with the names of their columns, and what codes mean, if any."""

    def __init__(
        self, rows: Any, names: Sequence[str] | None, coding: Coding | None = None
    ) -> None:
        super().__init__(rows)
        self._names, self.coding = names, coding
        if names is not None:
            self.feature_names = list(names)

    def some(self, rows: IntArray) -> "MemoryRows":
        return MemoryRows(self.array[rows], self._names, self.coding)


class Rows:
    """A table of which some rows are asked for.

    What is in memory gives rows of the same kind: arrays, sparse matrices, data frames.
    Files with typed columns give Arrow tables, other stored tables arrays, or blocks
    where columns have names or categories.
    """

    def __init__(self, X: Any) -> None:
        self._table = open_data(X) if is_stored(X) else X
        if isinstance(X, (list, tuple)):
            self._table = np.asarray(X, dtype=_type_of(X))
        stored = self._table is not X and not isinstance(X, (list, tuple))
        self._stored = stored or is_stored(X)
        self.n_rows = int(self._table.n_rows if self._stored else _num_samples(X))
        if self.n_rows == 0:
            raise ValueError(
                "Found array with 0 sample(s) while a minimum of 1 is due."
            )

    def take(self, rows: IntArray) -> Any:
        """Some rows, which are in order."""
        table = self._table
        if not self._stored:
            return _safe_indexing(table, rows)
        if has_columns(table):
            return _arrow_rows(table, rows)
        coding = getattr(table, "coding", None)
        names = getattr(table, "feature_names", None)
        if coding is not None:
            return MemoryRows(table.take(rows), coding.names, coding)
        taken = open_numbers(table).take(rows)
        return taken if names is None else MemoryRows(taken, names)


def some_of(sample: Any, rows: IntArray) -> Any:
    """Some rows of what `Rows.take` or `read_as_fitted` returned."""
    if isinstance(sample, MemoryRows):
        return sample.some(rows)
    if isinstance(sample, FrameBlocks):
        part = FrameBlocks(sample.frame[rows].to_native())
        part.reading = sample.reading
        return part
    return _safe_indexing(sample, rows)


def drawn(n_rows: int, size: int, rng: np.random.Generator) -> IntArray:
    """The numbers of rows drawn evenly without replacement, in order; all if few."""
    if n_rows <= size:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, size, replace=False, shuffle=False))


def _type_of(X: Any) -> Any:
    """Lists of text and numbers as objects; numpy would make text of the numbers."""
    return object if np.asarray(X).dtype.kind in "US" else None


def _arrow_rows(table: Any, rows: IntArray) -> Any:
    """Rows of typed columns as an Arrow table, piece by piece."""
    import pyarrow as pa

    ends = np.cumsum(table.counts)
    cuts = np.searchsorted(rows, np.concatenate([[0], ends]))
    fields = [_plain(table.schema.field(name)) for name in table.names]
    columns = []
    for field in fields:
        parts = []
        for piece in np.flatnonzero(np.diff(cuts)):
            inside = rows[cuts[piece] : cuts[piece + 1]] - (ends - table.counts)[piece]
            column = table.column(int(piece), field.name).cast(field.type)
            parts += column.take(pa.array(inside)).chunks
        columns.append(pa.chunked_array(parts, type=field.type))
    return pa.table(columns, schema=pa.schema(fields))


def _plain(field: Any) -> Any:
    """Text as Arrow can take rows of; polars writes views."""
    import pyarrow as pa

    return (
        field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
    )
