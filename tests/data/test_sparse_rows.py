"""Sparse rows by pairs of column and value, against the same rows with their zeros."""

import numpy as np
import pytest
import scipy.sparse as sp

from kplus.data.blocks import ArrayBlocks, SparseBlocks
from kplus.data.sparse_rows import SparseRowBlocks, SparseRows, blocks_of


def table(seed=0, n=9, D=5):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.6, (n, D)).astype(float)
    X[2] = 0.0  # a row of zeros
    X[4] = X[5]
    X[7, 1] = np.nan
    return X


@pytest.mark.parametrize(
    "make", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_matrix, sp.lil_array]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_are_those_of_the_table(make, dtype):
    X = table()
    rows = SparseRows.of(make(X.astype(dtype)))
    assert (len(rows), rows.shape) == (9, (9, 5))
    np.testing.assert_array_equal(rows.toarray(), X)
    np.testing.assert_array_equal(rows[3], X[3])
    np.testing.assert_array_equal(rows[::2].toarray(), X[::2])
    np.testing.assert_array_equal(rows[np.array([1, 2, 7])].toarray(), X[[1, 2, 7]])
    np.testing.assert_array_equal(rows[X[:, 0] > 0].toarray(), X[X[:, 0] > 0])


def test_the_same_entry_twice_explicit_zeros_and_no_order():
    data, columns = np.array([1, 2, 0, 5, 3]), np.array([2, 2, 1, 1, 0])
    X = sp.csr_array((data, columns, [0, 3, 5]), shape=(2, 3))
    rows = SparseRows.of(X)
    np.testing.assert_array_equal(rows.toarray(), [[0, 0, 3], [3, 5, 0]])
    np.testing.assert_array_equal(X.data, data)  # the user's table stays
    assert np.all(rows.values != 0)


def test_pairs_are_distinct_whichever_way_they_are_found():
    wild = sp.csr_array(np.diag(np.arange(1.0, 40.0)))  # more places than entries
    few = SparseRows.of(wild)
    assert len(few.values) == 39
    np.testing.assert_array_equal(few.toarray(), wild.toarray())


def test_order_is_lexical():
    X = np.nan_to_num(table(n=60, D=4))
    expected = np.lexsort(X.T[::-1])
    np.testing.assert_array_equal(SparseRows.of(sp.csr_array(X)).order(), expected)


def test_sums_over_columns():
    X, scale = table(), np.arange(1.0, 6.0)

    def function(x, columns):
        return (x + 1.0) ** 2 * scale[columns]

    each = function(X, slice(None))
    n_seen = (~np.isnan(each)).sum(axis=1)
    expected = np.nansum(each, axis=1) * 5 / n_seen
    found = SparseRows.of(sp.csr_array(X)).sums(function)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_blocks():
    X = table()
    blocks = SparseRowBlocks.of(SparseBlocks(sp.csr_array(X)))
    assert blocks.row_numbers == 1 + int(1.5 * np.count_nonzero(X) / 9)
    part = blocks.cut(4)
    np.testing.assert_array_equal(part.read(1).toarray(), X[4:8])
    np.testing.assert_array_equal(part.take(np.array([0, 8])).toarray(), X[[0, 8]])
    np.testing.assert_array_equal(blocks.dense().read(0), X)
    assert isinstance(blocks_of(part.read(0), 4), SparseRowBlocks)
    assert isinstance(blocks_of(X, 4), ArrayBlocks)
