"""Blocks: the same rows in the same order, whatever they are cut from."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kplus.core.errors import DataError
from kplus.core.types import Block
from kplus.data.blocks import (
    ArrayBlocks,
    FrameBlocks,
    SparseBlocks,
    default_block_rows,
)
from kplus.data.files import open_files
from kplus.data.open import open_numbers

X = np.round(np.random.default_rng(0).normal(size=(23, 3)), 3)
X[X < -0.5] = 0.0

SOURCES = {
    "array": lambda rows: ArrayBlocks(X, rows),
    "fortran": lambda rows: ArrayBlocks(np.asfortranarray(X), rows),
    "strided": lambda rows: ArrayBlocks(np.repeat(X, 2, axis=1)[:, ::2], rows),
    "csr_matrix": lambda rows: SparseBlocks(sp.csr_matrix(X), rows),
    "csc_array": lambda rows: SparseBlocks(sp.csc_array(X), rows),
    "pandas": lambda rows: FrameBlocks(pd.DataFrame(X, columns=list("abc")), rows),
    "polars": lambda rows: FrameBlocks(pl.DataFrame(X, schema=list("abc")), rows),
    "arrow": lambda rows: FrameBlocks(
        pl.DataFrame(X, schema=list("abc")).to_arrow(), rows
    ),
}
every_source = pytest.mark.parametrize("kind", SOURCES)


@every_source
@pytest.mark.parametrize("block_rows", [1, 4, 23, 100, None])
def test_blocks_put_together_are_the_table(kind, block_rows):
    blocks = SOURCES[kind](block_rows)
    assert (blocks.n_rows, blocks.n_features) == X.shape
    n_blocks = -(-blocks.n_rows // blocks.block_rows)
    parts = [blocks.read(i) for i in range(n_blocks)]
    np.testing.assert_array_equal(np.concatenate(parts), X)
    for part in parts:
        assert part.flags.c_contiguous
        assert part.dtype == np.float64
    assert all(len(part) == blocks.block_rows for part in parts[:-1])


@every_source
@pytest.mark.parametrize("rows", [[], [0], [22], [3, 4, 5], [0, 7, 8, 22]])
def test_take(kind, rows):
    rows = np.array(rows, dtype=np.int64)
    taken = SOURCES[kind](4).take(rows)
    np.testing.assert_array_equal(taken, X[rows])
    assert taken.shape == (len(rows), 3)
    assert taken.flags.c_contiguous


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.float16, np.float64),
        (np.int8, np.float64),
        (np.uint64, np.float64),
        (np.bool_, np.float64),
        (np.longdouble, np.float64),
        (">f4", np.float64),
        (">f8", np.float64),
    ],
)
def test_numbers_become_floats(dtype, expected):
    rows = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    read = ArrayBlocks(rows).read(0)
    assert read.dtype == expected
    assert read.dtype.isnative
    np.testing.assert_array_equal(read, rows.astype(float))


def test_an_array_is_not_copied():
    assert np.shares_memory(ArrayBlocks(X, 10).read(1), X)


def test_a_read_only_array_stays_so():
    frozen = X.copy()
    frozen.flags.writeable = False
    assert not ArrayBlocks(frozen, 10).read(0).flags.writeable


def test_nulls_of_all_kinds_become_nan():
    frames = [
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
        pd.DataFrame({"a": [1.0, np.nan]}),
        pl.DataFrame({"a": [1, None]}),
        pl.DataFrame({"a": [1.0, float("nan")]}),
        pl.DataFrame({"a": [1, None]}).to_arrow(),
    ]
    for frame in frames:
        np.testing.assert_array_equal(FrameBlocks(frame).read(0), [[1.0], [np.nan]])


def test_booleans_and_small_integers_are_numbers():
    frame = pl.DataFrame({"a": [True, False], "b": pl.Series([1, 2], dtype=pl.UInt8)})
    np.testing.assert_array_equal(FrameBlocks(frame).read(0), [[1, 1], [0, 2]])


@pytest.mark.parametrize("column", [["x", "y"], [b"x", b"y"], [[1], [2]]])
def test_other_columns_are_refused_by_name(column):
    with pytest.raises(DataError, match="'bad'"):
        open_numbers(pl.DataFrame({"good": [1, 2], "bad": column}))


def test_feature_names():
    assert SOURCES["polars"](4).feature_names == ["a", "b", "c"]
    assert FrameBlocks(pd.DataFrame(X)).feature_names == ["0", "1", "2"]


@given(st.integers(1, 10**7))
def test_default_blocks_fit_the_cache(n_features):
    rows = default_block_rows(n_features)
    assert rows & (rows - 1) == 0
    assert 32 <= rows <= 65536
    assert rows == 32 or rows * n_features * 8 <= 8 * 2**20


def test_a_block_reads_and_takes_its_own_rows():
    source = ArrayBlocks(X, 10)
    block = Block(source, 1, 10, 20)
    assert block.n_rows == 10
    np.testing.assert_array_equal(block.read(), X[10:20])
    np.testing.assert_array_equal(block.take(np.array([0, 9])), X[[10, 19]])


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_mapped_files_are_let_go_and_read_again(tmp_path, monkeypatch, order):
    monkeypatch.setattr("kplus.data.blocks._SPAN_BYTES", 0)
    X = np.random.default_rng(0).normal(size=(20_000, 16))
    np.save(tmp_path / "x.npy", np.asarray(X, order=order))
    blocks = open_files(tmp_path / "x.npy").cut(3_000)
    rows = np.sort(np.random.default_rng(1).choice(20_000, 3_500, replace=False))
    np.testing.assert_array_equal(blocks.take(rows), X[rows])
    first = blocks.read(1)
    blocks.release(0, 20_000)
    blocks.release(10, 11)
    np.testing.assert_array_equal(first, X[3_000:6_000])
    np.testing.assert_array_equal(blocks.take(rows), X[rows])
