"""Values as JSON and arrays: what model files, checkpoints and states hold.

The outline of a value is JSON. ``None``, booleans, integers, finite floats, text and
lists are what they are there; every other kind is an object with the key ``"kind"``.
Arrays stand beside it: some under a name of their own, all others strung together, one
string for each type of numbers, as a fit may have thousands of small ones. Long lists
of plain values are arrays, too. Records are dataclasses of the tables in
`kplus.core.storable`. `kplus.core.decoding` is the way back.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from kplus.core.storable import name_of

__all__ = ["COLUMNS", "MAX_DEPTH", "MEMBER_NAME", "SCALARS", "Encoder"]

MAX_DEPTH = 32
MEMBER_NAME = re.compile(r"(?=.{1,200}\Z)[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")
# Types of numpy's scalars, and of the arrays that long lists become.
SCALARS = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("uint64", "float16", "float32", "float64"),
]
COLUMNS: dict[type, Any] = {bool: np.bool_, int: np.int64, float: np.float64}
_LONG = 64  # values from which a list becomes an array
_WIDE = 10_000  # characters that an array of text may waste
_PLAIN: list[tuple[type, Callable[[Any], Any]]] = [
    *((str, str), (Integral, int), (Real, float)),
    *((list, list), (tuple, tuple), (dict, dict)),
]


class Encoder:
    """Turns values into JSON and collects the arrays met on the way.

    An array that is given twice is stored once.

    Parameters
    ----------
    holder : str
        What errors call the file.
    classes : mapping of str to str
        The records that it may hold; see `kplus.core.storable`.

    Attributes
    ----------
    members : dict of str to ndarray
        Arrays by the dotted name of their place.
    strings : dict of str to list of ndarray
        Flat parts of the strings, not copied.
    """

    def __init__(self, holder: str, classes: Mapping[str, str]) -> None:
        self.members: dict[str, np.ndarray] = {}
        self.strings: dict[str, list[np.ndarray]] = {}
        self._holder, self._classes = holder, classes
        self._lengths: dict[str, int] = {}
        self._known: dict[int, tuple[Any, Any]] = {}
        self._records: dict[type, tuple[str | None, list[str]]] = {}

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name; a string is named by the type of its numbers."""
        return self.members | {
            kind: np.concatenate(parts, dtype=parts[0].dtype)
            for kind, parts in self.strings.items()
        }

    def encode(self, value: Any, name: str, own: bool = False, depth: int = 0) -> Any:
        """JSON for `value`, whose place is `name`.

        With `own` an array there, or in a field of a record there, gets a name of its
        own; those of lists, tuples and dicts never do, as there may be any number.
        """
        if depth > MAX_DEPTH:
            raise TypeError(f"{name} is nested too deeply for {self._holder}.")
        cls = type(value)
        if value is None or cls in (bool, int, str):
            return value
        if cls is float:
            return _float_node(value)
        if cls in (np.ndarray, np.memmap):
            return self._array(value, name, own, depth)
        if cls in (list, tuple):
            return self._sequence(value, name, own, depth)
        if cls is dict:
            return self._dict(value, name, depth)
        if cls is range:
            return {"kind": "range", "items": [value.start, value.stop, value.step]}
        if isinstance(value, np.generic) and value.dtype.name in SCALARS:
            return _scalar_node(value)
        if self._is_record(cls):
            return self._record(value, name, own, depth)
        plain = _plain(value)
        if plain is None:
            raise TypeError(self._refusal(value, name))
        return self.encode(plain, name, own, depth + 1)

    # ------------------------------------------------------------- arrays

    def _array(self, array: np.ndarray, name: str, own: bool, depth: int) -> Any:
        if id(array) not in self._known:
            if array.dtype.kind == "O":
                node = self._objects(array, name, own, depth)
            elif _is_table(array):
                columns = {
                    key: self._place(
                        np.ascontiguousarray(array[key]), f"{name}.{i}", own
                    )
                    for i, key in enumerate(array.dtype.names or ())
                }
                node = {"kind": "table", "columns": columns}
            else:
                node = self._place(array, name, own)
            self._known[id(array)] = array, node
        return self._known[id(array)][1]

    def _place(self, array: np.ndarray, name: str, own: bool) -> dict[str, Any]:
        """Store an array under its name, or at the end of a string."""
        dtype = array.dtype
        if dtype.kind not in "biufcU" or not dtype.itemsize:
            raise TypeError(
                f"{name} is an array of dtype {dtype}; {self._holder} holds "
                "booleans, numbers and text."
            )
        if own and name not in self.members and MEMBER_NAME.fullmatch(name):
            self.members[name] = array
            return {"kind": "array", "name": name}
        string = ("big." if dtype.str[0] == ">" else "") + dtype.str[1:]
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        order: Literal["C", "F"] = "F" if fortran else "C"
        flat = array.ravel(order=order)
        start = self._lengths.get(string, 0)
        self._lengths[string] = start + flat.size
        self.strings.setdefault(string, []).append(flat)
        return {"kind": "part", "at": [string, start, list(array.shape), order]}

    def _objects(self, array: np.ndarray, name: str, own: bool, depth: int) -> Any:
        flat = array.ravel().tolist()
        if own and all(isinstance(item, str) for item in flat):
            text = _text(flat)
            if text is not None:
                node = self._place(text.reshape(array.shape), name, own)
                if node["kind"] == "array":
                    return node | {"kind": "strings"}
        items = self._sequence(flat, name, False, depth)
        return {"kind": "objects", "shape": list(array.shape), "items": items}

    # ------------------------------------------------- sequences and the like

    def _sequence(self, values: Sequence[Any], name: str, own: bool, depth: int) -> Any:
        if id(values) in self._known:
            return self._known[id(values)][1]
        kind = type(values).__name__
        column = _column(values) if len(values) >= _LONG else None
        if column is not None:
            array = self._place(column, name, own)
            node = {"kind": "values", "type": kind, "array": array}
            self._known[id(values)] = values, node
            return node
        items = [
            self.encode(item, f"{name}.{i}", False, depth + 1)
            for i, item in enumerate(values)
        ]
        return {"kind": "tuple", "items": items} if kind == "tuple" else items

    def _dict(self, value: dict[Any, Any], name: str, depth: int) -> Any:
        items = [
            self.encode(item, f"{name}.{key}", False, depth + 1)
            for key, item in value.items()
        ]
        if all(type(key) is str for key in value):
            return {"kind": "dict", "items": dict(zip(value, items, strict=True))}
        keys = [self.encode(key, f"{name}.{key}", False, depth + 1) for key in value]
        return {"kind": "map", "keys": keys, "values": items}

    def _is_record(self, cls: type) -> bool:
        if cls not in self._records:
            listed = name_of(cls, self._classes)
            fields = (
                [f.name for f in dataclasses.fields(cls) if f.init] if listed else []
            )
            self._records[cls] = listed, fields
        return self._records[cls][0] is not None

    def _record(self, value: Any, name: str, own: bool, depth: int) -> Any:
        listed, names = self._records[type(value)]
        fields = {
            field: self.encode(getattr(value, field), f"{name}.{field}", own, depth + 1)
            for field in names
        }
        return {"kind": "record", "class": listed, "fields": fields}

    def _refusal(self, value: Any, name: str) -> str:
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return (
                f"{name} is a random generator, whose state {self._holder} does not "
                "keep. Call set_params with a whole number or None before saving; "
                "predictions do not depend on it."
            )
        cls = type(value)
        return (
            f"{name} is a {cls.__module__}.{cls.__qualname__}, which {self._holder} "
            "cannot hold (numbers, text, arrays, lists, tuples, dicts and None it can)."
        )


def _plain(value: Any) -> Any:
    """What a value of another class is where it stands for a plain one, or None."""
    for of, plain in _PLAIN:
        if isinstance(value, of):
            return plain(value)
    if not isinstance(value, np.ndarray | np.generic) and hasattr(value, "__array__"):
        return np.asarray(value)  # a column of a data frame, an index
    return None


def _is_table(array: np.ndarray) -> bool:
    """Whether this is a structured array of plain columns, without gaps."""
    names = array.dtype.names
    if names is None or array.ndim != 1:
        return False
    plain = np.dtype([(name, array.dtype[name]) for name in names])
    return plain == array.dtype and all(plain[name].shape == () for name in names)


def _column(values: Sequence[Any]) -> np.ndarray | None:
    """An array whose `tolist` gives these very values, or None."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return _text(values)
    if len(kinds) != 1 or not kinds <= set(COLUMNS):
        return None
    try:
        return np.array(values, dtype=COLUMNS[kinds.pop()])
    except OverflowError:  # integers of more than 64 bits
        return None


def _text(values: Sequence[str]) -> np.ndarray | None:
    """An array of text, or None if it would shorten an item or waste space."""
    lengths = list(map(len, values))
    size = max(lengths, default=0) * len(lengths)
    if size > 4 * sum(lengths) + _WIDE or any(item.endswith("\0") for item in values):
        return None
    return np.array(values, dtype=np.str_)


def _float_node(value: float) -> Any:
    return value if math.isfinite(value) else {"kind": "float", "value": repr(value)}


def _scalar_node(value: Any) -> dict[str, Any]:
    item, dtype = value.item(), value.dtype.name
    if item != item:  # its sign and payload have no text of their own
        return {"kind": "nan", "dtype": dtype, "bits": value.tobytes().hex()}
    item = _float_node(item) if isinstance(item, float) else item
    return {"kind": "scalar", "dtype": dtype, "value": item}
