"""Checks of values from a file against what the classes of a fit declare.

The records of a fit are dataclasses: their annotations are the types of their fields.
A class variable `shapes` names the axes of their arrays, as in ``{"centers": "K D",
"labels": "n <K"}``. Sizes in capitals are those of the whole state, others those of one
record. ``<K`` says that the entries are numbers of groups, or -1 for none. A whole
number with a size for its shape must be that size. What goes beyond that a record says
by a method ``consistent()``.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from kplus.core.errors import CheckpointError

__all__ = [
    "Sizes",
    "check",
    "check_same_kinds",
    "check_shape",
    "returned",
    "type_of",
]

Sizes = dict[str, int]

# What arrays of a declared type may hold; numbers may be stored as whole ones.
_KINDS = {np.floating: "fiu", np.integer: "iu", np.bool_: "b"}
_SCALARS: dict[Any, Any] = {
    int: Integral,
    float: Real,
    bool: (bool, np.bool_),
    str: str,
}


def check(value: Any, hint: Any, sizes: Sizes, name: str) -> None:
    """Refuse a value that is not of a type; sizes not known yet are learned from it.

    What may be `Any` is not looked at.
    """
    hint = next((option for option in _options(hint) if _fits(value, option)), None)
    if hint is None:
        raise CheckpointError(f"{name} is a {type(value).__name__}")
    if hint is Any:
        return
    if isinstance(value, (list, tuple)):
        for item, kind in zip(value, _items(value, hint), strict=True):
            check(item, kind, sizes, f"{name}, an entry,")
    elif is_dataclass(value):
        _check_record(value, sizes, name)


def check_same_kinds(value: Any, like: Any, name: str) -> None:
    """Refuse a record whose parts are of other classes than those of another."""
    if type(value) is not type(like):
        raise CheckpointError(f"{name} is a {type(value).__name__}")
    for field in fields(value) if is_dataclass(value) else ():
        part, other = getattr(value, field.name), getattr(like, field.name)
        if field.init and (is_dataclass(part) or is_dataclass(other)):
            check_same_kinds(part, other, f"{name}.{field.name}")


def type_of(owner: Any, name: str) -> Any:
    """The declared type of an attribute or of a property."""
    attribute = getattr(type(owner), name, None)
    if isinstance(attribute, property):
        return returned(attribute.fget)
    return _hints(type(owner)).get(name, Any)


def returned(function: Any, name: str = "return") -> Any:
    """The declared type of what a function returns, or of a parameter."""
    return get_type_hints(function).get(name, Any)


_hints: Callable[[Any], dict[str, Any]] = lru_cache(maxsize=256)(get_type_hints)


def _options(hint: Any) -> Sequence[Any]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, not looking at its parts."""
    origin = get_origin(hint) or hint
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _holds(value, hint)
    if origin is NoneType:
        return value is None
    if origin is tuple and isinstance(value, tuple):
        kinds = get_args(hint)
        return not kinds or kinds[-1] is Ellipsis or len(kinds) == len(value)
    if origin in _SCALARS:
        return isinstance(value, _SCALARS[origin])
    if not isinstance(origin, type) or getattr(origin, "_is_protocol", False):
        return True
    return origin is Any or isinstance(value, origin)


def _holds(array: np.ndarray, hint: Any) -> bool:
    """Whether an array has the numbers of its declared type."""
    (scalar,) = get_args(get_args(hint)[1])
    scalar = get_origin(scalar) or scalar
    if scalar is Any:
        return True
    if scalar in _KINDS:
        return array.dtype.kind in _KINDS[scalar]
    return bool(np.issubdtype(array.dtype, scalar))


def _items(value: Any, hint: Any) -> Sequence[Any]:
    """The types of the entries of a list or tuple."""
    kinds = get_args(hint)
    if isinstance(value, tuple) and kinds and kinds[-1] is not Ellipsis:
        return kinds
    return (kinds[0] if kinds else Any,) * len(value)


def _check_record(value: Any, sizes: Sizes, name: str) -> None:
    hints = _hints(type(value))
    for field in fields(value):
        if field.init:
            part = getattr(value, field.name)
            check(part, hints[field.name], sizes, f"{name}.{field.name}")
    own: Sizes = {}
    for field_name, axes in getattr(type(value), "shapes", {}).items():
        array = getattr(value, field_name)
        if array is not None:
            check_shape(array, axes, sizes, own, f"{name}.{field_name}")
    if hasattr(value, "consistent") and not value.consistent():
        raise CheckpointError(f"the parts of {name} do not belong together")


def check_shape(
    array: np.ndarray, spec: str, sizes: Sizes, own: Sizes, name: str
) -> None:
    """Refuse an array that has not the axes, or the groups, of a `shapes` entry."""
    *axes, last = spec.split()
    most = None
    if last.startswith("<"):
        most = (sizes | own).get(last[1:])
    else:
        axes.append(last)
    shape = array.shape if isinstance(array, np.ndarray) else (int(array),)
    known = [(sizes if axis.isupper() else own) for axis in axes]
    if len(shape) != len(axes) or any(
        there.setdefault(axis, size) != size
        for there, axis, size in zip(known, axes, shape, strict=True)
    ):
        wanted = ", ".join(
            f"{axis}={there.get(axis, '?')}"
            for there, axis in zip(known, axes, strict=True)
        )
        raise CheckpointError(f"{name} has the shape {shape}, not ({wanted})")
    if most is not None and array.size and not -1 <= array.min() <= array.max() < most:
        raise CheckpointError(f"{name} holds numbers beyond {most}")
