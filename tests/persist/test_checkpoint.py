"""Fits that resume after a crash, from files."""

import itertools
import os
import shutil
import subprocess
import sys
import textwrap
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import crashes
import kplus
from kplus import DPMeans, DPMixture
from kplus.base.checkpointing import Fingerprint
from kplus.core.errors import CheckpointError
from kplus.data.blocks import ArrayBlocks
from kplus.data.files import open_files
from kplus.data.open import number_blocks
from kplus.datasets import make_gaussian_blobs
from kplus.persist import checkpoint
from kplus.persist.checkpoint import CheckpointWarning

X = make_gaussian_blobs(400, 3, 5, random_state=0)[0]


@pytest.fixture
def crash_after(monkeypatch):
    return partial(crashes.crash_after, patch=monkeypatch)


def assert_same(model, other):
    assert model.get_params() == other.get_params()
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(other, name))


def interrupted(model, folder, **more):
    with pytest.raises(crashes.Crash):
        model.fit(X, checkpoint=folder, **more)


@pytest.mark.parametrize("n_init", [1, 3])
def test_an_interrupted_fit_resumes(tmp_path, crash_after, n_init):
    model = DPMeans(4.0, n_init=n_init, algorithm="rows", batch_size=64, random_state=3)
    expected = kplus.DPMeans(**model.get_params()).fit(X)
    crash_after(3)
    interrupted(model, tmp_path / "here")
    again = DPMeans.resume(tmp_path / "here", X)
    assert_same(expected, again)
    assert not (tmp_path / "here").exists()


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, crash_after):
    model = DPMixture(batch_size=64, n_init=1, random_state=0)
    expected = DPMixture(**model.get_params()).fit(X)
    crash_after(4)
    interrupted(model, tmp_path)
    files = sorted(tmp_path.glob("part0-*"))
    assert len(files) == 2
    damage(files[-1])
    with pytest.warns(CheckpointWarning, match="the one before it"):
        again = DPMixture.resume(tmp_path, X)
    assert_same(expected, again)


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("n_init", [1, 2])
def test_all_damaged_begins_anew_and_says_so_once(tmp_path, crash_after, n_init):
    model = DPMeans(4.0, n_init=n_init, algorithm="rows", batch_size=64, random_state=0)
    expected = DPMeans(**model.get_params()).fit(X)
    crash_after(3)
    interrupted(model, tmp_path)
    for path in tmp_path.glob("part*"):
        damage(path)
    n_parts = len({path.name[:5] for path in tmp_path.glob("part*")})
    with pytest.warns(CheckpointWarning, match="begins anew") as caught:
        again = DPMeans.resume(tmp_path, X)
    assert len(caught) == n_parts
    for warning in caught:
        assert "before it" not in str(warning.message)
        assert "kplus.save" not in str(warning.message)
    assert_same(expected, again)


def test_the_next_takes_the_place_of_a_damaged_one(tmp_path, crash_after, monkeypatch):
    model = DPMixture(batch_size=64, n_init=1, random_state=0)
    crash_after(3)
    interrupted(model, tmp_path)
    _, last = sorted(tmp_path.glob("part*"))
    damage(last)
    monkeypatch.undo()
    crash_after(1)
    with pytest.warns(CheckpointWarning), pytest.raises(crashes.Crash):
        DPMixture.resume(tmp_path, X)
    monkeypatch.undo()
    again = DPMixture.resume(tmp_path, X)  # both are whole
    assert_same(DPMixture(**model.get_params()).fit(X), again)


def test_a_damaged_first_file(tmp_path, crash_after):
    crash_after(1)
    interrupted(DPMeans(penalty=4.0, batch_size=64, random_state=0), tmp_path)
    for content in (b"", b"garbage", (tmp_path / "fit.kplus").read_bytes()[:-9]):
        (tmp_path / "fit.kplus").write_bytes(content)
        with pytest.raises(CheckpointError, match=r"fit\.kplus is dam.* fit anew") as e:
            DPMeans.resume(tmp_path, X)
        assert "kplus.save" not in str(e.value)


def test_files_of_another_fit_are_not_taken_up(tmp_path, crash_after, monkeypatch):
    """Of one whose first file was deleted."""
    crash_after(3)
    interrupted(DPMeans(penalty=9.0, n_init=2, batch_size=64, random_state=0), tmp_path)
    (tmp_path / "fit.kplus").unlink()
    monkeypatch.undo()
    model = DPMeans(penalty=4.0, n_init=2, batch_size=64, random_state=0)
    expected = DPMeans(**model.get_params()).fit(X)
    assert_same(expected, model.fit(X, checkpoint=tmp_path))


def test_where_there_is_no_checkpoint(tmp_path):
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(CheckpointError, match="there is no such folder"):
        DPMeans.resume(tmp_path / "nowhere", X)
    with pytest.raises(CheckpointError, match="this is a file; give the folder"):
        DPMeans.resume(tmp_path / "X.npy", X)
    with pytest.raises(CheckpointError, match="never was one, or the fit ended"):
        DPMeans.resume(tmp_path, X)


def test_other_rows_weights_classes_and_folders_are_refused(tmp_path, crash_after):
    crash_after(2)
    model = DPMeans(penalty=4.0, batch_size=64, random_state=0)
    interrupted(model, tmp_path)
    with pytest.raises(CheckpointError, match=r"numbers of rows .*400 then, 399 now"):
        DPMeans.resume(tmp_path, X[:-1])
    with pytest.raises(CheckpointError, match="numbers of columns"):
        DPMeans.resume(tmp_path, X[:, :2])
    other = X.copy()
    other[17, 1] += 1e-9
    with pytest.raises(CheckpointError, match="digests of the values"):
        DPMeans.resume(tmp_path, other)
    with pytest.raises(CheckpointError, match="weights"):
        DPMeans.resume(tmp_path, X, sample_weight=np.linspace(1, 2, 400))
    with pytest.raises(CheckpointError, match="checkpoint of a DPMeans"):
        DPMixture.resume(tmp_path, X)
    with pytest.raises(CheckpointError, match="did not end"):
        model.fit(X, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        DPMeans.resume(tmp_path / "nowhere", X)


@pytest.fixture
def large(tmp_path, crash_after, monkeypatch):
    """A file of which but the first and the last block are looked at, in mid-fit."""
    monkeypatch.setattr("kplus.base.checkpointing._SAMPLE_BYTES", 1)
    np.save(tmp_path / "X.npy", X)
    crash_after(2)
    model = DPMeans(penalty=4.0, batch_size=64, random_state=0)
    with pytest.raises(crashes.Crash):
        model.fit(tmp_path / "X.npy", checkpoint=tmp_path / "here")
    return tmp_path / "X.npy"


def reads(monkeypatch):
    """Notes the blocks that are read before a fit resumes."""
    seen = []
    read = ArrayBlocks.read

    def reading(self, index):
        seen.append(index)
        return read(self, index)

    def stop(self):
        raise crashes.Crash

    monkeypatch.setattr(ArrayBlocks, "read", reading)
    monkeypatch.setattr(checkpoint.Checkpoint, "restore", stop)
    return seen


def test_files_that_were_left_alone_are_not_read_whole(large, monkeypatch):
    seen = reads(monkeypatch)
    with pytest.raises(crashes.Crash):
        DPMeans.resume(large.parent / "here", large)
    assert seen == [0, 6]


def test_copies_are_read_whole_and_resume(large, monkeypatch):
    other = large.with_name("Y.npy")
    shutil.copy(large, other)
    os.utime(other, (1, 1))
    with monkeypatch.context() as patch:
        seen = reads(patch)
        with pytest.raises(crashes.Crash):
            DPMeans.resume(large.parent / "here", other)
        assert seen == [0, 6, *range(7)]
    again = DPMeans.resume(large.parent / "here", other)
    expected = DPMeans(penalty=4.0, batch_size=64, random_state=0).fit(X)
    assert_same(expected, again)


def test_other_forms_of_the_same_rows_resume(large):
    again = DPMeans.resume(large.parent / "here", X)
    assert_same(DPMeans(penalty=4.0, batch_size=64, random_state=0).fit(X), again)


@pytest.mark.parametrize("row", [0, 200, 399])
def test_a_single_value_that_was_changed(large, row):
    other = X.copy()
    other[row, 1] = np.nextafter(other[row, 1], 9.0)
    np.save(large, other)
    os.utime(large, (1, 1))
    for rows in (large, other):
        with pytest.raises(CheckpointError, match="digests of the values"):
            DPMeans.resume(large.parent / "here", rows)


def test_before_there_was_time_to_look_at_all_rows(tmp_path, crash_after, monkeypatch):
    """Only files that were left alone are surely the same."""
    monkeypatch.setattr("kplus.base.checkpointing._SAMPLE_BYTES", 1)
    path, here = tmp_path / "X.npy", tmp_path / "here"
    np.save(path, X)
    crash_after(2)
    monkeypatch.setattr(checkpoint, "SHARE", 10**12)
    monkeypatch.setattr(checkpoint, "_BYTES_PER_SECOND", np.inf)
    keep = checkpoint.Checkpoint.save

    def keeping(self, *arguments):
        self._due = 0.0
        keep(self, *arguments)

    monkeypatch.setattr(checkpoint.Checkpoint, "save", keeping)
    model = DPMeans(penalty=4.0, batch_size=64, random_state=0)
    with pytest.raises(crashes.Crash):
        model.fit(path, checkpoint=here)
    assert checkpoint.read_fit(here)["rows"]["values"] is None
    other = path.with_name("Y.npy")
    shutil.copy(path, other)
    os.utime(other, (1, 1))
    with pytest.raises(CheckpointError, match=r"changed or copied.*cp -p"):
        DPMeans.resume(here, other)
    monkeypatch.setattr(checkpoint, "SHARE", 0)
    assert_same(DPMeans(**model.get_params()).fit(X), DPMeans.resume(here, path))


@pytest.mark.parametrize("n_init", [1, 3])
def test_digests_of_all_rows_are_made_once(tmp_path, monkeypatch, n_init):
    made = []
    digest = Fingerprint._digest

    def noting(self, blocks):
        made.append(list(blocks))
        return digest(self, made[-1])

    monkeypatch.setattr("kplus.base.checkpointing._SAMPLE_BYTES", 1)
    monkeypatch.setattr(Fingerprint, "_digest", noting)
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    model = DPMeans(4.0, n_init=n_init, algorithm="rows", batch_size=64, random_state=0)
    model.set_params(n_jobs=3).fit(X, checkpoint=tmp_path / "here")
    assert made == [[0, 6], list(range(7))]


def test_a_short_fit_makes_none(tmp_path, monkeypatch):
    monkeypatch.setattr("kplus.base.checkpointing._SAMPLE_BYTES", 1)
    seen = []
    monkeypatch.setattr(Fingerprint, "complete", lambda *given: seen.append(given))
    DPMeans(penalty=4.0, batch_size=64, random_state=0).fit(
        X, checkpoint=tmp_path / "a"
    )
    assert not seen


def test_mapped_rows_are_let_go_of(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    source = number_blocks(open_files(tmp_path / "X.npy"), 64)
    released = []
    monkeypatch.setattr(source, "release", lambda *rows: released.append(rows))
    Fingerprint(source, None)
    assert not released
    with kplus.resources(memory_limit="1 GB"):
        Fingerprint(source, None)
    assert released == [(i * 64, min(i * 64 + 64, 400)) for i in range(7)]


def test_digests_are_counted(tmp_path, monkeypatch):
    clock = SimpleNamespace(perf_counter=partial(next, itertools.count(0, 1000)))
    monkeypatch.setattr("kplus.base.checkpointing.time", clock)
    model = DPMeans(penalty=4.0, batch_size=64, random_state=0)
    model.fit(X, checkpoint=tmp_path / "here")
    assert 1000 <= model.fit_report_.checkpoint_seconds < 2000


def test_another_version_is_refused(tmp_path, crash_after, monkeypatch):
    crash_after(1)
    interrupted(DPMeans(penalty=4.0, batch_size=64, random_state=0), tmp_path)
    monkeypatch.setattr("kplus.base.checkpointing.__version__", "99.0")
    with pytest.raises(CheckpointError, match=r"this is 99\.0"):
        DPMeans.resume(tmp_path, X)


def test_fits_that_cannot_be_repeated_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="random_state"):
        DPMeans().fit(X, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="warm_start"):
        DPMeans(random_state=0, warm_start=True).fit(X, checkpoint=tmp_path)


def test_a_full_disk_is_reported_and_the_fit_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    write = checkpoint.write_archive

    def full(path, *arguments):
        if path.name.startswith("part"):
            raise OSError(28, "No space left on device")
        write(path, *arguments)

    monkeypatch.setattr(checkpoint, "write_archive", full)
    model = DPMeans(penalty=4.0, batch_size=64, random_state=0)
    with pytest.warns(CheckpointWarning, match="No space left"):
        model.fit(X, checkpoint=tmp_path / "here")
    assert_same(DPMeans(**model.get_params()).fit(X), model)


def test_states_that_do_not_reach_the_disk(tmp_path, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr("kplus.engine.state_store._sync", full)
    model = DPMeans(penalty=4.0, batch_size=64, random_state=0)
    with (
        kplus.resources(memory_limit=1, scratch=tmp_path),
        pytest.warns(CheckpointWarning, match="No space left"),
    ):
        model.fit(X, checkpoint=tmp_path / "here")
    assert_same(DPMeans(**model.get_params()).fit(X), model)


def test_the_time_of_all_starts_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0)
    clock = SimpleNamespace(monotonic=partial(next, itertools.count()))
    monkeypatch.setattr(checkpoint, "time", clock)
    model = DPMeans(penalty=4.0, n_init=3, batch_size=64, random_state=0)
    report = model.fit(X, checkpoint=tmp_path / "here").fit_report_
    assert report.checkpoint_seconds >= 3


def test_a_process_that_is_killed(tmp_path):
    """kill -9 in mid-fit: nothing is lost but the last passes."""
    script = textwrap.dedent("""
        import sys, time
        import numpy as np
        import kplus
        from kplus.persist import checkpoint
        checkpoint.SECONDS, checkpoint.SHARE = 0.0, 0
        keep = checkpoint.Checkpoint.save
        def slowly(self, *arguments):
            keep(self, *arguments)
            print("kept", flush=True)
            time.sleep(0.2)
        checkpoint.Checkpoint.save = slowly
        X = np.load(sys.argv[1])
        model = kplus.DPMixture(batch_size=64, n_init=1, random_state=0)
        model.fit(X, checkpoint=sys.argv[2])
    """)
    data, folder = tmp_path / "X.npy", tmp_path / "here"
    np.save(data, X)
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(data), str(folder)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(3):
        assert process.stdout.readline() == b"kept\n"
    time.sleep(0.1)
    process.kill()
    process.wait()
    process.stdout.close()
    again = DPMixture.resume(folder, X)
    assert_same(DPMixture(**again.get_params()).fit(X), again)


def test_a_large_first_file_waits_until_it_takes_a_hundredth(tmp_path, monkeypatch):
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(checkpoint, "time", clock)
    kept = checkpoint.Checkpoint.begin(tmp_path / "here", {})
    for passed, n_files in ((11.0, 0), (19.0, 0), (21.0, 1), (30.0, 1), (32.0, 2)):
        now[0] = 100.0 + passed
        kept.save(1, lambda: [np.zeros(7_500_000)])  # 60 MB, in .2 s
        assert len(list((tmp_path / "here").glob("part*"))) == n_files
