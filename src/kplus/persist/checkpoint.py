"""Checkpoints: a folder from which an interrupted fit resumes.

One file says what fit it is. There is another for each search, of which a fit with
several starts has as many, and of each the last two, as one may be damaged: where the
loops of the search stand (see `kplus.core.journal`).
"""

import logging
import math
import os
import re
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from kplus.core.decoding import Decoder
from kplus.core.encoding import Encoder
from kplus.core.errors import CheckpointError, DataError, ModelFormatError
from kplus.core.journal import EndedLoop, RunningLoop
from kplus.core.loop import LoopState, Pending
from kplus.core.storable import RECORDS_AND_STATES
from kplus.engine.engine import State
from kplus.engine.state_store import bytes_of, read_states
from kplus.persist.archive import open_archive, write_archive

__all__ = [
    "Checkpoint",
    "CheckpointWarning",
    "has_begun",
    "read_contents",
    "read_fit",
    "remove_unused",
    "why_none",
    "write_contents",
]

KIND = "kplus-checkpoint"
SECONDS = 10.0  # between two checkpoints, at the least
SHARE = 100  # times as long as writing takes, at the least
_BYTES_PER_SECOND = 3e8  # that a slow disk takes
_FIT = "fit.kplus"
_FIT_HAS = {"class": str, "kplus": str, "params": dict, "rows": dict}
_LOG = logging.getLogger("kplus")
_NO_FIT = "it does not hold what a fit writes"
_ANEW = "Delete the folder, and fit anew."
_FILE = re.compile(r"part(\d+)-(\d{6})\.kplus")


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written or read; the fit continues without."""


class Checkpoint:
    """The journal of a search, kept in a folder.

    Attributes
    ----------
    fit : dict
        What fit it is, as plain values: its class, parameters and rows.
    complete : callable or None
        Adds to `fit` what takes long to find out. Asked before each file that is
        written, with the seconds that it may take, until it returns True.
    spent : float
        Seconds that this search spent with it.
    """

    def __init__(self, folder: Path, fit: dict[str, Any], part: int = 0) -> None:
        self.folder, self.fit = folder, fit
        self.rows = folder / "rows"
        self._part, self._begun, self._serial = part, 0, 0
        self._entries: dict[int, Any] = {}
        self._opened = time.monotonic()
        self._due = self._opened + SECONDS
        self.complete: Callable[[float], bool] | None = None
        self._whole, self._lock = self, Lock()
        self._parts: list[Checkpoint] = []
        self.spent = 0.0

    @property
    def seconds(self) -> float:
        """Time spent with it, that of all searches together."""
        return self.spent + sum(part.seconds for part in self._parts)

    @classmethod
    def begin(cls, folder: str | os.PathLike[str], fit: dict[str, Any]) -> "Checkpoint":
        """A new one; the folder is made, and must not hold that of another fit."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / _FIT).exists():
            raise CheckpointError(
                f"{folder} holds the checkpoint of a fit that did not end. Resume "
                f"it, or delete the folder to begin anew."
            )
        contents = _encoded(fit)
        for _, path in _files(folder):  # of a fit whose first file is gone
            path.unlink()
        write_archive(folder / _FIT, *contents, KIND)
        return cls(folder, fit)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "Checkpoint":
        """That of an interrupted fit; `restore` brings it to where the fit stood."""
        folder = Path(folder)
        return cls(folder, read_fit(folder))

    def restore(self) -> None:
        """Read the latest file that is whole; a search without one begins anew."""
        wrong = []
        for serial, path in sorted(_files(self.folder, self._part), reverse=True):
            try:
                self._entries = _read_entries(path, self.rows)
            except ModelFormatError as error:
                self._serial = max(self._serial, serial)
                wrong.append(str(error))
            else:
                self._serial = serial  # the next takes the place of a damaged one
                break
        if wrong:
            fit = "this start of the fit" if self._part else "the fit"
            anew = f"{fit} begins anew"
            then = "the one before it is used" if self._entries else anew
            warnings.warn(
                f"A checkpoint cannot be used ({'; '.join(wrong)}): {then}.",
                CheckpointWarning,
                stacklevel=2,
            )

    # ----------------------------------------------------- what a search asks

    def next(self) -> int:
        self._begun += 1
        return self._begun

    def find(self, number: int) -> Any:
        return self._entries.get(number)

    def save_result(self, number: int, entry: Any) -> None:
        self._entries[number] = entry

    def save(self, number: int, entry: Callable[[], Any]) -> None:
        begun = time.monotonic()
        if begun < self._due:
            return
        try:
            self._whole._complete_fit()
            begun = time.monotonic()
            content = entry()  # the state of rows goes to the disk
        except OSError as error:
            self._tell(error)
            self._written(begun)
        else:
            if begun >= self._soonest(content):
                self.write(number, content, begun)

    def _soonest(self, entry: Any) -> float:
        """When a first file may be written, as nobody knows yet how long it takes."""
        if self._serial == 0:
            expected = bytes_of(entry) / _BYTES_PER_SECOND
            self._due = max(self._due, self._opened + SHARE * expected)
        return self._due

    def part(self, number: int) -> "Checkpoint":
        part = Checkpoint(self.folder, self.fit, number + 1)
        part._whole = self
        self._parts.append(part)
        part.restore()
        return part

    # ---------------------------------------------------------------- writing

    def write(self, number: int, entry: Any, begun: float | None = None) -> None:
        """Write all entries, with this one; then remove all but the last two files."""
        if begun is None:
            begun = time.monotonic()
        contents = _encoded(self._entries | {number: entry})
        path = self.folder / f"part{self._part}-{self._serial + 1:06d}.kplus"
        try:
            write_archive(path, *contents, KIND)
        except OSError as error:
            self._tell(error)
        else:
            self._serial += 1
            _LOG.info("checkpoint %s", path)
            for serial, old in _files(self.folder, self._part):
                if serial < self._serial - 1:
                    old.unlink(missing_ok=True)
        self._written(begun)

    def _complete_fit(self) -> None:
        """Searches side by side may ask for it."""
        with self._lock:
            passed = time.monotonic() - self._opened
            # Half of the time there is: it may take longer than was expected.
            most = (passed / SHARE - self.seconds) / 2 if SHARE else math.inf
            if self.complete is not None and self.complete(most):
                write_contents(self.folder / _FIT, self.fit)
                self.complete = None

    def _tell(self, error: OSError) -> None:
        warnings.warn(
            f"No checkpoint could be written to {self.folder} ({error}); the fit "
            f"continues, and an earlier checkpoint stays.",
            CheckpointWarning,
            stacklevel=3,
        )

    def _written(self, begun: float) -> None:
        taken = time.monotonic() - begun
        self.spent += taken
        self._due = time.monotonic() + max(SECONDS, SHARE * taken)

    def remove(self) -> None:
        """After a fit that ended: nothing is left to resume."""
        for _, path in [*_files(self.folder), (0, self.folder / _FIT)]:
            path.unlink(missing_ok=True)
        shutil.rmtree(self.rows, ignore_errors=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()


def has_begun(folder: Path) -> bool:
    """Whether a folder holds a checkpoint."""
    return (folder / _FIT).exists()


def remove_unused(folder: Path) -> None:
    """Remove a checkpoint that was begun, if no search has written to it yet."""
    if has_begun(folder) and not _files(folder):
        Checkpoint(folder, {}).remove()


def read_fit(folder: Path) -> dict[str, Any]:
    """What fit the checkpoint in a folder is of; see `Checkpoint`."""
    if not has_begun(folder):
        raise CheckpointError(f"{folder} holds no checkpoint: {why_none(folder)}.")
    try:
        fit = read_contents(folder / _FIT)
    except ModelFormatError as error:
        raise CheckpointError(f"{error}. {_ANEW}") from error
    if (
        not isinstance(fit, dict)
        or any(not isinstance(fit.get(name), kind) for name, kind in _FIT_HAS.items())
        or not all(isinstance(name, str) for name in fit["params"])
    ):
        raise CheckpointError(f"{folder / _FIT}: {_NO_FIT}. {_ANEW}")
    return fit


def why_none(folder: Path) -> str:
    """Why a folder may hold no checkpoint."""
    if folder.is_dir():
        return "there never was one, or the fit ended"
    if folder.exists():
        return "this is a file; give the folder that was named as checkpoint"
    return "there is no such folder; the path is another one, or the fit ended"


def _files(folder: Path, part: int | None = None) -> list[tuple[int, Path]]:
    """The checkpoints in a folder, with their serial numbers."""
    files = []
    for path in folder.iterdir():
        match = _FILE.fullmatch(path.name)
        if match and part in (None, int(match[1])):
            files.append((int(match[2]), path))
    return files


def write_contents(path: Path, value: Any) -> None:
    """Write a file of a checkpoint."""
    write_archive(path, *_encoded(value), KIND)


def _encoded(value: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    encoder = Encoder("a checkpoint", RECORDS_AND_STATES)
    outline = encoder.encode(value, "fit")
    return {"outline": outline}, encoder.arrays


def read_contents(path: Path) -> Any:
    """What a file of a checkpoint holds."""
    try:
        with open_archive(path, KIND) as archive:
            decoder = Decoder(archive.read, RECORDS_AND_STATES)
            return decoder.decode(archive.manifest.get("outline"))
    except ModelFormatError as error:  # it speaks of models and how to save them
        raise ModelFormatError(
            f"{path} is damaged, was altered or is of another version of kplus"
        ) from error


# ------------------------------------------------- what the file of a search holds


def _read_entries(path: Path, rows: Path) -> dict[int, Any]:
    """The states of the loops of a search; `rows` has the files of the state of rows.

    The loop that resumes checks its state; see `kplus.core.loop.LoopState`.
    """
    entries = read_contents(path)
    if not isinstance(entries, dict) or not all(
        type(number) is int and isinstance(entry, (EndedLoop, RunningLoop))
        for number, entry in entries.items()
    ):
        raise ModelFormatError(f"{path}: {_NO_FIT}")
    relocation = _Relocation(rows.absolute())
    entries = {number: relocation.apply(entry) for number, entry in entries.items()}
    try:
        for file in relocation.files:  # a damaged one counts as a damaged checkpoint
            read_states(file)
    except DataError as error:
        raise ModelFormatError(
            f"{path}: the state of some of its rows is gone or damaged ({error})"
        ) from error
    return entries


class _Relocation:
    """Points entries to the state of rows in `folder`, which may have been moved.

    `files` collects the files that they refer to; several states may share one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files: dict[Path, None] = {}

    def apply(self, value: Any) -> Any:
        if isinstance(value, RunningLoop):
            return replace(value, state=self.apply(value.state))
        if isinstance(value, LoopState):
            rows, pending = self.apply(value.rows), self.apply(value.pending)
            return replace(value, rows=rows, pending=pending)
        if isinstance(value, Pending):
            return replace(value, snapshots=self.apply(value.snapshots))
        if isinstance(value, tuple):
            return tuple(self.apply(item) for item in value)
        if isinstance(value, State) and isinstance(value.handles, list):
            return replace(value, handles=[self._handle(h) for h in value.handles])
        return value

    def _handle(self, handle: Any) -> Any:
        if not isinstance(handle, str):
            return handle
        path = self._folder / Path(handle).name
        self.files[path] = None
        return str(path)
