"""What the serial and the thread engine share: blocks, tasks, per-row state."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

from kplus.core.reading import n_blocks
from kplus.core.types import Array, Block, Blocks, IntArray
from kplus.engine.blas import SINGLE_THREAD

__all__ = ["BlockEngine"]

_MOST_TASKS = 128


class BlockEngine:
    """Blocks with their per-row state, and the order in which they are summed.

    Blocks are summed within tasks of consecutive blocks, and tasks in order. Tasks
    are cut by the data alone, so every engine adds the same numbers in the same
    order and returns the same bits.

    Use it as a context manager: it holds BLAS to one thread meanwhile.
    """

    def __init__(self, source: Blocks, weights: Array | None = None) -> None:
        self.source = source
        self.weights = weights
        self.n_blocks = n_blocks(source)
        self._locals: list[Any] = [None] * self.n_blocks
        self._versions = [0] * self.n_blocks
        self._renumberings: list[tuple[IntArray, int]] = []

    def __enter__(self) -> Self:
        SINGLE_THREAD.take()
        return self

    def __exit__(self, *exc: object) -> None:
        SINGLE_THREAD.give_back()

    def tasks(self, block_ids: Sequence[int]) -> list[Sequence[int]]:
        """Cut a list of blocks into tasks of consecutive blocks."""
        size = -(-len(block_ids) // _MOST_TASKS)
        return [block_ids[i : i + size] for i in range(0, len(block_ids), size)]

    def block(self, index: int) -> Block:
        start = index * self.source.block_rows
        stop = min(start + self.source.block_rows, self.source.n_rows)
        weights = None if self.weights is None else self.weights[start:stop]
        return Block(self.source, index, start, stop, weights)

    def run_task(self, model: Any, params: Any, task: Sequence[int]) -> Any:
        """Summarize the blocks of a task in order and add them up."""
        total = None
        for index in task:
            local = self._caught_up(model, index)
            summary, self._locals[index] = model.summarize(
                params, self.block(index), local
            )
            if total is None:
                total = summary
            else:
                total += summary
        return total

    def sweep(self, model: Any, params: Any, block_ids: Sequence[int]) -> Iterator[Any]:
        """Yield the summary of each task, in order."""
        for task in self.tasks(block_ids):
            yield self.run_task(model, params, task)

    def regroup(self, into: IntArray, K: int) -> None:
        """Note a renumbering; each block replays what it missed on its next visit."""
        self._renumberings.append((into, K))

    def _caught_up(self, model: Any, index: int) -> Any:
        local = self._locals[index]
        missed = self._renumberings[self._versions[index] :]
        self._versions[index] = len(self._renumberings)
        for into, K in missed:
            if local is not None:
                local = model.regroup_local(local, into, K)
        return local

    def locals(self) -> Iterator[Any]:
        """Yield the per-row state of each block, in order."""
        yield from self._locals

    def snapshot(self) -> tuple[list[Any], list[int], int]:
        """The state of all blocks; models never change a state in place."""
        return self._locals.copy(), self._versions.copy(), len(self._renumberings)

    def restore(self, snapshot: tuple[list[Any], list[int], int]) -> None:
        """Go back to a snapshot, as if no block had been visited since."""
        states, versions, known = snapshot
        self._locals, self._versions = states.copy(), versions.copy()
        del self._renumberings[known:]

    def state(self) -> tuple[list[Any], list[int], list[tuple[IntArray, int]]]:
        """All that a new engine on the same rows needs to go on."""
        return self._locals, self._versions, self._renumberings

    def resume(
        self, state: tuple[list[Any], list[int], list[tuple[IntArray, int]]]
    ) -> None:
        """Go on from the state of another engine."""
        states, versions, renumberings = state
        self._locals, self._versions = list(states), list(versions)
        self._renumberings = list(renumberings)
