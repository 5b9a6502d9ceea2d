"""Ctrl-C: the first ends a fit after the pass, the second at once, and no harm done."""

import os
import signal
import threading
from contextlib import suppress

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from every_estimator import (
    DEFAULTS,
    MODELS,
    ROW_BY_ROW,
    ROWS,
    assert_same_attributes,
    dense,
    every_default,
    fitted,
    offered,
    seeded,
)
from kplus import DPMeans, IBPVariational
from kplus.persist import checkpoint

pytestmark = pytest.mark.filterwarnings(r"ignore:\w+ found no feature")
WATCHED = [model for model in MODELS if getattr(model, "n_init", 1) == 1]
every_model = pytest.mark.parametrize("model", WATCHED, ids=repr)
STREAMS = [model for model in DEFAULTS if hasattr(model, "partial_fit")]
every_stream = pytest.mark.parametrize("model", STREAMS, ids=repr)


def press(times=1):
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def _python_handles_signals():
    """Whatever runs the tests: as in a plain process, and so it must be afterwards."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


class Pressing:
    """A scikit-learn callback that presses Ctrl-C after a pass."""

    def __init__(self, after=1, times=1, action=press):
        self.after, self.times, self.action = after, times, action
        self.passes = 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "pass":
            self.passes += 1
            if self.passes == self.after:
                self.action(self.times)


def pressed(model, callback, **options):
    model = seeded(model).set_callbacks(callback)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(ROWS, **options)
    return model, str(caught.value)


@every_model
def test_the_best_so_far_is_kept(model, capsys):
    callback = Pressing(after=1)
    found, words = pressed(model, callback)
    assert words == (
        f"The fit was ended after pass {found.n_iter_}; the estimator holds the best "
        f"so far."
    )
    assert callback.passes == found.n_iter_ == 1
    assert "Stopping after this pass with the best so far" in capsys.readouterr().err
    for name in offered(found, ROW_BY_ROW):
        assert np.all(np.isfinite(dense(getattr(found, name)(ROWS)))), name
    if hasattr(found, "predict"):
        np.testing.assert_array_equal(found.predict(ROWS), found.labels_)
    assert found.fit_report_.n_passes == 1


@every_default
def test_the_second_interrupt_ends_it_at_once(model, capsys):
    callback = Pressing(after=1, times=2)
    found, words = pressed(model, callback)
    assert callback.passes == 1
    assert words == ""
    with pytest.raises(NotFittedError):
        found.score(ROWS)
    assert capsys.readouterr().err.count("Stopping") == 1


@every_default
def test_the_next_fit_is_not_ended(model):
    found, _ = pressed(model, Pressing())
    del found._skl_callbacks
    assert_same_attributes(found.fit(ROWS), fitted(model))


@every_model
def test_a_checkpoint_resumes_to_the_same_bits(model, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0)
    here = tmp_path / "here"
    pressed(model, Pressing(after=2), checkpoint=here)
    assert (here / "fit.kplus").exists()
    assert_same_attributes(type(model).resume(here, ROWS), fitted(model))
    assert not here.exists()


@every_default
def test_pressed_again_and_again(model, tmp_path, monkeypatch):
    """A fit that is interrupted all the time ends where it would have."""
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0)
    here = tmp_path / "here"
    passes = 2 + fitted(model).n_iter_ // 10
    pressed(model, Pressing(passes), checkpoint=here)
    for _ in range(20):
        found = seeded(model).set_callbacks(Pressing(passes))
        with suppress(KeyboardInterrupt):
            found._resume(here, ROWS)
        if not here.exists():
            break
    del found._skl_callbacks
    assert_same_attributes(found, fitted(model))


@pytest.mark.parametrize("model", [m for m in MODELS if m not in WATCHED], ids=repr)
def test_several_starts(model):
    """All that were begun are ended, and the best of them is kept."""
    found, _ = pressed(model, Pressing())
    assert np.isfinite(found.score(ROWS))


def test_several_starts_of_clusters():
    found, _ = pressed(DPMeans(penalty=1.0, n_init=4, n_jobs=2), Pressing())
    np.testing.assert_array_equal(found.predict(ROWS), found.labels_)


def test_several_starts_resume_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0)
    model = IBPVariational(3, init="random", n_init=4, max_iter=30, n_jobs=2)
    here = tmp_path / "here"
    pressed(model, Pressing(after=3), checkpoint=here)
    resumed = IBPVariational.resume(here, ROWS)
    assert_same_attributes(resumed, seeded(model).fit(ROWS))


def test_handlers_of_users_are_left_alone():
    received = []

    def own(signum, frame):
        received.append(signum)

    signal.signal(signal.SIGINT, own)
    try:
        found = seeded(DPMeans(penalty=1.0)).set_callbacks(Pressing()).fit(ROWS)
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert received == [signal.SIGINT]
    assert found.n_iter_ > 1


def test_other_threads_have_no_handler():
    seen, models = [], []

    def look(times):
        seen.append(signal.getsignal(signal.SIGINT))

    def fit():
        model = seeded(DPMeans(penalty=1.0)).set_callbacks(Pressing(action=look))
        models.append(model.fit(ROWS))

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
    assert models[0].n_iter_ > 1


def test_is_caught_during_fits_only():
    seen = []
    callback = Pressing(action=lambda times: seen.append(signal.getsignal(2)))
    seeded(DPMeans(penalty=1.0)).set_callbacks(callback).fit(ROWS)
    assert seen[0] is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handler_is_back_after_an_error():
    with pytest.raises(ValueError, match="inf"):
        DPMeans(penalty=1.0).fit(np.full((4, 2), np.inf))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_fit_within_a_fit_is_ended_alone():
    """A callback that fits something itself, and Ctrl-C meanwhile."""
    inner = []

    def fit_inside(times):
        model = seeded(DPMeans(penalty=1.0)).set_callbacks(Pressing())
        model.fit(ROWS)
        inner.append(model.n_iter_)

    outer = seeded(DPMeans(penalty=1.0)).set_callbacks(Pressing(action=fit_inside))
    with pytest.raises(KeyboardInterrupt, match="after pass 1"):
        outer.fit(ROWS)
    assert inner[0] > 1


class Batch:
    """Rows of a stream; Ctrl-C is pressed as they are read."""

    def __init__(self, rows, times=1):
        self.rows, self.times = rows, times
        self.n_rows, self.n_features = rows.shape
        self.block_rows = len(rows)

    def read(self, index):
        press(self.times)
        self.times = 0
        return self.rows


def to_be_ended(model, batch):
    """A stream in which a batch is interrupted, and what was said."""
    stream = seeded(model).partial_fit(ROWS[:30])
    with pytest.raises(KeyboardInterrupt) as caught:
        stream.partial_fit(batch)
    return stream, str(caught.value)


@every_stream
def test_a_batch_is_ended_after_the_pass_and_counts(model, capsys):
    stream, words = to_be_ended(model, Batch(ROWS[30:]))
    assert "Stopping after this pass with the best so far" in capsys.readouterr().err
    passes = stream.fit_report_.n_passes
    assert words == (
        f"The batch was ended after pass {passes}; the estimator holds all of its rows."
    )
    short = seeded(model).partial_fit(ROWS[:30]).set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning):
        short.partial_fit(ROWS[30:])
    short.set_params(max_iter=stream.max_iter)
    assert_same_attributes(stream, short)
    assert_same_attributes(stream.partial_fit(ROWS), short.partial_fit(ROWS))


@every_stream
def test_a_batch_is_ended_at_once_by_the_second(model):
    stream, words = to_be_ended(model, Batch(ROWS[30:], times=2))
    assert words == ""
    assert_same_attributes(stream, seeded(model).partial_fit(ROWS[:30]))


def test_a_batch_is_not_stored_by_halves(monkeypatch):
    """Ctrl-C while attributes are set waits for the end of it."""
    store = DPMeans._store

    def pressing(self, found, table):
        press()
        store(self, found, table)

    batches = ROWS[:30], ROWS[30:]
    stream, other = seeded(DPMeans(1.0)), seeded(DPMeans(1.0))
    other.partial_fit(batches[0]).partial_fit(batches[1])
    stream.partial_fit(batches[0])
    monkeypatch.setattr(DPMeans, "_store", pressing)
    with pytest.raises(KeyboardInterrupt):
        stream.partial_fit(batches[1])
    assert_same_attributes(stream, other)
