"""Threads: never more than asked for, none left behind; processes that fork."""

import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed

from every_estimator import (
    DEFAULTS,
    ROWS,
    assert_same_attributes,
    bits,
    seeded,
)
from kplus import DPMeans, DPMixture
from kplus.engine.blas import SINGLE_THREAD
from workers import two_workers

MANY = np.tile(ROWS, (4, 1)) + np.random.default_rng(0).normal(0, 0.01, (240, 5))
MANY = np.abs(MANY)
TASKS = Path("/proc/self/task")
with_n_jobs = pytest.mark.parametrize("n_jobs", [1, 3])
THREADED = [model for model in DEFAULTS if hasattr(model, "n_jobs")]
every_threaded = pytest.mark.parametrize(
    "model", THREADED, ids=lambda model: type(model).__name__
)
# Threads that have ended stay in the system's list for a moment.
LINGERING = 4


def n_threads():
    """Threads of Python, and of the process where that can be known."""
    tasks = len(os.listdir(TASKS)) if TASKS.exists() else threading.active_count()
    return np.array([threading.active_count(), tasks])


class Watcher:
    """Counts threads all the time, in a thread of its own."""

    def __enter__(self):
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.before = self.most = n_threads() + 1  # with that of its own
        self._thread.start()
        return self

    def _watch(self):
        while not self._end.wait(0.001):
            self.most = np.maximum(self.most, n_threads())

    def __exit__(self, *exc):
        self._end.set()
        self._thread.join()

    @property
    def more(self):
        return (self.most - self.before).tolist()

    def check(self, allowed):
        """Not more than so many came."""
        python, system = self.more
        assert python <= allowed
        assert system <= allowed + LINGERING


def many_blocks(model, n_jobs, **more):
    return seeded(model).set_params(n_jobs=n_jobs, batch_size=32, **more)


class TestNumber:
    @with_n_jobs
    @every_threaded
    def test_is_at_most_that_asked_for(self, model, n_jobs):
        many_blocks(model, 1).fit(MANY[:100])  # BLAS makes its own at first use
        with Watcher() as watcher:
            many_blocks(model, n_jobs).fit(MANY)
        watcher.check(0 if n_jobs == 1 else n_jobs)

    @every_threaded
    def test_of_several_starts(self, model):
        many_blocks(model, 1).fit(MANY[:100])
        with Watcher() as watcher:
            many_blocks(model, 3, n_init=5).fit(MANY[:96])
        watcher.check(3)

    @with_n_jobs
    def test_is_seen_to_grow(self, n_jobs):
        """The watcher does see the threads that there are."""
        X = np.random.default_rng(0).normal(size=(20_000, 8))
        model = DPMeans(penalty=20.0, n_jobs=n_jobs, batch_size=500)
        with Watcher() as watcher:
            model.fit(X)
        if n_jobs == 1:
            assert watcher.more[0] == 0
        else:  # a pool starts a thread only when all others are at work
            assert 1 <= watcher.more[0] <= n_jobs

    @every_threaded
    def test_nothing_is_left(self, model):
        before = threading.active_count()
        many_blocks(model, 4).fit(MANY)
        many_blocks(model, 4, n_init=3).fit(MANY[:100])
        assert threading.active_count() == before
        assert SINGLE_THREAD._users == 0

    def test_nothing_is_left_after_an_error(self):
        before = threading.active_count()
        rows = MANY.copy()
        rows[-1] = np.inf
        for n_init in (1, 3):
            with pytest.raises(ValueError, match="inf"):
                many_blocks(DPMeans(penalty=1.0), 4, n_init=n_init).fit(rows)
        assert threading.active_count() == before
        assert SINGLE_THREAD._users == 0

    def test_fits_side_by_side(self):
        """Each has its own threads, and gives what it gives alone."""
        alone = many_blocks(DPMixture(), 2).fit(MANY)
        models = [many_blocks(DPMixture(), 2) for _ in range(3)]
        with Watcher() as watcher:
            threads = [threading.Thread(target=m.fit, args=(MANY,)) for m in models]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert watcher.more[0] <= 3 * (1 + 2)
        for model in models:
            assert_same_attributes(model, alone)


def answer_of_child(connection, model, X):
    """What a fit in a forked process finds."""
    model.fit(X)
    connection.send([model._history.tobytes(), bits(model.score(X))])
    connection.close()


def in_a_fork(model, X, seconds=60.0):
    """Fit in a forked process; None if it does not end."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=answer_of_child, args=(there, model, X))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(seconds) else None
    finally:
        process.kill()
        process.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
class TestFork:
    @every_threaded
    def test_fits_after_fits_of_the_parent(self, model):
        own = many_blocks(model, 2).fit(MANY)
        expected = [own._history.tobytes(), bits(own.score(MANY))]
        assert in_a_fork(many_blocks(model, 2), MANY) == expected
        again = many_blocks(model, 2).fit(MANY)  # and the parent goes on
        assert again._history.tobytes() == expected[0]

    def test_in_mid_fit(self):
        """A thread forks while another fits: locks may be held, BLAS be limited."""
        model = many_blocks(DPMeans(penalty=1.0), 2)
        expected = [model.fit(MANY)._history.tobytes(), bits(model.score(MANY))]
        end = threading.Event()

        def fit_on_and_on():
            while not end.is_set():
                many_blocks(DPMeans(penalty=1.0), 2).fit(MANY)

        thread = threading.Thread(target=fit_on_and_on)
        thread.start()
        try:
            for _ in range(5):
                found = in_a_fork(many_blocks(DPMeans(penalty=1.0), 2), MANY)
                assert found == expected
        finally:
            end.set()
            thread.join()

    def test_while_the_lock_is_held(self):
        """The child would wait for ever for a thread that it does not have."""
        model = many_blocks(DPMeans(penalty=1.0), 2)
        expected = [model.fit(MANY)._history.tobytes(), bits(model.score(MANY))]
        with SINGLE_THREAD._lock:
            found = in_a_fork(many_blocks(DPMeans(penalty=1.0), 2), MANY, 20.0)
        assert found == expected

    def test_by_hand(self):
        model = many_blocks(DPMixture(), 2).fit(MANY)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            found = many_blocks(DPMixture(), 2).fit(MANY)
            same = found._history.tobytes() == model._history.tobytes()
            os.write(writing, b"same" if same else b"other")
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as file:
            assert file.read() == b"same"
        assert os.waitpid(child, 0)[1] == 0


def test_joblib():
    """Processes of joblib, each with threads of its own."""
    models = [many_blocks(DPMeans(penalty=1.0), n_jobs) for n_jobs in (1, 2)]
    expected = many_blocks(DPMeans(penalty=1.0), 1).fit(MANY)
    found = Parallel(n_jobs=2, backend="loky")(
        delayed(model.fit)(MANY) for model in models
    )
    for model in found:
        assert_same_attributes(model.set_params(n_jobs=1), expected)


# ------------------------------------------------------------------------ workers


@pytest.fixture(scope="module")
def client():
    """Two workers of one thread each.

    No daemons: joblib takes any n_jobs for 1 in those, and there were nothing to see.
    """
    dask = pytest.importorskip("dask")
    cloudpickle = pytest.importorskip("cloudpickle")
    here = sys.modules[__name__]  # which workers may not be able to import
    cloudpickle.register_pickle_by_value(here)
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        two_workers() as client,
    ):
        yield client
    cloudpickle.unregister_pickle_by_value(here)


def threads_of_workers(client):
    return np.array([count for _, count in sorted(client.run(n_threads).items())])


def fit_by_workers(client, model, path):
    with client.as_current():
        return model.fit(path)


def fit_in_a_task(model, X):
    """On a worker: the fit, threads that came meanwhile and that were left."""
    before = n_threads()
    with Watcher() as watcher:
        model.fit(X)
    return model, watcher.more, (n_threads() - before).tolist()


def outcome(model, X):
    return [model._history.tobytes(), bits(model.score(X))]


@pytest.mark.dask
@pytest.mark.filterwarnings("ignore")  # those of distributed are many
class TestWorkers:
    @pytest.mark.parametrize("model", [DPMeans(penalty=1.0), DPMixture()], ids=str)
    def test_get_no_threads(self, model, client, tmp_path):
        """Whatever n_jobs says: their number is that of the cluster."""
        path = tmp_path / "rows.npy"
        np.save(path, MANY)
        fit_by_workers(client, many_blocks(model, 4), path)  # BLAS makes its own
        most = before = threads_of_workers(client)
        with ThreadPoolExecutor(1) as pool:
            fit = pool.submit(fit_by_workers, client, many_blocks(model, 4), path)
            while not fit.done():
                time.sleep(0.01)
                most = np.maximum(most, threads_of_workers(client))
        assert fit.result().fit_report_.n_workers == 2
        assert np.all(most - before <= LINGERING)

    @pytest.mark.parametrize(
        ("model", "n_jobs"),
        [(DPMeans(penalty=1.0), n) for n in (1, 2, -1)] + [(DPMixture(), 2)],
        ids=str,
    )
    def test_fit_as_a_task(self, model, n_jobs, client):
        """It does not wait for others, has its own threads and gives them back."""
        expected = outcome(many_blocks(model, 1).fit(MANY), MANY)
        fits = [many_blocks(model, n_jobs) for _ in range(4)]
        # The lambda is sent by value, which a function of this file would not be.
        for _ in range(2):  # BLAS makes its own threads in the first round
            futures = client.map(lambda fit: fit_in_a_task(fit, MANY), fits, pure=False)
            answers = [future.result(timeout=120) for future in futures]
        allowed = os.cpu_count() if n_jobs == -1 else n_jobs
        if n_jobs == 2:  # there were threads to give back
            assert any(more[0] >= 1 for _, more, _ in answers)
        for fitted, more, left in answers:
            assert outcome(fitted, MANY) == expected
            assert max(more) <= allowed + LINGERING
            assert max(left) <= LINGERING
