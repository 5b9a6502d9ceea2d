"""Columns as numbers of their different values, by the quickest way each library has.

Nothing here knows of a coding but `encode`, which turns those numbers into codes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals import Series

from kplus.core.errors import DataError
from kplus.core.types import IntArray
from kplus.sources.blocks import as_float_column
from kplus.sources.values import (
    Category,
    as_category,
    is_category,
    is_missing,
)

__all__ = [
    "MISSING",
    "Column",
    "Factors",
    "declared_categories",
    "encode",
    "factorize",
    "factorize_objects",
    "to_codes",
]

Column = Series[Any]

MISSING, _UNKNOWN = -1, -2


@dataclass(frozen=True)
class Factors:
    """A column as places in a list of different values.

    Attributes
    ----------
    places : (n_rows,) int
        `MISSING` where there is no value.
    values : list
        May hold values that do not occur.
    """

    places: IntArray
    values: list[Any]

    def occurring(self) -> list[Any]:
        """The values that do occur."""
        seen = np.zeros(len(self.values) + 1, dtype=bool)
        seen[self.places] = True  # MISSING marks the last
        return [
            value
            for value, is_there in zip(self.values, seen, strict=False)
            if is_there and not is_missing(value)
        ]


def encode(
    column: Column,
    label: str,
    categories: tuple[Category, ...],
    unknown: str,
    first_row: int = 0,
) -> IntArray:
    """Codes of a column, `MISSING` where it has no value.

    With `unknown` "missing", so it is where the value is none of the categories;
    otherwise this is an error, in which rows count from `first_row`.
    """
    return to_codes(factorize(column, label), label, categories, unknown, first_row)


def to_codes(
    factors: Factors,
    label: str,
    categories: tuple[Category, ...],
    unknown: str,
    first_row: int = 0,
) -> IntArray:
    """As `encode`."""
    code_of = {value: code for code, value in enumerate(categories)}
    codes = [
        MISSING if is_missing(value) else code_of.get(value, _UNKNOWN)
        for value in factors.values
    ]
    narrow = np.min_scalar_type(-len(categories) - 2)
    coded: IntArray = np.array([*codes, MISSING], dtype=narrow)[factors.places]
    if _UNKNOWN in codes:
        strange = coded == _UNKNOWN
        if unknown == "error" and strange.any():
            row = int(np.argmax(strange))
            value = factors.values[factors.places[row]]
            refuse_unknown(value, label, first_row + row, categories)
        coded[strange] = MISSING
    return coded


def refuse_unknown(
    value: Any, label: str, row: int, categories: tuple[Category, ...]
) -> None:
    shown = ", ".join(repr(category)[:40] for category in categories[:5])
    more = ", ..." if len(categories) > 5 else ""
    value = value.item() if isinstance(value, np.generic) else value
    raise DataError(
        f"Column {label} holds {repr(value)[:80]} (row {row}), which is none of the "
        f"categories of the fit ({shown}{more}). Give it as missing, or fit again with "
        f"a categorical dtype that declares it."
    )


# ---------------------------------------------------------------- by type


def declared_categories(column: Column) -> list[Any] | None:
    """The categories that the type of a column declares; None if it does not."""
    if column.dtype not in (nw.Categorical, nw.Enum):
        return None
    if column.implementation.is_polars():
        native = column.to_native().dtype
        return native.categories.to_list() if column.dtype == nw.Enum else None
    try:
        declared = column.cat.get_categories().to_list()
    except AttributeError:  # Arrow dictionaries inside pandas
        return None
    # An Arrow dictionary may hold a null.
    return [value for value in declared if value is not None]


def factorize(column: Column, label: str) -> Factors:
    """The different values of a column and where they are.

    Raises
    ------
    DataError
        It holds dates, lists or other things that cannot be categories.
    """
    dtype = column.dtype
    if dtype == nw.Boolean:
        return Factors(_places_of_booleans(column), [False, True])
    if dtype.is_numeric() and dtype != nw.Decimal:
        return _factorize_numbers(column)
    if dtype not in (nw.String, nw.Object, nw.Categorical, nw.Enum, nw.Decimal):
        return _nothing(column, label)
    native = column.to_native()
    if column.implementation.is_pandas():
        return _factorize_pandas(native, label)
    if column.implementation.is_pyarrow():
        return _factorize_arrow(native)
    if column.implementation.is_polars() and dtype != nw.Object:
        return _factorize_polars(native)
    return factorize_objects(column.to_list(), label)


def _nothing(column: Column, label: str) -> Factors:
    """A column of a type that is no use, which it may be if it has no values."""
    if column.is_null().all():
        return Factors(np.full(len(column), MISSING), [])
    raise DataError(
        f"Column {label} holds {column.dtype}, neither numbers nor categories. Drop "
        f"it, or turn it into numbers or text first."
    )


def _places_of_booleans(column: Column) -> IntArray:
    values = as_float_column(column)
    return np.where(np.isnan(values), MISSING, values).astype(np.int8)


def _factorize_numbers(column: Column) -> Factors:
    missing = column.is_null().to_numpy()
    filled = column.fill_null(0) if missing.any() else column
    values = filled.to_numpy()
    if values.dtype.kind == "f":
        missing = missing | np.isnan(values)
    places = np.full(len(values), MISSING)
    found, places[~missing] = np.unique(values[~missing], return_inverse=True)
    return Factors(places, found.tolist())


def factorize_objects(objects: Sequence[Any], label: str) -> Factors:
    """The different values among Python objects."""
    try:
        place_of = {value: place for place, value in enumerate(dict.fromkeys(objects))}
    except TypeError:  # lists and other things without a hash
        _refuse_unhashable(objects, label)
        raise
    places = np.fromiter(map(place_of.__getitem__, objects), np.int64, len(objects))
    return Factors(places, list(place_of))


def _refuse_unhashable(objects: Sequence[Any], label: str) -> None:
    for value in objects:
        if not (is_category(value) or value is None):
            as_category(value, label)


# ---------------------------------------------------------------- by library


def _factorize_pandas(series: Any, label: str) -> Factors:
    if hasattr(series, "cat"):
        codes = series.cat.codes.to_numpy()
        return Factors(codes, series.cat.categories.tolist())
    values = series.array
    if series.dtype == object:
        values = series.to_numpy()  # else pandas would guess at a type
    try:
        places, found = nw.dependencies.get_pandas().factorize(values)
    except TypeError:  # lists and other things without a hash
        _refuse_unhashable(values, label)
        raise
    return Factors(places, found.tolist())


def _factorize_polars(series: Any) -> Factors:
    polars = nw.dependencies.get_polars()
    if series.dtype == polars.Enum:
        places = series.to_physical().cast(polars.Int32).fill_null(MISSING)
        return Factors(places.to_numpy(), series.dtype.categories.to_list())
    if series.dtype == polars.Categorical:
        series = series.cast(polars.String)
    values = series.drop_nulls().unique()
    places = series.replace_strict(
        values,
        polars.Series(np.arange(len(values), dtype=np.int32)),
        default=MISSING,
        return_dtype=polars.Int32,
    )
    return Factors(places.to_numpy(), values.to_list())


def _factorize_arrow(column: Any) -> Factors:
    """Of a ChunkedArray."""
    if str(column.type) == "string_view":  # has no dictionaries
        column = column.cast("string")
    if not hasattr(column.type, "value_type"):
        column = column.dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    places = column.indices.cast("int32").fill_null(MISSING)
    return Factors(places.to_numpy(), column.dictionary.to_pylist())
