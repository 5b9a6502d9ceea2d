"""Categories of columns, and the codes that stand for them.

There is one way from values to codes for frames, arrays and files: `CategoryFinder`
looks at the `Values` of columns, part by part, and `ColumnCoder` turns them into codes.
Both go by their factors, which are found once.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kplus.core.errors import DataError
from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks, IntArray
from kplus.data.factors import (
    MISSING,
    Category,
    Factors,
    Values,
    as_category,
    is_missing,
    kind_of,
)
from kplus.data.selection import FROM_DTYPE, CategoricalSpec, categorical_mask
from kplus.data.text_numbers import is_blank

__all__ = [
    "Category",
    "CategoryFinder",
    "Coding",
    "ColumnCoder",
    "TypedColumns",
    "codes_to_floats",
    "count_levels",
]

_LISTED = 8  # columns in an error
_UNKNOWN = MISSING - 1  # code of a value that is none of the categories


class TypedColumns(ABC):
    """The columns of a table, wherever it is.

    Parameters
    ----------
    names : sequence of str or None
    dtypes : sequence of numpy or narwhals types

    Attributes
    ----------
    kinds : list of str
        What the type of each column says; see `kind_of`.
    labels : list of str
        What errors call the columns.
    """

    def __init__(self, names: Sequence[str] | None, dtypes: Sequence[Any]) -> None:
        self.names = None if names is None else [str(name) for name in names]
        self.labels = [str(j) for j in range(len(dtypes))]
        if self.names is not None:
            self.labels = [repr(name) for name in self.names]
        self.dtypes = list(dtypes)
        self.kinds = [kind_of(dtype) for dtype in dtypes]

    n_rows: Any  # int

    @abstractmethod
    def head(self, j: int, n_rows: int) -> Values:
        """The first values of a column."""

    @abstractmethod
    def parts(self, columns: Sequence[int]) -> Iterator[tuple[int, Values]]:
        """All values of some columns, part by part: which column, and a part of it."""

    @abstractmethod
    def tail(self, j: int) -> Values:
        """The last value of a column."""

    @staticmethod
    def floats(part: Values) -> Array:
        """Numbers as floats, NaN where they are missing."""
        column = part.column
        if not isinstance(column, np.ndarray):
            if not column.dtype.is_integer():  # Arrow casts no integer above 2⁵³
                column = column.cast(nw.Float64())
            column = column.to_numpy()
        return np.asarray(column, dtype=np.float64)

    def coders(self, coding: "Coding", unknown: str) -> list["ColumnCoder | None"]:
        """What turns each column into codes; None: a column of numbers."""
        coding.check_columns(self.names, len(self.labels))
        return [
            None if categories is None else ColumnCoder(label, categories, unknown)
            for label, categories in zip(self.labels, coding.categories, strict=True)
        ]

    def holds_numbers(self, j: int) -> bool:
        """Whether a column that held numbers in the fit does so; False: no values.

        Raises
        ------
        DataError
            It has values that are no numbers.
        """
        if self.kinds[j] in ("numbers", "booleans"):
            return True
        if all(part.column.is_null().all() for _, part in self.parts([j])):
            return False
        raise DataError(
            f"Column {self.labels[j]} holds {self.dtypes[j]}, but held numbers in the "
            f"fit; turn its values into numbers."
        )


@dataclass(frozen=True)
class Coding:
    """The columns of a table, and the categories of those that have some.

    Categories stand in the order of their codes:

    - as declared, used or not, where the type of the column declares them (pandas
      ``category``, polars ``Enum``, an Arrow dictionary);
    - False, True in a column of booleans;
    - sorted otherwise, text by code points. A polars ``Categorical`` is among these,
      for its order is that in which the process first met the values.

    Parameters
    ----------
    names : tuple of str
        Names of the columns; "0", "1", ... where they have none.
    categories : tuple of (tuple or None)
        For each column its categories, which are text, booleans, integers or floats;
        None: a column of numbers.
    """

    names: tuple[str, ...]
    categories: tuple[tuple[Category, ...] | None, ...]

    @classmethod
    def of(
        cls, table: TypedColumns, categorical: CategoricalSpec = FROM_DTYPE
    ) -> "Coding":
        """Find the categories of a table; only different values are kept in memory.

        Columns of text, categories and booleans are categories by themselves, also
        where pandas keeps them as objects; `categorical` says which others are.

        Raises
        ------
        DataError
            A column holds dates, lists or the like, a mixture of text and numbers, or
            no value at all, or `categorical` asks for a column that is not there.
        """
        mask = categorical_mask(categorical, len(table.kinds), table.names)
        finders = list(map(CategoryFinder, table.labels, table.kinds, mask))
        unclear = [j for j, finder in enumerate(finders) if finder.is_unclear]
        for j, part in table.parts(unclear):
            finders[j].add(part)
        names = map(str, range(len(finders))) if table.names is None else table.names
        found = [finder.categories() for finder in finders]
        _refuse_all([finder.error for finder in finders if finder.error is not None])
        return cls(tuple(names), tuple(found))

    @property
    def levels(self) -> tuple[int | None, ...]:
        """Number of categories of each column; None: numbers."""
        return tuple(None if c is None else len(c) for c in self.categories)

    @property
    def by_position(self) -> bool:
        """Whether columns are told by their numbers, as those of arrays are."""
        return self.names == tuple(str(j) for j in range(len(self.names)))

    @property
    def has_categories(self) -> bool:
        """Whether any column has categories."""
        return any(c is not None for c in self.categories)

    @property
    def text_names(self) -> list[str]:
        """Names of the columns with categories that are text."""
        return [
            name
            for name, categories in zip(self.names, self.categories, strict=True)
            if any(isinstance(value, str) for value in categories or ())
        ]

    def named(self, names: Sequence[str] | None) -> "Coding":
        """The coding of an array for a table of as many columns that have names."""
        if names is None or not self.by_position or len(names) != len(self.names):
            return self
        return replace(self, names=tuple(str(name) for name in names))

    def check_columns(self, names: Sequence[str] | None, n_columns: int) -> None:
        """Refuse columns that are not those of the coding."""
        if n_columns != len(self.names) and names is None:
            raise DataError(
                f"X has {n_columns} columns, but the fit had {len(self.names)}; give "
                f"the same columns in the same order."
            )
        if names is not None and list(names) != list(self.names):
            raise DataError(
                f"The columns {list(names)} are not those of the fit, "
                f"{list(self.names)}; give the same columns in the same order."
            )


class CategoryFinder:
    """Finds the categories of a column, from its parts, one after the other.

    For `label` and `kind` see `TypedColumns`; numbers are categories if `is_chosen`.
    """

    def __init__(self, label: str, kind: str, is_chosen: bool) -> None:
        self._label, self._kind, self._is_chosen = label, kind, bool(is_chosen)
        self._values: dict[Any, None] = {}  # in the order in which values are met
        self._kinds: set[str] = set()
        self._n_rows, self._declared = 0, False
        self.error: DataError | None = None  # why there are none

    @property
    def is_unclear(self) -> bool:
        """Whether values must be looked at."""
        return self._kind != "booleans" and (self._kind != "numbers" or self._is_chosen)

    def add(self, part: Values) -> None:
        """Look at a part; what is wrong with it is noted."""
        try:
            if self.error is None:
                self._add(part)
        except DataError as error:
            self.error = error

    def _add(self, part: Values) -> None:
        self._n_rows += len(part)
        if self._kind == "values" and not self._is_chosen:
            self._kinds |= part.kinds
            if part.kinds <= {"numbers"}:  # these are not collected
                return
        # Text may come in dictionaries, too, which declare nothing then.
        values = None if self._kind == "text" else part.declared
        self._declared = values is not None
        if values is None:
            self._kinds |= part.kinds
            values = [v for v in part.factors.occurring() if not is_blank(v)]
        self._values.update(dict.fromkeys(values))

    def categories(self) -> tuple[Category, ...] | None:
        """The categories in the order of their codes; None for numbers, or an error."""
        if not self.is_unclear:
            return (False, True) if self._kind == "booleans" else None
        try:
            return self._categories() if self.error is None else None
        except DataError as error:
            self.error = error
            return None

    def _categories(self) -> tuple[Category, ...] | None:
        if self._n_rows and not (self._values or self._kinds):
            raise DataError(
                f"Column {self._label} holds no values, all are missing; drop it."
            )
        if len(self._kinds) > 1:
            raise DataError(
                f"Column {self._label} mixes {' and '.join(sorted(self._kinds))}; turn "
                f"its values into one type, e.g. all into text."
            )
        if self._kinds == {"numbers"} and not self._is_chosen:
            if self._kind == "values":
                return None
            if self._kind in ("objects", "text"):
                raise DataError(
                    f"Column {self._label} holds numbers kept as objects. Turn them "
                    f"into a type of numbers (e.g. with astype(float)), or name the "
                    f"column in categorical_features if they are codes."
                )
        values = [as_category(value, self._label) for value in self._values]
        return tuple(values) if self._declared else self._in_order(values)

    def _in_order(self, values: list[Category]) -> tuple[Category, ...]:
        if self._kinds == {"booleans"}:
            return (False, True)
        ordered = sorted(values)
        # Integers become floats where values are missing; codes do not depend on it.
        if all(isinstance(value, float) and value.is_integer() for value in ordered):
            return tuple(int(value) for value in ordered)
        return tuple(ordered)


@dataclass(frozen=True)
class ColumnCoder:
    """Codes of the values of a column; `unknown` ones are an "error" or "missing"."""

    label: str
    categories: tuple[Category, ...]
    unknown: str = "error"

    def __reduce__(self) -> tuple[Any, ...]:
        return ColumnCoder, (self.label, self.categories, self.unknown)

    @cached_property
    def _code_of(self) -> dict[Category, int]:
        return {value: code for code, value in enumerate(self.categories)}

    def codes(self, factors: Factors, rows: int | IntArray = 0) -> IntArray:
        """Codes, `MISSING` where there is no value.

        Errors name the row: `rows` are the numbers of all of them, or the first one.
        """
        codes = [self._code_of.get(value, _UNKNOWN) for value in factors.values]
        for place, value in enumerate(factors.values):
            if codes[place] == _UNKNOWN and (is_missing(value) or is_blank(value)):
                codes[place] = MISSING
        narrow = np.min_scalar_type(-len(self.categories) - 2)
        coded: IntArray = np.array([*codes, MISSING], dtype=narrow)[factors.places]
        if _UNKNOWN in codes:
            unknown = coded == _UNKNOWN
            if self.unknown == "error" and unknown.any():
                i = int(np.argmax(unknown))
                row = rows + i if isinstance(rows, int) else int(rows[i])
                raise self._unknown(factors.values[factors.places[i]], row)
            coded[unknown] = MISSING
        return coded

    def floats(self, factors: Factors, rows: int | IntArray = 0) -> Array:
        """As `codes`, with NaN where there is no value."""
        return codes_to_floats(self.codes(factors, rows))

    def _unknown(self, value: Any, row: int) -> DataError:
        listed = ", ".join(repr(category)[:40] for category in self.categories[:5])
        more = ", ..." if len(self.categories) > 5 else ""
        value = value.item() if isinstance(value, np.generic) else value
        return DataError(
            f"Column {self.label} holds {repr(value)[:80]} (row {row}), which is none "
            f"of the categories of the fit ({listed}{more}). With "
            f"handle_unknown='missing' it counts as missing; or fit again with rows "
            f"that have it."
        )


def _refuse_all(errors: Sequence[DataError]) -> None:
    """Raise what is wrong with some columns, all at once."""
    if len(errors) > 1:
        listed = " ".join(map(str, errors[:_LISTED]))
        more = len(errors) - _LISTED
        left = f" And so on in {more} more columns." if more > 0 else ""
        raise type(errors[0])(listed + left) from errors[0]
    if errors:
        raise errors[0]


def codes_to_floats(codes: IntArray) -> Array:
    return np.where(codes == MISSING, np.nan, codes)


def count_levels(blocks: Blocks) -> tuple[int, ...]:
    """Number of categories of each column of a table of codes: the highest and one.

    A column in which every value is missing has one. This reads all blocks.

    Raises
    ------
    DataError
        A value is negative, infinite or no whole number.
    """
    highest = np.zeros(blocks.n_features)
    for start, rows in read_blocks(blocks):
        _refuse_non_codes(blocks, rows, start)
        # Not nanmax, which warns at a column without values.
        highest = np.maximum(highest, np.where(np.isnan(rows), 0, rows).max(axis=0))
    return tuple(int(code) + 1 for code in highest)


def _refuse_non_codes(blocks: Blocks, rows: Array, start: int) -> None:
    good = np.isnan(rows) | ((rows >= 0) & (rows < np.inf) & (rows == np.floor(rows)))
    if good.all():
        return
    i, j = np.argwhere(~good)[0]
    names = getattr(blocks, "feature_names", None)
    name = repr(names[j]) if names is not None else str(j)
    raise DataError(
        f"Column {name} holds {rows[i, j]:g} (row {start + i}), which is no code of a "
        f"category: codes are whole numbers 0, 1, 2, ..., or NaN where missing."
    )
