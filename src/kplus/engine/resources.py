"""What a fit may use: memory, a folder for scratch files, workers."""

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

__all__ = ["Resources", "as_bytes", "resources", "resources_now"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_MOST = 2**63


@dataclass(frozen=True)
class Resources:
    """The settings of `resources`.

    Attributes
    ----------
    memory_limit : int or None
        Bytes that the process may have.
    scratch : Path or None
        Where to keep files meanwhile.
    client : distributed.Client or None
        Whose workers to use, where rows are in files.
    checkpoint_rows : Path or None
        The folder for the state of rows of a checkpoint, which outlives the process.
    sharers : int
        Engines that work side by side, each with its part of the memory.
    """

    memory_limit: int | None = None
    scratch: Path | None = None
    client: Any = None
    checkpoint_rows: Path | None = None
    sharers: int = 1

    def folder(self) -> "ScratchFolder | CheckpointFolder":
        """A folder for the state of rows."""
        if self.checkpoint_rows is not None:
            return CheckpointFolder(self.checkpoint_rows)
        return ScratchFolder(self.scratch)


_NOW: ContextVar[Resources | None] = ContextVar("resources", default=None)


@contextmanager
def resources(
    *,
    memory_limit: int | str | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> Iterator[None]:
    """Say what fits and fitted models may use, for all inside a ``with`` block.

    Parameters
    ----------
    memory_limit : int or str, optional
        How much memory the process may take, in bytes or as in ``"2 GB"``. What a fit
        or `predict` remembers of each row goes to scratch files when it would take
        more. The rows themselves must be in files, too: give a path. So must answers
        that are large: see `kplus.write_answers`.
    scratch : path-like, optional
        A folder for such files, the one for temporary files by default. With workers
        on several machines it must be one that all of them reach under this name.

    What is not given stays as it is in the block around this one.

    Examples
    --------
    >>> import kplus
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) + [[0, 9]] * 500
    >>> with kplus.resources(memory_limit="4 GB"):
    ...     model = kplus.DPMeans(n_clusters=2).fit(X)
    >>> model.n_clusters_
    2
    """
    now = _NOW.get() or Resources()
    limit = now.memory_limit if memory_limit is None else as_bytes(memory_limit)
    folder = now.scratch if scratch is None else Path(scratch)
    token = _NOW.set(Resources(limit, folder))
    try:
        yield
    finally:
        _NOW.reset(token)


def resources_now() -> Resources:
    """What fits may use now, with the workers of the client that is active."""
    from kplus.engine.cluster import active_client

    now = _NOW.get() or Resources()
    return Resources(now.memory_limit, now.scratch, active_client())


def as_bytes(size: int | str) -> int:
    """A number of bytes, given as such or as in ``"1.5 GB"`` or ``"512 MiB"``.

    >>> as_bytes("1.5 GB"), as_bytes("1 KiB"), as_bytes(100)
    (1500000000, 1024, 100)
    """
    n_bytes = _from_text(size) if isinstance(size, str) else size
    is_number = isinstance(n_bytes, Real) and not isinstance(n_bytes, bool)
    if is_number and 1 <= n_bytes < _MOST:
        return int(n_bytes)
    raise ValueError(
        f"memory_limit must be a number of bytes or text such as '2 GB', not {size!r}."
    )


def _from_text(size: str) -> float:
    """Bytes; 0 for what is no size."""
    match = _SIZE.fullmatch(size)
    if match is None:
        return 0
    unit = match[2].lower()
    factor = 1024 ** " kmgt".index(unit) if match[3] and unit else _UNITS[unit]
    return float(match[1]) * factor


class CheckpointFolder:
    """The folder of a checkpoint, which deletes it."""

    def __init__(self, path: Path) -> None:
        self.path = path


class ScratchFolder:
    """A new folder, which is deleted when nobody uses it any more."""

    def __init__(self, inside: Path | None) -> None:
        try:
            if inside is not None:
                inside.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix="kplus-", dir=inside))
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}; the fit needs a folder for scratch files, and "
                f"{inside or tempfile.gettempdir()} cannot be used: name another by "
                f"kplus.resources(scratch=...)",
            ) from error
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
