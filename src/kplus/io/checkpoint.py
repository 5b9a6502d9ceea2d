"""Checkpoints: a folder from which an interrupted fit goes on.

One file says what fit it is. There is another for each search, of which a fit with
several starts has as many, and of each the last two, as one may be damaged: where the
loops of the search stand (see `kplus.search.journal`).
"""

import logging
import os
import re
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kplus.core.errors import CheckpointError, ModelFormatError
from kplus.core.packing import pack, unpack
from kplus.io.archive import open_archive, write_archive

__all__ = ["Checkpoint", "CheckpointWarning", "has_begun", "read_fit", "remove_unused"]

KIND = "kplus-checkpoint"
SECONDS = 10.0  # between two checkpoints, at the least
SHARE = 100  # times as long as writing takes, at the least
_FIT = "fit.kplus"
_FIT_HAS = {"class": str, "kplus": str, "params": dict, "rows": dict}
_LOG = logging.getLogger("kplus")
_FILE = re.compile(r"part(\d+)-(\d{6})\.kplus")


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written or read; the fit goes on without."""


class Checkpoint:
    """The journal of a search, kept in a folder.

    Attributes
    ----------
    fit : dict
        What fit it is, as plain values: its class, parameters and rows.
    seconds : float
        Time spent with writing.
    """

    def __init__(self, folder: Path, fit: dict[str, Any], part: int = 0) -> None:
        self.folder, self.fit = folder, fit
        self.rows = folder / "rows"
        self._part, self._begun, self._serial = part, 0, 0
        self._entries: dict[int, Any] = {}
        self._due = time.monotonic() + SECONDS
        self.seconds = 0.0

    @classmethod
    def begin(cls, folder: str | os.PathLike[str], fit: dict[str, Any]) -> "Checkpoint":
        """A new one; the folder is made, and must not hold that of another fit."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / _FIT).exists():
            raise CheckpointError(
                f"{folder} holds the checkpoint of a fit that did not end. Go on with "
                f"it (resume), or delete the folder to begin anew."
            )
        write_archive(folder / _FIT, {}, pack(fit), KIND)
        return cls(folder, fit)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "Checkpoint":
        """That of an interrupted fit."""
        folder = Path(folder)
        if not (folder / _FIT).exists():
            raise CheckpointError(
                f"{folder} holds no checkpoint: there never was one, or the fit ended."
            )
        fit = _read(folder / _FIT)
        if not isinstance(fit, dict) or any(
            not isinstance(fit.get(name), kind) for name, kind in _FIT_HAS.items()
        ):
            raise CheckpointError(f"{folder / _FIT} is damaged; fit anew.")
        found = cls(folder, fit)
        found._take_up()
        return found

    def _take_up(self) -> None:
        """Read the latest file that is whole; a search without one begins anew."""
        for serial, path in sorted(_files(self.folder, self._part), reverse=True):
            self._serial = max(self._serial, serial)
            try:
                self._entries = _read_entries(path)
                return
            except ModelFormatError as error:
                warnings.warn(
                    f"A checkpoint is damaged; the one before it is used. {error}",
                    CheckpointWarning,
                    stacklevel=2,
                )

    # ----------------------------------------------------- what a search asks

    def next(self) -> int:
        self._begun += 1
        return self._begun

    def find(self, number: int) -> Any:
        return self._entries.get(number)

    def note(self, number: int, entry: Any) -> None:
        self._entries[number] = entry

    def keep(self, number: int, entry: Callable[[], Any]) -> None:
        if time.monotonic() >= self._due:
            self.write(number, entry())

    def part(self, number: int) -> "Checkpoint":
        found = Checkpoint(self.folder, self.fit, number + 1)
        found._take_up()
        return found

    # ---------------------------------------------------------------- writing

    def write(self, number: int, entry: Any) -> None:
        """Write all entries, with this one; then remove all but the last two files."""
        begun = time.monotonic()
        arrays = pack(self._entries | {number: entry})
        path = self.folder / f"part{self._part}-{self._serial + 1:06d}.kplus"
        try:
            write_archive(path, {}, arrays, KIND)
        except OSError as error:
            warnings.warn(
                f"No checkpoint could be written to {self.folder} ({error}); the fit "
                f"goes on, and an earlier checkpoint stays.",
                CheckpointWarning,
                stacklevel=2,
            )
        else:
            self._serial += 1
            _LOG.info("checkpoint %s", path)
            for serial, old in _files(self.folder, self._part):
                if serial < self._serial - 1:
                    old.unlink(missing_ok=True)
        taken = time.monotonic() - begun
        self.seconds += taken
        self._due = time.monotonic() + max(SECONDS, SHARE * taken)

    def remove(self) -> None:
        """After a fit that ended: nothing is left to go on with."""
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


def read_fit(folder: Path) -> Any:
    """What fit the checkpoint in a folder is of; see `Checkpoint`."""
    return _read(folder / _FIT)


def _files(folder: Path, part: int | None = None) -> list[tuple[int, Path]]:
    """The checkpoints in a folder, with their serial numbers."""
    found = []
    for path in folder.iterdir():
        match = _FILE.fullmatch(path.name)
        if match and part in (None, int(match[1])):
            found.append((int(match[2]), path))
    return found


def _read_entries(path: Path) -> dict[int, Any]:
    entries = _read(path)
    if not isinstance(entries, dict):
        raise ModelFormatError(f"{path}: it holds no entries.")
    return entries


def _read(path: Path) -> Any:
    with open_archive(path, KIND) as archive:
        return unpack({name: archive.read(name) for name in archive.specs})
