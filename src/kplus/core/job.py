"""What a search is given: a job, samples of its rows, and restarts."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from kplus.core.errors import NotFiniteError
from kplus.core.journal import Journal, LoopCheckpoint, RngState, Stateful
from kplus.core.types import Array, Blocks, Callback, PassInfo

__all__ = ["Job", "Sample", "best_of", "draw"]

T = TypeVar("T")

_SURELY_FINE = 1e100  # sums of squares of smaller numbers are finite


@dataclass(frozen=True)
class Sample:
    """Rows in memory with their weights; `share` of all rows."""

    rows: Array
    weights: Array | None
    share: float

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def weight(self) -> Array:
        """Weights as an array, also where every row counts as one."""
        return np.ones(len(self.rows)) if self.weights is None else self.weights

    def some(self, size: int) -> "Sample":
        """No more than so many of its rows, spread evenly."""
        if self.n_rows <= size:
            return self
        at = np.linspace(0, self.n_rows - 1, size).astype(np.int64)
        weights = None if self.weights is None else self.weights[at]
        return Sample(self.rows[at], weights, self.share * size / self.n_rows)


def draw(
    source: Blocks, weights: Array | None, size: int, rng: np.random.Generator
) -> Sample:
    """Draw rows evenly without replacement, in row order; all rows if they are few.

    Rows of no weight are left out.
    """
    rows = np.arange(source.n_rows) if weights is None else np.flatnonzero(weights)
    share = min(1.0, size / len(rows))
    if share < 1.0:
        rows = rows[np.sort(rng.choice(len(rows), size, replace=False, shuffle=False))]
    return Sample(source.take(rows), None if weights is None else weights[rows], share)


@dataclass(frozen=True)
class Job:
    """The data and how to go about them; a journal keeps loops over all rows.

    Attributes
    ----------
    ended : callable
        Starts without a callback call it after each pass; True ends them.
    make_engine : callable or None
        Makes engines, see `kplus.engine.make_engine`; None: the job is to draw samples
        only.
    resources : Resources or None
        What engines may use.
    meter : Meter or None
        What engines did.
    """

    source: Blocks
    weights: Array | None
    rng: np.random.Generator
    n_threads: int = 1
    max_iter: int = 300
    tol: float = 1e-5
    callback: Callback | None = None
    ended: Callable[[], bool] = lambda: False
    journal: Journal | None = None
    make_engine: Callable[..., Any] | None = None
    resources: Any = None
    meter: Any = None

    def engine(self) -> Any:
        """An engine for loops over all rows."""
        assert self.make_engine is not None
        resources = self.resources
        if self.journal is not None:
            resources = replace(resources, checkpoint_rows=self.journal.rows)
        return self.make_engine(
            self.source, self.weights, self.n_threads, resources, self.meter
        )

    def on_sample(
        self, source: Blocks, weights: Array | None = None, **changes: Any
    ) -> "Job":
        """The same for some of the rows, without callback, journal and meter."""
        unseen = replace(self, callback=None, journal=None, meter=None)
        return replace(unseen, source=source, weights=weights, **changes)

    def single_threaded(self) -> "Job":
        """The same for one thread, which takes blocks in order: nobody can help it."""
        resources = replace(self.resources, client=None)
        return replace(self, n_threads=1, resources=resources)

    def checkpointer(self, others: Sequence[Stateful]) -> LoopCheckpoint | None:
        """For the loop over all rows that begins now; None without a journal."""
        if self.journal is None:
            return None
        return LoopCheckpoint(self.journal, [RngState(self.rng), *others])

    def sample(self, size: int) -> Sample:
        sample = draw(self.source, self.weights, size, self.rng)
        largest = float(np.max(np.abs(sample.rows), initial=0.0))  # NaN if any is
        if not largest < _SURELY_FINE and not _squares_fit(sample.rows):
            raise NotFiniteError("A row of the sample")
        return sample


def _squares_fit(rows: Array) -> bool:
    """Whether all values, and the squares of their spread, are finite in float64."""
    wide = rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.max(wide, axis=0) - np.min(wide, axis=0)
        return bool(np.isfinite(np.sum(spread**2) * len(rows)))


def best_of(
    n_init: int,
    job: Job,
    fit: Callable[[Job, bool], T],
    cost: Callable[[T], Any] = attrgetter("objective"),
) -> T:
    """Fit `n_init` times and return the lowest cost, the first among equals.

    The first start is the usual one; `fit` gets True for the others, which
    have random numbers of their own. Starts run side by side, each in one thread and
    with its part of the memory, and only the first is reported; a single start uses
    all threads. Once the fit is ended, starts under way stop after their pass, and no
    other begins. Numbers of groups that the callback keeps, as `groups`, are at last
    those of the start that is returned.
    """
    if n_init == 1:
        return fit(job, False)
    sharers = min(n_init, job.n_threads)
    kept: list[int] | None = getattr(job.callback, "groups", None)
    counted: list[list[int]] = [[] for _ in range(n_init)]
    jobs = [
        replace(
            job,
            rng=rng,
            n_threads=1,
            resources=replace(job.resources, sharers=sharers),
            callback=_counting(
                job.callback if i == 0 else lambda info: job.ended(), counted[i], kept
            ),
            journal=None if job.journal is None else job.journal.part(i),
        )
        for i, rng in enumerate(job.rng.spawn(n_init))
    ]

    def one(number: int) -> T | None:
        if number > 0 and job.ended():
            return None
        return fit(jobs[number], number > 0)

    if sharers == 1:
        results = list(map(one, range(n_init)))
    else:
        with ThreadPoolExecutor(sharers) as pool:
            results = list(pool.map(one, range(n_init)))
    left = [i for i, each in enumerate(results) if each is not None]
    best = min(left, key=lambda i: cost(results[i]))  # type: ignore[arg-type]
    if kept is not None:
        kept[:] = counted[best]
    return results[best]  # type: ignore[return-value]


def _counting(
    callback: Callback | None, counted: list[int], kept: list[int] | None
) -> Callback | None:
    """A callback that notes how many groups there are, if somebody keeps that."""

    def count(info: PassInfo) -> bool:
        counted.append(int(info.params.K))
        return callback is not None and callback(info)

    return callback if kept is None else count
