"""Columns as places in a list of their different values.

A column is an array of numpy or a narwhals Series; each library has its own quick way.
"""

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import count
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals import Series
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Array, IntArray

__all__ = [
    "MISSING",
    "Category",
    "Factors",
    "Values",
    "as_category",
    "holds_objects",
    "is_missing",
    "kind_of",
]

Category = str | int | float | bool

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
    """

    places: IntArray
    values: list[Any]

    def occurring(self) -> list[Any]:
        """The values that do occur, none of them missing."""
        seen = np.zeros(len(self.values) + 1, dtype=bool)
        seen[self.places] = True  # MISSING marks the last
        return [
            value
            for value, is_there in zip(self.values, seen.tolist(), strict=False)
            if is_there and not is_missing(value)
        ]


class Values:
    """The values of a column or of a part of it, examined when asked, and only once.

    Parameters
    ----------
    column : ndarray or Series
    label : str
        What errors call the column.
    """

    def __init__(self, column: Any, label: str) -> None:
        self.column, self.label = column, label

    def __len__(self) -> int:
        return len(self.column)

    @cached_property
    def kinds(self) -> set[str]:
        """Of what kinds the values are: text, booleans, numbers.

        All objects are looked at: True equals 1, so that one may hide behind the other.
        """
        objects = self._objects()
        if objects is not None:
            return _kinds_of_objects(objects, self.label)
        return {_kind(cls) for cls in set(map(type, self.factors.occurring()))}

    @cached_property
    def factors(self) -> Factors:
        """The different values and where they are.

        Raises
        ------
        DataError
            They are dates, lists or other things that cannot be categories.
        """
        objects = self._objects()
        if objects is not None:
            _ = self.kinds  # refuses others than text, booleans and numbers
            found = _of_objects(objects)
        elif isinstance(self.column, np.ndarray):
            found = _of_numbers(self.column, np.zeros(len(self), dtype=bool))
        else:
            found = _of_series(self.column, self.label)
        narrow = np.min_scalar_type(-len(found.values) - 1)
        return Factors(found.places.astype(narrow, copy=False), found.values)

    @property
    def declared(self) -> list[Any] | None:
        """The categories that the type of the column declares; None if it does not."""
        column = self.column
        if isinstance(column, np.ndarray) or column.dtype not in _CATEGORICAL:
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

    def floats(self) -> Array:
        """An array of objects that must be numbers; NaN where one is missing."""
        if self.kinds - {"numbers", "booleans"}:
            raise DataError(
                f"Column {self.label} holds {' and '.join(sorted(self.kinds))}, not "
                f"numbers only; it held numbers in the fit, so turn its values into "
                f"numbers."
            )
        objects = self.column.tolist()
        nothing = {cls for cls in set(map(type, objects)) if cls.__name__ in _NO_VALUE}
        numbers = [None if type(value) in nothing else value for value in objects]
        return np.array(numbers, dtype=object).astype(np.float64)  # None to NaN

    def _objects(self) -> list[Any] | None:
        """The values as Python objects, if the column keeps them so."""
        column = self.column
        if isinstance(column, np.ndarray):
            return column.tolist() if holds_objects(column) else None
        if column.dtype in (nw.String, *_CATEGORICAL):
            library = column.implementation
            if library.is_pyarrow() or library.is_polars():
                return None
            if library.is_pandas() and column.to_native().dtype != object:
                return None
        elif column.dtype not in (nw.Object, nw.Decimal):
            return None
        return column.to_list()  # type: ignore[no-any-return]


_CATEGORICAL = (nw.Categorical, nw.Enum)


def holds_objects(X: NDArray[Any]) -> bool:
    """Whether an array holds text or Python objects."""
    return X.dtype.kind in "OUT"


def kind_of(dtype: Any) -> str:
    """What a type of numpy or narwhals says of a column.

    "numbers", "booleans", "text", "objects" (of which numbers are refused), "values"
    (which may be numbers) or "others".
    """
    if isinstance(dtype, np.dtype):
        kinds = {"b": "booleans", **dict.fromkeys("iuf", "numbers")}
        kinds |= dict.fromkeys("OUT", "values")
        if dtype.kind not in kinds:
            raise DataError(
                f"X holds {dtype}, neither numbers nor text; turn it into one of them."
            )
        return kinds[dtype.kind]
    if dtype.is_numeric():
        return "numbers"
    known = {nw.Boolean: "booleans", nw.String: "text", nw.Object: "objects"}
    return next((kind for cls, kind in known.items() if dtype == cls), "others")


# ---------------------------------------------------------------- one value


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


def _kind(cls: type) -> str:
    if issubclass(cls, str):
        return "text"
    return "booleans" if issubclass(cls, (bool, np.bool_)) else "numbers"


# ---------------------------------------------------------------- many values


def _kinds_of_objects(objects: list[Any], label: str) -> set[str]:
    """Of what kinds objects are; all must be such that can be categories."""
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


def _of_objects(objects: list[Any]) -> Factors:
    place_of: defaultdict[Any, int] = defaultdict(count().__next__)  # as they are met
    places = np.fromiter(map(place_of.__getitem__, objects), np.int64, len(objects))
    return Factors(places, list(place_of))


def _of_numbers(values: NDArray[Any], missing: NDArray[np.bool_]) -> Factors:
    """Numbers or booleans."""
    if values.dtype.kind == "f":
        missing = missing | np.isnan(values)
    places = np.full(len(values), MISSING)
    distinct, places[~missing] = np.unique(values[~missing], return_inverse=True)
    return Factors(places, distinct.tolist())


def _of_series(column: Series[Any], label: str) -> Factors:
    dtype = column.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        missing = column.is_null().to_numpy()
        if missing.any():
            column = column.fill_null(False if dtype == nw.Boolean else 0)
        return _of_numbers(column.to_numpy(), missing)
    if dtype in (nw.String, *_CATEGORICAL):
        return _of_text(column)
    if column.is_null().all():  # of no use, which it may be without values
        return Factors(np.full(len(column), MISSING), [])
    raise DataError(
        f"Column {label} holds {dtype}, neither numbers nor categories. Drop it, or "
        f"turn it into numbers or text first."
    )


def _of_text(column: Series[Any]) -> Factors:
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
    if hasattr(native, "cat"):
        return Factors(native.cat.codes.to_numpy(), native.cat.categories.tolist())
    places, distinct = nw.dependencies.get_pandas().factorize(native.array)
    return Factors(places, distinct.tolist())
