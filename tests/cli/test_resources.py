"""``--memory-limit``, ``--scratch`` and ``--scheduler``."""

import json
import sys

import numpy as np
import polars as pl
import pytest

import kplus as library
import kplus.base.estimator as base
from kplus.base import job as _job
from kplus.engine.resources import resources_now
from kplus.persist import checkpoint


def with_workers(test):
    """Mark a test; the warnings of distributed are many."""
    return pytest.mark.dask(pytest.mark.filterwarnings("ignore")(test))


@pytest.fixture
def seen(monkeypatch):
    """What fits may use while they run."""
    found = []
    fit = base.Estimator._fit

    def noted(self, *arguments, **more):
        now = resources_now()
        client = None if now.client is None else now.client.scheduler.address
        found.append((now.memory_limit, now.scratch, client))
        return fit(self, *arguments, **more)

    monkeypatch.setattr(base.Estimator, "_fit", noted)
    return found


@pytest.fixture
def asked(monkeypatch):
    """What engines may use."""
    found = []
    make = _job.make_engine

    def noted(source, weights, n_threads, resources, meter):
        client = resources.client
        address = None if client is None else client.scheduler.address
        found.append((resources.memory_limit, resources.scratch, address))
        return make(source, weights, n_threads, resources, meter)

    monkeypatch.setattr(_job, "make_engine", noted)
    return found


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        worker_dashboard_address=None,
    ) as cluster:
        yield cluster


def test_memory_and_scratch(kplus, data, tmp_path, out, seen):
    words = ["--memory-limit", "2GB", "--scratch", tmp_path / "scratch"]
    done = kplus("fit", data, "-o", out, *words)
    assert done.code == 0, done.err
    assert seen == [(2 * 10**9, tmp_path / "scratch", None)]
    assert resources_now().memory_limit is None


def test_a_small_limit_changes_nothing(kplus, X, tmp_path):
    """The state of rows is in files then."""
    np.save(tmp_path / "x.npy", np.tile(X, (50, 1)))
    words = ["fit", tmp_path / "x.npy", "--model", "dp-means", "--penalty", 30, "-o"]
    assert kplus(*words, tmp_path / "one").code == 0
    scratch = tmp_path / "scratch"
    limit = ["--memory-limit", "1MB", "--scratch", scratch]
    done = kplus(*words, tmp_path / "two", *limit)
    assert done.code == 0, done.err
    labels = (tmp_path / "one" / "labels.csv").read_bytes()
    assert (tmp_path / "two" / "labels.csv").read_bytes() == labels
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--memory-limit", "much"],
            "--memory-limit must be a number of bytes or text",
        ),
        (["--memory-limit", "-1"], "--memory-limit must be a number of bytes or text"),
        (["--scheduler", "localhost"], "--scheduler must be an address such as tcp://"),
        (["--scheduler", "tcp://host"], "--scheduler must be an address"),
        (["--scheduler", "http://host:1"], "--scheduler must be an address"),
    ],
)
def test_mistakes(kplus, data, out, words, said):
    kplus("fit", data, "-o", out, *words).refuses(said)


def test_scratch_is_a_file(kplus, data, out):
    done = kplus("fit", data, "-o", out, "--scratch", data)
    done.refuses("--scratch needs a folder")


def test_without_distributed(kplus, data, out, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = kplus("fit", data, "-o", out, "--scheduler", "tcp://127.0.0.1:8786")
    done.refuses("distributed, which is not installed: pip install 'kplus[dask]'")


@with_workers
def test_nobody_answers(kplus, data, out, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("kplus.cli.resources._SECONDS", 1)
    done = kplus("fit", data, "-o", out, "--scheduler", "tcp://127.0.0.1:9")
    assert (done.code, done.out) == (2, "")
    assert "Error: No scheduler answers at tcp://127.0.0.1:9 within 1 s" in done.err


@with_workers
@pytest.mark.parametrize("scale", [[], ["--scale"]])
def test_workers(kplus, frame, tmp_path, out, seen, cluster, monkeypatch, scale):
    monkeypatch.setattr("kplus.data.blocks._BLOCK_BYTES", 1)  # else it is one block
    frame.write_parquet(tmp_path / "x.parquet", row_group_size=50)
    words = ["fit", tmp_path / "x.parquet", "--index", "id", *scale]
    assert kplus(*words, "-o", tmp_path / "one").code == 0
    address = cluster.scheduler_address
    done = kplus(*words, "-o", out, "--scheduler", address)
    assert done.code == 0, done.err
    assert [client for _, _, client in seen] == [None, address]
    assert resources_now().client is None
    assert library.load(out / "model.kplus").fit_report_.n_workers == 2
    labels = (tmp_path / "one" / "labels.csv").read_bytes()
    assert (out / "labels.csv").read_bytes() == labels


# ----------------------------------------------------- predict and impute


@pytest.fixture
def saved(tmp_path, X, monkeypatch):
    """A model of features that takes gaps, and rows with some, in several blocks."""
    monkeypatch.setattr("kplus.data.blocks._BLOCK_BYTES", 1)
    rows = X.copy()
    rows[::7, 1] = np.nan
    np.save(tmp_path / "gaps.npy", rows)
    model = library.MEIBP(4, prior="gaussian", random_state=0).fit(rows)
    library.save(model, tmp_path / "saved.kplus")
    return tmp_path / "saved.kplus", tmp_path / "gaps.npy"


COMMANDS = pytest.mark.parametrize("command", ["predict", "impute"])


@COMMANDS
def test_answers_have_memory_and_scratch(kplus, saved, tmp_path, asked, command):
    expected = kplus(command, *saved)
    scratch = tmp_path / "scratch"
    words = ["--memory-limit", "1kB", "--scratch", scratch]
    done = kplus(command, *saved, *words)
    assert (done.code, done.out) == (0, expected.out), done.err
    assert asked == [(None, None, None), (1000, scratch, None)]
    assert list(scratch.iterdir()) == []
    assert resources_now().memory_limit is None


@with_workers
@COMMANDS
def test_answers_have_workers(kplus, saved, asked, cluster, command):
    expected = kplus(command, *saved)
    address = cluster.scheduler_address
    done = kplus(command, *saved, "--scheduler", address)
    assert (done.code, done.out) == (0, expected.out), done.err
    assert [client for _, _, client in asked] == [None, address]
    assert resources_now().client is None


@COMMANDS
def test_mistakes_of_answers(kplus, saved, command):
    done = kplus(command, *saved, "--memory-limit", "much")
    done.refuses("--memory-limit must be a number of bytes or text")
    done = kplus(command, *saved, "--scratch", saved[1])
    done.refuses("--scratch needs a folder")


@with_workers
def test_resume_has_them_too(kplus, data, tmp_path, out, seen, cluster, monkeypatch):
    """Those of the command hold unless others are given."""

    class Crash(Exception):
        pass

    def crash(*_):
        raise Crash

    here, scratch = tmp_path / "here", tmp_path / "scratch"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "SECONDS", 0.0)
        patch.setattr(checkpoint, "SHARE", 0)
        patch.setattr(checkpoint.Checkpoint, "remove", crash)
        words = ["--checkpoint", here, "--memory-limit", "1GB", "--scratch", scratch]
        with pytest.raises(Crash):
            kplus("fit", data, "-o", out, *words)
    assert json.loads((here / "command.json").read_text())["scratch"] == str(scratch)
    address = cluster.scheduler_address
    done = kplus("resume", here, "--memory-limit", "3GB", "--scheduler", address)
    assert done.code == 0, done.err
    assert seen == [(10**9, scratch, None), (3 * 10**9, scratch, address)]
    table = pl.read_csv(out / "labels.csv")
    assert table["cluster"].n_unique() == 3
