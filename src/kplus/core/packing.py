"""The state of a fit as JSON and a few long arrays, and back.

Arrays are strung together, one string for each type of numbers, as a fit has thousands
of small ones. Records are dataclasses of this package, named by module and class:
nothing else is ever imported, and no code is run but their constructors.
"""

import dataclasses
import json
import math
from collections.abc import Iterable
from importlib import import_module
from numbers import Integral
from typing import Any

import numpy as np

from kplus.core.errors import ModelFormatError

__all__ = ["pack", "pack_parts", "unpack"]

_OUTLINE = "outline"
_TYPES = ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1")
_ROOMS = (
    "core",
    "engine",
    "loop",
    "models",
    "moves",
    "observations",
    "search",
    "sources",
)
_MAX_DEPTH = 32
_PLAIN = (bool, int, str, type(None))
_SEQUENCES: dict[type, str] = {list: "l", tuple: "t"}


# ---------------------------------------------------------------- packing


def pack(value: Any) -> dict[str, np.ndarray]:
    """Arrays that `unpack` makes an equal value of."""
    return {kind: np.concatenate(parts) for kind, parts in pack_parts(value).items()}


def pack_parts(value: Any) -> dict[str, list[np.ndarray]]:
    """The arrays of `pack`, each in flat parts: those of the value, not copied."""
    packer = _Packer()
    text = json.dumps(packer.node(value, 0), allow_nan=False, separators=(",", ":"))
    outline = np.frombuffer(text.encode("ascii"), np.uint8)
    return {_OUTLINE: [outline]} | packer.parts


class _Packer:
    def __init__(self) -> None:
        self.parts: dict[str, list[np.ndarray]] = {}
        self._lengths: dict[str, int] = {}
        self._known: dict[int, tuple[np.ndarray, list[Any]]] = {}

    def node(self, value: Any, depth: int) -> Any:
        """JSON for a value; what is not plain is a list that begins with its kind."""
        if depth > _MAX_DEPTH:
            raise TypeError("the state of a fit is nested too deeply for a checkpoint.")
        if type(value) in _PLAIN:
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return ["n", self._array(np.asarray(value))]
        if type(value) is float:
            return ["f", value.hex()]
        if type(value) is range:
            return ["r", value.start, value.stop, value.step]
        if type(value) in _SEQUENCES:
            return [_SEQUENCES[type(value)], *self._nodes(value, depth + 1)]
        if type(value) is dict:
            return ["d", self._nodes(value, depth), self._nodes(value.values(), depth)]
        return self._record(value, depth)

    def _nodes(self, values: Iterable[Any], depth: int) -> list[Any]:
        return [self.node(value, depth + 1) for value in values]

    def _array(self, array: np.ndarray) -> list[Any]:
        if id(array) in self._known:
            return self._known[id(array)][1]
        kind = array.dtype.str[1:]
        if array.dtype.names is not None:
            names = list(array.dtype.names)
            node: list[Any] = ["s", names, *(self._array(array[n]) for n in names)]
        elif kind not in _TYPES:
            raise TypeError(f"a checkpoint cannot hold arrays of {array.dtype}.")
        else:
            fortran = array.flags.f_contiguous and not array.flags.c_contiguous
            start = self._lengths.get(kind, 0)
            flat = array.ravel(order="F" if fortran else "C")
            self.parts.setdefault(kind, []).append(flat)
            self._lengths[kind] = start + flat.size
            node = ["a", kind, start, list(array.shape), int(fortran)]
        self._known[id(array)] = array, node
        return node

    def _record(self, value: Any, depth: int) -> list[Any]:
        cls = type(value)
        name = f"{cls.__module__}:{cls.__qualname__}"
        if not _may_hold(name) or not dataclasses.is_dataclass(value):
            raise TypeError(f"a checkpoint cannot hold a {name}.")
        values = (getattr(value, field.name) for field in _given(value))
        return ["c", name, *self._nodes(values, depth)]


def _may_hold(name: str) -> bool:
    package, _, rest = name.partition(".")
    return package == "kplus" and rest.replace(":", ".").split(".")[0] in _ROOMS


# -------------------------------------------------------------- unpacking


def unpack(arrays: dict[str, np.ndarray]) -> Any:
    """The value that was packed; anything odd is refused."""
    unpacker = _Unpacker({k: v for k, v in arrays.items() if k != _OUTLINE})
    try:
        outline = json.loads(arrays[_OUTLINE].tobytes().decode("ascii"))
        return unpacker.value(outline, 0)
    except ModelFormatError:
        raise
    except Exception as error:  # constructors raise what they like
        raise ModelFormatError(f"its contents make no fit ({error}).") from error


class _Unpacker:
    """Each number of a string is used once: short files must not fill the memory."""

    def __init__(self, strings: dict[str, np.ndarray]) -> None:
        self._strings = strings
        self._unused = {kind: len(string) for kind, string in strings.items()}
        self._known: dict[str, np.ndarray] = {}

    def value(self, node: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ModelFormatError("its contents are nested too deeply.")
        if type(node) in _PLAIN:
            return node
        kind, *parts = node
        if kind == "f":
            return float.fromhex(parts[0])
        if kind in ("a", "s"):
            return self._array(node)
        if kind == "n":
            return self._array(parts[0])[()]
        if kind == "r":
            return range(*parts)
        if kind == "d":
            keys, values = (self._values(part, depth) for part in parts)
            return dict(zip(keys, values, strict=True))
        if kind == "c":
            return _made(parts[0], self._values(parts[1:], depth))
        items = self._values(parts, depth)
        if kind == "l":
            return items
        if kind == "t":
            return tuple(items)
        raise ModelFormatError(f"its contents have an unknown kind {str(kind)[:20]!r}.")

    def _values(self, nodes: list[Any], depth: int) -> list[Any]:
        return [self.value(node, depth + 1) for node in nodes]

    def _array(self, node: Any) -> np.ndarray:
        if node[0] == "s":
            return self._structured(node[1], [self._array(part) for part in node[2:]])
        name = json.dumps(node)
        if name not in self._known:
            self._known[name] = self._cut(*node[1:])
        return self._known[name]  # the same twice was the same array

    def _cut(self, kind: str, start: int, shape: list[int], fortran: int) -> np.ndarray:
        string, size = self._strings[kind], math.prod(shape)
        self._unused[kind] -= size
        there = 0 <= start <= start + size <= len(string) and self._unused[kind] >= 0
        if not there or min(shape, default=0) < 0:
            raise ModelFormatError("its contents name numbers that are not there.")
        flat = string[start : start + size].copy()
        return flat.reshape(shape, order="F" if fortran else "C")

    @staticmethod
    def _structured(names: list[str], columns: list[np.ndarray]) -> np.ndarray:
        fields = [(n, column.dtype) for n, column in zip(names, columns, strict=True)]
        out = np.empty(columns[0].shape, dtype=fields)
        for name, column in zip(names, columns, strict=True):
            out[name] = column
        return out


def _made(name: str, values: list[Any]) -> Any:
    if not _may_hold(name):
        raise ModelFormatError(f"it holds a {name[:60]!r}, which no fit has.")
    module, _, path = name.partition(":")
    cls: Any = getattr(import_module(module), path)
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise ModelFormatError(f"it holds a {name[:60]!r}, which no fit has.")
    given = {}
    for field, value in zip(_given(cls), values, strict=True):
        if field.type is int and not isinstance(value, Integral):
            raise ModelFormatError(f"{field.name} of a {name[:60]!r} is no number.")
        given[field.name] = value
    return cls(**given)


def _given(cls: Any) -> list[Any]:
    return [field for field in dataclasses.fields(cls) if field.init]
