"""Answers may use what fits may: as little memory, a folder, workers."""

import gc
from operator import attrgetter
from types import SimpleNamespace

import numpy as np
import pytest

import kplus
from every_estimator import DEFAULTS, ROWS, seeded
from kplus import CRAFT, DPMeans, DPMixture, IBPGibbs, engine
from kplus.core.errors import DataError
from kplus.core.runs import gathered
from kplus.engine import state_store
from workers import two_workers

# Others score rows block by block, and remember nothing of them.
ASKED = [model for model in DEFAULTS if not isinstance(model, (CRAFT, IBPGibbs))]
ASKED.append(DPMeans(penalty=5.0, covariance="full"))


def small(model):
    return seeded(model).set_params(batch_size=16)


def answer(model, X):
    clusters = isinstance(model, (DPMeans, DPMixture))
    found = model.predict(X) if clusters else model.transform(X)
    return found.toarray() if hasattr(found, "toarray") else found


def same(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.fixture
def written(monkeypatch):
    """The states that went to files."""
    kept = []
    write = state_store.write_states

    def noting(folder, states):
        kept.extend(states)
        return write(folder, states)

    monkeypatch.setattr(state_store, "write_states", noting)
    return kept


@pytest.mark.parametrize("model", ASKED, ids=repr)
def test_little_memory_changes_no_answer(model, tmp_path, written):
    fitted = small(model).fit(ROWS)
    expected = answer(fitted, ROWS)
    assert not written
    with kplus.resources(memory_limit=1, scratch=tmp_path):
        same(answer(fitted, ROWS), expected)
    assert len(written) == -(-len(ROWS) // 16)
    gc.collect()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", [DPMeans(n_clusters=2), DPMixture()], ids=repr)
def test_nothing_is_remembered_but_the_label(model, tmp_path, written):
    fitted = small(model).fit(ROWS)
    with kplus.resources(memory_limit=1, scratch=tmp_path):
        labels = fitted.predict(ROWS)
    assert state_store.bytes_of(written) == labels.nbytes == 4 * len(ROWS)


def test_labels_at_the_end_of_a_fit_go_to_files_too(tmp_path, written):
    model = DPMeans(penalty=1.0, algorithm="serial", batch_size=16, random_state=0)
    labels = model.fit(ROWS).labels_
    with kplus.resources(memory_limit=1, scratch=tmp_path):
        same(model.fit(ROWS).labels_, labels)
    assert any(isinstance(state, np.ndarray) for state in written)


def test_states_are_gathered_one_by_one():
    """While one is copied, those before it may go."""

    class Engine:
        source = SimpleNamespace(n_rows=5)

        def locals(self):
            yield np.array([[1, 2], [3, 4]])
            yield np.array([[5, 6], [7, 8]])
            yield np.array([[9, 10]])

    found = gathered(Engine(), attrgetter("T.T"))
    same(found, np.arange(1, 11).reshape(5, 2))


# ---------------------------------------------------------------- on workers


@pytest.fixture(scope="module")
def client():
    with two_workers(processes=False) as client:
        yield client


@pytest.fixture
def sent(client, monkeypatch):
    """How many rows workers are asked of, each time."""
    n_rows = []
    make = engine._dask_engine

    def noting(source, *others):
        n_rows.append(source.n_rows)
        return make(source, *others)

    monkeypatch.setattr("kplus.engine.cluster.active_client", lambda: client)
    monkeypatch.setattr(engine, "_dask_engine", noting)
    return n_rows


def with_workers(test):
    """Mark a test; the warnings of distributed are many."""
    return pytest.mark.dask(pytest.mark.filterwarnings("ignore")(test))


@with_workers
@pytest.mark.parametrize("model", ASKED, ids=repr)
def test_workers_answer_for_rows_in_files(model, sent, tmp_path):
    fitted = small(model).fit(ROWS)
    expected = answer(fitted, ROWS)
    assert not sent  # rows in memory stay here
    np.save(tmp_path / "x.npy", ROWS)
    same(answer(fitted, tmp_path / "x.npy"), expected)
    assert sent == [len(ROWS)]


@with_workers
def test_errors_are_raised_as_without_workers(sent, tmp_path):
    fitted = small(DPMeans(n_clusters=2)).fit(ROWS)
    bad = ROWS.copy()
    bad[-1, 1] = np.nan
    np.save(tmp_path / "x.npy", bad)
    with pytest.raises(DataError, match="NaN"):
        fitted.predict(tmp_path / "x.npy")
    assert sent


@with_workers
def test_answers_that_are_written_come_in_parts_for_all_workers(
    sent, tmp_path, monkeypatch
):
    monkeypatch.setattr("kplus.base.answers.PART_ROWS", 16)
    fitted = DPMeans(n_clusters=2, batch_size=8, random_state=0).fit(ROWS)
    np.save(tmp_path / "x.npy", ROWS)
    kplus.write_answers(fitted.predict, tmp_path / "x.npy", tmp_path / "labels.npy")
    assert sent == [32, len(ROWS) - 32]
    same(np.load(tmp_path / "labels.npy"), fitted.labels_)
    kplus.write_answers(fitted.predict, ROWS, tmp_path / "labels.npy")
    assert len(sent) == 2  # rows in memory stay here
