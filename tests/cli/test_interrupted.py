"""Ctrl-C in ``kplus fit``: the best so far is written."""

import os
import signal
import subprocess
import sys

import pytest

import kplus as library
from kplus.base.progress import PassReporter

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")


@pytest.fixture
def interrupt(monkeypatch):
    """Ctrl-C so many times in the first pass over all rows."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda times: monkeypatch.setattr(
        PassReporter,
        "_tell",
        lambda *_: (
            [os.kill(os.getpid(), signal.SIGINT) for _ in range(times)] and False
        ),
    )
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("model", "answers"),
    [
        ("dp-means", "labels.csv"),
        ("dp-mixture", "labels.csv"),
        ("craft", "labels.csv"),
        ("k-features", "features.csv"),
        ("meibp", "features.csv"),
        ("ibp-gibbs", "features.csv"),
    ],
)
def test_the_best_so_far_is_written(kplus, interrupt, data, out, model, answers):
    interrupt(1)
    words = ["--prior", "gaussian"] if model == "meibp" else []
    done = kplus("fit", data, "--model", model, *words, "-o", out, "--json")
    assert done.code == 130
    assert "Interrupted: this is the best so far, after 1 pass.\n" in done.err
    assert "resume" not in done.err
    assert done.json["n_rows"] == 120
    assert (out / answers).exists()
    assert library.load(out / "model.kplus").n_iter_ == 1


def test_going_on_replaces_what_was_written(
    kplus, interrupt, monkeypatch, data, tmp_path
):
    words = ["fit", data, "--model", "dp-means", "--penalty", 4, "--quiet", "-o"]
    assert kplus(*words, tmp_path / "whole").code == 0
    here, out = tmp_path / "here", tmp_path / "out"
    interrupt(1)
    done = kplus(*words, out, "--checkpoint", here)
    monkeypatch.undo()
    assert done.code == 130
    assert f"after 1 pass. kplus resume {here} resumes it.\n" in done.err
    assert library.load(out / "model.kplus").n_iter_ == 1
    assert kplus("resume", here).code == 0
    labels = (tmp_path / "whole" / "labels.csv").read_bytes()
    assert (out / "labels.csv").read_bytes() == labels
    assert not here.exists()


def test_nothing_was_found_yet(kplus, interrupt, data, tmp_path, out):
    interrupt(2)
    done = kplus("fit", data, "-o", out)
    assert (done.code, done.out) == (130, "")
    assert "Interrupted before anything was found; nothing was written.\n" in done.err
    assert [path.name for path in tmp_path.iterdir()] == [data.name]


def test_nothing_was_found_yet_with_a_checkpoint(
    kplus, interrupt, monkeypatch, data, tmp_path, out
):
    here = tmp_path / "here"
    interrupt(2)
    done = kplus("fit", data, "-o", out, "--checkpoint", here)
    assert f"nothing was written. kplus resume {here} resumes it.\n" in done.err
    monkeypatch.undo()
    assert kplus("resume", here).code == 0
    assert library.load(out / "model.kplus").n_clusters_ == 3


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from kplus.base.progress import PassReporter
def tell(*_):
    print("pass", flush=True)
    sys.stdin.readline()
    return False
PassReporter._tell = tell
from kplus.cli import main
main(sys.argv[1:])
"""


def test_in_a_process_of_its_own(data, out):
    words = ["fit", data, "--model", "dp-means", "--penalty", 4, "--quiet", "-o", out]
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "pass\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate("\n" * 100, timeout=60)
    assert process.returncode == 130
    assert err.endswith("Interrupted: this is the best so far, after 1 pass.\n")
    assert "Traceback" not in err
    assert (out / "labels.csv").exists()
