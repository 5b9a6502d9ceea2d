"""Blocks that are made of others: less an offset, or written by users."""

import numpy as np
import pytest
import scipy.sparse as sp

import kplus
from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.data.blocks import ArrayBlocks, SparseBlocks
from kplus.data.wrapped import ShiftedBlocks, UserBlocks, looks_like_blocks

X = np.random.default_rng(0).normal(size=(20, 3))
OFFSET = np.array([1.0, -2.5, 1e8])


@pytest.mark.parametrize("block_rows", [1, 7, 20, 50])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_and_rows(block_rows, dtype):
    rows = X.astype(dtype)
    source = ArrayBlocks(rows, block_rows)
    shifted = ShiftedBlocks(source, OFFSET)
    assert (shifted.n_rows, shifted.n_features) == (20, 3)
    assert shifted.block_rows == source.block_rows
    blocks = [shifted.read(i) for i in range(-(-20 // shifted.block_rows))]
    expected = rows.astype(np.float64) - OFFSET
    np.testing.assert_array_equal(np.concatenate(blocks), expected)
    chosen = np.array([0, 3, 4, 19])
    np.testing.assert_array_equal(shifted.take(chosen), expected[chosen])
    for part in (*blocks, shifted.take(chosen)):
        assert part.dtype == np.float64
        assert part.flags.c_contiguous


def test_the_source_is_left_alone():
    rows = X.copy()
    rows.flags.writeable = False
    shifted = ShiftedBlocks(ArrayBlocks(rows, 7), OFFSET)
    shifted.read(0)[:] = 9.0
    np.testing.assert_array_equal(shifted.read(0), X[:7] - OFFSET)
    np.testing.assert_array_equal(rows, X)


def test_sparse_rows_fortran_order_and_gaps():
    rows = np.where(np.abs(X) < 0.5, 0.0, X)
    found = ShiftedBlocks(SparseBlocks(sp.csr_array(rows), 7), OFFSET).read(2)
    np.testing.assert_array_equal(found, rows[14:] - OFFSET)
    gaps = np.asfortranarray(np.where(X > 1.0, np.nan, X))
    found = ShiftedBlocks(ArrayBlocks(gaps, 50), OFFSET).read(0)
    np.testing.assert_array_equal(found, gaps - OFFSET)
    assert found.flags.c_contiguous


def test_the_minimum_becomes_zero():
    shifted = ShiftedBlocks(ArrayBlocks(X, 50), X.min(axis=0)).read(0)
    np.testing.assert_array_equal(shifted.min(axis=0), 0.0)


def test_mapped_rows_are_released():
    released = []
    source = ArrayBlocks(X, 7)
    source.release = lambda start, stop: released.append((start, stop))
    ShiftedBlocks(source, OFFSET).release(3, 9)
    assert released == [(3, 9)]


def test_other_blocks_hold_the_same_rows():
    shifted = ShiftedBlocks(ArrayBlocks(X, 7), OFFSET).cut(6)
    np.testing.assert_array_equal(shifted.read(1), X[6:12] - OFFSET)


# ------------------------------------------------------------ blocks of users


GROUPS = np.random.default_rng(0).normal(size=(50, 3))
GROUPS[25:] += 10


class Own:
    n_rows, n_features, block_rows = 50, 3, 8

    def read(self, index):
        return GROUPS[index * 8 : (index + 1) * 8]


class WithTake(Own):
    feature_names = ("x", "y", "z")

    def take(self, rows):
        return GROUPS[rows]


@pytest.mark.parametrize("own", [Own(), WithTake()])
def test_rows_of_users(own):
    blocks = UserBlocks(own)
    np.testing.assert_array_equal(read_all(blocks), GROUPS)
    rows = np.array([0, 7, 8, 9, 49])
    np.testing.assert_array_equal(blocks.take(rows), GROUPS[rows])
    assert blocks.take(rows[:0]).shape == (0, 3)


@pytest.mark.parametrize("own", [Own(), WithTake()])
def test_fits_are_those_of_the_array(own):
    model = kplus.DPMeans(penalty=30, random_state=0)
    found = model.fit(own).labels_.copy()
    np.testing.assert_array_equal(found, model.fit(GROUPS).labels_)
    np.testing.assert_array_equal(model.predict(own), found)


def test_names_are_noted():
    model = kplus.DPMeans(penalty=30, random_state=0).fit(WithTake())
    assert list(model.feature_names_in_) == ["x", "y", "z"]


def test_which_objects_are_blocks():
    assert looks_like_blocks(Own())
    assert not looks_like_blocks(GROUPS)
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
