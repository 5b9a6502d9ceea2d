"""``kplus fit --checkpoint`` and ``kplus resume``."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

import kplus as library
from crashes import Crash, crash_after


@pytest.fixture
def crash(monkeypatch):
    """Fits write after every pass and crash after some of them."""

    @contextmanager
    def set_up(writes=2):
        with monkeypatch.context() as patch:
            crash_after(writes, patch)
            yield

    return set_up


@pytest.fixture
def mixed(tmp_path, frame):
    color = pl.Series("color", ["red", "blue", "green"]).gather(np.arange(120) % 3)
    frame.with_columns(color).write_csv(tmp_path / "mixed.csv")
    return tmp_path / "mixed.csv"


def assert_same_files(one, other):
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    for name in names:
        if name not in ("model.kplus", "report.html"):  # which have times in them
            assert (one / name).read_bytes() == (other / name).read_bytes()
    first, second = (library.load(path / "model.kplus") for path in (one, other))
    assert first.get_params() == second.get_params()
    assert vars(first).keys() == vars(second).keys()
    for name, value in vars(first).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(second, name))


CASES = {
    "dp-means": ["--penalty", 4, "--scale", "--drop", "color", "--index", "id"],
    "dp-mixture": ["--scale", "--drop", "id", "--format", "parquet"],
    "craft": ["--clusters", 3, "--index", "id", "--categorical", "color"],
    "bp-means": ["--components", 3, "--columns", "a,b,c"],
    "k-features": ["--penalty", 40, "--columns", "a,b,c", "--scale"],
    "meibp": ["--columns", "c,a", "--prior", "gaussian"],
    "ibp-variational": ["--columns", "a,b,c", "--max-components", 4],
    "ibp-gibbs": ["--columns", "a,b,c", "--sweeps", 8, "--burn-in", 4],
}


@pytest.mark.parametrize("model", CASES)
def test_results_are_those_of_one_run(
    kplus, crash, mixed, tmp_path, monkeypatch, model
):
    """Also with relative paths and from another folder."""
    words = ["fit", mixed.name, "--model", model, *CASES[model], "--restarts", 2]
    if model == "ibp-gibbs":
        words = words[:-2]
    monkeypatch.chdir(tmp_path)
    assert kplus(*words, "-o", "whole").code == 0
    with crash(1), pytest.raises(Crash):
        kplus(*words, "-o", "parts", "--checkpoint", "here")
    assert not (tmp_path / "parts").exists()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    done = kplus("resume", tmp_path / "here")
    assert done.code == 0, done.err
    assert_same_files(tmp_path / "whole", tmp_path / "parts")
    assert not (tmp_path / "here").exists()


def test_the_report_is_that_of_the_command(kplus, crash, data, tmp_path, out):
    with crash(), pytest.raises(Crash):
        kplus("fit", data, "-o", out, "--json", "--checkpoint", tmp_path / "here")
    result = kplus("resume", tmp_path / "here").json
    assert result["n_clusters"] == 3
    assert result["files"]["labels"] == str(out / "labels.csv")


def test_a_folder_that_was_moved(kplus, crash, data, tmp_path, out):
    with crash(), pytest.raises(Crash):
        kplus("fit", data, "-o", out, "--checkpoint", tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    assert kplus("resume", tmp_path / "there").code == 0
    assert not (tmp_path / "here").exists()
    assert not (tmp_path / "there").exists()


def test_the_folder_of_the_results_may_hold_it(kplus, crash, data, out):
    out.mkdir()
    with crash(), pytest.raises(Crash):
        kplus("fit", data, "-o", out, "--checkpoint", out)
    assert kplus("resume", out).code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "labels.csv",
        "model.kplus",
        "report.html",
    ]


@pytest.mark.parametrize("begun", [False, True])
def test_before_the_first_checkpoint(kplus, crash, data, tmp_path, out, begun):
    """Killed at once, or while the rows were looked at: the fit begins anew."""
    assert kplus("fit", data, "-o", tmp_path / "whole").code == 0
    words = ["fit", data, "-o", out, "--checkpoint", tmp_path / "here"]
    with crash(1), pytest.raises(Crash):
        kplus(*words)
    (part,) = (tmp_path / "here").glob("part*")
    part.unlink()
    if not begun:
        (tmp_path / "here" / "fit.kplus").unlink()
    assert kplus("resume", tmp_path / "here").code == 0
    assert_same_files(tmp_path / "whole", out)


def test_a_fit_that_ended_leaves_nothing(kplus, data, tmp_path, out):
    here = tmp_path / "here"
    assert kplus("fit", data, "-o", out, "--checkpoint", here).code == 0
    assert not here.exists()
    kplus("resume", here).refuses("holds no checkpoint", "the fit ended")


def test_a_second_fit_is_refused_at_once(kplus, crash, data, tmp_path, out):
    here = tmp_path / "here"
    words = ["fit", data, "-o", out, "--checkpoint", here]
    with crash(), pytest.raises(Crash):
        kplus(*words)
    kplus(*words).refuses("did not end", f"kplus resume {here}", "delete the folder")
    words[1] = tmp_path / "gone.csv"  # it is not even looked for
    kplus(*words).refuses("did not end")
    assert kplus("resume", here).code == 0


def test_a_file_in_place_of_the_folder(kplus, data, out):
    kplus("fit", data, "-o", out, "--checkpoint", data).refuses("--checkpoint needs")


def test_a_mistake_leaves_no_command(kplus, data, tmp_path, out):
    """Else the command could not be given again, mended."""
    words = ["fit", data, "-o", out, "--checkpoint", tmp_path / "here"]
    done = kplus(*words, "--observations", "multinomial")
    assert done.code == 2
    assert not (tmp_path / "here").exists()
    assert kplus(*words).code == 0


def test_a_checkpoint_of_python(kplus, crash, X, tmp_path, data, out):
    model = library.DPMeans(penalty=4.0, random_state=0)
    with crash(), pytest.raises(Crash):
        model.fit(X, checkpoint=tmp_path / "here")
    kplus("resume", tmp_path / "here").refuses("of a fit in Python")
    done = kplus("fit", data, "-o", out, "--checkpoint", tmp_path / "here")
    done.refuses("did not end", "in Python")
    assert library.DPMeans.resume(tmp_path / "here", X).n_clusters_ > 1


def test_other_data_are_refused(kplus, crash, data, tmp_path, out):
    with crash(), pytest.raises(Crash):
        kplus("fit", data, "-o", out, "--checkpoint", tmp_path / "here")
    data.write_text(data.read_text().replace("1", "2", 1))
    kplus("resume", tmp_path / "here").refuses("other data", "values")
    assert (tmp_path / "here" / "command.json").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[1, 2]",
        lambda text: "null",
        lambda text: text.replace('"seed": 0', '"seed": "0"'),
        lambda text: text.replace('"seed": 0', '"sede": 0'),
        lambda text: text.replace('"outdir"', '"odtuir"'),
        lambda text: text.replace('"scale": false', '"scale": null'),
        lambda text: text.replace('"index": null', '"idnex": null'),
        lambda text: "\udcff\udcfe",
    ],
)
def test_a_damaged_command(kplus, crash, data, tmp_path, out, damage):
    with crash(), pytest.raises(Crash):
        kplus("fit", data, "-o", out, "--checkpoint", tmp_path / "here")
    file = tmp_path / "here" / "command.json"
    text = damage(file.read_text())
    file.write_bytes(text.encode(errors="surrogateescape"))
    kplus("resume", tmp_path / "here").refuses("command.json is damaged")


def test_an_edited_command(kplus, crash, data, tmp_path, out):
    with crash(), pytest.raises(Crash):
        kplus("fit", data, "-o", out, "--checkpoint", tmp_path / "here")
    file = tmp_path / "here" / "command.json"
    plain = json.loads(file.read_text())
    file.write_text(json.dumps(plain | {"seed": 7}))
    kplus("resume", tmp_path / "here").refuses("--seed was 0", "says 7")


SCRIPT = """
import sys
import kplus.persist.checkpoint as checkpoint
checkpoint.SECONDS, checkpoint.SHARE = 0.0, 0
write = checkpoint.Checkpoint.write
def writing(self, *arguments):
    write(self, *arguments)
    print("written", flush=True)
    sys.stdin.readline()
checkpoint.Checkpoint.write = writing
from kplus.cli import main
main(sys.argv[1:])
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_is_killed(kplus, data, tmp_path, out, number):
    words = ["fit", data, "--model", "dp-means", "--penalty", 4]
    assert kplus(*words, "-o", tmp_path / "whole").code == 0
    words += ["-o", out, "--checkpoint", tmp_path / "here", "--quiet"]
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "written\n"
        process.send_signal(number)
        process.wait(60)
    assert process.returncode in (-number, 128 + number)
    assert not out.exists()
    assert kplus("resume", tmp_path / "here").code == 0
    assert_same_files(tmp_path / "whole", out)
