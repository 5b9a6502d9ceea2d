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
    chosen = np.zeros(n_columns, dtype=bool)
    if isinstance(categorical, str) and categorical == FROM_DTYPE:
        return chosen
    entries = _entries(categorical)
    if not entries:
        return chosen
    kind = _kind(entries)
    if kind == "mask":
        return _by_mask(entries, n_columns, names)
    for entry in entries:
        chosen[_position(entry, kind, n_columns, names)] = True
    return chosen


def _entries(categorical: Any) -> list[Any]:
    if not isinstance(categorical, (str, bytes)):
        try:
            return list(categorical)
        except TypeError:  # not iterable
            pass
    raise DataError(
        f"categorical_features must be {FROM_DTYPE!r}, {_FORMS}; got {categorical!r}."
    )


def _kind(entries: Sequence[Any]) -> str:
    """Whether entries are names, numbers or a mask; they must be all of one kind."""
    kinds = {_kind_of(entry) for entry in entries}
    if len(kinds) == 1 and kinds < {"mask", "numbers", "names"}:
        return kinds.pop()
    raise DataError(
        f"categorical_features must be {_FORMS}; got a mixture of "
        f"{' and '.join(sorted(kinds))}: {str(entries)[:80]}."
    )


def _kind_of(entry: Any) -> str:
    if isinstance(entry, (bool, np.bool_)):  # first, as a bool is an int, too
        return "mask"
    if isinstance(entry, (int, np.integer)):
        return "numbers"
    return "names" if isinstance(entry, str) else type(entry).__name__


def _by_mask(
    entries: Sequence[Any], n_columns: int, names: Sequence[str] | None
) -> NDArray[np.bool_]:
    if len(entries) != n_columns:
        raise DataError(
            f"categorical_features is a mask of {len(entries)} entries, but there are "
            f"{n_columns} columns{_listed(names)}."
        )
    return np.array(entries, dtype=bool)


def _position(
    entry: Any, kind: str, n_columns: int, names: Sequence[str] | None
) -> int:
    if kind == "numbers":
        if 0 <= entry < n_columns:
            return int(entry)
        raise DataError(
            f"categorical_features: there is no column {entry}; the columns are "
            f"numbered from 0 to {n_columns - 1}{_listed(names)}."
        )
    if names is None:
        raise DataError(
            f"categorical_features has the name {str(entry)!r}, but the columns of X "
            f"have no names: give their numbers, from 0 to {n_columns - 1}, or a mask."
        )
    if entry not in names:
        raise DataError(
            f"categorical_features: there is no column {str(entry)!r}{_listed(names)}."
        )
    return list(names).index(entry)


def _listed(names: Sequence[str] | None) -> str:
    if names is None:
        return ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"; the columns are {list(names[:_SHOWN])}{more}"
