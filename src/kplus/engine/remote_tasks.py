"""What workers are sent to do: tasks on blocks that they read themselves."""

import os
import pickle
import signal
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from kplus import __version__
from kplus.core.errors import WorkersError
from kplus.core.memo import PairwiseSum
from kplus.core.types import Block, Blocks
from kplus.engine.blas import SINGLE_THREAD
from kplus.engine.engine import Portion, Renumbering, run_blocks
from kplus.engine.meter import TimedBlocks, keeping_freed
from kplus.engine.state_store import bytes_of, read_states, write_states

__all__ = [
    "RemoteResult",
    "RemoteTask",
    "Terminal",
    "end_remote_tasks",
    "heed_interrupts",
    "ignore_interrupts",
    "own_terminal",
    "run_remote_task",
]

_REMEMBERED_BYTES = 256 << 20

# Ctrl-C in a terminal reaches all processes of it. Workers there ignore it: the process
# that fits ends after the pass under way, for which it needs them.
Terminal = tuple[str, int, int]


def own_terminal() -> Terminal:
    """Machine, process group and process: Ctrl-C goes to a whole group."""
    group = os.getpgrp() if hasattr(os, "getpgrp") else 0
    return socket.gethostname(), group, os.getpid()


def ignore_interrupts(of: Terminal) -> None:
    """On a worker: from now on, if it is another process of the same group."""
    host, group, process = own_terminal()
    if (host, group) == of[:2] and process != of[2] and group:
        _in_main_thread(_ignore)


def heed_interrupts() -> None:
    """On a worker: as before."""
    _in_main_thread(_heed)


_before: Any = None


def _ignore() -> None:
    global _before
    if _before is None:
        _before = signal.signal(signal.SIGINT, signal.SIG_IGN)


def _heed() -> None:
    global _before
    if _before is not None:
        signal.signal(signal.SIGINT, _before)
        _before = None


def _in_main_thread(action: Any) -> None:
    """Only there signals can be set; workers wait for messages there."""
    from distributed import get_worker

    def act() -> None:
        if threading.current_thread() is threading.main_thread():
            action()

    get_worker().loop.add_callback(act)


@dataclass(frozen=True)
class RemoteTask:
    """Some tasks, as a worker is sent to do them.

    Attributes
    ----------
    source : bytes
        Blocks, pickled without rows: a worker opens the files itself, and keeps them
        open for the next task.
    start : int
        The place of the first task in the sweep.
    tasks : list of lists of Block
        Blocks without source.
    files : list of lists of (str or None, int)
        Of each block, the file with its state and the position in it.
    missed : list of lists of lists
        Of each block, the renumberings since its last visit.
    folder : Path
        For states.
    terminal : Terminal
        Of the one who fits.
    version : str
        Of kplus there: another one could give other bits.
    """

    source: bytes
    model: Any
    params: Any
    start: int
    tasks: list[list[Block]]
    files: list[list[tuple[str | None, int]]]
    missed: list[list[list[Renumbering]]]
    folder: Path
    terminal: Terminal
    version: str = __version__


@dataclass(frozen=True)
class RemoteResult:
    """What a worker brings back: sums of tasks, and a file with all new states."""

    portions: list[Portion]
    name: str
    read_seconds: float


def run_remote_task(task: RemoteTask) -> RemoteResult:
    """On a worker: do the tasks."""
    if task.version != __version__:
        raise WorkersError(
            f"Workers have kplus {__version__}, the fit has kplus {task.version}; "
            f"install the same version there."
        )
    ignore_interrupts(task.terminal)
    sums = PairwiseSum(task.start)
    new: list[Any] = []
    read: dict[str, list[Any]] = {}
    source = TimedBlocks(_opened(task.source))
    with SINGLE_THREAD, keeping_freed():
        for blocks, files, missed in zip(
            task.tasks, task.files, task.missed, strict=True
        ):
            blocks = [_with_source(block, source) for block in blocks]
            states = _states(task.folder, files, read)
            summary, states = run_blocks(
                task.model, task.params, blocks, states, missed
            )
            sums.add(summary)
            new += states
        name = write_states(task.folder, new)
    _REMEMBERED.keep(task.folder / name, new)
    return RemoteResult(sums.portions, name, source.seconds)


@lru_cache(maxsize=2)
def _opened(packed: bytes) -> Any:
    return pickle.loads(packed)


def _with_source(block: Block, source: Blocks) -> Block:
    return Block(source, block.index, block.start, block.stop, block.weights)


def _states(
    folder: Path, files: Sequence[tuple[str | None, int]], read: dict[str, list[Any]]
) -> list[Any]:
    """The states at some places; `read` are those files that were read before."""
    states: list[Any] = []
    for name, position in files:
        if name is None:
            states.append(None)
            continue
        if name not in read:
            path = folder / name
            remembered = _REMEMBERED.take(path)
            read[name] = read_states(path) if remembered is None else remembered
        states.append(read[name][position])
    return states


class Remembered:
    """States that this process wrote to files, which it then need not read.

    The files are what counts. What is taken is not remembered any more, since models
    may change it in place, and nothing is remembered for longer than its file is there.

    Parameters
    ----------
    limit : int
        Bytes; what came first is forgotten first.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._entries: dict[Path, tuple[list[Any], int]] = {}

    def keep(self, path: Path, states: list[Any]) -> None:
        with self._lock:
            self._entries = {
                old: entry for old, entry in self._entries.items() if old.exists()
            }
            self._entries[path] = states, bytes_of(states)
            total = sum(size for _, size in self._entries.values())
            while total > self._limit:
                oldest = next(iter(self._entries))
                total -= self._entries.pop(oldest)[1]

    def take(self, path: Path) -> list[Any] | None:
        """The states in a file, or None where they must be read."""
        with self._lock:
            states, _ = self._entries.pop(path, (None, 0))
        return states

    def forget(self, folder: Path) -> None:
        """Forget all files of a folder."""
        with self._lock:
            self._entries = {
                path: entry
                for path, entry in self._entries.items()
                if path.parent != folder
            }


_REMEMBERED = Remembered(_REMEMBERED_BYTES)


def end_remote_tasks(folder: Path) -> None:
    """On a worker: a fit has ended."""
    _REMEMBERED.forget(folder)
    heed_interrupts()
