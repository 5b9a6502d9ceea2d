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

pytestmark = pytest.mark.filterwarnings(r"ignore:\w+ found no feature")
STREAMS = [model for model in MODELS if hasattr(model, "partial_fit")]
every_stream = pytest.mark.parametrize("model", STREAMS, ids=repr)


@every_stream
def test_the_first_batch_is_a_fit(model):
    assert_same_attributes(seeded(model).partial_fit(ROWS), fitted(model))


@every_stream
def test_a_stream_goes_on_after_it_was_stored(model, tmp_path):
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
