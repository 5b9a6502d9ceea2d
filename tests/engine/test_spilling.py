"""Fits whose state of rows is in files: the same to the last bit, and nothing left."""

import gc
from functools import partial

import numpy as np
import pytest
from sklearn.utils.validation import has_fit_parameter

import crashes
import kplus
from every_estimator import DEFAULTS, MODELS, ROWS, assert_same_attributes, seeded
from kplus import DPMeans, IBPGibbs
from kplus.core.errors import DataError
from kplus.engine import shelves

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
    write = shelves.write_states

    def noting(folder, states):
        names.append(write(folder, states))
        return names[-1]

    monkeypatch.setattr(shelves, "write_states", noting)
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
    expected = DPMeans(penalty=8.0, batch_size=100, random_state=0).fit(X)
    make = shelves.LimitedShelf
    monkeypatch.setattr(
        "kplus.engine.LimitedShelf", lambda limit, folder: make(20_000, folder)
    )
    with kplus.resources(memory_limit=1, scratch=scratch):
        found = DPMeans(penalty=8.0, batch_size=100, random_state=0).fit(X)
    assert 0 < len(written) < 30 * found.n_iter_
    assert_same_attributes(expected, found)


class Broken(Exception):
    pass


@by_class
def test_nothing_is_left_after_an_error(model, scratch, written, monkeypatch):
    write = shelves.write_states

    def failing(folder, states):
        if len(written) == 5:
            raise Broken
        return write(folder, states)

    monkeypatch.setattr(shelves, "write_states", failing)
    with kplus.resources(memory_limit=1, scratch=scratch):
        with pytest.raises(Broken) as caught:
            small(model).fit(ROWS)
        caught.value.__traceback__ = None
        del caught


def test_a_state_file_that_is_deleted_under_way(scratch, written, monkeypatch):
    write = shelves.write_states

    def losing(folder, states):
        name = write(folder, states)
        if len(written) == 5:
            (folder / name).unlink()
        return name

    monkeypatch.setattr(shelves, "write_states", losing)
    with (
        kplus.resources(memory_limit=1, scratch=scratch),
        pytest.raises(DataError, match="is gone: do not delete"),
    ):
        DPMeans(penalty=0.5, batch_size=16, random_state=0).fit(ROWS)


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


def test_a_lost_state_file_of_a_checkpoint(scratch, tmp_path, crash_after):
    crash_after(2)
    model = DPMeans(penalty=0.5, batch_size=16, random_state=0)
    with kplus.resources(memory_limit=1, scratch=scratch):
        with pytest.raises(crashes.Crash):
            model.fit(ROWS, checkpoint=tmp_path / "here")
        for path in (tmp_path / "here" / "rows").iterdir():
            path.unlink()
        with pytest.raises(DataError, match="is gone"):
            DPMeans.resume(tmp_path / "here", ROWS)
