"""Where the state of rows is kept between two visits: in memory, or in a folder."""

import json
import os
import struct
import uuid
import weakref
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from threading import RLock
from typing import Any, Protocol

import numpy as np

from kplus.core.decoding import decode
from kplus.core.encoding import Encoder
from kplus.core.errors import DataError, ModelFormatError
from kplus.core.storable import RECORDS_AND_STATES

__all__ = [
    "FolderStore",
    "Handle",
    "InMemory",
    "LimitedStore",
    "MemoryStore",
    "OnDisk",
    "StateStore",
    "bytes_of",
    "read_states",
    "write_states",
]


_MAGIC = b"kplusrow"
_START = struct.Struct("<8sIQ")  # magic, check sum of all that follows, bytes of header

_BUFFER = 1 << 20  # bytes written at once; states come in small arrays


class Handle(Protocol):
    """The stored states of some blocks; they are never changed, only replaced."""

    def load(self) -> list[Any]:
        """The states, one per block."""

    def describe(self) -> list[Any] | str:
        """For a checkpoint: the states as plain values, or the path of a file."""

    def pin(self) -> None:
        """A checkpoint is to refer to them."""

    def unpin(self) -> None:
        """It does not any more."""


class StateStore(Protocol):
    """Keeps the states of rows between two visits."""

    def put(self, states: list[Any]) -> Handle: ...

    def find(self, described: list[Any] | str) -> Handle:
        """The states that another handle described, of this store or another."""


class InMemory:
    """States in memory."""

    def __init__(self, states: list[Any]) -> None:
        self.states = states

    def load(self) -> list[Any]:
        return self.states

    def describe(self) -> list[Any]:
        return self.states

    def pin(self) -> None:
        """Nothing is to be done: a checkpoint holds the states themselves."""

    def unpin(self) -> None:
        """Nothing is to be done."""


class MemoryStore:
    """Keeps states in memory."""

    def put(self, states: list[Any]) -> InMemory:
        return InMemory(states)

    def find(self, described: list[Any] | str) -> InMemory:
        return InMemory(_states(described))


class OnDisk:
    """States in a file, which is deleted when nobody refers to it any more.

    Names are never used twice, so that a task that was given up for lost and comes
    back cannot overwrite what others go by. What is pinned survives a power cut, as the
    checkpoint does that refers to it. `fresh` are the names in the folder of which that
    is not sure yet.
    """

    def __init__(self, path: Path, fresh: set[str] | None = None) -> None:
        self.path = path
        self._fresh = set() if fresh is None else fresh
        self._fresh.add(path.name)
        self._synced = False
        self._end = weakref.finalize(self, _delete, path, self._fresh)

    def load(self) -> list[Any]:
        return read_states(self.path)

    def describe(self) -> str:
        return str(self.path.absolute())

    def pin(self) -> None:
        self._end.detach()
        if not self._synced:
            _sync(self.path)
            self._synced = True
        if self.path.name in self._fresh:
            before = set(self._fresh)  # others may be added meanwhile
            _sync(self.path.parent)
            self._fresh -= before

    def unpin(self) -> None:
        if not self._end.alive:
            self._end = weakref.finalize(self, _delete, self.path, self._fresh)


class FolderStore:
    """Keeps states in a folder that all who work on the rows can reach."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: weakref.WeakValueDictionary[str, OnDisk] = (
            weakref.WeakValueDictionary()
        )
        self._fresh: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, states: list[Any]) -> OnDisk:
        return self.on_disk(write_states(self.folder, states))

    def on_disk(self, name: str) -> OnDisk:
        """The handle of a file that another process wrote."""
        handle = self._known.get(name)
        if handle is None:
            handle = self._known[name] = OnDisk(self.folder / name, self._fresh)
        return handle

    def find(self, described: list[Any] | str) -> OnDisk:
        if isinstance(described, str) and (self.folder / Path(described).name).exists():
            return self.on_disk(Path(described).name)
        return self.put(_states(described))


class LimitedStore:
    """Keeps states in memory up to a number of bytes, and in a folder beyond it."""

    def __init__(self, limit: int, folder: Callable[[], Path]) -> None:
        self._limit, self._folder = limit, folder
        self._held = 0
        self._files: FolderStore | None = None
        self._lock = RLock()  # states may be released while others are stored

    def put(self, states: list[Any]) -> Handle:
        size = bytes_of(states)
        with self._lock:
            fits = self._held + size <= self._limit
            if fits:
                self._held += size
            elif self._files is None:
                self._files = FolderStore(self._folder())
        if not fits:
            assert self._files is not None
            return self._files.put(states)
        held = InMemory(states)
        weakref.finalize(held, self._released, size)
        return held

    def _released(self, size: int) -> None:
        with self._lock:
            self._held -= size

    def find(self, described: list[Any] | str) -> Handle:
        return self.put(_states(described))


def _states(described: list[Any] | str) -> list[Any]:
    if isinstance(described, str):
        return read_states(Path(described))
    return described


def bytes_of(value: Any) -> int:
    """Bytes of the arrays of a state."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(map(bytes_of, value))
    if is_dataclass(value):
        return sum(bytes_of(getattr(value, f.name)) for f in fields(value))
    return 0


def write_states(folder: Path, states: list[Any]) -> str:
    """Write states to a new file; return its name."""
    name = f"{uuid.uuid4().hex}.rows"
    unfinished = folder / f".{name}"
    encoder = Encoder("the state of rows", RECORDS_AND_STATES)
    outline = encoder.encode(states, "states")
    strings = encoder.strings  # not joined: copies would take longer than writing
    sizes = {key: [p[0].dtype.str, sum(map(len, p))] for key, p in strings.items()}
    header = json.dumps({"outline": outline, "strings": sizes}, separators=(",", ":"))
    flat = [part.view(np.uint8).data for parts in strings.values() for part in parts]
    check = zlib.crc32(header.encode())
    for part in flat:
        check = zlib.crc32(part, check)
    try:
        with open(unfinished, "xb", buffering=_BUFFER) as file:
            file.write(_START.pack(_MAGIC, check, len(header)))
            file.write(header.encode())
            file.writelines(flat)
        os.replace(unfinished, folder / name)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror}; the fit cannot keep the state of rows in {folder}: "
            f"name a folder with room by kplus.resources(scratch=...)",
        ) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()
    return name


def read_states(path: Path) -> list[Any]:
    """The states in a file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"{path}, in which the fit keeps the state of rows, is gone: do not delete "
            f"files of its folder while it runs."
        ) from None
    try:
        magic, check, size = _START.unpack_from(content)
        if magic != _MAGIC or check != zlib.crc32(memoryview(content)[_START.size :]):
            raise ModelFormatError("its contents are not what was written")
        place = _START.size + size
        arrays = {}
        header = json.loads(content[_START.size : place])
        for key, (dtype, n) in header["strings"].items():
            arrays[key] = np.frombuffer(content, dtype, n, place)
            place += arrays[key].nbytes
        states = decode(header["outline"], arrays, RECORDS_AND_STATES)
        if not isinstance(states, list):
            raise ModelFormatError("it holds no list of states")
    except (
        *(ValueError, TypeError, LookupError, AttributeError),
        *(RecursionError, struct.error),
    ) as error:
        raise DataError(
            f"{path}, in which the fit keeps the state of rows, is damaged ({error})."
        ) from error
    return states


def _delete(path: Path, fresh: set[str]) -> None:
    fresh.discard(path.name)
    path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until a file, or the list of those in a folder, is on the disk."""
    folder = path.is_dir()
    if folder and os.name == "nt":  # Windows cannot open a folder as a file
        return
    with suppress(FileNotFoundError):  # who reads it will say so
        descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
