"""From a job to the loop and back."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from kplus.core.reading import n_blocks
from kplus.core.types import Callback, FitResult, IntArray, Keeper, Move, PassInfo
from kplus.engine import BlockEngine
from kplus.loop import run
from kplus.search.job import Job

__all__ = ["gathered", "labels_of", "one_by_one", "run_job", "telling"]


def run_job(
    job: Job,
    model: Any,
    start: Any,
    moves: Sequence[Move],
    groups: Sequence[Sequence[int]] | None = None,
    *,
    shown: Callable[[float], float] = float,
    earlier: int = 0,
    finish: Move | None = None,
) -> tuple[FitResult, IntArray]:
    """Run the loop on a job; return its result and the label of every row.

    A callback is told objectives as `shown`, in the units of the data, and passes
    counted on from those `earlier` ones.
    """

    def loop(keeper: Keeper | None) -> tuple[FitResult, IntArray]:
        with job.engine() as engine:
            result = run(
                model, engine, start,
                moves=moves, groups=groups,
                max_iter=job.max_iter - earlier, tol=job.tol,
                callback=telling(job.callback, shown, earlier), finish=finish,
                keeper=keeper,
            )  # fmt: skip
            return result, labels_of(engine)

    return job.watched(loop)


def telling(
    callback: Callback | None, shown: Callable[[float], float], earlier: int = 0
) -> Callback | None:
    """A callback that is told objectives as `shown`, and counts on from `earlier`."""
    if callback is None:
        return None

    def tell(info: PassInfo) -> bool:
        objective, iteration = float(shown(info.objective)), info.iteration + earlier
        return callback(replace(info, objective=objective, iteration=iteration))

    return tell


def one_by_one(job: Job) -> list[list[int]]:
    """Groups for algorithms that walk the blocks in order, see `loop.run`."""
    return [*([index] for index in range(n_blocks(job.source))), []]


def labels_of(engine: BlockEngine) -> IntArray:
    """The label of every row."""
    labels: IntArray = gathered(engine, attrgetter("labels"))
    return labels


def gathered(engine: BlockEngine, shown: Callable[[Any], Any]) -> Any:
    """What is `shown` of the state of each block, as one array with an entry a row.

    States in files are in memory one after the other only.
    """
    parts = map(shown, engine.locals())
    first = next(parts)
    every = np.empty((engine.source.n_rows, *first.shape[1:]), first.dtype)
    start = len(first)
    every[:start] = first
    for part in parts:
        every[start : start + len(part)] = part
        start += len(part)
    return every
