"""Several starts, of which the best is kept."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from kplus.search.job import Fitted, Job

__all__ = ["best_of"]


def best_of(n_init: int, job: Job, fit: Callable[[Job, bool], Fitted]) -> Fitted:
    """Fit `n_init` times and return the lowest objective, the first among equals.

    The first start is the usual one, the others are told to start at random. Starts
    run side by side, each in one thread; a single start uses all threads.
    """
    if n_init == 1:
        return fit(job, False)
    rngs = job.rng.spawn(n_init)
    jobs = [
        replace(job, rng=rng, n_threads=1, callback=job.callback if i == 0 else None)
        for i, rng in enumerate(rngs)
    ]
    with ThreadPoolExecutor(job.n_threads) as pool:
        fits = list(pool.map(fit, jobs, [i > 0 for i in range(n_init)]))
    return min(fits, key=lambda fitted: fitted.objective)
