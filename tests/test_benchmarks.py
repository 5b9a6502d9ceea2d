"""The benchmark runner measures, reports and keeps results as it says."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks_on_path(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def runner():
    return importlib.import_module("runner")


@pytest.fixture
def report():
    return importlib.import_module("report")


@pytest.fixture
def compare():
    return importlib.import_module("compare")


def test_job_runs_in_a_fresh_process_and_is_measured(runner, tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((7, 2)))
    job = runner.Job(
        "do_nothing",
        [{"seed": 0}, {"seed": 1}],
        tmp_path / "X.npy",
        warm_up_rows=2,
        watch=True,
    )
    answer = runner.run_job(job)
    assert [run.facts for run in answer.runs] == [
        {"rows": 7, "seed": 0},
        {"rows": 7, "seed": 1},
    ]
    assert 0 <= answer.best("cpu_s") <= answer.median("cpu_s")
    assert answer.versions["numpy"] == np.__version__


def test_job_that_fails_says_why(runner):
    job = runner.Job("sklearn_k_means", [{"n_clusters": 3}])
    with pytest.raises(runner.JobFailed, match="sklearn_k_means"):
        runner.run_job(job)


def test_command_is_measured(runner):
    runs = runner.time_command(["-c", "pass"], repeats=2)
    assert runs.best("cpu_s") > 0
    assert runs.best("wall_s") > 0
    with pytest.raises(runner.JobFailed):
        runner.time_command(["-c", "raise SystemExit(3)"], repeats=1)


def test_peers_interpreter_may_be_named(runner, monkeypatch):
    monkeypatch.setenv("KPLUS_PEERS_PYTHON", sys.executable)
    assert runner.peers_python() == Path(sys.executable)
    monkeypatch.setenv("KPLUS_PEERS_PYTHON", "/nowhere/python")
    assert runner.peers_python() is None


def test_sum_of_squares_against_a_loop(compare):
    X = np.random.default_rng(0).normal(size=(50, 3))
    labels = np.arange(50) % 4 * 10
    expected = sum(
        ((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum()
        for k in np.unique(labels)
    )
    found, n_clusters = compare.sum_of_squares(X, labels)
    assert found == pytest.approx(expected)
    assert n_clusters == 4


def test_tables_align(report):
    rows = [{"name": "a", "value": 12345.6}, {"name": "long", "value": None}]
    assert report.text_table(rows).splitlines() == [
        "name   value",
        "----  ------",
        "a     12,346",
        "long       -",
    ]
    assert report.markdown_table(rows).splitlines()[1] == "| --- | ---: |"


def test_saved_cases_stay_beside_each_other(report, tmp_path):
    first = report.CaseResult("First", [{"n": 1}], [report.Check("fast", "2 s", True)])
    report.save_case(tmp_path, "demo", "a", first)
    path = report.save_case(tmp_path, "demo", "b", report.CaseResult("Second"))
    saved = json.loads(path.read_text())
    assert list(saved) == ["a", "b"]
    assert {"date", "commit", "machine", "versions", "rows"} <= set(saved["a"])
    page = path.with_suffix(".md").read_text()
    assert "## First" in page
    assert "- fast: 2 s (met)" in page
    assert "## Second" in page


def test_unknown_case_is_named():
    answer = subprocess.run(
        [sys.executable, BENCHMARKS / "dp_means.py", "--only", "blob"],
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 2
    assert "unknown case 'blob'; there are blobs, " in answer.stderr


def test_quick_case_runs(tmp_path):
    answer = subprocess.run(
        [sys.executable, BENCHMARKS / "dp_means.py", "--only", "blobs", "--quick"],
        capture_output=True,
        text=True,
        env=os.environ | {"KPLUS_PEERS_PYTHON": "/nowhere/python"},
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "pdc-dp-means skipped: no .venv-peers" in answer.stdout
