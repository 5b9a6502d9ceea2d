"""Tasks on the workers of a Dask cluster, which read their own blocks."""

import math
import pickle
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from kplus.core.types import Array, Block, Blocks
from kplus.engine.cluster import SEEN_SECONDS, Cluster
from kplus.engine.engine import BlockEngine, Portion, Tasks
from kplus.engine.meter import Meter
from kplus.engine.remote_tasks import (
    RemoteTask,
    end_remote_tasks,
    own_terminal,
    run_remote_task,
)
from kplus.engine.state_store import FolderStore, OnDisk
from kplus.engine.watch import Call, Watch

__all__ = ["DaskEngine"]

_SHORTEST, _LONGEST = 0.5, 10.0  # seconds of a call: sending one takes some ms ...
_CALLS_PER_THREAD = 4  # ... but nobody should wait long for the last
_FIRST_ROWS = 2**20  # of a call, as long as nobody knows how long it takes


class DaskEngine(BlockEngine):
    """Runs tasks on the workers of a client.

    The state of rows is kept in files that all workers reach, a new one for each visit
    of a task, so that any worker can do any task at any time, twice if need be. Whoever
    did a task last is asked first to do it again, as it need not read that state. What
    workers return are sums, of as many tasks as the order of adding up allows.

    Parameters
    ----------
    source : Blocks
        In files, or another source that workers can open by themselves.
    client : distributed.Client
    store : FolderStore
    scratch : object
        Kept for as long as the engine is.
    """

    store: FolderStore

    def __init__(
        self,
        source: Blocks,
        weights: Array | None = None,
        *,
        client: Any,
        store: FolderStore,
        scratch: Any = None,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(source, weights, store=store, meter=meter)
        self._scratch = scratch
        self._packed = pickle.dumps(source, 5)
        self._read_seconds = 0.0
        self._cluster = Cluster(client)
        self._watch = Watch(self._cluster)
        self._task_seconds = 0.0
        self._homes: dict[int, str] = {}

    def __exit__(self, kind: Any, *exc: object) -> None:
        super().__exit__(kind, *exc)
        self._cluster.tell_all(end_remote_tasks, self.store.folder)

    def portions(self, model: Any, params: Any, tasks: Tasks) -> Iterator[Portion]:
        """Yield the number and the sum of some tasks, again and again, in order."""
        threads = max(1, sum(self._cluster.workers(SEEN_SECONDS).values()))
        cuts = self._cuts(len(tasks), threads)
        bundles = [tasks[start:stop] for start, stop in pairwise(cuts)]
        calls = [
            Call(
                _described(bundle),
                self._remote_task(model, params, start, bundle),
                self._homes.get(bundle[0][0]),
            )
            for start, bundle in zip(cuts[:-1], bundles, strict=True)
        ]
        spent = 0.0
        self.n_workers = max(self.n_workers, threads)
        results = self._watch.run(run_remote_task, calls)
        for bundle, answer in zip(bundles, results, strict=True):
            spent += answer.seconds
            self._homes[bundle[0][0]] = answer.worker
            self._read_seconds += answer.value.read_seconds
            handle, first = self.store.on_disk(answer.value.name), 0
            for task in bundle:
                self.visited(task, handle, first)
                first += len(task)
            self.look_at_memory()
            yield from answer.value.portions
        self._task_seconds = spent / len(tasks)

    @property
    def read_seconds(self) -> float:
        return self._read_seconds

    def _cuts(self, n_tasks: int, threads: int) -> list[int]:
        """Where calls begin and the last one ends, all about equally long.

        Places with many factors of two leave less to be added up here.
        """
        each = _CALLS_PER_THREAD
        seconds = n_tasks * self._task_seconds / threads
        while each > 1 and 0 < seconds < each * _SHORTEST:
            each //= 2
        each = max(each, math.ceil(seconds / _LONGEST))
        n_calls = each * threads
        if seconds == 0:
            n_calls = max(n_calls, -(-self.source.n_rows // _FIRST_ROWS))
        n_calls = min(n_tasks, n_calls)
        grain = 1 << max(0, (n_tasks // n_calls // 8).bit_length() - 1)
        inner = [round(i * n_tasks / n_calls / grain) * grain for i in range(n_calls)]
        return [*inner, n_tasks]

    def _remote_task(
        self, model: Any, params: Any, start: int, tasks: Tasks
    ) -> RemoteTask:
        return RemoteTask(
            self._packed,
            model,
            params,
            start,
            [[_alone(self.block(index)) for index in task] for task in tasks],
            [[_file_of(place) for place in self.places(task)] for task in tasks],
            [self.missed(task) for task in tasks],
            self.store.folder,
            own_terminal(),
        )


def _file_of(place: tuple[Any, int]) -> tuple[str | None, int]:
    handle, position = place
    return (handle.path.name if isinstance(handle, OnDisk) else None), position


def _alone(block: Block) -> Block:
    return Block(None, block.index, block.start, block.stop, block.weights)  # type: ignore[arg-type]


def _described(tasks: Tasks) -> str:
    return f"blocks {tasks[0][0]} to {tasks[-1][-1]}"
