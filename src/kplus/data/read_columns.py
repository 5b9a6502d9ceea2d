"""Columns in files of which some are read as something else: text as numbers."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from kplus.data.arrow import Columns, is_number, plain_type
from kplus.data.dates import DateNumbers
from kplus.data.reading import Reading, made_of
from kplus.data.text_numbers import NumberFormat
from kplus.data.wrapped import CACHE_BYTES

__all__ = ["ReadColumns"]


class ReadColumns(Columns):
    """The columns of a table as a `Reading` has them.

    Those that are made of others are kept in memory while that takes little, and else
    made whenever they are read.
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
        super().__init__(pa.schema(fields), source.counts)
        self.stamps, self.reading = source.stamps, reading
        self.paths = getattr(source, "paths", ())
        self._may_keep = 8 * self.n_rows * len(makers) <= CACHE_BYTES

    def __str__(self) -> str:
        return str(self._table)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_kept": {}}

    @property
    def remote(self) -> bool:
        return self._table.remote

    def _column(self, piece: int, name: str, as_dictionary: bool) -> Any:
        if name not in self._makers:
            return self._table.column(piece, name, as_dictionary=as_dictionary)
        made = self._kept.get((piece, name))
        if made is None:
            made = _made(self._table, piece, *self._makers[name])
            if self._may_keep:
                self._kept[piece, name] = made
        return made


def _type(maker: Any) -> Any:
    names = isinstance(maker, DateNumbers) and maker.how == "names"
    return pa.string() if names and maker.what != "hour" else pa.float64()


def _made(table: Columns, piece: int, name: str, maker: Any) -> Any:
    column = table.column(piece, name)
    plain = column.cast(plain_type(column.type))
    if isinstance(maker, NumberFormat):
        return maker.of_arrow(plain)
    values = made_of(nw.from_native(plain, series_only=True).alias(name), maker)
    missing = None if values.dtype == object else np.isnan(values)
    return pa.chunked_array([pa.array(values, _type(maker), mask=missing)])
