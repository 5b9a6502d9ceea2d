"""What a fit is given: random numbers, threads and memory."""

import threading

import numpy as np
import pytest

from jobs import make_job
from kplus import DPMeans
from kplus.base.job import job_of
from kplus.core.job import best_of
from kplus.engine.resources import Resources


@pytest.mark.parametrize("random_state", [3, np.int64(3)])
def test_whole_numbers_draw_what_scikit_learn_would(random_state):
    """Though that is drawn once only; generators go on from draw to draw."""
    one, other = np.random.RandomState(3), np.random.RandomState(3)
    for _ in range(2):
        expected = np.random.RandomState(3).randint(2**31 - 1)
        job = job_of(DPMeans(random_state=random_state), None, None)
        assert job.rng.random() == np.random.default_rng(expected).random()
    for _ in range(2):
        job = job_of(DPMeans(random_state=one), None, None)
        expected = other.randint(2**31 - 1)
        assert job.rng.random() == np.random.default_rng(expected).random()


@pytest.mark.parametrize(
    ("n_init", "threads", "sharers"), [(1, 4, 1), (6, 2, 2), (3, 8, 3)]
)
def test_starts_side_by_side_share_the_memory(n_init, threads, sharers):
    seen, lock = [], threading.Lock()

    def fit(part, again):
        with lock:
            seen.append(part.resources)
        return 0.0

    given = Resources(memory_limit=10**9)
    rng = np.random.default_rng(0)
    job = make_job(None, None, rng, n_threads=threads, resources=given)
    best_of(n_init, job, fit, float)
    assert seen == [Resources(memory_limit=10**9, sharers=sharers)] * n_init
