"""Engines: blocks, tasks and the state of rows; serial and on threads."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from kplus.core.declared import check
from kplus.core.errors import CheckpointError
from kplus.core.memo import PairwiseSum
from kplus.core.reading import n_blocks
from kplus.core.types import Array, Block, Blocks, IntArray
from kplus.engine.blas import SINGLE_THREAD
from kplus.engine.meter import Meter, TimedBlocks
from kplus.engine.state_store import Handle, MemoryStore, StateStore

__all__ = [
    "BlockEngine",
    "Portion",
    "SerialEngine",
    "Snapshot",
    "State",
    "Tasks",
    "ThreadEngine",
    "run_blocks",
]

_MOST_TASKS = 128  # of one sweep, unless rows are very many
_TASK_ROWS = 2**22  # rows of a task then
_KEPT_PINS = 6  # two per checkpoint, two checkpoints, and one that is being written

Renumbering = tuple[IntArray, int]
Place = tuple[Handle | None, int]
Tasks = list[Sequence[int]]
Portion = tuple[int, Any]


@dataclass(frozen=True)
class Snapshot:
    """Where states are, how far blocks had caught up, and how many renumberings."""

    places: list[Place]
    versions: list[int]
    known: int


@dataclass(frozen=True)
class State:
    """A snapshot as plain values: all that a new engine on the same rows needs.

    `places` are, for each block, the number of its handle and the position in it.
    """

    handles: list[Any]
    places: list[tuple[int, int]]
    versions: list[int]
    renumberings: list[Renumbering]


class BlockEngine:
    """Blocks with the state of their rows, and the order in which they are summed.

    Blocks are summed in order within tasks of consecutive blocks, and tasks in pairs.
    Both depend on the data alone, so every engine adds the same numbers in the same
    order and returns the same bits.

    Use it as a context manager: it holds BLAS to one thread meanwhile.

    Parameters
    ----------
    source : Blocks
    weights : (n_rows,) or None
    store : StateStore or None
        Where states are kept; in memory by default.
    meter : Meter or None
        Told at the end what was done.
    """

    n_workers = 1
    sparing = False
    """Whether to let go of mapped rows as soon as they were visited."""

    def __init__(
        self,
        source: Blocks,
        weights: Array | None = None,
        *,
        store: StateStore | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.source = source
        self.meter = meter
        self._timed = TimedBlocks(source)
        self._rows = 0
        self.weights = weights
        self.store = MemoryStore() if store is None else store
        self.n_blocks = n_blocks(source)
        self._places: list[Place] = [(None, 0)] * self.n_blocks
        self._versions = [0] * self.n_blocks
        self._renumberings: list[Renumbering] = []
        self._pins: deque[list[Handle]] = deque()

    def __enter__(self) -> Self:
        SINGLE_THREAD.take()
        self._begun = time.perf_counter()
        if self.meter is not None:
            self.meter.begin()
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        SINGLE_THREAD.give_back()
        if kind is None:
            self.check_files()
        if self.meter is not None:
            seconds = time.perf_counter() - self._begun
            self.meter.add(self._rows, seconds, self.read_seconds, self.n_workers)

    @property
    def read_seconds(self) -> float:
        """Time that reading took, all threads together."""
        return self._timed.seconds

    # ---------------------------------------------------------------- sweeps

    def tasks(self, block_ids: Sequence[int]) -> Tasks:
        """Cut a list of blocks into tasks of consecutive blocks."""
        most = max(1, _TASK_ROWS // self.source.block_rows)
        size = min(-(-len(block_ids) // _MOST_TASKS), most)
        return [block_ids[i : i + size] for i in range(0, len(block_ids), size)]

    def block(self, index: int) -> Block:
        start = index * self.source.block_rows
        stop = min(start + self.source.block_rows, self.source.n_rows)
        weights = None if self.weights is None else self.weights[start:stop]
        return Block(self._timed, index, start, stop, weights)

    def run_task(self, model: Any, params: Any, task: Sequence[int]) -> Portion:
        """Summarize the blocks of a task in order and add them up: one task."""
        blocks = [self.block(index) for index in task]
        summary, states = run_blocks(
            model, params, blocks, self.loaded(task), self.missed(task)
        )
        self.visited(task, self.store.put(states))
        self.look_at_memory()
        if self.sparing and hasattr(self.source, "release"):
            self.source.release(blocks[0].start, blocks[-1].stop)
        return 1, summary

    def look_at_memory(self) -> None:
        if self.meter is not None:
            self.meter.look(self._rows)

    def check_files(self) -> None:
        """Refuse files that were changed under way."""
        stamps = getattr(self.source, "stamps", None)
        if stamps is not None:
            stamps.check()

    def sweep(self, model: Any, params: Any, block_ids: Sequence[int]) -> Any:
        """Visit blocks; return the sum of their summaries."""
        self.check_files()
        sums = PairwiseSum()
        for size, summary in self.portions(model, params, self.tasks(block_ids)):
            sums.add(summary, size)
        return sums.total()

    def portions(self, model: Any, params: Any, tasks: Tasks) -> Iterator[Portion]:
        """The number and the sum of some tasks, again and again, in order."""
        return map(partial(self.run_task, model, params), tasks)

    # ----------------------------------------------------------- state of rows

    def places(self, task: Sequence[int]) -> list[Place]:
        """Where the states of blocks are."""
        return [self._places[index] for index in task]

    def loaded(self, task: Sequence[int]) -> list[Any]:
        return loaded_states(self.places(task))

    def missed(self, task: Sequence[int]) -> list[list[Renumbering]]:
        """The renumberings since the last visit of each block."""
        return [self._renumberings[self._versions[index] :] for index in task]

    def visited(self, task: Sequence[int], handle: Handle, first: int = 0) -> None:
        """Note that blocks were visited, and where their new states are."""
        for position, index in enumerate(task, first):
            self._places[index] = handle, position
            self._versions[index] = len(self._renumberings)
        rows = self.source.block_rows
        self._rows += min((task[-1] + 1) * rows, self.source.n_rows) - task[0] * rows

    def regroup(self, old_to_new: IntArray, K: int) -> None:
        """Note a renumbering; each block replays what it missed on its next visit."""
        self._renumberings.append((old_to_new, K))

    def locals(self) -> Iterator[Any]:
        """Yield the per-row state of each block, in order."""
        last: Handle | None = None
        states: list[Any] = []
        for handle, position in self._places:
            if handle is None:
                yield None
                continue
            if handle is not last:
                last, states = handle, handle.load()
            if position >= len(states):  # of a checkpoint that was altered
                raise CheckpointError(f"there is no state of rows {position}")
            yield states[position]

    def snapshot(self) -> Snapshot:
        """Where all states are; they are never changed, only replaced."""
        return Snapshot(
            self._places.copy(), self._versions.copy(), len(self._renumberings)
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, as if no block had been visited since."""
        self._places = snapshot.places.copy()
        self._versions = snapshot.versions.copy()
        del self._renumberings[snapshot.known :]

    def state(self, snapshot: Snapshot) -> State:
        """A snapshot as plain values, for a new engine on the same rows."""
        handles: dict[int, Handle] = {}
        numbers: dict[int, int] = {}
        places = []
        for one, position in snapshot.places:
            if one is None:
                places.append((-1, 0))
                continue
            numbers.setdefault(id(one), len(numbers))
            handles[id(one)] = one
            places.append((numbers[id(one)], position))
        self._pin(list(handles.values()))
        described = [one.describe() for one in handles.values()]
        known = self._renumberings[: snapshot.known]
        return State(described, places, snapshot.versions, known)

    def resume(self, state: State) -> None:
        """Resume from the state of another engine on the same rows."""
        check(state, State, {}, "the state of rows")
        if not len(state.places) == len(state.versions) == self.n_blocks:
            raise CheckpointError("the state of rows is that of other blocks")
        if not all(0 <= v <= len(state.renumberings) for v in state.versions):
            raise CheckpointError("blocks have caught up with renumberings to come")
        n_handles = len(state.handles)
        if not all(-1 <= n < n_handles and i >= 0 for n, i in state.places):
            raise CheckpointError("states of rows are in places that are not there")
        for old_to_new, K in state.renumberings:
            if (
                old_to_new.ndim != 1
                or old_to_new.dtype.kind != "i"
                or np.any(old_to_new >= K)
            ):
                raise CheckpointError(f"groups were not renumbered to {K}")
        handles: list[Handle] = []
        for described in state.handles:
            if not isinstance(described, (str, list)):
                raise CheckpointError(f"states are a {type(described).__name__}")
            handles.append(self.store.find(described))
            handles[-1].pin()  # or its file goes if the next cannot be read
        self._pin(handles)
        places: list[Place] = [
            (None, 0) if number < 0 else (handles[number], position)
            for number, position in state.places
        ]
        self._renumberings = list(state.renumberings)
        self.restore(Snapshot(places, state.versions, len(state.renumberings)))

    def states(self, K: int) -> Iterator[tuple[Any, int, int]]:
        """Yield per-row states with their rows and the number of groups they know."""
        for index, local in enumerate(self.locals()):
            missed = self._renumberings[self._versions[index] :]
            groups = len(missed[0][0]) if missed else K
            yield local, self.block(index).n_rows, groups

    def _pin(self, handles: list[Handle]) -> None:
        """Keep what a checkpoint refers to, until some later ones are written."""
        for one in handles:
            one.pin()
        self._pins.append(handles)
        if len(self._pins) > _KEPT_PINS:
            still = {id(one) for pins in list(self._pins)[1:] for one in pins}
            for one in self._pins.popleft():
                if id(one) not in still:
                    one.unpin()


def loaded_states(places: Sequence[Place]) -> list[Any]:
    """The states at some places; None where there is none yet."""
    loaded: dict[int, list[Any]] = {}
    states: list[Any] = []
    for handle, position in places:
        if handle is None:
            states.append(None)
            continue
        if id(handle) not in loaded:
            loaded[id(handle)] = handle.load()
        states.append(loaded[id(handle)][position])
    return states


def run_blocks(
    model: Any,
    params: Any,
    blocks: Sequence[Block],
    states: list[Any],
    missed: Sequence[Sequence[Renumbering]],
) -> tuple[Any, list[Any]]:
    """Summarize blocks in order; return the sum of it, and their new states."""
    total = None
    for i, block in enumerate(blocks):
        local = states[i]
        for old_to_new, K in missed[i]:
            if local is not None:
                local = model.regroup_local(local, old_to_new, K)
        summary, states[i] = model.summarize(params, block, local)
        if total is None:
            total = summary
        else:
            total += summary
    return total, states


class SerialEngine(BlockEngine):
    """Runs every task where it is called."""


class ThreadEngine(BlockEngine):
    """Runs tasks on `n_threads` threads and yields their results in order."""

    def __init__(
        self,
        source: Blocks,
        weights: Array | None = None,
        *,
        n_threads: int,
        store: StateStore | None = None,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(source, weights, store=store, meter=meter)
        self.n_threads = self.n_workers = n_threads

    def __enter__(self) -> Self:
        super().__enter__()
        self._pool = ThreadPoolExecutor(self.n_threads)
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        super().__exit__(kind, *exc)

    def portions(self, model: Any, params: Any, tasks: Tasks) -> Iterator[Portion]:
        """Yield the summary of each task, in order.

        At most two tasks per thread are under way or waiting to be added, which bounds
        the memory that their summaries take.
        """
        waiting: deque[Future[Portion]] = deque()
        for task in tasks:
            if len(waiting) == 2 * self.n_threads:
                yield waiting.popleft().result()
            waiting.append(self._pool.submit(self.run_task, model, params, task))
        while waiting:
            yield waiting.popleft().result()
