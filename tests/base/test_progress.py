"""Callbacks and `verbose` lines: every estimator tells of its passes alike."""

import re

import numpy as np
import pytest
from sklearn.base import clone

from every_estimator import (
    MODELS,
    ROW_BY_ROW,
    ROWS,
    WORDS,
    assert_same_attributes,
    dense,
    every_default,
    fitted,
    mixed_rows,
    offered,
    seeded,
)
from kplus import CRAFT, MEIBP, DPMeans, DPMixture, IBPGibbs, IBPVariational

pytestmark = pytest.mark.filterwarnings(r"ignore:\w+ found no feature")

# Of several starts the first is watched, which need not be the best.
WATCHED = [model for model in MODELS if getattr(model, "n_init", 1) == 1]
every_model = pytest.mark.parametrize("model", WATCHED, ids=repr)


class Recorder:
    """A scikit-learn callback that notes passes and may stop the fit."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.passes, self.scores, self.events, self.last = 0, [], [], None

    def setup(self, estimator, context):
        self.events.append(f"setup {context.max_subtasks}")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name != "pass":
            return False
        self.passes += 1
        self.last = fitted_estimator
        self.scores.append(fitted_estimator.score(X))
        for name in offered(fitted_estimator, ("predict", "transform")):
            assert len(getattr(fitted_estimator, name)(X).shape) in (1, 2)
        return self.passes == self.stop_after


# The last pass is the answer, but for rounding, a last step, and samplers.
CLOSE = {MEIBP: 1e-6, IBPVariational: 1e-3, IBPGibbs: np.inf}


@every_model
def test_callbacks_see_every_pass(model):
    recorder = Recorder()
    again = seeded(model).set_callbacks(recorder).fit(ROWS)
    assert recorder.passes == again.n_iter_ > 1
    total = again.n_iter_ if isinstance(model, IBPGibbs) else None
    assert recorder.events[0] == f"setup {total}"
    assert recorder.events[-1] == "teardown"
    assert recorder.events.count("begin pass") == again.n_iter_
    close = CLOSE.get(type(model), 1e-9)
    assert recorder.scores[-1] == pytest.approx(again.score(ROWS), rel=close)
    del again._skl_callbacks
    assert_same_attributes(again, fitted(model))


@every_default
def test_every_estimator_describes_itself_in_mid_fit(model, monkeypatch):
    """Callbacks get what `_described` says, and nothing that replaces it."""
    described = []
    plain = type(model)._described

    def noting(self, info, table):
        described.append(info.iteration)
        return plain(self, info, table)

    monkeypatch.setattr(type(model), "_described", noting)
    again = seeded(model).set_callbacks(Recorder()).fit(ROWS)
    assert sorted(set(described)) == list(range(1, again.n_iter_ + 1))


@pytest.mark.parametrize("model", [CRAFT(), DPMixture("mixed", n_init=1)], ids=repr)
def test_callbacks_see_mixed_tables(model):
    """Categories and names are there before the fit has ended."""
    frame, recorder = mixed_rows()[0], Recorder()
    again = seeded(model).set_callbacks(recorder).fit(frame)
    assert recorder.passes == again.n_iter_
    assert recorder.scores[-1] == pytest.approx(again.score(frame), rel=1e-9)


@every_default
def test_a_callback_can_stop_the_fit(model):
    """Stopping on purpose is no reason for a warning."""
    recorder = Recorder(stop_after=1)
    again = seeded(model).set_callbacks(recorder).fit(ROWS)
    assert recorder.passes == again.n_iter_ == 1
    assert recorder.events[-1] == "teardown"
    for name in offered(again, ROW_BY_ROW):
        assert np.all(np.isfinite(dense(getattr(again, name)(ROWS))))
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict(ROWS), again.labels_)


@every_default
def test_callbacks_are_torn_down_after_an_error(model):
    recorder = Recorder()
    with pytest.raises(ValueError, match="inf"):
        clone(model).set_callbacks(recorder).fit(np.full((4, 2), np.inf))
    assert recorder.events in ([], [*recorder.events[:-1], "teardown"])


@every_default
def test_verbose_prints_a_line_per_pass(model, capsys):
    """What is printed is what is kept; the search for a penalty leaves it out."""
    again = seeded(model).set_params(verbose=1).fit(ROWS)
    lines = capsys.readouterr().out.splitlines()
    name, words = type(model).__name__, WORDS[type(model)]
    said = rf"(\d+) {words.groups}, {words.measure} ([^ ,]+)(, \d+:\d\d left)?"
    printed = [
        re.fullmatch(rf"\[{name}\] pass {i}: {said}", line)
        for i, line in enumerate(lines, start=1)
    ]
    assert all(printed)
    assert printed[-1][3] == (", 0:00 left" if isinstance(model, IBPGibbs) else None)
    if words.number:
        assert int(printed[-1][1]) == getattr(again, words.number)
    history = getattr(again, words.history)
    if hasattr(again, "path_") and isinstance(model, DPMeans):
        numbers = np.array([int(line[1]) for line in printed])
        history = history - again.penalty_ * (numbers - 1)
    assert [float(line[2]) for line in printed] == pytest.approx(history, rel=1e-4)


@pytest.mark.parametrize("sweep", [2, 13])
def test_a_chain_that_is_stopped(sweep):
    """Its answer is the best of the samples, and for want of any the last state."""
    recorder = Recorder(stop_after=sweep)
    model = IBPGibbs(n_samples=10, burn_in=10, random_state=0)
    model.set_callbacks(recorder).fit(ROWS)
    assert model.n_iter_ == len(model.alpha_history_) == sweep
    if sweep == 2:
        np.testing.assert_array_equal(model.components_, recorder.last.components_)
        assert model.log_joint_ == model.log_joint_history_[-1]
