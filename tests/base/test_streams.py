"""What holds for the streams of every estimator that has `partial_fit`."""

import pickle

import numpy as np
import pytest

import kplus
from every_estimator import (
    MODELS,
    ROWS,
    assert_same_answers,
    assert_same_attributes,
    fitted,
    seeded,
)
from kplus import DPMeans, DPMixture
from kplus.base import estimator as _base

pytestmark = pytest.mark.filterwarnings(r"ignore:\w+ found no feature")
STREAMS = [model for model in MODELS if hasattr(model, "partial_fit")]
every_stream = pytest.mark.parametrize("model", STREAMS, ids=repr)
# What the base class does for all; only mixtures keep records of moves.
some_streams = pytest.mark.parametrize(
    "model", [DPMeans(penalty=1.0), DPMixture()], ids=repr
)


@every_stream
def test_the_first_batch_is_a_fit(model):
    assert_same_attributes(seeded(model).partial_fit(ROWS), fitted(model))


@every_stream
def test_a_stream_continues_after_it_was_stored(model, tmp_path):
    stream = seeded(model).partial_fit(ROWS[:30])
    kplus.save(stream, tmp_path / "model.npz")
    others = (
        kplus.load(tmp_path / "model.npz"),
        pickle.loads(pickle.dumps(stream)),
    )
    for batch in (ROWS[30:45], ROWS[45:]):
        stream.partial_fit(batch)
        for other in others:
            other.partial_fit(batch)
            assert_same_attributes(other, stream)
            assert_same_answers(other, stream, ROWS)


@every_stream
def test_a_fit_forgets_the_stream(model):
    stream = seeded(model).partial_fit(ROWS[:30] + 5.0).partial_fit(ROWS)
    assert_same_attributes(stream.fit(ROWS), fitted(model))


@every_stream
def test_a_bad_batch_leaves_the_stream_as_it_was(model):
    stream = seeded(model).partial_fit(ROWS)
    bad = ROWS.copy()
    bad[7, 2] = np.inf
    for batch, words in ((bad, "[Cc]olumn 2"), (ROWS[:, :2], "expecting 5 features")):
        with pytest.raises(ValueError, match=words):
            stream.partial_fit(batch)
        assert_same_attributes(stream, fitted(model))
    assert_same_attributes(
        stream.partial_fit(ROWS), seeded(model).fit(ROWS).partial_fit(ROWS)
    )


def streamed(model, kept, monkeypatch):
    """A stream that keeps so many entries of its history."""
    with monkeypatch.context() as patch:
        patch.setattr(_base, "_KEPT", kept)
        stream = seeded(model)
        for batch in (ROWS[:30], ROWS[30:45], ROWS[45:]):
            stream.partial_fit(batch)
        return stream


@some_streams
def test_the_latest_history_is_kept(model, monkeypatch):
    """Nothing else differs, and all passes are counted."""
    whole, short = (streamed(model, kept, monkeypatch) for kept in (10_000, 3))
    assert len(whole._history) == whole.n_iter_ == short.n_iter_ > 3
    np.testing.assert_array_equal(short._history, whole._history[-3:])
    if hasattr(whole, "moves_"):
        np.testing.assert_array_equal(short.moves_, whole.moves_[-3:])
        short.moves_ = whole.moves_
    short._set_history(whole._history)
    assert_same_attributes(short, whole)


@some_streams
def test_a_cut_history_is_stored(model, tmp_path, monkeypatch):
    monkeypatch.setattr(_base, "_KEPT", 3)
    stream = streamed(model, 3, monkeypatch)
    kplus.save(stream, tmp_path / "model.npz")
    for other in (
        kplus.load(tmp_path / "model.npz"),
        pickle.loads(pickle.dumps(stream)),
    ):
        assert_same_attributes(other, stream)
        again = streamed(model, 3, monkeypatch).partial_fit(ROWS)
        assert_same_attributes(other.partial_fit(ROWS), again)


@some_streams
def test_a_fit_keeps_its_whole_history(model, monkeypatch):
    monkeypatch.setattr(_base, "_KEPT", 1)
    stream = streamed(model, 1, monkeypatch)
    assert_same_attributes(stream.fit(ROWS), seeded(model).fit(ROWS))
    stream = streamed(model, 1, monkeypatch).set_params(warm_start=True).fit(ROWS)
    assert len(stream._history) == stream.n_iter_


def test_what_is_kept_of_a_stream():
    a, b = np.arange(9_990.0), np.arange(30.0)
    np.testing.assert_array_equal(_base.latest(a, b[:5]), [*a, *b[:5]])
    np.testing.assert_array_equal(_base.latest(a, b), [*a[20:], *b])
    np.testing.assert_array_equal(
        _base.latest(b, np.arange(10_001.0))[[0, -1]], [1, 1e4]
    )


def test_records_are_kept_alike():
    records = DPMixture(random_state=0).fit(ROWS).moves_
    assert len(records)
    both = _base.latest(records, records)
    assert both.dtype == records.dtype
    np.testing.assert_array_equal(both, np.concatenate([records, records]))
    assert _base.latest(records, records[:0]) is records
