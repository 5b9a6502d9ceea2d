"""From a job to the loop and back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kplus.core.types import Callback, FitResult, IntArray, Move, PassInfo
from kplus.engine import make_engine
from kplus.loop import run
from kplus.search.dp_means import Job
from kplus.search.splits import labels_of

__all__ = ["one_by_one", "run_job", "telling"]


def run_job(
    job: Job,
    model: Any,
    start: Any,
    moves: Sequence[Move],
    groups: Sequence[Sequence[int]] | None = None,
    *,
    unit: float = 1.0,
    earlier: int = 0,
) -> tuple[FitResult, IntArray]:
    """Run the loop on a job; return its result and the label of every row.

    A callback is told objectives times `unit`, in the units of the data, and counts
    passes on from those `earlier` ones.
    """
    with make_engine(job.source, job.weights, job.n_threads) as engine:
        result = run(
            model, engine, start,
            moves=moves, groups=groups,
            max_iter=job.max_iter - earlier, tol=job.tol,
            callback=telling(job.callback, unit, earlier),
        )  # fmt: skip
        return result, labels_of(engine)


def telling(
    callback: Callback | None, unit: float, earlier: int = 0
) -> Callback | None:
    """A callback that is told objectives times `unit`, and counts on from `earlier`."""
    if callback is None:
        return None

    def tell(info: PassInfo) -> bool:
        objective, iteration = info.objective * unit, info.iteration + earlier
        return callback(replace(info, objective=objective, iteration=iteration))

    return tell


def one_by_one(job: Job) -> list[list[int]]:
    """Groups for algorithms that walk the blocks in order, see `loop.run`."""
    n_blocks = -(-job.source.n_rows // job.source.block_rows)
    return [*([index] for index in range(n_blocks)), []]
