"""Values from the JSON and arrays that `kplus.core.encoding` made of them.

Nothing that is read is trusted: only `ModelFormatError` comes out for an outline that
no encoder wrote. No class is imported but those of the tables in `kplus.core.storable`,
and no code is run but their constructors.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from kplus.core.encoding import COLUMNS, MAX_DEPTH, SCALARS
from kplus.core.errors import ModelFormatError
from kplus.core.storable import find_class

__all__ = ["Decoder", "decode", "size_of"]

_FLOATS = ["float16", "float32", "float64"]
_NON_FINITE = ("inf", "-inf", "nan")
_ORDERS = ("C", "F")
_KEYS = {
    "array": ("name",),
    "dict": ("items",),
    "float": ("value",),
    "map": ("keys", "values"),
    "nan": ("dtype", "bits"),
    "objects": ("shape", "items"),
    "part": ("at",),
    "range": ("items",),
    "record": ("class", "fields"),
    "scalar": ("dtype", "value"),
    "strings": ("name",),
    "table": ("columns",),
    "tuple": ("items",),
    "values": ("type", "array"),
}
_PLACED = ("array", "part")
_SHARED = (*_PLACED, "objects", "strings", "table", "values")


class Decoder:
    """Makes values of outlines; anything odd is refused.

    Each number of the arrays is used once, for a short file must not fill the memory.
    What was stored once and is referred to twice becomes one object.

    Parameters
    ----------
    read : callable
        Returns the array of a name. It is called once for each name, and raises
        `ModelFormatError` if there is none.
    classes : mapping of str to str
        The records that the file may hold; see `kplus.core.storable`.
    """

    def __init__(
        self, read: Callable[[Any], np.ndarray], classes: Mapping[str, str]
    ) -> None:
        self._read, self._classes = read, classes
        self._strings: dict[str, np.ndarray] = {}
        self._unused: dict[str, int] = {}
        self._known: dict[str, Any] = {}
        self._records: dict[str, tuple[Any, list[str]]] = {}

    def decode(self, node: Any, depth: int = 0) -> Any:
        """The value that was encoded as `node`."""
        if depth > MAX_DEPTH:
            raise _bad("are nested too deeply")
        if isinstance(node, list):
            return [self.decode(item, depth + 1) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node.get("kind")
        if not isinstance(kind, str) or kind not in _KEYS:
            raise _bad(f"have a value of unknown kind {str(kind)[:40]!r}")
        if kind not in _SHARED:
            return self._make(node, depth)
        key = repr(node)
        if key not in self._known:
            self._known[key] = self._make(node, depth)
        return self._known[key]

    def check_all_used(self) -> None:
        """Refuse numbers that belong to nothing."""
        for name, unused in self._unused.items():
            if unused:
                raise ModelFormatError(f"a part of array {name} belongs to nothing.")

    def _make(self, node: dict[str, Any], depth: int = 0) -> Any:
        kind = node["kind"]
        keys = _KEYS[kind]
        if node.keys() != {"kind", *keys}:
            raise _bad(f"have an incomplete value of kind {kind}")
        make = getattr(self, f"make_{kind}")
        return make(*(node[key] for key in keys), depth=depth + 1)

    def _placed(self, node: Any) -> Any:
        """An array that no other node refers to."""
        if not isinstance(node, dict) or node.get("kind") not in _PLACED:
            raise _bad("have columns that are no arrays")
        return self._make(node)

    # ------------------------------------------------------------- arrays

    def make_array(self, name: Any, depth: int = 0) -> Any:
        return self._read(name)

    def make_part(self, at: Any, depth: int = 0) -> Any:
        if not (isinstance(at, list) and len(at) == 4 and at[3] in _ORDERS):
            raise _bad("name a part of no array")
        name, start, shape, order = at
        size = size_of(shape)
        string = self._string(name)
        there = type(start) is int and 0 <= start <= start + size <= len(string)
        if not there or self._unused[name] < size:
            raise _bad("name numbers that are not there")
        self._unused[name] -= size
        return _reshaped(string[start : start + size].copy(), shape, order)

    def _string(self, name: Any) -> np.ndarray:
        if not isinstance(name, str) or name not in self._strings:
            string = self._read(name)
            if string.ndim != 1:
                raise _bad("name a part of no string")
            self._strings[name], self._unused[name] = string, len(string)
        return self._strings[name]

    def make_table(self, columns: Any, depth: int = 0) -> Any:
        arrays = [self._placed(node) for node in _checked(columns, dict).values()]
        shapes = {array.shape for array in arrays}
        if len(shapes) != 1 or "" in columns or len(arrays[0].shape) != 1:
            raise _bad("have a table whose columns do not match")
        out = np.empty(
            len(arrays[0]),
            [(name, array.dtype) for name, array in zip(columns, arrays, strict=True)],
        )
        for name, array in zip(columns, arrays, strict=True):
            out[name] = array
        return out

    def make_strings(self, name: Any, depth: int = 0) -> Any:
        text = self._read(name)
        if text.dtype.kind != "U":
            raise ModelFormatError(f"array {name}: it is not text.")
        return text.astype(object)

    def make_values(self, cls: Any, array: Any, depth: int = 0) -> Any:
        values = self._placed(array)
        if values.ndim != 1 or not (
            values.dtype.kind == "U" or values.dtype in COLUMNS.values()
        ):
            raise _bad("have a list of no plain values")
        if cls not in ("list", "tuple"):
            raise _bad("have values that are no list")
        return tuple(values.tolist()) if cls == "tuple" else values.tolist()

    def make_objects(self, shape: Any, items: Any, depth: int = 0) -> Any:
        size = size_of(shape)
        if isinstance(items, dict) and items.get("kind") == "values":
            values = self._make(items)
        else:
            values = self.decode(_checked(items, list), depth)
        if len(values) != size:
            raise _bad("have an array of objects that is incomplete")
        flat = np.empty(size, dtype=object)
        for i, value in enumerate(values):
            flat[i] = value
        return _reshaped(flat, shape, "C")

    # ----------------------------------------------------- all other kinds

    def make_float(self, text: Any, depth: int) -> float:
        if text not in _NON_FINITE:
            raise _bad("have an invalid float")
        return float(text)

    def make_scalar(self, dtype: Any, node: Any, depth: int) -> Any:
        value = self.decode(node, depth)
        if dtype in SCALARS and type(value) in (bool, int, float):
            try:
                with np.errstate(all="ignore"):
                    scalar = np.dtype(dtype).type(value)
            except (OverflowError, ValueError):  # such as 300 for int8
                scalar = None
            # Equal after the round trip, or nan both times.
            if scalar is not None and repr(scalar.item()) == repr(value):
                return scalar
        raise _bad(f"have a bad scalar of type {str(dtype)[:40]}")

    def make_nan(self, dtype: Any, bits: Any, depth: int) -> Any:
        if dtype in _FLOATS and isinstance(bits, str):
            try:
                raw = bytes.fromhex(bits)
            except ValueError:
                raw = b""
            if len(raw) == np.dtype(dtype).itemsize:
                scalar = np.frombuffer(raw, dtype)[0]
                if np.isnan(scalar):
                    return scalar
        raise _bad(f"have a bad nan of type {str(dtype)[:40]}")

    def make_range(self, items: Any, depth: int) -> range:
        if not isinstance(items, list) or list(map(type, items)) != [int] * 3:
            raise _bad("have an invalid range")
        if items[2] == 0:
            raise _bad("have a range without a step")
        return range(*items)

    def make_tuple(self, items: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(_checked(items, list, "tuple"), depth))

    def make_dict(self, items: Any, depth: int) -> dict[str, Any]:
        nodes = _checked(items, dict)
        return {key: self.decode(node, depth) for key, node in nodes.items()}

    def make_map(self, keys: Any, values: Any, depth: int) -> dict[Any, Any]:
        names = self.decode(_checked(keys, list), depth)
        items = self.decode(_checked(values, list), depth)
        try:
            return dict(zip(names, items, strict=True))
        except (TypeError, ValueError) as error:
            raise _bad("have an invalid dict") from error

    def make_record(self, name: Any, fields: Any, depth: int) -> Any:
        if not isinstance(name, str) or name not in self._classes:
            raise ModelFormatError(f"it holds an unknown {str(name)[:60]!r}.")
        if name not in self._records:
            cls: Any = find_class(name, self._classes)
            numbers = [f.name for f in dataclasses.fields(cls) if f.type is int]
            self._records[name] = cls, numbers
        cls, numbers = self._records[name]
        renamed = getattr(cls, "renamed_fields", {})  # from their names in older files
        values = self.make_dict(fields, depth)
        values = {renamed.get(field, field): value for field, value in values.items()}
        try:
            for number in numbers:
                if not isinstance(values.get(number, 0), Integral):
                    raise TypeError(f"{number} is no whole number")
            return cls(**values)
        except Exception as error:  # constructors raise what they like
            raise ModelFormatError(
                f"its contents do not make a {name}: {error}"
            ) from error


def decode(
    outline: Any, arrays: Mapping[str, np.ndarray], classes: Mapping[str, str]
) -> Any:
    """The value that was encoded as an outline and arrays, which are in memory."""
    unused = dict(arrays)

    def read(name: Any) -> np.ndarray:
        if not isinstance(name, str) or name not in unused:
            raise _bad("name an array that is not there or already in use")
        return unused.pop(name)

    return Decoder(read, classes).decode(outline)


def _bad(what: str) -> ModelFormatError:
    return ModelFormatError(f"its contents {what}.")


def _checked(node: Any, cls: type, what: str = "") -> Any:
    if not isinstance(node, cls):
        raise _bad(f"have an invalid {what or cls.__name__}")
    return node


def size_of(shape: Any) -> int:
    """Number of items; a list of lengths is asked for."""
    if not isinstance(shape, list) or any(type(n) is not int or n < 0 for n in shape):
        raise _bad("have an invalid shape")
    return math.prod(shape)


def _reshaped(flat: np.ndarray, shape: list[int], order: Any) -> np.ndarray:
    try:
        return flat.reshape(shape, order=order)
    except (ValueError, OverflowError) as error:  # such as (0, 2**61)
        raise _bad(f"have an array of shape {str(shape)[:60]}") from error
