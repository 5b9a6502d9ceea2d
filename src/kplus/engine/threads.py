"""Tasks on a pool of threads; the kernels and BLAS release the interpreter lock."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from kplus.core.types import Array, Blocks
from kplus.engine.engine import BlockEngine, Portion, Tasks
from kplus.engine.meter import Meter
from kplus.engine.state_store import StateStore

__all__ = ["ThreadEngine"]


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

        At most two tasks a thread are under way or waiting to be added, which bounds
        the memory that their summaries take.
        """
        waiting: deque[Future[Portion]] = deque()
        for task in tasks:
            if len(waiting) == 2 * self.n_threads:
                yield waiting.popleft().result()
            waiting.append(self._pool.submit(self.run_task, model, params, task))
        while waiting:
            yield waiting.popleft().result()
