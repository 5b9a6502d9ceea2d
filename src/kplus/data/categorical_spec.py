"""Which columns of a table are to be categories, whatever their type."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError

__all__ = ["FROM_DTYPE", "Choice", "chosen_columns"]

FROM_DTYPE = "from_dtype"
"""No columns but those whose type says that they are categories."""

Choice = str | Iterable[str] | Iterable[int] | Iterable[bool]
"""`FROM_DTYPE`, or names, numbers or a mask of columns."""

_SHOWN = 20
_FORMS = (
    "a list of the names of columns, a list of their numbers, or a mask (True or False "
    "for each column)"
)
_KINDS: dict[str, Any] = {  # in this order, as a bool is an int, too
    "mask": (bool, np.bool_),
    "numbers": (int, np.integer),
    "names": str,
}


def chosen_columns(
    categorical: Choice, n_columns: int, names: Sequence[str] | None = None
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
    chosen : (n_columns,) bool array

    Raises
    ------
    DataError
        There is no such column, the mask has another length, or it is none of these.

    Examples
    --------
    >>> chosen_columns(["room"], 2, ["size", "room"])
    array([False,  True])
    >>> chosen_columns([1], 2)
    array([False,  True])
    >>> chosen_columns([True, False], 2)
    array([ True, False])
    """
    entries = _entries(categorical)
    kinds = sorted({_kind(entry) for entry in entries})
    chosen = np.zeros(n_columns, dtype=bool)
    if not kinds:
        return chosen
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
        chosen[known.index(entry)] = True
    return chosen


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
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"; the columns are {list(names[:_SHOWN])}{more}"
