"""Columns as places in a list of their different values.

A column is an array of numpy or a narwhals Series; each library has its own quick way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals import Series
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Array, IntArray
from kplus.data.blocks import as_float_column

__all__ = [
    "MISSING",
    "Category",
    "Column",
    "Factors",
    "as_category",
    "declared_categories",
    "factorize",
    "holds_objects",
    "is_missing",
    "kinds_of_objects",
    "objects_to_numbers",
]

Category = str | int | float | bool
Column = Series[Any] | NDArray[Any]

MISSING = -1

_PLAIN = (str, bool, int, float, np.bool_, np.integer, np.floating)
_FRACTIONS = (float, np.floating, Decimal)
_NO_VALUE = {"NoneType", "NAType", "NaTType"}  # by name: pandas need not be there


class _TypeDataError(DataError, TypeError):
    """Data of a wrong type; scikit-learn expects a TypeError for objects."""


@dataclass(frozen=True)
class Factors:
    """A column as places in a list of different values.

    Attributes
    ----------
    places : (n_rows,) int
        `MISSING` where there is no value.
    values : list
        May hold values that do not occur, and None or NaN.
    all_kinds : set of str, optional
        `kinds` of objects, where True equals 1, so that one may hide behind the other.
    """

    places: IntArray
    values: list[Any]
    all_kinds: set[str] | None = None

    def occurring(self) -> list[Any]:
        """The values that do occur, none of them missing."""
        seen = np.zeros(len(self.values) + 1, dtype=bool)
        seen[self.places] = True  # MISSING marks the last
        return [
            value
            for value, is_there in zip(self.values, seen, strict=False)
            if is_there and not is_missing(value)
        ]

    @property
    def kinds(self) -> set[str]:
        """Of what kinds the values are: text, booleans, numbers."""
        if self.all_kinds is not None:
            return self.all_kinds
        return {_kind(cls) for cls in set(map(type, self.occurring()))}


def _kind(cls: type) -> str:
    if issubclass(cls, str):
        return "text"
    return "booleans" if issubclass(cls, (bool, np.bool_)) else "numbers"


def is_missing(value: Any) -> bool:
    """Whether a value among others of its column stands for none: None or NaN."""
    if isinstance(value, _FRACTIONS):
        return bool(value != value)
    return type(value).__name__ in _NO_VALUE


def as_category(value: Any, label: str) -> Category:
    """A value as plain text, boolean, integer or float."""
    if not isinstance(value, _PLAIN):
        raise _wrong_type(value, label)
    if isinstance(value, str):
        return str(value)
    plain: Category = value.item() if isinstance(value, np.generic) else value
    return plain


def _wrong_type(value: Any, label: str) -> DataError:
    return _TypeDataError(
        f"Column {label} holds values of type {type(value).__name__}, such as "
        f"{str(value)[:40]!r}, but each value in the argument must be a string, a "
        f"boolean or a plain number (None: missing). Drop the column, or turn it into "
        f"text."
    )


def declared_categories(column: Column) -> list[Any] | None:
    """The categories that the type of a column declares; None if it does not."""
    if isinstance(column, np.ndarray) or column.dtype not in (nw.Categorical, nw.Enum):
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
    if isinstance(column, np.ndarray):
        if holds_objects(column):
            return _of_objects(column.tolist(), label)
        return _of_numbers(column, np.zeros(len(column), dtype=bool))
    dtype = column.dtype
    if dtype == nw.Boolean:
        values = as_float_column(column)
        places = np.where(np.isnan(values), MISSING, values).astype(np.int8)
        return Factors(places, [False, True])
    if dtype.is_numeric() and dtype != nw.Decimal:
        missing = column.is_null().to_numpy()
        values = (column.fill_null(0) if missing.any() else column).to_numpy()
        return _of_numbers(values, missing)
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return _of_text(column, label)
    if dtype in (nw.Object, nw.Decimal):
        return _of_objects(column.to_list(), label)
    if column.is_null().all():  # of no use, which it may be without values
        return Factors(np.full(len(column), MISSING), [])
    raise DataError(
        f"Column {label} holds {dtype}, neither numbers nor categories. Drop it, or "
        f"turn it into numbers or text first."
    )


def _of_numbers(values: NDArray[Any], missing: NDArray[np.bool_]) -> Factors:
    if values.dtype.kind == "f":
        missing = missing | np.isnan(values)
    places = np.full(len(values), MISSING)
    distinct, places[~missing] = np.unique(values[~missing], return_inverse=True)
    return Factors(places, distinct.tolist())


def _of_objects(objects: Sequence[Any], label: str) -> Factors:
    kinds = kinds_of_objects(objects, label)
    place_of = {value: place for place, value in enumerate(dict.fromkeys(objects))}
    places = np.fromiter(map(place_of.__getitem__, objects), np.int64, len(objects))
    return Factors(places, list(place_of), kinds)


def objects_to_numbers(objects: Sequence[Any], label: str) -> Array:
    """Python objects that must be numbers as float64, NaN where one is missing."""
    kinds = kinds_of_objects(objects, label)
    if kinds - {"numbers", "booleans"}:
        raise DataError(
            f"Column {label} holds {' and '.join(sorted(kinds))}, not numbers only; it "
            f"held numbers in the fit, so turn its values into numbers."
        )
    nothing = {cls for cls in set(map(type, objects)) if cls.__name__ in _NO_VALUE}
    numbers = [None if type(value) in nothing else value for value in objects]
    return np.array(numbers, dtype=object).astype(np.float64)  # None to NaN


def holds_objects(X: NDArray[Any]) -> bool:
    """Whether an array holds text or Python objects."""
    return X.dtype.kind in "OUT"


def kinds_of_objects(objects: Sequence[Any], label: str) -> set[str]:
    """Of what kinds Python objects are; all must be such that can be categories."""
    types = {cls for cls in set(map(type, objects)) if cls.__name__ not in _NO_VALUE}
    for cls in types:
        if not issubclass(cls, (str, bool, np.bool_, Real, Decimal)):
            raise _wrong_type(next(v for v in objects if type(v) is cls), label)
    return {
        _kind(cls)
        for cls in types  # NaN among text is no number
        if not issubclass(cls, _FRACTIONS)
        or any(type(value) is cls and value == value for value in objects)
    }


def _of_text(column: Series[Any], label: str) -> Factors:
    """Text or categories, as each library factorizes them."""
    native: Any = column.to_native()
    if column.implementation.is_pyarrow():  # a ChunkedArray
        if str(native.type) == "string_view":  # has no dictionaries
            native = native.cast("string")
        if not hasattr(native.type, "value_type"):
            native = native.dictionary_encode()
        whole = native.unify_dictionaries().combine_chunks()
        places = whole.indices.cast("int32").fill_null(MISSING)
        return Factors(places.to_numpy(), whole.dictionary.to_pylist())
    if column.implementation.is_polars():
        polars = nw.dependencies.get_polars()
        if native.dtype != polars.Enum:
            text = native.cast(polars.String)
            native = text.cast(polars.Enum(text.drop_nulls().unique()))
        places = native.to_physical().cast(polars.Int32).fill_null(MISSING)
        return Factors(places.to_numpy(), native.dtype.categories.to_list())
    if not column.implementation.is_pandas() or native.dtype == object:
        return _of_objects(column.to_list(), label)
    if hasattr(native, "cat"):
        return Factors(native.cat.codes.to_numpy(), native.cat.categories.tolist())
    places, distinct = nw.dependencies.get_pandas().factorize(native.array)
    return Factors(places, distinct.tolist())
