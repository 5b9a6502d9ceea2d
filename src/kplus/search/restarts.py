"""Several starts, of which the best is kept."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import attrgetter
from typing import TypeVar

from kplus.search.job import Job

__all__ = ["best_of"]

T = TypeVar("T")


def best_of(
    n_init: int,
    job: Job,
    fit: Callable[[Job, bool], T],
    cost: Callable[[T], float] = attrgetter("objective"),
) -> T:
    """Fit `n_init` times and return the lowest cost, the first among equals.

    The first start is the usual one; the others are told that they come after it, and
    have random numbers of their own. Starts run side by side, each in one thread and
    with its part of the memory, and the first is watched; a single start uses all
    threads. Once the fit is ended, starts
    under way stop after their pass, and no other begins.
    """
    if n_init == 1:
        return fit(job, False)
    sharers = min(n_init, job.n_threads)
    jobs = [
        replace(
            job,
            rng=rng,
            n_threads=1,
            resources=replace(job.resources, sharers=sharers),
            callback=job.callback if i == 0 else lambda info: job.ended(),
            journal=None if job.journal is None else job.journal.part(i),
        )
        for i, rng in enumerate(job.rng.spawn(n_init))
    ]

    def one(number: int) -> T | None:
        if number > 0 and job.ended():
            return None
        return fit(jobs[number], number > 0)

    with ThreadPoolExecutor(job.n_threads) as pool:
        fits = [found for found in pool.map(one, range(n_init)) if found is not None]
    return min(fits, key=cost)
