"""Arrays with categories: numbers that are codes, text, and objects of both.

Columns have no names here; their numbers stand for them.
"""

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.reading import n_blocks
from kplus.core.types import Array, IntArray
from kplus.sources.blocks import default_block_rows
from kplus.sources.categories import Coding
from kplus.sources.chosen import FROM_DTYPE, Choice, chosen_columns
from kplus.sources.factors import (
    MISSING,
    factorize_objects,
    refuse_unknown,
    to_codes,
)
from kplus.sources.kept import KeptBlocks
from kplus.sources.values import (
    Category,
    as_category,
    in_order,
    is_missing,
    kinds_of,
    refuse_empty,
    refuse_mixture,
)

__all__ = ["CodedArrayBlocks", "array_coding", "holds_objects", "objects_to_numbers"]

_NO_VALUE = {"NoneType", "NAType", "NaTType"}  # by name: pandas need not be there


class _TypeDataError(DataError, TypeError):
    """Data of a wrong type; scikit-learn expects a TypeError for objects."""


def holds_objects(X: NDArray[Any]) -> bool:
    """Whether an array holds text or Python objects."""
    return X.dtype.kind in "OUT"


def array_coding(X: NDArray[Any], categorical: Choice = FROM_DTYPE) -> Coding:
    """Find the categories of an array; the names of its columns are "0", "1", ...

    Booleans and text are categories by themselves. A column of objects must be all
    numbers or all categories; None and NaN stand for missing values.

    Parameters
    ----------
    X : 2d array of numbers, booleans, text or objects
        May be a memory map: it is read piece by piece.
    categorical : "from_dtype", or numbers or a mask of columns
        Further columns to take as categories.

    Raises
    ------
    DataError
        A column holds dates or the like, a mixture of text and numbers, or no value at
        all, or `categorical` asks for a column that is not there.

    Examples
    --------
    >>> X = np.array([[1.5, "red"], [None, "blue"]], dtype=object)
    >>> coding = array_coding(X)
    >>> coding.categories
    (None, ('blue', 'red'))
    >>> CodedArrayBlocks(X, coding).read(0)
    array([[1.5, 1. ],
           [nan, 0. ]])
    >>> array_coding(np.array([[0.5, 7], [1.5, 9]]), [1]).categories
    (None, (7, 9))
    """
    n_columns = X.shape[1]
    chosen = chosen_columns(categorical, n_columns)
    categories: list[tuple[Category, ...] | None] = [None] * n_columns
    if holds_objects(X):
        for j in range(n_columns):
            categories[j] = _of_objects(X[:, j], str(j), bool(chosen[j]))
    elif X.dtype.kind == "b":
        categories = [(False, True)] * n_columns
    elif chosen.any():
        columns = np.flatnonzero(chosen).tolist()
        for j, found in zip(columns, _distinct(X, columns), strict=True):
            if not len(found):
                refuse_empty(str(j))
            categories[j] = in_order(found.tolist(), {"numbers"})
    return Coding(tuple(map(str, range(n_columns))), tuple(categories))


class CodedArrayBlocks(KeptBlocks):
    """Blocks of an array with numbers and categories.

    Numbers that are categories become codes when a block is read; objects and text
    are coded once, here.

    Parameters
    ----------
    X : 2d array of numbers, booleans, text or objects
    coding : Coding
        Has a column for each of `X`.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    unknown : {"error", "missing"}
        What a value is that is none of the coding's categories.

    Raises
    ------
    DataError
        A number column holds something else, or a category is not one of the coding's.
        Large arrays of numbers tell this when blocks are read.
    """

    def __init__(
        self,
        X: NDArray[Any],
        coding: Coding,
        block_rows: int | None = None,
        unknown: str = "error",
    ) -> None:
        super().__init__(X.shape[0], X.shape[1], block_rows)
        self._lookups: list[tuple[int, _Lookup]] = []
        self._unknown = unknown
        if holds_objects(X):
            self._X = self._kept = _code_objects(X, coding, unknown)
            return
        self._X = X
        for j, categories in enumerate(coding.categories):
            if categories is not None:
                self._lookups.append((j, _Lookup(categories)))
        self.keep_if_small()

    def gather(self, rows: slice | IntArray, n_rows: int) -> Array:
        part = self._X[rows]
        out = part.astype(np.float64, order="C")
        for j, lookup in self._lookups:
            codes, strange = lookup.codes(part[:, j])
            if self._unknown == "error" and strange.any():
                i = int(np.argmax(strange))
                row = rows.start + i if isinstance(rows, slice) else int(rows[i])
                refuse_unknown(part[i, j], str(j), row, lookup.categories)
            out[:, j] = codes
        return out

    def check(self) -> None:
        """Read everything, so that what is unknown is refused now and not later."""
        if self._kept is None:
            for index in range(n_blocks(self)):
                self.read(index)


class _Lookup:
    """Codes of numbers by their values."""

    def __init__(self, categories: tuple[Category, ...]) -> None:
        self.categories = categories
        self._values, self._codes = _sorted_numbers(categories)

    def codes(self, values: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
        """Codes, NaN where there is none, and which values are unknown."""
        missing = np.isnan(values)
        if not len(self._values):
            return np.full(len(values), np.nan), ~missing
        places = np.searchsorted(self._values, values)
        places[places == len(self._values)] = 0
        known = self._values[places] == values
        return np.where(known, self._codes[places], np.nan), ~(known | missing)


def _sorted_numbers(
    categories: tuple[Category, ...],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The categories that are numbers, ascending, and their codes."""
    pairs = [
        (value, float(code))
        for code, value in enumerate(categories)
        if not isinstance(value, str)
    ]
    pairs.sort()
    values = np.array([value for value, _ in pairs] or [0.0])
    if values.dtype == bool:
        values = values.astype(np.int64)
    return values[: len(pairs)], np.array([code for _, code in pairs])


def _distinct(X: NDArray[Any], columns: list[int]) -> list[NDArray[Any]]:
    """The different values of some columns of numbers, ascending, without NaN."""
    found = [np.empty(0, X.dtype) for _ in columns]
    step = default_block_rows(X.shape[1])
    for start in range(0, len(X), step):
        part = X[start : start + step]
        for place, j in enumerate(columns):
            here = part[:, j]
            if X.dtype.kind == "f":
                here = here[~np.isnan(here)]
            found[place] = np.union1d(found[place], here)
    return found


# ---------------------------------------------------------------- objects


def objects_to_numbers(X: NDArray[Any]) -> Array:
    """An array of objects that are all numbers; None becomes NaN.

    Raises
    ------
    DataError
        A column holds something else.
    """
    out = np.empty(X.shape)
    for j in range(X.shape[1]):
        out[:, j] = _numbers(X[:, j], str(j))
    return out


def _code_objects(X: NDArray[Any], coding: Coding, unknown: str) -> Array:
    """Numbers and codes of an array of objects, NaN where a value is missing."""
    out = np.empty(X.shape)
    for j, categories in enumerate(coding.categories):
        if categories is None:
            out[:, j] = _numbers(X[:, j], str(j))
            continue
        values, _ = _examine(X[:, j], str(j))
        factors = factorize_objects(values, str(j))
        codes = to_codes(factors, str(j), categories, unknown)
        out[:, j] = codes
        out[codes == MISSING, j] = np.nan
    out.flags.writeable = False
    return out


def _of_objects(
    column: NDArray[Any], label: str, asked: bool
) -> tuple[Category, ...] | None:
    """Categories of a column of objects, or None for numbers."""
    values, kinds = _examine(column, label)
    if len(kinds) > 1:
        refuse_mixture(label, kinds)
    if kinds == {"numbers"} and not asked:
        if np.isnan(_as_floats(values)).all():
            refuse_empty(label)
        return None
    found = factorize_objects(values, label).occurring()
    if not found:
        refuse_empty(label)
    return in_order([as_category(value, label) for value in found], kinds)


def _numbers(column: NDArray[Any], label: str) -> Array:
    values, kinds = _examine(column, label)
    if kinds - {"numbers", "booleans"}:
        raise DataError(
            f"Column {label} holds {' and '.join(sorted(kinds))}, not numbers only; it "
            f"held numbers in the fit, so turn its values into numbers."
        )
    return _as_floats(values)


def _as_floats(values: list[Any]) -> Array:
    return np.array(values, dtype=object).astype(np.float64)  # None to NaN


def _examine(column: NDArray[Any], label: str) -> tuple[list[Any], set[str]]:
    """The values, None or NaN where one is missing, and of what kinds they are."""
    values = column.tolist()
    types = set(map(type, values))
    empty = {cls for cls in types if cls.__name__ in _NO_VALUE}
    for cls in types - empty:
        if not issubclass(cls, (str, bool, np.bool_, Real, Decimal)):
            _refuse_type(next(v for v in values if type(v) is cls), label)
    kinds = kinds_of(types - empty)
    # NaN among text is no number.
    if empty - {type(None)} or (len(kinds) > 1 and "numbers" in kinds):
        values = [None if type(v) in empty or is_missing(v) else v for v in values]
        kinds = kinds_of(set(map(type, values)) - {type(None)})
    return values, kinds


def _refuse_type(value: Any, label: str) -> None:
    raise _TypeDataError(
        f"Column {label} holds values of type {type(value).__name__}, such as "
        f"{str(value)[:40]!r}, but each value in the argument must be a string, a "
        f"boolean or a number (None: missing). Drop the column, or turn it into text."
    )
