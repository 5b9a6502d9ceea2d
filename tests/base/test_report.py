"""What a fit took: `fit_report_`, and what it logs by the standard library."""

import logging
import pickle
import re
from dataclasses import asdict

import numpy as np
import pytest

import kplus
from every_estimator import DEFAULTS, ROWS, every_default, every_model, fitted, seeded
from kplus import CRAFT, MEIBP, DPMeans, DPMixture, IBPGibbs
from kplus.base import progress as _progress
from kplus.persist import checkpoint

X = np.random.default_rng(0).normal(size=(4000, 4))
X[::2] += 8.0
# Chains and sweeps by rows keep all rows in memory and have no engine.
NO_ENGINE = (IBPGibbs,)
STREAMS = [model for model in DEFAULTS if hasattr(model, "partial_fit")]
every_stream = pytest.mark.parametrize("model", STREAMS, ids=repr)


@every_model
def test_fields_are_sane(model):
    report = fitted(model).fit_report_
    assert (report.n_rows, report.n_columns) == ROWS.shape
    assert report.n_passes == fitted(model).n_iter_
    assert 0 < report.seconds < 3600
    assert 0 <= report.read_share <= 1
    assert report.n_workers == 1
    assert report.checkpoint_seconds == 0
    if not isinstance(model, NO_ENGINE):
        n_init = getattr(model, "n_init", 1)
        n_starts = 3 if n_init == "auto" else n_init
        assert 0 < report.pass_seconds <= report.seconds * n_starts
        assert report.rows_per_second * report.pass_seconds >= len(ROWS) * 0.999
        assert 10**6 < report.peak_memory < 10**11


@every_default
def test_says_itself(model):
    text = str(fitted(model).fit_report_)
    passes = fitted(model).n_iter_
    assert text.startswith(f"60 rows, 5 columns: {passes} passes in ")
    assert re.search(r"; [\d,]+ rows per second, \d+% of it reading; at most", text)
    assert "checkpoint" not in text


@every_default
def test_goes_with_the_model(model, tmp_path):
    kplus.save(fitted(model), tmp_path / "model.npz")
    again = kplus.load(tmp_path / "model.npz")
    assert again.fit_report_ == fitted(model).fit_report_
    assert pickle.loads(pickle.dumps(again)).fit_report_ == again.fit_report_
    info = kplus.inspect(tmp_path / "model.npz")
    assert info.attributes["fit_report_"] == asdict(again.fit_report_)


def test_counts_visits_of_rows():
    model = DPMixture(batch_size=500, random_state=0).fit(X)
    report = model.fit_report_
    visits = report.rows_per_second * report.pass_seconds
    # One pass more makes the labels follow, and one the tree of clusters.
    assert visits == pytest.approx(len(X) * (model.n_iter_ + 2), rel=1e-6)


def test_threads():
    model = DPMixture(batch_size=500, random_state=0, n_jobs=3).fit(X)
    assert model.fit_report_.n_workers == 3
    assert 0 <= model.fit_report_.read_share <= 1


@pytest.mark.parametrize("model", [DPMeans(penalty=50.0), DPMixture(), CRAFT()])
def test_reading_is_measured_apart(model, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table(dict(zip("abcd", X[:1000].T.copy(), strict=True)))
    pq.write_table(table, tmp_path / "X.parquet", row_group_size=100)
    report = seeded(model).set_params(batch_size=250).fit(tmp_path / "X.parquet")
    report = report.fit_report_
    assert 0 < report.read_share < 1
    assert report.n_rows == 1000


def test_of_a_new_fit_replaces_that_of_the_last():
    model = DPMeans(penalty=50.0, random_state=0).fit(X)
    before = model.fit_report_
    assert model.fit(X[:100]).fit_report_.n_rows == 100
    assert before.n_rows == 4000  # what was taken out stays


@every_stream
class TestStream:
    """Of a stream the report tells of the latest batch."""

    def test_a_batch_replaces_the_one_before(self, model):
        stream = seeded(model).partial_fit(ROWS)
        first, passes = stream.fit_report_, stream.n_iter_
        report = stream.partial_fit(ROWS[:20]).fit_report_
        assert (report.n_rows, report.n_columns) == (20, 5)
        assert report.n_passes == stream.n_iter_ - passes
        assert 0 < report.pass_seconds <= report.seconds < 3600
        assert report.rows_per_second * report.pass_seconds >= 20 * 0.999
        assert 0 <= report.read_share <= 1
        assert 10**6 < report.peak_memory < 10**11
        assert first.n_rows == len(ROWS)  # what was taken out stays

    def test_goes_with_the_model(self, model, tmp_path):
        stream = seeded(model).partial_fit(ROWS).partial_fit(ROWS[:20])
        kplus.save(stream, tmp_path / "model.npz")
        assert kplus.load(tmp_path / "model.npz").fit_report_ == stream.fit_report_

    def test_one_line_at_the_end_and_one_per_pass(self, model, caplog):
        stream = seeded(model).partial_fit(ROWS)
        caplog.set_level(logging.DEBUG, "kplus")
        stream.partial_fit(ROWS[:20])
        *passes, end = [r for r in caplog.records if r.name == "kplus"]
        name = type(model).__name__
        assert end.levelno == logging.INFO
        assert end.getMessage() == f"{name}: {stream.fit_report_}"
        assert len(passes) == stream.fit_report_.n_passes
        for number, line in enumerate(passes, start=1):
            assert line.levelno == logging.DEBUG
            assert line.getMessage().startswith(f"{name}: pass {number}, ")


def test_a_look_at_memory_serves_many_small_batches(monkeypatch):
    looks = []
    monkeypatch.setattr(
        _progress, "resident_bytes", lambda: looks.append(1) or len(looks) * 10
    )
    model = DPMixture(batch_size=100, random_state=0).fit(X[:500])
    monkeypatch.setattr(_progress, "_LOOK_SECONDS", 0.0)
    assert model.partial_fit(X).fit_report_.peak_memory == len(looks) * 10 > 400
    last = len(looks) * 10
    monkeypatch.setattr(_progress, "_LOOK_SECONDS", 1e9)
    for _ in range(3):
        assert model.partial_fit(X).fit_report_.peak_memory == last
    assert len(looks) * 10 == last


@pytest.fixture(autouse=True)
def _no_look_so_far(monkeypatch):
    monkeypatch.setattr(_progress.SparingMeter, "looked", (-np.inf, 0))


def test_checkpoints_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0)
    model = DPMixture(batch_size=500, random_state=0)
    report = model.fit(X, checkpoint=tmp_path / "here").fit_report_
    assert 0 < report.checkpoint_seconds < report.seconds
    assert "; checkpoints " in str(report)


class TestLog:
    @every_default
    def test_one_line_at_the_end_and_one_per_pass(self, model, caplog):
        caplog.set_level(logging.DEBUG, "kplus")
        found = seeded(model).fit(ROWS)
        logged = [r for r in caplog.records if r.name == "kplus"]
        assert [r.levelno for r in logged].count(logging.INFO) == 1
        name = type(model).__name__
        assert logged[-1].getMessage() == f"{name}: {found.fit_report_}"
        passes = [r.getMessage() for r in logged if r.levelno == logging.DEBUG]
        assert len(passes) == found.n_iter_
        for number, line in enumerate(passes, start=1):
            assert re.match(rf"{name}: pass {number}, \d+ ", line)

    def test_checkpoints_are_logged(self, caplog, tmp_path, monkeypatch):
        monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
        monkeypatch.setattr(checkpoint, "SHARE", 0)
        caplog.set_level(logging.INFO, "kplus")
        model = DPMixture(batch_size=500, random_state=0)
        model.fit(X, checkpoint=tmp_path / "here")
        *logged, end = [r.getMessage() for r in caplog.records if r.name == "kplus"]
        assert logged
        for serial, line in enumerate(logged, start=1):
            assert line.endswith(f"part0-{serial:06d}.kplus")
            assert line.startswith("checkpoint ")
        assert end.startswith("DPMixture: 4,000 rows")

    @every_default
    def test_nothing_is_said_without_a_handler(self, model, capfd):
        seeded(model).fit(ROWS)
        assert capfd.readouterr() == ("", "")

    def test_by_rows(self, caplog):
        caplog.set_level(logging.DEBUG, "kplus")
        found = MEIBP(sweep="rows", random_state=0).fit(ROWS)
        debug = [r for r in caplog.records if r.levelno == logging.DEBUG]
        assert len(debug) == found.n_iter_
        assert found.fit_report_.n_passes == found.n_iter_
