"""Blocks that users write: what is asked of them, and errors for those that fail."""

import numpy as np
import pytest

import kplus
from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.data.wrapped import UserBlocks, looks_like_blocks

X = np.random.default_rng(0).normal(size=(50, 3))
X[25:] += 10


class Own:
    n_rows, n_features, block_rows = 50, 3, 8

    def read(self, index):
        return X[index * 8 : (index + 1) * 8]


class WithTake(Own):
    feature_names = ("x", "y", "z")

    def take(self, rows):
        return X[rows]


@pytest.mark.parametrize("own", [Own(), WithTake()])
def test_rows(own):
    blocks = UserBlocks(own)
    np.testing.assert_array_equal(read_all(blocks), X)
    rows = np.array([0, 7, 8, 9, 49])
    np.testing.assert_array_equal(blocks.take(rows), X[rows])
    assert blocks.take(rows[:0]).shape == (0, 3)


@pytest.mark.parametrize("own", [Own(), WithTake()])
def test_fits_are_those_of_the_array(own):
    model = kplus.DPMeans(penalty=30, random_state=0)
    found = model.fit(own).labels_.copy()
    np.testing.assert_array_equal(found, model.fit(X).labels_)
    np.testing.assert_array_equal(model.predict(own), found)


def test_names_are_noted():
    model = kplus.DPMeans(penalty=30, random_state=0).fit(WithTake())
    assert list(model.feature_names_in_) == ["x", "y", "z"]


def test_which_objects_are_blocks():
    assert looks_like_blocks(Own())
    assert not looks_like_blocks(X)
    assert not looks_like_blocks(open)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_rows": 2.5}, "n_rows must be an integer"),
        ({"block_rows": 0}, "block_rows must not be 0"),
        ({"feature_names": ["a"]}, "1 names for 3 columns"),
    ],
)
def test_bad_sizes(changes, message):
    own = type("Bad", (Own,), changes)()
    with pytest.raises(DataError, match=message):
        UserBlocks(own)


@pytest.mark.parametrize("rows", [np.zeros((3, 3)), np.zeros(8), np.full((8, 3), "x")])
def test_bad_rows(rows):
    own = type("Bad", (Own,), {"read": lambda self, index: rows})()
    with pytest.raises(DataError, match=r"Bad\.read\(0\) returned .* are due"):
        UserBlocks(own).read(0)


def test_other_batches_are_refused():
    with pytest.raises(DataError, match="batch_size=9"):
        kplus.DPMeans(penalty=30, batch_size=9).fit(Own())
