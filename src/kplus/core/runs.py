"""From a job to the loop and back: fits, and single passes with fixed parameters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from kplus.core import loop
from kplus.core.declared import check
from kplus.core.job import Job
from kplus.core.journal import Stateful
from kplus.core.loop import check_result
from kplus.core.reading import n_blocks
from kplus.core.types import (
    Block,
    Callback,
    FitResult,
    IntArray,
    Move,
    PassInfo,
)

__all__ = [
    "answers",
    "gathered",
    "in_units",
    "labels_of",
    "negated",
    "one_by_one",
    "run_job",
    "sums_of",
    "telling",
]

Reported = Callable[[PassInfo], PassInfo]


def run_job(
    job: Job,
    model: Any,
    start: Any,
    moves: Sequence[Move] = (),
    *,
    groups: Sequence[Sequence[int]] | None = None,
    step: float | None = None,
    base: Any = None,
    finish: Move | None = None,
    others: Sequence[Stateful] = (),
    reported: Reported | None = None,
    earlier: int = 0,
    rows: Callable[[Any], Any] | None = None,
    then: Callable[[FitResult], Any] | None = None,
) -> tuple[FitResult, Any]:
    """Run the loop on a job; return its result, and what `rows` gathers.

    Parameters
    ----------
    groups, base, finish
        See `loop.run`.
    step : float, optional
        Stop when a pass changes the objective by no more, instead of by the share
        `job.tol` of it.
    others : sequence of Stateful
        What the moves change besides their own state.
    reported : callable, optional
        From a pass to what the callback of the job gets, in the units of the data.
    earlier : int
        Passes that led to the start; they count.
    rows : callable, optional
        From the engine, the per-row state to return, such as `labels_of`.
    then : callable, optional
        The parameters of a second run, which starts from the per-row state of the
        first and whose passes are counted on; None if there is to be none. It has at
        least one pass.
    """
    tol, step = (job.tol, 0.0) if step is None else (0.0, step)
    history: list[float] = []

    def check_value(value: Any) -> None:
        check(value, tuple[FitResult, Any], {}, "the result of a loop")
        check_result(value[0], model, start, value[1], job.source.n_rows)

    with job.engine() as engine:
        while True:
            checkpointer = job.checkpointer(others)
            if checkpointer is not None and checkpointer.ended:
                result, state = checkpointer.result(check_value)
            else:
                before = earlier + len(history)
                result = loop.run(
                    model, engine, start, moves=moves, groups=groups,
                    max_iter=max(job.max_iter - before, 1), tol=tol, step=step,
                    base=base, callback=telling(job.callback, reported, before),
                    finish=finish, checkpointer=checkpointer,
                )  # fmt: skip
                state = None if rows is None else rows(engine)
                if checkpointer is not None:
                    checkpointer.save_result((result, state))
            history.extend(result.history)
            result = replace(result, history=history, n_iter=len(history))
            start, then = None if then is None else then(result), None
            if start is None:
                return result, state


def telling(
    callback: Callback | None, reported: Reported | None, earlier: int = 0
) -> Callback | None:
    """A callback that gets passes as `reported`, and counts from `earlier`."""
    if callback is None:
        return None

    def tell(info: PassInfo) -> bool:
        info = replace(info, iteration=info.iteration + earlier)
        return callback(info if reported is None else reported(info))

    return tell


def in_units(convert: Callable[[float], float]) -> Reported:
    """Passes with their objective converted."""
    return lambda info: replace(info, objective=float(convert(info.objective)))


negated = in_units(lambda cost: -cost)
"""Passes of models that minimise the negative of a bound."""


def one_by_one(job: Job) -> list[list[int]]:
    """Groups for algorithms that walk the blocks in order, see `loop.run`."""
    return [*([index] for index in range(n_blocks(job.source))), []]


def labels_of(engine: Any) -> IntArray:
    """The label of every row."""
    labels: IntArray = gathered(engine, attrgetter("labels"))
    return labels


def gathered(engine: Any, part: Callable[[Any], Any] | None = None) -> Any:
    """The state of each block, or a `part` of it, as one array with an entry per row.

    States in files are in memory one after the other only.
    """
    parts = engine.locals() if part is None else map(part, engine.locals())
    first = next(parts)
    every = np.empty((engine.source.n_rows, *first.shape[1:]), first.dtype)
    start = len(first)
    every[:start] = first
    for values in parts:
        every[start : start + len(values)] = values
        start += len(values)
    return every


# --------------------------------------------------- passes with fixed parameters


@dataclass(frozen=True)
class _OneAttribute:
    """A model that returns one attribute of its state of rows: no pass follows."""

    model: Any
    name: str

    def summarize(self, params: Any, block: Block, local: Any) -> tuple[Any, Any]:
        summary, state = self.model.summarize(params, block, local)
        return summary, getattr(state, self.name)


def answers(
    job: Job,
    model: Any,
    params: Any,
    *,
    keep: str | None = None,
    part: Callable[[Any], Any] | None = None,
) -> tuple[Any, Any]:
    """Visit all rows once; return the sums, and the state of the rows.

    Parameters
    ----------
    job : Job
        As for a fit: the same threads or workers, within the same memory.
    keep : str, optional
        The attribute of the state that the answer needs; the rest goes at once.
    part : function, optional
        From the state of a block, or what is kept of it, to an entry or line per row.
    """
    visiting = model if keep is None else _OneAttribute(model, keep)
    with job.engine() as engine:
        total = engine.sweep(visiting, params, range(engine.n_blocks))
        return total, gathered(engine, part)


def sums_of(job: Job, model: Any, params: Any) -> Any:
    """Visit all rows once; return the sums alone."""
    with job.engine() as engine:
        return engine.sweep(model, params, range(engine.n_blocks))
