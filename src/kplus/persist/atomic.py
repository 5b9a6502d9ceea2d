"""Write a file so that readers see the old content or the new, never a part."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_file"]


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block succeeds.

    The bytes go to a temporary file in the same folder, which is flushed to
    the disk and then renamed. If the block fails, whatever was at `path`
    stays and the temporary file is removed.

    Parameters
    ----------
    path : str or path-like
        Where the file shall be; a symbolic link is followed.

    Yields
    ------
    file : binary file
        Open for writing and seeking.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {target.parent} does not exist; create it first."
        )
    temporary = target.parent / f".kplus-{secrets.token_hex(8)}.tmp"
    try:
        # "x" asks the system for a fresh file with the user's usual permissions.
        with open(temporary, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut."""
    if os.name == "nt":  # Windows cannot open a folder as a file
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
