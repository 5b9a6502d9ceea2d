"""Tables of columns of which some are given other types."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kplus.sources.arrow import Columns, is_categorical

__all__ = ["as_missing", "as_text"]


def as_text(files: Columns, names: Iterable[str]) -> Columns:
    """Numbers and dates that are to be categories as text, as CSV files have them."""
    types = {
        name: pa.string()
        for name in names
        if not is_categorical(files.schema.field(name).type)
    }
    return _AsText(files, types) if types else files


def as_missing(files: Columns, names: Iterable[str]) -> Columns:
    """Columns without any value as numbers, all of them missing."""
    types = {name: pa.float64() for name in names}
    return _AsMissing(files, types) if types else files


class _Retyped(Columns):
    """Columns of which some get the `types` given; who inherits says how."""

    def __init__(self, files: Columns, types: dict[str, Any]) -> None:
        schema = files.schema
        for name, dtype in types.items():
            place = schema.get_field_index(name)
            schema = schema.set(place, pa.field(name, dtype))
        super().__init__(schema, files.counts)
        self._files, self._types = files, types
        self._chosen, self.stamps = files._chosen, files.stamps
        self.paths: Sequence[Path] = getattr(files, "paths", ())

    def __str__(self) -> str:
        return str(self._files)

    @property
    def remote(self) -> bool:
        return self._files.remote

    def column(self, piece: int, name: str, *, as_dictionary: bool = False) -> Any:
        if name in self._types:
            column = self._turned(piece, name)
            return column.dictionary_encode() if as_dictionary else column
        return self._files.column(piece, name, as_dictionary=as_dictionary)

    def _turned(self, piece: int, name: str) -> Any:
        raise NotImplementedError


class _AsText(_Retyped):
    def _turned(self, piece: int, name: str) -> Any:
        return self._files.column(piece, name).cast(self._types[name])


class _AsMissing(_Retyped):
    def _turned(self, piece: int, name: str) -> Any:
        return pa.chunked_array([pa.nulls(self.counts[piece], self._types[name])])
