"""From the parameters that all estimators share to what a search is given."""

from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from kplus.base.progress import Watch
from kplus.core.job import Job
from kplus.core.types import Array, Blocks
from kplus.engine import make_engine
from kplus.engine.resources import resources_now

__all__ = ["answering", "job_of"]


def job_of(
    estimator: Any,
    source: Blocks,
    weights: Array | None,
    reporter: Watch | None = None,
) -> Job:
    """The rows, the seed, the threads and when to stop; with callbacks, if any."""
    random_state = estimator.random_state
    draw = _draw_once if isinstance(random_state, Integral) else _draw
    seed = draw(random_state)
    callbacks: dict[str, Any] = {}
    if reporter is not None:
        callbacks = {
            "callback": reporter,
            "ended": lambda: reporter.ended,
            "journal": reporter.journal,
            "meter": reporter.meter,
        }
    return Job(
        source=source,
        weights=weights,
        rng=np.random.default_rng(seed),
        n_threads=effective_n_jobs(estimator.n_jobs),
        max_iter=estimator.max_iter,
        tol=estimator.tol,
        make_engine=make_engine,
        resources=resources_now(),
        **callbacks,
    )


def answering(estimator: Any, source: Blocks, weights: Array | None = None) -> Job:
    """One pass of a fitted model over rows, with all that a fit may use."""
    return Job(
        source=source,
        weights=weights,
        rng=np.random.default_rng(0),
        n_threads=effective_n_jobs(estimator.n_jobs),
        max_iter=1,
        make_engine=make_engine,
        resources=resources_now(),
    )


def _draw(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(2**31 - 1))


# A generator takes longer to make than a small batch of a stream has to spare.
_draw_once = lru_cache(maxsize=16)(_draw)
