"""Which columns of a table are used, and which of them are categories."""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import ColumnChoiceError, DataError

if TYPE_CHECKING:
    from kplus.data.arrow import Columns

__all__ = [
    "FROM_DTYPE",
    "CategoricalSpec",
    "categorical_mask",
    "refuse_twice",
    "select_columns",
    "unknown_column",
]

FROM_DTYPE = "from_dtype"
"""No columns but those whose type says that they are categories."""

CategoricalSpec = str | Iterable[str] | Iterable[int] | Iterable[bool]
"""`FROM_DTYPE`, or names, numbers or a mask of columns."""

_MAX_LISTED = 20
_FORMS = (
    "a list of the names of columns, a list of their numbers, or a mask (True or False "
    "for each column)"
)
_KINDS: dict[str, Any] = {  # in this order, as a bool is an int, too
    "mask": (bool, np.bool_),
    "numbers": (int, np.integer),
    "names": str,
}


def categorical_mask(
    categorical: CategoricalSpec, n_columns: int, names: Sequence[str] | None = None
) -> NDArray[np.bool_]:
    """Read what a user gave as `categorical_features`.

    Parameters
    ----------
    categorical : "from_dtype", or names, numbers or a mask of columns
        Columns to take as categories beside those that are categories by their type.
    n_columns : int
        Number of columns of the table.
    names : sequence of str or None
        Their names, if they have some.

    Returns
    -------
    mask : (n_columns,) bool array

    Raises
    ------
    DataError
        There is no such column, the mask has another length, or it is none of these.

    Examples
    --------
    >>> categorical_mask(["room"], 2, ["size", "room"])
    array([False,  True])
    >>> categorical_mask([1], 2)
    array([False,  True])
    >>> categorical_mask([True, False], 2)
    array([ True, False])
    """
    entries = _entries(categorical)
    kinds = sorted({_kind(entry) for entry in entries})
    mask = np.zeros(n_columns, dtype=bool)
    if not kinds:
        return mask
    if len(kinds) > 1 or kinds[0] not in _KINDS:
        raise DataError(
            f"categorical_features must be {_FORMS}; got a mixture of "
            f"{' and '.join(kinds)}: {str(entries)[:80]}."
        )
    if kinds == ["mask"]:
        if len(entries) == n_columns:
            return np.array(entries, dtype=bool)
        raise DataError(
            f"categorical_features is a mask of {len(entries)} entries, but there are "
            f"{n_columns} columns{_listed(names)}."
        )
    known = range(n_columns) if kinds == ["numbers"] else names
    for entry in entries:
        if known is None or entry not in known:
            raise _no_column(entry, n_columns, names)
        mask[known.index(entry)] = True
    return mask


def _entries(categorical: Any) -> list[Any]:
    if isinstance(categorical, str) and categorical == FROM_DTYPE:
        return []
    if not isinstance(categorical, (str, bytes)):
        try:
            return list(categorical)
        except TypeError:  # not iterable
            pass
    raise DataError(
        f"categorical_features must be {FROM_DTYPE!r}, {_FORMS}; got {categorical!r}."
    )


def _kind(entry: Any) -> str:
    of = (kind for kind, types in _KINDS.items() if isinstance(entry, types))
    return next(of, type(entry).__name__)


def _no_column(entry: Any, n_columns: int, names: Sequence[str] | None) -> DataError:
    if not isinstance(entry, str):
        return DataError(
            f"categorical_features: there is no column {entry}; the columns are "
            f"numbered from 0 to {n_columns - 1}{_listed(names)}."
        )
    if names is None:
        return DataError(
            f"categorical_features has the name {str(entry)!r}, but the columns of X "
            f"have no names: give their numbers, from 0 to {n_columns - 1}, or a mask."
        )
    return DataError(
        f"categorical_features: there is no column {str(entry)!r}{_listed(names)}."
    )


def _listed(names: Sequence[str] | None) -> str:
    if names is None:
        return ""
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return f"; the columns are {list(names[:_MAX_LISTED])}{more}"


# ---------------------------------------------------------------- names


def refuse_twice(where: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(
                f"{where} has {count} columns called {name!r}; rename them."
            )


def unknown_column(where: str, name: str, names: Sequence[str]) -> ColumnChoiceError:
    """The error for a column that is not there, with one that may have been meant."""
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return ColumnChoiceError(
            f"{where} has no column {name!r}; did you mean {close[0]!r}?"
        )
    listed = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    return ColumnChoiceError(
        f"{where} has no column {name!r}; its columns are {listed}."
    )


def select_columns(
    table: "Columns",
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    index: str | None = None,
    where: str | None = None,
) -> tuple[list[str], str | None]:
    """Which columns a user chose.

    Parameters
    ----------
    table : Columns
    columns : sequence of str or None
        The columns to use; by default those of the table.
    drop : sequence of str
        Columns to leave out.
    index : str or None
        The column that names the rows; by default the index that is stored, if any.
    where : str, optional
        What errors call the table.

    Returns
    -------
    names : list of str
        The columns to use, in order.
    index : str or None
        The column that names the rows; None: nothing names them.

    Raises
    ------
    ColumnChoiceError
        A column is not there or chosen twice, or none is left.
    """
    where = str(table) if where is None else where
    known, stored = table.schema.names, table.index_names
    for name in [*([] if index is None else [index]), *(columns or ()), *drop]:
        if name not in known:
            raise unknown_column(where, name, known)
    used = table.names if columns is None else columns
    names = [name for name in used if name not in drop]
    twice = sorted({name for name in names if names.count(name) > 1})
    if columns is not None and index in names:
        twice = [index]
    if twice:
        raise ColumnChoiceError(f"Column {twice[0]!r} is asked for twice.")
    if index is None and len(stored) == 1:
        index = stored[0]
    if columns is None:
        names = [name for name in names if name != index]
    if not names:
        raise ColumnChoiceError(f"No column of {where} is left to use.")
    return names, index
