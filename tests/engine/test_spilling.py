"""Fits whose state of rows is in files: the same to the last bit, and nothing left."""

import gc
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.validation import has_fit_parameter

import crashes
import kplus
from every_estimator import DEFAULTS, MODELS, ROWS, assert_same_attributes, seeded
from kplus import DPMeans, IBPGibbs
from kplus.core.errors import DataError
from kplus.core.loop import Pending
from kplus.engine import state_store
from kplus.persist import checkpoint
from kplus.persist.checkpoint import CheckpointWarning

LOOPED = [model for model in MODELS if not isinstance(model, IBPGibbs)]
by_class = pytest.mark.parametrize(
    "model",
    [model for model in DEFAULTS if not isinstance(model, IBPGibbs)],
    ids=lambda model: type(model).__name__,
)


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    yield folder
    gc.collect()
    assert not folder.exists() or not list(folder.iterdir())


@pytest.fixture
def written(monkeypatch):
    """The state files that were written."""
    names = []
    write = state_store.write_states

    def noting(folder, states):
        names.append(write(folder, states))
        return names[-1]

    monkeypatch.setattr(state_store, "write_states", noting)
    return names


def small(model):
    return seeded(model).set_params(batch_size=16)


@pytest.mark.parametrize("model", LOOPED, ids=repr)
def test_fits_are_the_same(model, scratch, written):
    expected = small(model).fit(ROWS)
    assert not written
    with kplus.resources(memory_limit=1, scratch=scratch):
        found = small(model).fit(ROWS)
    assert written
    assert_same_attributes(expected, found)


@pytest.mark.parametrize("n_jobs", [1, 3])
@by_class
def test_fits_with_threads_and_weights(model, n_jobs, scratch, written):
    more = {}
    if has_fit_parameter(model, "sample_weight"):
        rng = np.random.default_rng(1)
        more["sample_weight"] = rng.uniform(0.5, 2.0, len(ROWS))
    expected = small(model).fit(ROWS, **more)
    with kplus.resources(memory_limit=1, scratch=scratch):
        found = small(model).set_params(n_jobs=n_jobs).fit(ROWS, **more)
    assert written
    assert_same_attributes(expected, found.set_params(n_jobs=None))


def test_fits_of_which_a_part_is_in_memory(scratch, written, monkeypatch):
    """The limit is met in mid-fit: some states are held, some are filed."""
    X = np.random.default_rng(0).normal(size=(3000, 3))
    X[::2] += 5
    expected = DPMeans(8.0, algorithm="rows", batch_size=100, random_state=0).fit(X)
    make = state_store.LimitedStore
    monkeypatch.setattr(
        "kplus.engine.LimitedStore", lambda limit, folder: make(20_000, folder)
    )
    with kplus.resources(memory_limit=1, scratch=scratch):
        found = DPMeans(8.0, algorithm="rows", batch_size=100, random_state=0).fit(X)
    assert 0 < len(written) < 30 * found.n_iter_
    assert_same_attributes(expected, found)


class Broken(Exception):
    pass


@by_class
def test_nothing_is_left_after_an_error(model, scratch, written, monkeypatch):
    write = state_store.write_states

    def failing(folder, states):
        if len(written) == 5:
            raise Broken
        return write(folder, states)

    monkeypatch.setattr(state_store, "write_states", failing)
    with kplus.resources(memory_limit=1, scratch=scratch):
        with pytest.raises(Broken) as caught:
            small(model).fit(ROWS)
        caught.value.__traceback__ = None
        del caught


def test_a_state_file_that_is_deleted_under_way(scratch, written, monkeypatch):
    write = state_store.write_states

    def losing(folder, states):
        name = write(folder, states)
        if len(written) == 5:
            (folder / name).unlink()
        return name

    monkeypatch.setattr(state_store, "write_states", losing)
    with (
        kplus.resources(memory_limit=1, scratch=scratch),
        pytest.raises(DataError, match="is gone: do not delete"),
    ):
        DPMeans(0.5, algorithm="rows", batch_size=16, random_state=0).fit(ROWS)


@pytest.fixture
def crash_after(monkeypatch):
    return partial(crashes.crash_after, patch=monkeypatch)


LIMITS = {"plain": None, "all in files": 1}


@pytest.mark.parametrize("after", LIMITS)
@pytest.mark.parametrize("before", LIMITS)
@by_class
def test_checkpoints(model, before, after, scratch, tmp_path, crash_after):
    """Whatever the limits before and after the crash: the result is the same."""
    expected = small(model).fit(ROWS)
    here = tmp_path / "here"
    crash_after(1)
    with kplus.resources(memory_limit=LIMITS[before], scratch=scratch):
        with pytest.raises(crashes.Crash) as caught:
            small(model).fit(ROWS, checkpoint=here)
        caught.value.__traceback__ = None
        del caught
    gc.collect()
    assert (here / "rows").exists() == (before != "plain")
    with kplus.resources(memory_limit=LIMITS[after], scratch=scratch):
        found = type(model).resume(here, ROWS)
    assert_same_attributes(expected, found)
    assert not here.exists()


def states_of(path):
    """The state files that a checkpoint refers to."""
    entries = checkpoint.read_contents(path)
    return {
        Path(file) for entry in entries.values() for file in entry.state.rows.handles
    }


LOSSES = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "altered": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\7"),
}


@pytest.fixture
def in_files(scratch, tmp_path, crash_after):
    """The folder of a fit that crashed; its checkpoints, the latest last."""
    crash_after(3)
    model = DPMeans(0.5, algorithm="rows", batch_size=16, random_state=0)
    with kplus.resources(memory_limit=1, scratch=scratch):
        with pytest.raises(crashes.Crash) as caught:
            model.fit(ROWS, checkpoint=tmp_path / "here")
        caught.value.__traceback__ = None
        del caught
    return tmp_path / "here", sorted((tmp_path / "here").glob("part*"))


@pytest.mark.parametrize("after", LIMITS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_state_file_of_a_checkpoint(in_files, scratch, loss, after):
    """The one before it is used."""
    here, (first, second) = in_files
    own = states_of(second) - states_of(first)
    LOSSES[loss](min(own))
    with (
        kplus.resources(memory_limit=LIMITS[after], scratch=scratch),
        pytest.warns(CheckpointWarning, match=r"000003.*gone or.*before it is"),
    ):
        found = DPMeans.resume(here, ROWS)
    expected = DPMeans(0.5, algorithm="rows", batch_size=16, random_state=0).fit(ROWS)
    assert_same_attributes(expected, found)
    assert not here.exists()


def test_state_files_are_checked_once_each(in_files, monkeypatch):
    """A move on trial refers to the states before it, which may be the same."""
    here, (_, latest) = in_files
    (number, running), *_ = checkpoint.read_contents(latest).items()
    rows = running.state.rows
    pending = Pending(0, None, running.state.params, 0.0, False, (None, rows))
    running = replace(running, state=replace(running.state, pending=pending))
    checkpoint.write_contents(latest, {number: running})
    checked = []
    monkeypatch.setattr(checkpoint, "read_states", lambda path: checked.append(path))
    checkpoint.Checkpoint.open(here).restore()
    assert sorted(map(str, checked)) == sorted(rows.handles)


@pytest.mark.parametrize("after", LIMITS)
def test_all_state_files_lost(in_files, scratch, after):
    here, _ = in_files
    for path in (here / "rows").iterdir():
        path.unlink()
    with (
        kplus.resources(memory_limit=LIMITS[after], scratch=scratch),
        pytest.warns(CheckpointWarning, match="begins anew") as caught,
    ):
        found = DPMeans.resume(here, ROWS)
    assert len(caught) == 1
    assert "before it" not in str(caught[0].message)
    expected = DPMeans(0.5, algorithm="rows", batch_size=16, random_state=0).fit(ROWS)
    assert_same_attributes(expected, found)


def test_a_checkpoint_with_state_files_that_was_moved(in_files, scratch):
    here, _ = in_files
    here.rename(here.with_name("there"))
    with kplus.resources(memory_limit=1, scratch=scratch):
        found = DPMeans.resume(here.with_name("there"), ROWS)
    expected = DPMeans(0.5, algorithm="rows", batch_size=16, random_state=0).fit(ROWS)
    assert_same_attributes(expected, found)
