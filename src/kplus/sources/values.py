"""The values of categories: which there may be, and in what order."""

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from kplus.core.errors import DataError

__all__ = [
    "Category",
    "as_category",
    "in_order",
    "is_category",
    "is_missing",
    "kinds_of",
    "refuse_empty",
    "refuse_mixture",
]

Category = str | int | float | bool


def is_category(value: Any) -> bool:
    """Whether a value can be a category: text, a boolean or a number."""
    return isinstance(value, (str, bool, int, float, np.bool_, np.integer, np.floating))


def is_missing(value: Any) -> bool:
    """Whether a value among others of its column stands for none: None or NaN."""
    return value is None or (is_category(value) and value != value)


def as_category(value: Any, label: str) -> Category:
    """A value as plain text, boolean, integer or float."""
    if not is_category(value):
        raise DataError(
            f"Column {label} holds values of type {type(value).__name__}, such as "
            f"{str(value)[:40]!r}. Categories are text, numbers or booleans: turn the "
            f"values into text, or drop the column."
        )
    if isinstance(value, str):
        return str(value)
    plain: Category = value.item() if isinstance(value, np.generic) else value
    return plain


def kinds_of(types: Iterable[type]) -> set[str]:
    """Of what kinds values of these types are: text, booleans, numbers."""
    return {_kind(cls) for cls in types}


def _kind(cls: type) -> str:
    if issubclass(cls, str):
        return "text"
    return "booleans" if issubclass(cls, (bool, np.bool_)) else "numbers"


def in_order(values: Iterable[Category], kinds: set[str]) -> tuple[Category, ...]:
    """Different values of one kind in the order of their codes."""
    if kinds == {"booleans"}:
        return (False, True)
    ordered = sorted(values)
    # Integers become floats where values are missing; the codes should not tell.
    if all(isinstance(value, float) and value.is_integer() for value in ordered):
        return tuple(int(value) for value in ordered)
    return tuple(ordered)


def refuse_empty(label: str) -> NoReturn:
    raise DataError(f"Column {label} holds no values, all are missing; drop it.")


def refuse_mixture(label: str, kinds: set[str]) -> NoReturn:
    raise DataError(
        f"Column {label} mixes {' and '.join(sorted(kinds))}; turn its values into one "
        f"type, e.g. all into text."
    )
