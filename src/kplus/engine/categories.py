"""Tables with categories: how values become codes, and blocks of such tables.

In a block a category column holds the codes 0, 1, ..., and NaN where a value is
missing. The codes are made once, when the table is opened; numbers are converted when
a block is read, as in `kplus.engine.blocks`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals import Series

from kplus.core.errors import DataError
from kplus.core.types import Array, Blocks, IntArray
from kplus.engine.blocks import Cut, as_float_column

__all__ = ["Category", "CodedFrameBlocks", "Coding", "count_levels"]

Category = str | int | float | bool
Column = Series[Any]

_CHUNK_ROWS = 65_536  # values that are Python objects at one time
_MISSING, _UNKNOWN = -1, -2


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
        Names of the columns.
    categories : tuple of (tuple or None)
        For each column its categories, which are text, booleans, integers or floats;
        None: a column of numbers.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"size": [1.5, 2.0], "color": ["red", "blue"]})
    >>> coding = Coding.of(frame)
    >>> coding.categories
    (None, ('blue', 'red'))
    >>> CodedFrameBlocks(frame, coding).read(0)
    array([[1.5, 1. ],
           [2. , 0. ]])
    """

    names: tuple[str, ...]
    categories: tuple[tuple[Category, ...] | None, ...]

    @classmethod
    def of(cls, frame: Any, categorical: Sequence[str] = ()) -> "Coding":
        """Find the categories of a pandas, polars or Arrow table.

        Columns of text, categories and booleans are categories by themselves, also
        where pandas keeps them as objects.

        Parameters
        ----------
        frame : DataFrame or Table
        categorical : sequence of str
            Names of further columns to take as categories, such as integers that are
            codes.

        Raises
        ------
        DataError
            A column holds dates, lists or the like, a mixture of text and numbers, or
            no value at all, or `categorical` names a column that is not there.
        """
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
        names = tuple(str(name) for name in table.columns)
        for name in categorical:
            if name not in names:
                raise DataError(
                    f"There is no column {name!r} to take as categories; the columns "
                    f"are {list(names)}."
                )
        return cls(
            names,
            tuple(
                _find_categories(column, name, name in categorical)
                for name, column in zip(names, table.iter_columns(), strict=True)
            ),
        )

    @property
    def levels(self) -> tuple[int | None, ...]:
        """Number of categories of each column; None: numbers."""
        return tuple(None if c is None else len(c) for c in self.categories)

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


class CodedFrameBlocks(Cut):
    """Blocks of a pandas, polars or Arrow table with numbers and categories.

    Parameters
    ----------
    frame : DataFrame or Table
        Has the columns of `coding`, in that order.
    coding : Coding
        Says which columns are categories, and their codes.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.

    Raises
    ------
    DataError
        The columns are others, a number column holds something else, or a category
        is not one of the coding's.
    """

    def __init__(
        self, frame: Any, coding: Coding, block_rows: int | None = None
    ) -> None:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
        self.feature_names = [str(name) for name in table.columns]
        if self.feature_names != list(coding.names):
            raise DataError(
                f"The columns {self.feature_names} are not those of the fit, "
                f"{list(coding.names)}; give the same columns in the same order."
            )
        super().__init__(*table.shape, block_rows)
        # A column as codes, or as it is.
        self._columns = [
            _check_numbers(column, name)
            if categories is None
            else _encode(column, name, categories)
            for column, name, categories in zip(
                table.iter_columns(), coding.names, coding.categories, strict=True
            )
        ]

    def read(self, index: int) -> Array:
        start, stop = self.bounds(index)
        return self._gather(slice(start, stop), stop - start)

    def take(self, rows: IntArray) -> Array:
        return self._gather(rows, len(rows))

    def _gather(self, rows: slice | IntArray, n_rows: int) -> Array:
        out = np.empty((n_rows, self.n_features))
        for j, column in enumerate(self._columns):
            part = column[rows]
            if isinstance(part, np.ndarray):
                out[:, j] = part
                out[part == _MISSING, j] = np.nan
            else:
                out[:, j] = as_float_column(part)
        return out


def count_levels(blocks: Blocks) -> tuple[int, ...]:
    """Number of categories of each column of a table of codes: the highest and one.

    A column in which every value is missing has one. This reads all blocks.

    Raises
    ------
    DataError
        A value is negative, infinite or no whole number.
    """
    highest = np.zeros(blocks.n_features)
    for index in range(-(-blocks.n_rows // blocks.block_rows)):
        rows = blocks.read(index)
        _refuse_non_codes(blocks, rows, index * blocks.block_rows)
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


# ---------------------------------------------------------------- categories


def _find_categories(
    column: Column, name: str, asked: bool
) -> tuple[Category, ...] | None:
    """Categories of a column in the order of their codes, or None for numbers."""
    dtype = column.dtype
    if dtype.is_numeric() and not asked:
        return None
    if dtype == nw.Boolean:
        return (False, True)
    declared = _declared(column)
    if declared is not None:
        return tuple(_as_category(value, name) for value in declared)
    if not (dtype.is_numeric() or dtype in (nw.String, nw.Object, nw.Categorical)):
        _refuse_other(column, name)
    values, kinds = _distinct(column, name)
    if len(kinds) > 1:
        raise DataError(
            f"Column {name!r} mixes {' and '.join(sorted(kinds))}; turn its values "
            f"into one type, e.g. all into text."
        )
    if dtype == nw.Object and kinds == {"numbers"} and not asked:
        raise DataError(
            f"Column {name!r} holds numbers kept as objects. Turn them into a type of "
            f"numbers (e.g. with astype(float)), or name the column in `categorical` "
            f"if they are codes."
        )
    return _in_order(values, kinds)


def _declared(column: Column) -> list[Any] | None:
    """The categories that the type of a column declares, if it does."""
    if column.dtype not in (nw.Categorical, nw.Enum):
        return None
    if column.dtype == nw.Categorical and column.implementation.is_polars():
        return None
    try:
        declared = column.cat.get_categories().to_list()
    except AttributeError:  # Arrow dictionaries inside pandas
        return None
    # An Arrow dictionary may hold a null, and one that declares nothing is no help.
    return [value for value in declared if value is not None] or None


def _distinct(column: Column, name: str) -> tuple[set[Category], set[str]]:
    """The different values of a column, and of what kinds they are."""
    found: set[Any] = set()
    types: set[type] = set()
    for _, part in _chunks(column):
        present = ~part.is_null().to_numpy()
        values = list(compress(part.to_list(), present))
        # True equals 1 in a set, so types are told apart before.
        types.update(map(type, values))
        try:
            found.update(values)
        except TypeError:  # lists and other things without a hash
            bad = next(value for value in values if not _is_category(value))
            _as_category(bad, name)
    distinct = {_as_category(value, name) for value in found if value == value}
    if not distinct and len(column):
        raise DataError(f"Column {name!r} holds no values, all are missing; drop it.")
    return distinct, {_kind(cls) for cls in types}


def _in_order(values: set[Category], kinds: set[str]) -> tuple[Category, ...]:
    if kinds == {"booleans"}:
        return (False, True)
    ordered = sorted(values)
    # Integers become floats where values are missing; the codes should not tell.
    if all(isinstance(value, float) and value.is_integer() for value in ordered):
        return tuple(int(value) for value in ordered)
    return tuple(ordered)


def _kind(cls: type) -> str:
    if issubclass(cls, str):
        return "text"
    return "booleans" if issubclass(cls, (bool, np.bool_)) else "numbers"


def _is_category(value: Any) -> bool:
    return isinstance(value, (str, bool, int, float, np.bool_, np.integer, np.floating))


def _as_category(value: Any, name: str) -> Category:
    """A value as plain text, boolean, integer or float."""
    if not _is_category(value):
        raise DataError(
            f"Column {name!r} holds values of type {type(value).__name__}, such as "
            f"{str(value)[:40]!r}. Categories are text, numbers or booleans: turn the "
            f"values into text, or drop the column."
        )
    if isinstance(value, str):
        return str(value)
    plain: Category = value.item() if isinstance(value, np.generic) else value
    return plain


def _refuse_other(column: Column, name: str) -> None:
    if column.is_null().all():
        raise DataError(f"Column {name!r} holds no values, all are missing; drop it.")
    raise DataError(
        f"Column {name!r} holds {column.dtype}, neither numbers nor categories. Drop "
        f"it, or turn it into numbers or text first."
    )


# ---------------------------------------------------------------- codes


def _encode(column: Column, name: str, categories: tuple[Category, ...]) -> IntArray:
    """Codes of a whole column, `_MISSING` where it has no value."""
    code_of = {value: code for code, value in enumerate(categories)}
    codes = np.empty(len(column), dtype=np.int32)
    for start, part in _chunks(column):
        values = part.to_list()
        here = codes[start : start + len(values)]
        try:
            here[:] = [code_of.get(value, _UNKNOWN) for value in values]
        except TypeError:  # no hash
            _as_category(next(v for v in values if not _is_category(v)), name)
        here[part.is_null().to_numpy()] = _MISSING
        for i in np.flatnonzero(here == _UNKNOWN):
            if values[i] == values[i]:
                _refuse_unknown(values[i], name, start + int(i), categories)
            here[i] = _MISSING
    return codes


def _refuse_unknown(
    value: Any, name: str, row: int, categories: tuple[Category, ...]
) -> None:
    shown = ", ".join(repr(category)[:40] for category in categories[:5])
    more = ", ..." if len(categories) > 5 else ""
    value = value.item() if isinstance(value, np.generic) else value
    raise DataError(
        f"Column {name!r} holds {repr(value)[:80]} (row {row}), which is none of the "
        f"categories of the fit ({shown}{more}). Give it as missing, or fit again with "
        f"a categorical dtype that declares it."
    )


def _chunks(column: Column) -> Iterator[tuple[int, Column]]:
    if column.dtype == nw.Categorical and column.implementation.is_pyarrow():
        # pyarrow looks values up in a dictionary one by one, ten times slower.
        column = column.cast(column.cat.get_categories().dtype)
    for start in range(0, len(column), _CHUNK_ROWS):
        yield start, column[start : start + _CHUNK_ROWS]


# ---------------------------------------------------------------- numbers


def _check_numbers(column: Column, name: str) -> Any:
    """The column if it holds numbers; all missing if it has no values at all."""
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return column
    if column.is_null().all():  # no value, so its type tells nothing
        return np.full(len(column), _MISSING, dtype=np.int32)
    raise DataError(
        f"Column {name!r} holds {column.dtype}, but held numbers in the fit; turn its "
        f"values into numbers."
    )
