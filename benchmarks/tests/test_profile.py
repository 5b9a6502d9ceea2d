"""The profile of default fits measures what it says."""

import importlib
import shutil
from dataclasses import replace

import pytest


@pytest.fixture
def profiles():
    return importlib.import_module("profiles")


@pytest.fixture
def store(tmp_path):
    return importlib.import_module("data").Store(tmp_path)


def test_samples_count_for_their_library():
    shares = importlib.import_module("profile_shares")
    report = """
     4  |kernels_lloyd.abi3.so            |[.] __pyx_f_5kplus__meet
     2  |libscipy_openblas-6cdc3b4a.so    |[.] dgemm_kernel_HASWELL
     1  |libc.so.6                        |[.] __memmove_avx_unaligned_erms
     1  |_multiarray_umath.cpython-311.so  |[.] DOUBLE_add
     3  |libpython3.11.so.1.0             |[.] _PyEval_EvalFrameDefault
     1  |libc.so.6                        |[.] malloc
     3  |[kernel.kallsyms]                |[k] clear_page_erms
    """
    assert shares.shares_of(report) == {
        "system": 3 / 15,
        "BLAS": 2 / 15,
        "kernels": 4 / 15,
        "numpy": 2 / 15,
        "Python": 4 / 15,
    }
    assert shares.shares_of("nothing was seen") is None


def test_quick_profile(profiles, store):
    result = profiles.case_large(store, profiles.QUICK)
    assert [row["estimator"] for row in result.rows] == ["DPMeans"]
    assert result.rows[0]["K"] >= 1
    assert result.rows[0]["wall s"] > 0
    assert "memory: IBPGibbs" in result.notes[1]


def test_first_fit_is_timed(profiles):
    tasks = importlib.import_module("profile_tasks")
    X = profiles.blobs(profiles.QUICK.small)
    facts = tasks.first_fit(X, {"estimator": "DPMeans"})
    assert facts["fit_s"] > 0


def test_first_fits_make_a_table(profiles, store, monkeypatch):
    runner = importlib.import_module("runner")
    facts = {"import_s": 1.0, "fit_s": 0.2, "fit_cpu_s": 0.2}
    answer = runner.Runs([runner.Run(0.2, 0.2, None, None, facts)], {})
    monkeypatch.setattr(profiles, "run_job", lambda job: answer)
    result = profiles.case_startup(store, profiles.QUICK)
    assert [row["estimator"] for row in result.rows] == ["DPMeans", "IBPGibbs"]
    assert result.rows[0]["first fit, s"] == 0.2
    assert all(check.met for check in result.checks)


def test_fit_over_its_limit_is_reported(profiles, store):
    sizes = replace(profiles.QUICK, estimators=("DPMeans",), limit=0.01)
    (row,) = profiles.case_small(store, sizes).rows
    assert row["wall s"] == "over 0.01"


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
def test_sampler_sees_python():
    sampler = importlib.import_module("profile_shares").Sampler()
    with sampler:
        sum(i * i for i in range(3_000_000))
    if sampler.shares is None:
        pytest.skip("perf may not watch processes here")
    assert sampler.shares["Python"] > 0.5
