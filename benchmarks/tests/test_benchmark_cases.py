"""Every case of every benchmark runs on tiny data and reports what it found."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1]
# Of each benchmark the modules that run jobs, and the cases that take a moment.
QUICK = {
    "dp_mixture": (
        ["dp_mixture", "mixtures"],
        "edge blobs cost growth precision greedy births fixed splits tiny small",
    ),
    "features": (
        ["features", "feature_fits", "feature_claims", "feature_faces"],
        "tabletop penalty starts seeds number clusters dice steps faces made scale",
    ),
    "craft": (
        ["craft", "craft_runs", "craft_made", "craft_peers"],
        "synthetic structureless fixed budget tables orders farthest many "
        "correlated wide open numbers",
    ),
    "ibp": (
        [
            *("ibp_runs", "ibp_synthetic", "ibp_tabletop", "ibp_solver", "ibp_cost"),
            *("ibp_slow", "feature_fits"),
        ],
        "synthetic curves large row_solver flips cost plain slow",
    ),
    "meibp_gaps": ([], "cost number tables"),
    "scale": (["scale"], "patches"),
    "denoising": (["denoising"], "race denoise large"),
    "real_data": (["craft_runs"], "battery columns large mixed model"),
    "dp_means_default": ([], "battery cost"),
    "imputation": (["craft_runs"], "numbers categories"),
    "wide_tables": (["craft_runs"], "seen unseen gaps"),
    "skewed_tables": ([], "skewed spiked"),
    "sparse_counts": (["craft_runs"], "seen unseen"),
    "how_sure": ([], "means truth calibration speed"),
    "versions": (["versions"], "first fits"),
}
LONGER = {
    "craft": "splice adult scaling",
    "ibp": "scales real yale_full tabletop histogram",
}


def named(cases):
    return [(name, case) for name in cases for case in cases[name].split()]


@pytest.fixture(autouse=True)
def _benchmarks_on_path(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setenv("KPLUS_CRAFT_PEERS_PYTHON", "/nowhere/python")
    monkeypatch.setenv("KPLUS_BEFORE_PYTHON", sys.executable)


def run_here(job):
    """Run a job in this process: the imports of a new one take long."""
    runner, worker = map(importlib.import_module, ("runner", "worker"))
    task = getattr(importlib.import_module(job.tasks), job.task)
    X = None if job.data is None else np.load(job.data)
    runs = []
    for arguments in job.runs:
        numbers, facts = worker.measure(task, X, arguments, job.watch)
        labels = facts.pop("labels", None)
        facts = json.loads(json.dumps(facts))
        runs.append(runner.Run(**numbers, facts=facts, labels=labels))
    return runner.Runs(runs, {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the cases keep their data: to unpack pictures takes long."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def run_case(monkeypatch, folder):
    def run(name, case):
        if name == "craft" or case == "mixed":
            pytest.importorskip("pyarrow")
        benchmark = importlib.import_module(name)
        for module in QUICK[name][0]:
            monkeypatch.setattr(importlib.import_module(module), "run_job", run_here)
        data, report = map(importlib.import_module, ("data", "report"))
        try:
            result = benchmark.CASES[case](data.Store(folder), benchmark.QUICK)
        except data.DataMissing as missing:
            pytest.skip(str(missing))
        assert report.text_table(result.rows)
        assert result.checks or result.claims
        verdicts = {one.verdict for one in result.claims}
        assert verdicts <= {"confirmed", "partly", "contradicted"}

    return run


@pytest.mark.parametrize(
    ("name", "case"), named({name: cases for name, (_, cases) in QUICK.items()})
)
def test_quick_case_runs(name, case, run_case):
    run_case(name, case)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case"), named(LONGER))
def test_longer_quick_case_runs(name, case, run_case):
    run_case(name, case)


@pytest.mark.slow
@pytest.mark.dask
@pytest.mark.filterwarnings("ignore")  # those of distributed are many
@pytest.mark.parametrize("case", ["overhead", "workers"])
def test_quick_case_runs_with_a_cluster(case, run_case):
    pytest.importorskip("distributed")
    run_case("scale", case)


@pytest.mark.parametrize(
    ("name", "case", "words"),
    [
        ("dp_means", "blobs", "pdc-dp-means skipped: no .venv-peers"),
        ("ibp", "flips", "gains looked at: exponent"),
    ],
)
def test_quick_case_runs_in_workers(name, case, words):
    """As from the command line; the second has a module of tasks of its own."""
    answer = subprocess.run(
        [sys.executable, BENCHMARKS / f"{name}.py", "--only", case, "--quick"],
        capture_output=True,
        text=True,
        env=os.environ | {"KPLUS_PEERS_PYTHON": "/nowhere/python"},
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert words in answer.stdout


def test_unknown_case_is_named(monkeypatch, capsys):
    command = importlib.import_module("command")
    monkeypatch.setattr(sys, "argv", ["dp_means.py", "--only", "blob"])
    with pytest.raises(SystemExit) as ended:
        command.read_arguments("dp_means", ["blobs", "threads"])
    assert ended.value.code == 2
    assert "unknown case 'blob'; there are blobs, " in capsys.readouterr().err
