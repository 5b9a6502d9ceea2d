"""Whether files are still what they were when they were opened."""

from collections.abc import Sequence
from pathlib import Path

from kplus.core.errors import DataError

__all__ = ["Stamps"]


class Stamps:
    """Sizes and times of change of some files."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._known = {path: _stamp(path) for path in paths}

    @property
    def plain(self) -> list[tuple[int, int]] | None:
        """Sizes and times, in order; None with folders, whose times tell nothing."""
        if not all(path.is_file() for path in self._known):
            return None
        return [stamp for stamp in self._known.values() if stamp is not None]

    def check(self) -> None:
        """Refuse files that were changed meanwhile: sums would be of two tables."""
        for path, known in self._known.items():
            if _stamp(path) != known:
                raise DataError(
                    f"{path} has changed since it was opened. Leave files alone while "
                    f"they are used, and begin anew."
                )


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns
