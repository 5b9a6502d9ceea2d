"""Fits on the workers of a cluster: the same bits, and no hang whatever happens."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from every_estimator import assert_same_attributes
from kplus import CRAFT, DPMeans, DPMixture, resources
from kplus.core.errors import DataError, WorkersError
from kplus.core.types import Block
from kplus.data.blocks import ArrayBlocks
from kplus.data.files import open_files
from kplus.datasets import make_gaussian_blobs
from kplus.engine import cluster as watching
from kplus.engine import make_engine, remote_tasks, watch
from kplus.engine.cluster import Cluster
from kplus.engine.dask import DaskEngine
from kplus.engine.resources import Resources
from kplus.engine.watch import Call, Watch
from loop_fits import FITS
from workers import two_workers

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.dask,
    pytest.mark.filterwarnings("ignore"),  # those of distributed are many
]


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def active(client, monkeypatch):
    """A cluster in use, which many tests share."""
    monkeypatch.setattr(watching, "active_client", lambda: client)
    return client


@pytest.fixture
def mortal(monkeypatch):
    """A cluster in use whose workers may be killed: not all of them come back."""
    with two_workers() as client:
        monkeypatch.setattr(watching, "active_client", lambda: client)
        yield client


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def saved(folder, X):
    path = folder / "rows.npy"
    np.save(path, X)
    return path


def without_workers(fit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "active_client", lambda: None)
        return fit()


def pids(client):
    return list(client.run(os.getpid).values())


class Slow:
    """A model whose visits take long, and do as they are told."""

    incremental = False

    def __init__(self, seconds=0.0, poison=None):
        self.seconds, self.poison = seconds, poison

    def summarize(self, params, block: Block, local):
        time.sleep(self.seconds)
        if self.poison is not None and block.index == self.poison[0]:
            self.poison[1]()
        seen = 0 if local is None else int(local[0])
        return Total(block.read().sum() * params), np.array([seen + 1])


class Total:
    def __init__(self, value):
        self.value = float(value)

    def __iadd__(self, other):
        self.value += other.value
        return self


def die():
    os._exit(1)


def fail():
    raise DataError("this block is bad")


# ------------------------------------------------------------------ same bits


@pytest.mark.parametrize("name", FITS)
def test_fits_are_those_of_threads(name, active, tmp_path):
    make, rows = FITS[name]
    path = saved(tmp_path, rows())
    expected = without_workers(
        lambda: make().set_params(random_state=0, n_jobs=2).fit(path)
    )
    found = make().set_params(random_state=0).fit(path)
    assert_same_attributes(found.set_params(n_jobs=2), expected)
    alone = "serial" in name  # collapsed passes come after others
    assert found.fit_report_.n_workers == (1 if alone else 2)


@pytest.mark.parametrize("kind", ["parquet", "zarr", "dask.array", "dask.dataframe"])
def test_sources(kind, active, tmp_path):
    X = make_gaussian_blobs(300, 3, 4, random_state=0)[0]
    model = DPMeans(penalty=4.0, batch_size=64, random_state=0)
    expected = without_workers(lambda: model.fit(X).labels_.copy())
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        (tmp_path / "data").mkdir()
        for i, part in enumerate(np.array_split(X, 3)):
            table = pa.table(dict(zip("abc", part.T.copy(), strict=True)))
            pq.write_table(table, tmp_path / "data" / f"{i}.parquet", row_group_size=40)
        given = tmp_path / "data"
    elif kind == "zarr":
        zarr = pytest.importorskip("zarr")
        array = zarr.create_array(
            str(tmp_path / "x.zarr"), shape=X.shape, chunks=(70, 2), dtype="f8"
        )
        array[:] = X
        given = tmp_path / "x.zarr"
    elif kind == "dask.array":
        given = pytest.importorskip("dask.array").from_array(X, chunks=(70, 2))
    else:
        import pandas as pd

        frame = pd.DataFrame(X, columns=list("abc"))
        given = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    np.testing.assert_array_equal(model.fit(given).labels_, expected)
    assert model.fit_report_.n_workers == 2


def test_rows_in_memory_stay_here(active):
    X = make_gaussian_blobs(300, 3, 4, random_state=0)[0]
    model = DPMeans(penalty=4.0, batch_size=64, random_state=0).fit(X)
    assert model.fit_report_.n_workers == 1


def test_weights_and_starts(active, tmp_path):
    X = make_gaussian_blobs(300, 3, 4, random_state=0)[0]
    path = saved(tmp_path, X)
    weights = np.random.default_rng(0).integers(1, 4, 300)
    model = DPMeans(n_clusters=4, n_init=3, batch_size=64, random_state=0)
    expected = without_workers(lambda: model.fit(path, sample_weight=weights).labels_)
    found = model.fit(path, sample_weight=weights).labels_
    np.testing.assert_array_equal(found, expected)


def test_categories(active, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    from every_estimator import mixed_rows

    monkeypatch.setattr("kplus.data.wrapped.CACHE_BYTES", 0)
    frame, _ = mixed_rows()
    frame.to_parquet(tmp_path / "x.parquet")
    model = CRAFT(n_clusters=3, random_state=0, batch_size=32)
    expected = without_workers(lambda: model.fit(tmp_path / "x.parquet").labels_)
    np.testing.assert_array_equal(model.fit(tmp_path / "x.parquet").labels_, expected)
    assert model.fit_report_.n_workers == 2


def test_files_are_gone_afterwards(active, tmp_path, scratch):
    path = saved(tmp_path, make_gaussian_blobs(300, 3, 4, random_state=0)[0])
    DPMeans(penalty=4.0, batch_size=64, random_state=0).fit(path)
    assert [item.name for item in tmp_path.iterdir()] == ["rows.npy"]
    with resources(scratch=tmp_path / "mine"):
        DPMeans(penalty=4.0, batch_size=64, random_state=0).fit(path)
    assert list((tmp_path / "mine").iterdir()) == []


# ------------------------------------------------------------------- who does it


def asked(*homes):
    return [Call("some blocks", None, home) for home in homes]


def test_calls_go_home_unless_too_many_would():
    def share(calls, workers):
        return [home for homes in watch.shared_out(calls, workers) for home in homes]

    two = {"a": 1, "b": 1}
    assert share(asked("b", "a"), two) == ["b", "a"]
    assert share(asked("a", "a"), two) == ["a", "b"]
    assert share(asked(None, "a"), two) == ["b", "a"]
    assert share(asked("gone", None), two) == ["a", "b"]
    assert share(asked("b", None, None, None), {"a": 3, "b": 1}) == ["b", *"aaa"]
    assert watch.shared_out(asked("a", None), {}) == [[], []]


def remembered():
    return len(remote_tasks._REMEMBERED._entries)


def test_workers_remember_states_until_the_fit_ends(active, tmp_path, scratch):
    source = open_files(saved(tmp_path, np.ones((60, 4)))).cut(5)
    with make_engine(source, None, 1, Resources(client=active)) as engine:
        for visit in range(1, 4):
            engine.sweep(Slow(), 1.0, range(12))
            for worker in engine._homes.values():
                assert active.run(remembered, workers=[worker])[worker] >= 1
            assert [int(state[0]) for state in engine.locals()] == [visit] * 12
    end = time.monotonic() + 20
    while any(active.run(remembered).values()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(active.run(remembered).values())


# --------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "model",
    [
        DPMeans(penalty=4.0, batch_size=64, random_state=0),
        DPMixture(batch_size=500, random_state=0),
        DPMixture(noise=True, batch_size=500, random_state=0),
        DPMixture("factor_gaussian", batch_size=500, random_state=0),
    ],
    ids=["DPMeans", "DPMixture", "noise", "factors"],
)
def test_a_killed_worker_changes_nothing(model, mortal, tmp_path):
    path = saved(tmp_path, make_gaussian_blobs(2_000, 3, 6, random_state=0)[0])
    expected = without_workers(lambda: vars(model.fit(path)).copy())
    killer = threading.Timer(0.3, lambda: os.kill(pids(mortal)[0], signal.SIGKILL))
    killer.start()
    found = vars(model.fit(path))
    killer.join()
    np.testing.assert_array_equal(found["labels_"], expected["labels_"])


def test_states_follow_their_blocks_through_kills(mortal, tmp_path):
    """Each visit adds one to the state of a block, whoever makes it."""
    X = np.arange(240.0).reshape(60, 4)
    source = open_files(saved(tmp_path, X)).cut(5)
    with make_engine(source, None, 1, Resources(client=mortal)) as engine:
        for visit in range(1, 5):
            if visit == 3:
                os.kill(pids(mortal)[1], signal.SIGKILL)
            total = engine.sweep(Slow(0.05), visit, range(12)).value
            assert total == X.sum() * visit
            assert [int(state[0]) for state in engine.locals()] == [visit] * 12


def test_a_bad_block_is_told_at_once(active, tmp_path):
    source = open_files(saved(tmp_path, np.ones((60, 4)))).cut(5)
    with (
        make_engine(source, None, 1, Resources(client=active)) as engine,
        pytest.raises(DataError, match="this block is bad"),
    ):
        engine.sweep(Slow(poison=(7, fail)), 1.0, range(12))


def test_a_block_that_kills_workers_is_named(mortal, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "ATTEMPTS", 1)
    monkeypatch.setattr(watch, "STALL_SECONDS", 20.0)
    source = open_files(saved(tmp_path, np.ones((60, 4)))).cut(5)
    with (
        make_engine(source, None, 1, Resources(client=mortal)) as engine,
        # Mostly the scheduler notices; if whoever restarts them dies, too, we do.
        pytest.raises(WorkersError, match=r"at blocks \d+ to \d+|No worker is left"),
    ):
        engine.sweep(Slow(poison=(7, die)), 1.0, range(12))


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(watch, "STALL_SECONDS", 2.0)
    monkeypatch.setattr(watch, "STALL_TIMES", 1.0)
    monkeypatch.setattr(watch, "ATTEMPTS", 2)


def test_short_of_memory_is_said(active):
    async def identity(n_workers):
        found = await active.scheduler.identity(n_workers=n_workers)
        assert {worker["status"] for worker in found["workers"].values()} == {"running"}
        found["workers"]["tcp://far:1"] = {"status": "paused"}
        return found

    told = Cluster(SimpleNamespace(scheduler=SimpleNamespace(identity=identity)))
    told.client.sync = active.sync
    assert told.troubles() == "; tcp://far:1 is paused, as it is short of memory"


def awake(client):
    """Let workers import kplus: they do not answer meanwhile."""
    client.run(watching._ping)
    return client


def test_whoever_is_at_work_is_waited_for(active, impatient):
    answers = list(Watch(Cluster(awake(active))).run(time.sleep, [Call("a nap", 6.0)]))
    assert answers[0].seconds >= 6.0


def test_but_not_for_ever(active, impatient, monkeypatch):
    monkeypatch.setattr(watch, "AT_WORK_SECONDS", 1.0)
    with pytest.raises(WorkersError, match="2 times at a nap: nothing was heard"):
        list(Watch(Cluster(awake(active))).run(time.sleep, [Call("a nap", 9.0)]))


def test_frozen_workers_are_not_waited_for(mortal, impatient, monkeypatch):
    """They neither die nor answer; the others do it all."""
    monkeypatch.setattr(watching, "_PING_SECONDS", 1.0)
    frozen = pids(awake(mortal))[0]
    threading.Timer(0.3, lambda: os.kill(frozen, signal.SIGSTOP)).start()
    calls = [Call("a nap", 1.0), Call("a nap", 1.0)]
    try:
        answers = list(Watch(Cluster(mortal)).run(time.sleep, calls))
    finally:
        os.kill(frozen, signal.SIGCONT)
    assert len({answer.worker for answer in answers}) == 1


def test_workers_without_the_package_are_told(active):
    with pytest.raises(WorkersError, match=r"No module named.*Install kplus there"):
        list(Watch(Cluster(active)).run(missing, [Call("a look", None)]))


def missing(argument):
    import kplus.no_such_room  # noqa: F401


def test_workers_of_another_version_are_refused(active, tmp_path, monkeypatch):
    source = open_files(saved(tmp_path, np.ones((60, 4)))).cut(5)
    with make_engine(source, None, 1, Resources(client=active)) as engine:
        task = engine._remote_task
        monkeypatch.setattr(
            engine,
            "_remote_task",
            lambda *given: replace(task(*given), version="0.0.1"),
        )
        with pytest.raises(WorkersError, match=r"the fit has kplus 0\.0\.1"):
            engine.sweep(Slow(), 1.0, range(12))


def fit_inside(path):
    return DPMeans(penalty=4.0, batch_size=64, random_state=0).fit(path).n_clusters_


def test_a_fit_within_a_task_works_alone(active, tmp_path):
    path = saved(tmp_path, make_gaussian_blobs(300, 3, 4, random_state=0)[0])
    expected = without_workers(lambda: fit_inside(path))
    assert active.submit(fit_inside, path).result(timeout=60) == expected


@pytest.mark.parametrize("loss", ["workers", "scheduler"])
def test_without_workers_or_scheduler_there_is_a_named_error(
    loss, tmp_path, monkeypatch
):
    monkeypatch.setattr(watching, "NO_WORKERS_SECONDS", 1.0)
    cluster = distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        worker_dashboard_address=None,
    )
    client = distributed.Client(cluster, set_as_default=False)
    at = Watch(Cluster(client))
    calls = at.run(time.sleep, [Call(name, 0.1) for name in "abc"])
    next(calls)
    begun = time.monotonic()
    if loss == "workers":
        cluster.scale(0)
        while client.nthreads():
            time.sleep(0.1)
        with pytest.raises(WorkersError, match="No worker is left at"):
            list(at.run(time.sleep, [Call("late", 0.1)]))
    else:
        cluster.close()
        with pytest.raises(WorkersError, match="The connection to the scheduler"):
            list(at.run(time.sleep, [Call("late", 0.1)]))
    assert time.monotonic() - begun < 30
    client.close()
    cluster.close()


def test_workers_elsewhere_need_a_folder():
    class Client:
        def nthreads(self, callback_timeout):
            return {"tcp://127.0.0.1:5": 1, "inproc://10.9.8.6/3": 1, far: 2}

    far = "tcp://10.9.8.7:1"
    with pytest.raises(WorkersError, match=rf"{far} is on another machine.*scratch"):
        watching.check_shared(Client())


def test_collections_need_workers_too(monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr(watching, "NO_WORKERS_SECONDS", 1.0)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address=None
        ) as empty,
        distributed.Client(empty),
        pytest.raises(WorkersError, match="No worker is left at"),
    ):
        DPMeans(penalty=4.0).fit(da.random.random((100, 2), chunks=(50, 2)))


_INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from distributed import Client, LocalCluster
from kplus import DPMixture

class Press:
    passes = 0
    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...
    def on_fit_task_end(self, estimator, context):
        self.passes += context.task_name == "pass"
        if self.passes == 4:
            self.passes += 1
            os.killpg(0, signal.SIGINT)

if __name__ == "__main__":
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster, Client(cluster):
        model = DPMixture(batch_size=200, random_state=0, tol=0.0)
        try:
            model.set_callbacks(Press()).fit(sys.argv[1])
        except KeyboardInterrupt as stop:
            print("stopped:", stop, model.fit_report_.n_workers, flush=True)
"""


def test_ctrl_c_in_the_terminal_of_the_workers(tmp_path):
    """It reaches the workers, too; they are still needed for the pass under way."""
    path = saved(tmp_path, make_gaussian_blobs(2_000, 3, 6, random_state=0)[0])
    (tmp_path / "program.py").write_text(_INTERRUPTED)
    ended = subprocess.run(
        [sys.executable, tmp_path / "program.py", path],
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert "the estimator holds the best so far. 2" in ended.stdout, ended.stderr
    assert ended.stderr.count("Stopping after this pass") == 1


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("resumed_by", ["workers", "threads"])
def test_checkpoints_refer_to_files(resumed_by, active, tmp_path, monkeypatch):
    monkeypatch.setattr("kplus.persist.checkpoint.SECONDS", 0.0)
    monkeypatch.setattr("kplus.persist.checkpoint.SHARE", 0)
    path = saved(tmp_path, make_gaussian_blobs(600, 3, 6, random_state=0)[0])
    model = DPMixture(batch_size=200, random_state=0)
    expected = without_workers(lambda: vars(model.fit(path)).copy())

    class Crash(Exception):
        pass

    class Crashing:
        def __init__(self):
            self.left = 3

        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            self.left -= 1
            if not self.left:
                raise Crash

    folder = tmp_path / "checkpoint"
    with pytest.raises(Crash):
        DPMixture(batch_size=200, random_state=0).set_callbacks(Crashing()).fit(
            path, checkpoint=folder
        )
    assert list((folder / "rows").glob("*.rows"))

    def go_on():
        return DPMixture.resume(folder, path)

    found = go_on() if resumed_by == "workers" else without_workers(go_on)
    np.testing.assert_array_equal(found.labels_, expected["labels_"])
    np.testing.assert_array_equal(
        found.lower_bound_history_, expected["lower_bound_history_"]
    )
    assert not folder.exists()


def test_no_client_is_started(tmp_path):
    assert watching.active_client() is None
    DPMeans(penalty=4.0, random_state=0).fit(saved(tmp_path, np.eye(5)))
    assert watching.active_client() is None
    engine = make_engine(ArrayBlocks(np.eye(5), 2), None, 1, Resources())
    assert type(engine).__name__ == "SerialEngine"


def engine_with(n_rows, task_seconds):
    engine = DaskEngine.__new__(DaskEngine)
    engine.source = ArrayBlocks(np.broadcast_to(0.0, (n_rows, 1)), 2**14)
    engine._task_seconds = task_seconds
    return engine


@pytest.mark.parametrize("threads", [1, 2, 3, 16, 100])
@pytest.mark.parametrize("task_seconds", [0.0, 0.001, 0.1, 10.0])
def test_calls_are_equally_long_and_neither_too_short_nor_too_long(
    threads, task_seconds
):
    engine = engine_with(10**6, task_seconds)
    for n_tasks in range(1, 400):
        cuts = engine._cuts(n_tasks, threads)
        sizes = np.diff(cuts)
        assert (cuts[0], cuts[-1]) == (0, n_tasks)
        assert sizes.min() >= 1
        assert sizes.max() - sizes.min() <= 0.3 * sizes.mean() + 1
        assert len(sizes) >= min(threads, n_tasks)
        if sizes.mean() * task_seconds < 5.0:
            assert len(sizes) <= 4 * threads
        if sizes.mean() > 1:
            assert sizes.mean() * task_seconds <= 10.0
        if task_seconds > 0 and len(sizes) > threads:
            assert sizes.mean() * task_seconds >= 0.4


def test_first_calls_are_short_where_rows_are_very_many():
    assert len(engine_with(10**9, 0.0)._cuts(400, 2)) == 401
    assert len(engine_with(10**7, 0.0)._cuts(128, 2)) == 11
    assert len(engine_with(10**6, 0.0)._cuts(128, 2)) == 9
