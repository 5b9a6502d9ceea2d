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
    have random numbers of their own. Starts run side by side, each in one thread, and
    the first is watched; a single start uses all threads.
    """
    if n_init == 1:
        return fit(job, False)
    jobs = [
        replace(
            job,
            rng=rng,
            n_threads=1,
            callback=None if i else job.callback,
            journal=None if job.journal is None else job.journal.part(i),
        )
        for i, rng in enumerate(job.rng.spawn(n_init))
    ]
    with ThreadPoolExecutor(job.n_threads) as pool:
        fits = list(pool.map(fit, jobs, [i > 0 for i in range(n_init)]))
    return min(fits, key=cost)
