"""Blocks that are made of others: less an offset."""

import numpy as np
import pytest
import scipy.sparse as sp

from kplus.data.blocks import ArrayBlocks, SparseBlocks
from kplus.data.wrapped import ShiftedBlocks

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
