"""Tables with categories: how values become codes, and blocks of such tables.

In a block a category column holds the codes 0, 1, ..., and NaN where a value is
missing. The codes of a data frame are made once, when it is opened; numbers are
converted when a block is read, as in `kplus.sources.blocks`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kplus.core.errors import DataError
from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks, IntArray
from kplus.sources.blocks import as_float_column
from kplus.sources.chosen import FROM_DTYPE, Choice, chosen_columns
from kplus.sources.factors import (
    MISSING,
    Column,
    Factors,
    declared_categories,
    encode,
    factorize,
)
from kplus.sources.kept import KeptBlocks
from kplus.sources.values import (
    Category,
    as_category,
    in_order,
    kinds_of,
    refuse_empty,
    refuse_mixture,
)

__all__ = [
    "Category",
    "CodedFrameBlocks",
    "Coding",
    "check_names",
    "count_levels",
    "find_categories",
    "holds_numbers",
]


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
    def of(cls, frame: Any, categorical: Choice = FROM_DTYPE) -> "Coding":
        """Find the categories of a pandas, polars or Arrow table.

        Columns of text, categories and booleans are categories by themselves, also
        where pandas keeps them as objects.

        Parameters
        ----------
        frame : DataFrame or Table
        categorical : "from_dtype", or names, numbers or a mask of columns
            Further columns to take as categories, such as integers that are codes.

        Raises
        ------
        DataError
            A column holds dates, lists or the like, a mixture of text and numbers, or
            no value at all, or `categorical` asks for a column that is not there.
        """
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
        names = tuple(str(name) for name in table.columns)
        chosen = chosen_columns(categorical, len(names), names)
        return cls(
            names,
            tuple(
                find_categories(column.dtype, [column], repr(name), bool(asked))
                for name, column, asked in zip(
                    names, table.iter_columns(), chosen, strict=True
                )
            ),
        )

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


class CodedFrameBlocks(KeptBlocks):
    """Blocks of a pandas, polars or Arrow table with numbers and categories.

    Parameters
    ----------
    frame : DataFrame or Table
        Has the columns of `coding`, in that order.
    coding : Coding
        Says which columns are categories, and their codes.
    block_rows : int or None
        Rows of a block; by default it depends on the number of columns.
    unknown : {"error", "missing"}
        What a value is that is none of the coding's categories.

    Raises
    ------
    DataError
        The columns are others, a number column holds something else, or a category
        is not one of the coding's.
    """

    def __init__(
        self,
        frame: Any,
        coding: Coding,
        block_rows: int | None = None,
        unknown: str = "error",
    ) -> None:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
        self.feature_names = [str(name) for name in table.columns]
        check_names(self.feature_names, coding)
        super().__init__(*table.shape, block_rows)
        # A column as codes, or as it is.
        self._columns = [
            _check_numbers(column, repr(name))
            if categories is None
            else encode(column, repr(name), categories, unknown)
            for column, name, categories in zip(
                table.iter_columns(), coding.names, coding.categories, strict=True
            )
        ]
        self.keep_if_small()

    def gather(self, rows: slice | IntArray, n_rows: int) -> Array:
        out = np.empty((n_rows, self.n_features))
        for j, column in enumerate(self._columns):
            part = column[rows]
            if isinstance(part, np.ndarray):
                out[:, j] = part
                out[part == MISSING, j] = np.nan
            else:
                out[:, j] = as_float_column(part)
        return out


def check_names(names: list[str], coding: Coding) -> None:
    """Refuse columns that are not those of the coding."""
    if names != list(coding.names):
        raise DataError(
            f"The columns {names} are not those of the fit, {list(coding.names)}; give "
            f"the same columns in the same order."
        )


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


# ---------------------------------------------------------------- categories


def find_categories(
    dtype: Any, parts: Iterable[Column], label: str, asked: bool
) -> tuple[Category, ...] | None:
    """Categories of a column in the order of their codes, or None for numbers.

    Parameters
    ----------
    dtype : narwhals DType
        Type of the column.
    parts : iterable of narwhals Series
        Its values. Only the different ones are kept in memory.
    label : str
        What errors call the column.
    asked : bool
        Whether numbers are categories.
    """
    if dtype.is_numeric() and not asked:
        return None
    if dtype == nw.Boolean:
        return (False, True)
    found: dict[Any, None] = {}  # in the order in which values are met
    types: set[type] = set()
    n_rows, declared = 0, None
    for part in parts:
        n_rows += len(part)
        # Text may come in dictionaries, too, which declare nothing then.
        declared = None if dtype == nw.String else declared_categories(part)
        if declared is None:
            factors = factorize(part, label)
            types |= _types_of(part, factors)
            declared_or_met = factors.occurring()
        else:
            declared_or_met = declared
        found.update(dict.fromkeys(declared_or_met))
    if n_rows and not found:
        refuse_empty(label)
    values = [as_category(value, label) for value in found]
    if declared is not None:
        return tuple(values)
    return _sorted(values, kinds_of(types), label, dtype == nw.Object and not asked)


def _types_of(column: Column, factors: Factors) -> set[type]:
    if column.dtype != nw.Object:
        return set(map(type, factors.occurring()))
    # True equals 1, so that one of them may hide behind the other.
    objects = np.asarray(column.to_numpy(), dtype=object)
    missing = column.is_null().to_numpy()
    return set(map(type, objects[~missing]))


def _sorted(
    values: list[Category], kinds: set[str], label: str, guess: bool
) -> tuple[Category, ...]:
    if len(kinds) > 1:
        refuse_mixture(label, kinds)
    if guess and kinds == {"numbers"}:
        raise DataError(
            f"Column {label} holds numbers kept as objects. Turn them into a type of "
            f"numbers (e.g. with astype(float)), or name the column in "
            f"categorical_features if they are codes."
        )
    return in_order(values, kinds)


# ---------------------------------------------------------------- numbers


def holds_numbers(dtype: Any, parts: Iterable[Column], label: str) -> bool:
    """Whether a column that held numbers in the fit does so; False: it has no values.

    Raises
    ------
    DataError
        It has values that are no numbers.
    """
    if dtype.is_numeric() or dtype == nw.Boolean:
        return True
    if all(part.is_null().all() for part in parts):
        return False
    raise DataError(
        f"Column {label} holds {dtype}, but held numbers in the fit; turn its values "
        f"into numbers."
    )


def _check_numbers(column: Column, label: str) -> Any:
    """The column if it holds numbers; all missing if it has no values at all."""
    if holds_numbers(column.dtype, [column], label):
        return column
    return np.full(len(column), MISSING, dtype=np.int8)
