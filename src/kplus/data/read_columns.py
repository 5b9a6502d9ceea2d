"""Columns in files of which some are read as something else: text as numbers."""

from collections import Counter
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kplus.data.arrow import Columns, is_categorical, is_number, plain_type
from kplus.data.dates import DateNumbers
from kplus.data.reading import Odd, Reading, made_of
from kplus.data.text_numbers import NumberFormat, is_blank
from kplus.data.wrapped import CACHE_BYTES
from kplus.engine.resources import resources_now

__all__ = ["ReadColumns"]


class ReadColumns(Columns):
    """The columns of a table as a `Reading` has them.

    Numbers that are made of others are kept: in memory while that takes little, else in
    files for scratch. Workers elsewhere make them whenever they read them.
    """

    def __init__(self, source: Columns, reading: Reading) -> None:
        self._table, self._reading = source, reading
        makers: dict[str, tuple[str, Any]] = {}
        fields = []
        for name in source.names:
            field = source.schema.field(name)
            made = reading.made.get(name)
            if name in reading.left_out:
                continue
            if made is None or is_number(field.type):
                fields.append(field)
                continue
            for new, maker in made.items():
                makers[new] = name, maker
                fields.append(pa.field(new, _type(maker)))
        self._makers = makers
        self._kept: dict[tuple[int, str], Any] = {}
        self._scratch: Any = None
        super().__init__(pa.schema(fields), source.counts)
        self.stamps, self.reading = source.stamps, reading
        self.paths = getattr(source, "paths", ())
        self._in_memory = 8 * self.n_rows * len(makers) <= CACHE_BYTES

    def __str__(self) -> str:
        return str(self._table)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_kept": {}, "_scratch": None}

    @property
    def remote(self) -> bool:
        return self._table.remote

    def odd_cells(self) -> dict[str, Odd]:
        """The cells of text of which no value is made, counted in all pieces."""
        out = {}
        first = {old: new for new, (old, _) in reversed(self._makers.items())}
        for name, new in first.items():
            if not is_categorical(self._table.schema.field(name).type):
                continue
            there, odd = 0, Counter[str]()
            for piece in range(len(self.counts)):
                made = self.column(piece, new)
                there += len(made) - made.null_count
                text = _plain(self._table, piece, name).filter(pc.is_null(made))
                for found in pc.value_counts(text.drop_null()).to_pylist():
                    if not is_blank(found["values"]):
                        odd[found["values"]] += found["counts"]
            if odd:
                out[name] = Odd.of(there, odd)
        return out

    def _column(self, piece: int, name: str, as_dictionary: bool) -> Any:
        if name not in self._makers:
            return self._table.column(piece, name, as_dictionary=as_dictionary)
        kept = self._kept.get((piece, name))
        if kept is None:
            made = _made(self._table, piece, *self._makers[name])
            if self._in_memory:
                self._kept[piece, name] = made
            elif made.type == pa.float64():
                self._kept[piece, name] = self._on_disk(made, piece, name)
            return made
        if isinstance(kept, np.ndarray):
            return pa.chunked_array([pa.array(kept, from_pandas=True)])
        return kept

    def _on_disk(self, made: Any, piece: int, name: str) -> Any:
        """A part of a column in a file, mapped into memory."""
        if self._scratch is None:
            self._scratch = resources_now().folder()
        file = self._scratch.path / f"{list(self._makers).index(name)}-{piece}.npy"
        np.save(file, made.to_numpy())
        return np.load(file, mmap_mode="r")


def _type(maker: Any) -> Any:
    names = isinstance(maker, DateNumbers) and maker.how == "names"
    return pa.string() if names and maker.what != "hour" else pa.float64()


def _plain(table: Columns, piece: int, name: str) -> Any:
    column = table.column(piece, name)
    return column.cast(plain_type(column.type))


def _made(table: Columns, piece: int, name: str, maker: Any) -> Any:
    plain = _plain(table, piece, name)
    if isinstance(maker, NumberFormat):
        return maker.of_arrow(plain)
    values = made_of(nw.from_native(plain, series_only=True).alias(name), maker)
    missing = None if values.dtype == object else np.isnan(values)
    return pa.chunked_array([pa.array(values, _type(maker), mask=missing)])
