"""Tasks on the workers of a Dask cluster, which read their own blocks."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from kplus.core.pairwise import PairwiseSum
from kplus.core.types import Array, Block, Blocks
from kplus.engine.blas import SINGLE_THREAD
from kplus.engine.cluster import Watch
from kplus.engine.engine import (
    BlockEngine,
    Portion,
    Renumbering,
    Tasks,
    run_blocks,
)
from kplus.engine.memory import keeping_freed
from kplus.engine.meter import Meter, TimedBlocks
from kplus.engine.shelves import Filed, FolderShelf, read_states, write_states

__all__ = ["DaskEngine"]

_CALL_SECONDS = 0.5  # a call should take so long at least: sending one takes some ms
_CALLS_A_THREAD = 4  # at the most, so that nobody waits long for the last


@dataclass(frozen=True)
class Errand:
    """Some tasks, as a worker is sent to do them.

    Attributes
    ----------
    source : bytes
        Blocks, pickled without rows: a worker opens the files itself, and keeps them
        open for the next errand.
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
    """

    source: bytes
    model: Any
    params: Any
    start: int
    tasks: list[list[Block]]
    files: list[list[tuple[str | None, int]]]
    missed: list[list[list[Renumbering]]]
    folder: Path


class DaskEngine(BlockEngine):
    """Runs tasks on the workers of a client.

    The state of rows is kept in files that all workers reach, a new one for each visit
    of a task, so that any worker can do any task at any time, twice if need be. What
    workers return are sums, of as many tasks as the order of adding up allows.

    Parameters
    ----------
    source : Blocks
        In files, or another source that workers can open by themselves.
    client : distributed.Client
    shelf : FolderShelf
    scratch : object
        Kept for as long as the engine is.
    """

    shelf: FolderShelf

    def __init__(
        self,
        source: Blocks,
        weights: Array | None = None,
        *,
        client: Any,
        shelf: FolderShelf,
        scratch: Any = None,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(source, weights, shelf=shelf, meter=meter)
        self._scratch = scratch
        self._packed = pickle.dumps(source, 5)
        self._read_seconds = 0.0
        self._watch = Watch(client)
        self._task_seconds = 0.0

    def portions(self, model: Any, params: Any, tasks: Tasks) -> Iterator[Portion]:
        """Yield the number and the sum of some tasks, again and again, in order."""
        threads = max(1, self._watch.n_threads)
        cuts = self._cuts(len(tasks), threads)
        bundles = [tasks[start:stop] for start, stop in pairwise(cuts)]
        calls = [
            (_described(bundle), self._errand(model, params, start, bundle))
            for start, bundle in zip(cuts[:-1], bundles, strict=True)
        ]
        spent = 0.0
        self.n_workers = max(self.n_workers, threads)
        results = self._watch.run(run_errand, calls)
        for bundle, (outcome, seconds) in zip(bundles, results, strict=True):
            spent += seconds
            self._read_seconds += outcome.read_seconds
            put, first = self.shelf.filed(outcome.name), 0
            for task in bundle:
                self.visited(task, put, first)
                first += len(task)
            yield from outcome.portions
        self._task_seconds = spent / len(tasks)

    @property
    def read_seconds(self) -> float:
        return self._read_seconds

    def _cuts(self, n_tasks: int, threads: int) -> list[int]:
        """Where calls begin and the last one ends, all about equally long.

        Places with many factors of two leave less to be added up here.
        """
        each = _CALLS_A_THREAD
        seconds = n_tasks * self._task_seconds / threads
        while each > 1 and 0 < seconds < each * _CALL_SECONDS:
            each //= 2
        n_calls = min(n_tasks, each * threads)
        grain = 1 << max(0, (n_tasks // n_calls // 8).bit_length() - 1)
        inner = [round(i * n_tasks / n_calls / grain) * grain for i in range(n_calls)]
        return [*inner, n_tasks]

    def _errand(self, model: Any, params: Any, start: int, tasks: Tasks) -> Errand:
        return Errand(
            self._packed,
            model,
            params,
            start,
            [[_alone(self.block(index)) for index in task] for task in tasks],
            [[_file_of(place) for place in self.places(task)] for task in tasks],
            [self.missed(task) for task in tasks],
            self.shelf.folder,
        )


@dataclass(frozen=True)
class Outcome:
    """What a worker brings back: sums of tasks, and a file with all new states."""

    portions: list[Portion]
    name: str
    read_seconds: float


def run_errand(errand: Errand) -> Outcome:
    """On a worker: do the tasks."""
    sums = PairwiseSum(errand.start)
    new: list[Any] = []
    read: dict[str, list[Any]] = {}
    source = TimedBlocks(_opened(errand.source))
    with SINGLE_THREAD, keeping_freed():
        for blocks, files, missed in zip(
            errand.tasks, errand.files, errand.missed, strict=True
        ):
            own = [_with_source(block, source) for block in blocks]
            states = _states(errand.folder, files, read)
            summary, states = run_blocks(
                errand.model, errand.params, own, states, missed
            )
            sums.add(summary)
            new += states
    return Outcome(sums.portions, write_states(errand.folder, new), source.seconds)


@lru_cache(maxsize=2)
def _opened(packed: bytes) -> Any:
    return pickle.loads(packed)


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
            read[name] = read_states(folder / name)
        states.append(read[name][position])
    return states


def _file_of(place: tuple[Any, int]) -> tuple[str | None, int]:
    put, position = place
    return (put.path.name if isinstance(put, Filed) else None), position


def _alone(block: Block) -> Block:
    return Block(None, block.index, block.start, block.stop, block.weights)  # type: ignore[arg-type]


def _with_source(block: Block, source: Blocks) -> Block:
    return Block(source, block.index, block.start, block.stop, block.weights)


def _described(tasks: Tasks) -> str:
    return f"blocks {tasks[0][0]} to {tasks[-1][-1]}"
