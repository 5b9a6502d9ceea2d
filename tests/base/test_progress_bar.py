"""`ProgressBar`: a line that follows a fit; what callbacks are told of passes."""

import io
import pickle
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from every_estimator import ROWS, WORDS, every_default, seeded
from kplus import DPMeans, DPMixture, IBPGibbs, ProgressBar
from kplus.base import progress_bar
from kplus.base.progress import PassReport, clock

pytestmark = pytest.mark.filterwarnings(r"ignore:\w+ found no feature")


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


class Reports:
    """A callback that keeps what it is told."""

    def __init__(self):
        self.reports, self.reporters = [], []

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context, *, metadata=None):
        if metadata is not None:
            self.reporters.append(metadata["reporter"])

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        if metadata is not None:
            self.reports.append(metadata["report"])


@every_default
def test_callbacks_are_told_of_each_pass(model):
    told = Reports()
    again = seeded(model).set_callbacks(told).fit(ROWS)
    words = WORDS[type(model)]
    assert [report.number for report in told.reports] == [*range(1, again.n_iter_ + 1)]
    history = getattr(again, words.history)
    if not hasattr(again, "path_"):  # there the search for a penalty leaves it out
        objectives = [report.objective for report in told.reports]
        assert objectives == pytest.approx(history.tolist(), rel=1e-9)
    for report in told.reports:
        assert (report.groups, report.measure) == (words.groups, words.measure)
        assert (report.seconds_left is None) != isinstance(model, IBPGibbs)
    (reporter,) = told.reporters
    assert reporter.n_rows == len(ROWS)
    assert reporter.meter.visited == reporter.meter.rows


@every_default
def test_the_last_line_tells_what_came_of_it(model):
    file = io.StringIO()
    again = seeded(model).set_callbacks(ProgressBar(file)).fit(ROWS)
    (line,) = file.getvalue().splitlines()
    passes = f"{again.n_iter_} pass{'es' * (again.n_iter_ > 1)} in 0:0"
    assert line.startswith(f"{type(model).__name__}: {passes}")
    assert f" {WORDS[type(model)].groups}, {WORDS[type(model)].measure} " in line


def large_rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60_000, 4)) + 9.0 * rng.integers(0, 3, (60_000, 1))


def test_a_terminal_sees_the_pass_under_way(monkeypatch):
    monkeypatch.setattr(progress_bar, "_REDRAWN", 0.002)
    monkeypatch.setenv("COLUMNS", "100")
    file, X = Terminal(), large_rows()
    bar = ProgressBar(file)
    before = threading.active_count()
    model = DPMixture("diag_gaussian", random_state=0, batch_size=2_000)
    model.set_callbacks(bar).fit(X)
    assert threading.active_count() == before
    drawn = file.getvalue().split("\r")
    assert file.getvalue().endswith("\n")
    assert max(map(len, drawn)) <= 100 + 1
    assert drawn[0].startswith("DPMixture: searching a sample, 0:0")
    under_way = [line for line in drawn if "pass 2" in line]
    assert all("left of this pass, " in line for line in under_way)
    assert any("█" in line and "░" in line for line in drawn)
    plain = clone(model).fit(X)
    np.testing.assert_array_equal(plain.labels_, model.labels_)


def test_the_time_left_of_a_chain_is_that_of_the_fit(monkeypatch):
    monkeypatch.setattr(progress_bar, "_REDRAWN", 0.002)
    file = Terminal()
    chain = IBPGibbs(n_samples=100, burn_in=100, random_state=0)
    chain.set_callbacks(ProgressBar(file)).fit(ROWS)
    drawn = [line for line in file.getvalue().split("\r") if "pass 1" in line]
    assert any(" left, " in line for line in drawn)
    assert not any("of this pass" in line for line in drawn[5:])


def test_files_that_hold_no_blocks(monkeypatch):
    monkeypatch.setattr(progress_bar, "_REDRAWN", 0.002)
    file = Terminal()
    file.encoding = "ascii"
    DPMeans(penalty=200.0, random_state=0).set_callbacks(ProgressBar(file)).fit(
        large_rows()
    )
    file.getvalue().encode("ascii")


def test_logs_get_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr(progress_bar, "_LOGGED", 0.0)
    file = io.StringIO()
    model = DPMeans(penalty=1.0, random_state=0).set_callbacks(ProgressBar(file))
    model.fit(ROWS)
    lines = file.getvalue().splitlines()
    assert "\r" not in file.getvalue()
    assert len(lines) == model.n_iter_ + 1


def test_errors_end_the_line():
    file = Terminal()
    bar = ProgressBar(file)
    with pytest.raises(ValueError, match="inf"):
        DPMeans().set_callbacks(bar).fit(np.full((9, 2), np.inf))
    assert not bar._lines
    assert file.getvalue() == "" or file.getvalue().endswith("\n")


def test_notebooks_get_it_on_standard_output(monkeypatch):
    class OutStream(io.StringIO):
        pass

    OutStream.__module__ = "ipykernel.iostream"
    out, err = OutStream(), OutStream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    DPMeans(random_state=0).set_callbacks(ProgressBar()).fit(ROWS)
    assert "passes in" in out.getvalue()
    assert err.getvalue() == ""


def test_on_a_pipeline_and_after_a_pickle(capsys):
    bar = pickle.loads(pickle.dumps(ProgressBar(io.StringIO())))
    pipe = make_pipeline(StandardScaler(), DPMeans(random_state=0))
    pipe.set_callbacks(bar).fit(ROWS)
    assert capsys.readouterr().err.startswith("DPMeans: ")
    search = GridSearchCV(DPMeans(random_state=0), {"n_clusters": [2, 3]}, cv=2)
    search.set_callbacks(bar).fit(ROWS)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5  # two of each, and the best
    assert all(line.startswith("DPMeans: ") for line in lines)
    assert not bar._lines


def test_words():
    assert [clock(s) for s in (7, 750, 10931)] == ["0:07", "12:30", "3:02:11"]
    report = PassReport(1, 1200, "clusters", 1e6, "objective", 3.4e6, None)
    assert str(report) == "1,200 clusters, objective 1e+06, 3.4M rows/s"
    report = PassReport(1, 2, "features", -2.0, "log joint", 12_345.0, 3.0)
    assert str(report) == "2 features, log joint -2, 12k rows/s"
