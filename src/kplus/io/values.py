"""Python values as JSON, with arrays set aside, and back.

``None``, booleans, integers, finite floats, text and lists are JSON as they
are; every other kind is an object with the key ``"kind"``. The tables of
:mod:`kplus.io.registry` say which classes may occur.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from kplus.core.errors import ModelFormatError
from kplus.io.registry import RECORDS, is_listed

__all__ = ["MAX_STRINGS", "Encoder", "Reader", "decode"]

MAX_DEPTH = 16
# Text objects take many times their room in a file, so their number is limited.
MAX_STRINGS = 1_000_000
_FLOATS = ["float16", "float32", "float64"]
_SCALARS = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("uint64", *_FLOATS),
]
_NON_FINITE = ("inf", "-inf", "nan")


# ---------------------------------------------------------------- encoding


class Encoder:
    """Turn values into JSON and collect the arrays met on the way.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Arrays by the dotted name of the place where they were found.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._n_strings = 0

    def encode(self, value: Any, name: str, depth: int = 0) -> Any:
        """JSON for `value`, which was found at `name`."""
        if depth > MAX_DEPTH:
            raise TypeError(f"{name} is nested too deeply for a model file.")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return _encode_float(value)
        if isinstance(value, np.generic):
            return _encode_scalar(value, name)
        if type(value) in (np.ndarray, np.memmap):
            if _is_table(value):
                return self._encode_table(value, name)
            return self._encode_array(value, name)
        if type(value) in (list, tuple, range):
            items = [
                self.encode(item, f"{name}.{i}", depth + 1)
                for i, item in enumerate(value)
            ]
            # A range comes back as the list of its numbers.
            return {"kind": "tuple", "items": items} if type(value) is tuple else items
        if type(value) is dict:
            return self._encode_dict(value, name, depth)
        if is_listed(type(value), RECORDS):
            return self._encode_record(value, name, depth)
        raise TypeError(_refusal(value, name))

    def _encode_array(self, array: np.ndarray, name: str) -> dict[str, Any]:
        kind = "array"
        if array.dtype.kind == "O":
            kind = "strings"
            array = self._as_text(array, name)
        if array.dtype.kind not in "biufcU" or not array.dtype.itemsize:
            raise TypeError(
                f"{name} is an array of dtype {array.dtype}; a model file holds "
                "booleans, numbers and text."
            )
        if name in self.arrays:
            raise ValueError(f"two arrays would be stored under the name {name}.")
        self.arrays[name] = array
        return {"kind": kind, "name": name}

    def _encode_table(self, table: np.ndarray, name: str) -> dict[str, Any]:
        """A structured array, column by column."""
        columns = {
            key: self._encode_array(np.ascontiguousarray(table[key]), f"{name}.{i}")
            for i, key in enumerate(table.dtype.names or ())
        }
        return {"kind": "table", "columns": columns}

    def _as_text(self, array: np.ndarray, name: str) -> np.ndarray:
        self._n_strings += array.size
        if self._n_strings > MAX_STRINGS:
            raise ValueError(f"{name}: a model file holds at most {MAX_STRINGS} names.")
        if not all(isinstance(item, str) for item in array.flat):
            raise TypeError(
                f"{name} is an array of objects that are not all text, which a "
                "model file cannot hold."
            )
        text = array.astype(np.str_)
        if not np.array_equal(text.astype(object), array):
            raise ValueError(f"{name} has text that ends in a null character.")
        return text

    def _encode_dict(self, value: dict[Any, Any], name: str, depth: int) -> Any:
        if not all(type(key) is str for key in value):
            raise TypeError(f"{name} is a dict with keys that are not text.")
        # Positions, not keys, make the names: a key may hold any character.
        items = {
            key: self.encode(item, f"{name}.{i}", depth + 1)
            for i, (key, item) in enumerate(value.items())
        }
        return {"kind": "dict", "items": items}

    def _encode_record(self, value: Any, name: str, depth: int) -> Any:
        fields = {
            f.name: self.encode(getattr(value, f.name), f"{name}.{f.name}", depth + 1)
            for f in dataclasses.fields(value)
            if f.init
        }
        return {"kind": "record", "class": type(value).__name__, "fields": fields}


def _is_table(array: np.ndarray) -> bool:
    """Whether this is a structured array of plain columns, without gaps."""
    names = array.dtype.names
    if names is None or array.ndim != 1:
        return False
    plain = np.dtype([(name, array.dtype[name]) for name in names])
    return plain == array.dtype and all(plain[name].shape == () for name in names)


def _encode_float(value: float) -> Any:
    return value if math.isfinite(value) else {"kind": "float", "value": repr(value)}


def _encode_scalar(value: np.generic, name: str) -> Any:
    if isinstance(value, np.str_):
        return str(value)
    if value.dtype.name not in _SCALARS:
        raise TypeError(_refusal(value, name))
    item = value.item()
    if item != item:  # its sign and payload have no text of their own
        return {"kind": "nan", "dtype": value.dtype.name, "bits": value.tobytes().hex()}
    item = _encode_float(item) if isinstance(item, float) else item
    return {"kind": "scalar", "dtype": value.dtype.name, "value": item}


def _refusal(value: Any, name: str) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return (
            f"{name} is a random generator, whose state a model file does not keep. "
            "Call set_params with a whole number or None before saving; "
            "predictions do not depend on it."
        )
    cls = type(value)
    return (
        f"{name} is a {cls.__module__}.{cls.__qualname__}, which a model file cannot "
        "hold (numbers, text, arrays, lists, tuples, dicts and None it can)."
    )


# ---------------------------------------------------------------- decoding


class Reader(Protocol):
    """What `decode` makes of the values that are not plain JSON."""

    def array(self, name: Any) -> Any:
        """An array."""

    def strings(self, name: Any) -> Any:
        """An array of text that was one of objects."""

    def table(self, columns: dict[str, Any]) -> Any:
        """A structured array."""

    def scalar(self, value: np.generic) -> Any:
        """A numpy scalar."""

    def record(self, class_name: Any, fields: dict[str, Any]) -> Any:
        """A value of a class in `RECORDS`."""


def decode(node: Any, reader: Reader, depth: int = 0) -> Any:
    """The value that was encoded as `node`; anything odd is refused."""
    if depth > MAX_DEPTH:
        raise ModelFormatError("its manifest is nested too deeply.")
    if isinstance(node, list):
        return [decode(item, reader, depth + 1) for item in node]
    if not isinstance(node, dict):
        return node
    kind = node.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ModelFormatError(
            f"its manifest has a value of unknown kind {str(kind)[:40]!r}."
        )
    keys, make = _KINDS[kind]
    if set(node) != {"kind", *keys}:
        raise ModelFormatError(f"its manifest has an incomplete value of kind {kind}.")
    return make(reader, depth + 1, *(node[key] for key in keys))


def _decode_float(reader: Reader, depth: int, text: Any) -> float:
    if text not in _NON_FINITE:
        raise ModelFormatError("its manifest has a float that is none.")
    return float(text)


def _decode_scalar(reader: Reader, depth: int, dtype: Any, node: Any) -> Any:
    value = decode(node, reader, depth)
    if dtype in _SCALARS and type(value) in (bool, int, float):
        try:
            with np.errstate(all="ignore"):
                scalar = np.dtype(dtype).type(value)
        except (OverflowError, ValueError):  # such as 300 for int8
            scalar = None
        # Equal after the round trip, or nan both times.
        if scalar is not None and repr(scalar.item()) == repr(value):
            return reader.scalar(scalar)
    raise ModelFormatError(f"its manifest has a bad scalar of type {str(dtype)[:40]}.")


def _decode_nan(reader: Reader, depth: int, dtype: Any, bits: Any) -> Any:
    if dtype in _FLOATS and isinstance(bits, str):
        try:
            raw = bytes.fromhex(bits)
        except ValueError:
            raw = b""
        if len(raw) == np.dtype(dtype).itemsize:
            scalar = np.frombuffer(raw, dtype)[0]
            if np.isnan(scalar):
                return reader.scalar(scalar)
    raise ModelFormatError(f"its manifest has a bad nan of type {str(dtype)[:40]}.")


def _decode_tuple(reader: Reader, depth: int, items: Any) -> tuple[Any, ...]:
    if not isinstance(items, list):
        raise ModelFormatError("its manifest has a tuple that is none.")
    return tuple(decode(item, reader, depth) for item in items)


def _decode_dict(reader: Reader, depth: int, items: Any) -> dict[str, Any]:
    if not isinstance(items, dict):
        raise ModelFormatError("its manifest has a dict that is none.")
    return {key: decode(item, reader, depth) for key, item in items.items()}


def _decode_table(reader: Reader, depth: int, columns: Any) -> Any:
    return reader.table(_decode_dict(reader, depth, columns))


def _decode_record(reader: Reader, depth: int, class_name: Any, fields: Any) -> Any:
    return reader.record(class_name, _decode_dict(reader, depth, fields))


_KINDS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "float": (("value",), _decode_float),
    "scalar": (("dtype", "value"), _decode_scalar),
    "nan": (("dtype", "bits"), _decode_nan),
    "tuple": (("items",), _decode_tuple),
    "dict": (("items",), _decode_dict),
    "record": (("class", "fields"), _decode_record),
    "table": (("columns",), _decode_table),
    "array": (("name",), lambda reader, depth, name: reader.array(name)),
    "strings": (("name",), lambda reader, depth, name: reader.strings(name)),
}
