"""Files as blocks: same rows as in memory, and clear words for bad files."""

import gzip
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kplus.core.errors import DataError
from kplus.data.blocks import ArrayBlocks
from kplus.data.files import open_files
from kplus.data.open import number_blocks

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(107, 3))


def write(folder, kind, X):
    """Save a matrix as a file of some kind and return its path."""
    path = folder / f"data{kind}"
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    if kind == ".npy":
        np.save(path, X)
    elif kind == ".csv":
        frame.write_csv(path)
    elif kind == ".csv.gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    elif kind == ".arrow":
        with pa.OSFile(str(path), "wb") as file:
            table = frame.to_arrow()
            with pa.ipc.new_file(file, table.schema) as out:
                out.write_table(table, max_chunksize=10)
    else:
        pq.write_table(frame.to_arrow(), path, row_group_size=10)
    return path


def open_path(path, block_rows=None):
    return number_blocks(open_files(path), block_rows)


def all_rows(blocks):
    n_blocks = -(-blocks.n_rows // blocks.block_rows)
    return np.concatenate([blocks.read(i) for i in range(n_blocks)])


KINDS = [".npy", ".parquet", ".pq", ".arrow", ".csv", ".csv.gz"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_rows", [1, 7, 10, 25, 107, 1000, None])
def test_blocks_are_those_of_the_array(tmp_path, X, kind, block_rows):
    blocks = open_path(write(tmp_path, kind, X), block_rows)
    expected = ArrayBlocks(X, block_rows)
    assert (blocks.n_rows, blocks.n_features) == X.shape
    assert blocks.block_rows == expected.block_rows
    for i in range(-(-107 // blocks.block_rows)):
        block = blocks.read(i)
        assert block.flags.c_contiguous
        np.testing.assert_array_equal(block, expected.read(i))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "rows", [[], [0], [106], [3, 4, 5], [0, 9, 10, 11, 57, 106], list(range(107))]
)
def test_take_gives_the_rows_asked_for(tmp_path, X, kind, rows):
    blocks = open_path(write(tmp_path, kind, X), 8)
    rows = np.array(rows, dtype=np.intp)
    np.testing.assert_array_equal(blocks.take(rows), X[rows])


@pytest.mark.parametrize("kind", [".parquet", ".csv"])
def test_feature_names(tmp_path, X, kind):
    assert open_path(write(tmp_path, kind, X)).feature_names == ["a", "b", "c"]


def test_path_may_be_text_and_suffix_in_capitals(tmp_path, X):
    path = write(tmp_path, ".npy", X).rename(tmp_path / "DATA.NPY")
    np.testing.assert_array_equal(all_rows(open_path(str(path))), X)


class TestMissing:
    @pytest.mark.parametrize("name", ["gone.npy", "gone.csv", "gone.pq", "gone.xyz"])
    def test_file(self, tmp_path, name):
        with pytest.raises(FileNotFoundError, match="gone"):
            open_path(tmp_path / name)

    def test_folder(self, tmp_path):
        (tmp_path / "x.parquet").mkdir()
        with pytest.raises(DataError, match="empty folder"):
            open_path(tmp_path / "x.parquet")

    def test_suffix(self, tmp_path):
        (tmp_path / "x.sav").write_text("")
        with pytest.raises(DataError, match=r"\.npy, \.parquet, .* \.csv"):
            open_path(tmp_path / "x.sav")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_pipe_does_not_hang(self, tmp_path):
        os.mkfifo(tmp_path / "x.csv")
        with pytest.raises(DataError, match="regular file"):
            open_path(tmp_path / "x.csv")


class TestNpy:
    @pytest.mark.parametrize("dtype", ["f4", ">f8", "f2", "i8", "u1", "?"])
    def test_number_types(self, tmp_path, dtype):
        X = np.arange(12).reshape(6, 2).astype(dtype)
        np.save(tmp_path / "x.npy", X)
        block = open_path(tmp_path / "x.npy").read(0)
        assert block.dtype == (np.float32 if dtype == "f4" else np.float64)
        np.testing.assert_array_equal(block, X)

    def test_fortran_order(self, tmp_path, X):
        np.save(tmp_path / "x.npy", np.asfortranarray(X))
        np.testing.assert_array_equal(all_rows(open_path(tmp_path / "x.npy", 8)), X)

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros(5), "1 dimensions"),
            (np.zeros((2, 2, 2)), "3 dimensions"),
            (np.zeros((2, 2), complex), "complex128"),
            (np.array([["a", "b"]]), "not real numbers"),
            (np.zeros((2, 2), "M8[s]"), "datetime64"),
            (np.zeros((0, 3)), "no data"),
            (np.zeros((3, 0)), "no data"),
            (np.array([[1, None]], dtype=object), "no plain array"),
        ],
    )
    def test_unsuitable_arrays(self, tmp_path, array, message):
        np.save(tmp_path / "x.npy", array)
        with pytest.raises(DataError, match=message):
            open_path(tmp_path / "x.npy")

    @pytest.mark.parametrize("size", [0, 3, 60, 130, 500])
    def test_truncated(self, tmp_path, X, size):
        path = write(tmp_path, ".npy", X)
        path.write_bytes(path.read_bytes()[:size])
        with pytest.raises(DataError, match=r"data\.npy"):
            open_path(path)

    def test_other_formats(self, tmp_path):
        np.savez(tmp_path / "x.npz", X=np.zeros((2, 2)))
        (tmp_path / "x.npz").rename(tmp_path / "x.npy")
        with pytest.raises(DataError, match=r"cannot be read as \.npy"):
            open_path(tmp_path / "x.npy")


class TestParquet:
    def test_nulls_become_nan(self, tmp_path):
        table = pa.table(
            {
                "i": pa.array([1, None, 3]),
                "f": pa.array([None, 2.5, float("nan")]),
                "b": pa.array([True, None, False]),
                "d": pa.array([1, 2, None], pa.decimal128(5, 2)),
            }
        )
        pq.write_table(table, tmp_path / "x.parquet")
        n = np.nan
        np.testing.assert_array_equal(
            open_path(tmp_path / "x.parquet").read(0),
            [[1, n, 1, 1], [n, 2.5, n, 2], [3, n, 0, n]],
        )

    def test_float32_stays_float32(self, tmp_path, X):
        path = write(tmp_path, ".parquet", X.astype(np.float32))
        blocks = open_path(path, 8)
        assert blocks.read(0).dtype == blocks.take(np.array([1, 2])).dtype == np.float32
        np.testing.assert_array_equal(all_rows(blocks), X.astype(np.float32))

    def test_threads_read_the_same(self, tmp_path, X):
        blocks = open_path(write(tmp_path, ".parquet", X), 7)
        order = np.random.default_rng(1).permutation(16).tolist() * 3
        with ThreadPoolExecutor(4) as pool:
            for i, block in zip(order, pool.map(blocks.read, order), strict=True):
                np.testing.assert_array_equal(block, X[i * 7 : (i + 1) * 7])

    def test_blocks_cannot_be_written_to(self, tmp_path, X):
        block = open_path(write(tmp_path, ".parquet", X), 5).read(0)
        with pytest.raises(ValueError, match="read-only"):
            block[0, 0] = 1

    def test_a_walk_decodes_each_group_once(self, tmp_path, X, monkeypatch):
        blocks = open_path(write(tmp_path, ".parquet", X), 7)
        decoded = []
        decode = blocks.decode
        monkeypatch.setattr(blocks, "decode", lambda i: decoded.append(i) or decode(i))
        all_rows(blocks)
        assert decoded == list(range(11))

    def test_index_of_pandas_is_no_feature(self, tmp_path):
        frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index([7, 8], name="id"))
        frame.to_parquet(tmp_path / "x.parquet")
        blocks = open_path(tmp_path / "x.parquet")
        assert blocks.feature_names == ["a"]

    def test_dotted_names(self, tmp_path):
        table = pa.table({"a": [1.0], "a.b": [2.0], "b": [3.0]})
        pq.write_table(table, tmp_path / "x.parquet")
        np.testing.assert_array_equal(
            open_path(tmp_path / "x.parquet").read(0), [[1, 2, 3]]
        )

    @pytest.mark.parametrize(
        "column",
        [
            pa.array(["x"]),
            pa.array([[1.0]]),
            pa.array([{"u": 1}]),
            pa.array([0], pa.timestamp("s")),
            pa.array(["x"]).dictionary_encode(),
            pa.array([None]),
        ],
        ids=lambda column: str(column.type).split("<")[0],
    )
    def test_refuses_other_columns_by_name(self, tmp_path, column):
        pq.write_table(pa.table({"a": [1.0], "t": column}), tmp_path / "x.parquet")
        with pytest.raises(DataError, match="'t'"):
            open_path(tmp_path / "x.parquet")

    def test_same_name_twice(self, tmp_path):
        table = pa.Table.from_arrays([pa.array([1.0])] * 2, names=["a", "a"])
        pq.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(DataError, match="2 columns called 'a'"):
            open_path(tmp_path / "x.parquet")

    def test_no_rows_or_columns(self, tmp_path):
        pq.write_table(pa.table({"a": pa.array([], "f8")}), tmp_path / "x.parquet")
        with pytest.raises(DataError, match="no rows"):
            open_path(tmp_path / "x.parquet")
        pq.write_table(pa.table({}), tmp_path / "y.parquet")
        with pytest.raises(DataError, match="no columns"):
            open_path(tmp_path / "y.parquet")

    @pytest.mark.parametrize("size", [0, 10, 400])
    def test_truncated(self, tmp_path, X, size):
        path = write(tmp_path, ".parquet", X)
        path.write_bytes(path.read_bytes()[:size])
        with pytest.raises(DataError, match="cannot be read as Parquet"):
            open_path(path)

    def test_damage_inside(self, tmp_path, X):
        path = write(tmp_path, ".parquet", X)
        content = bytearray(path.read_bytes())
        content[4:40] = b"\xff" * 36
        path.write_bytes(content)
        blocks = open_path(path)
        with pytest.raises(DataError, match="damaged"):
            blocks.read(0)


class TestCsv:
    def read(self, folder, content, name="x.csv"):
        path = folder / name
        path.write_bytes(content)
        blocks = open_path(path)
        return blocks.feature_names, blocks.read(0).tolist()

    @pytest.mark.parametrize(
        "content",
        [
            b"a,b\n1,2\n3,4\n",
            b"a,b\r\n1,2\r\n3,4",
            b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
            b"\na , b\n1,2\n\n3,4\n\n",
            b",a,b\nr1,1,2\nr2,3,4\n",
            b'"a","b"\n"1",2\n3,4.0\n',
        ],
        ids=["plain", "windows", "bom", "empty lines", "row names", "quotes"],
    )
    def test_dialects(self, tmp_path, content):
        assert self.read(tmp_path, content) == (["a", "b"], [[1, 2], [3, 4]])

    def test_missing_values(self, tmp_path):
        _, rows = self.read(tmp_path, b"a,b\n1,\nNA,2\n")
        np.testing.assert_array_equal(rows, [[1, np.nan], [np.nan, 2]])

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (b"\n\n", "is empty"),
            (b"a,b\n", "no rows"),
            (b"a,b", "no rows"),
            (b"a,b\n1,2\n3\n", "Line 3 .* 2 fields expected .* 1 found"),
            (b"a,b\n1,2\n\n3,4,5\n", "Line 4 .* 3 found"),
            (b'a,b\n1,"2\n3,4\n', "'b'"),
            (b"a,a\n1,2\n", "2 columns called 'a'"),
            (b"a,,b\n1,2,3\n", "Column 2 .* no name"),
            (b"a,b\n1,x\n", "'b'"),
            (b"a,b\n1,2024-01-01\n", "'b'"),
        ],
    )
    def test_bad_files(self, tmp_path, content, message):
        with pytest.raises(DataError, match=message):
            self.read(tmp_path, content)

    @pytest.mark.parametrize(
        "content", [gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], b"a\n1\n"]
    )
    def test_bad_compression(self, tmp_path, content):
        with pytest.raises(DataError, match="damaged"):
            self.read(tmp_path, content, "x.csv.gz")


# ---------------------------------------------------------------- tables with text


def test_csv_with_text(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text(",size,color,code\n0,1.5,red,01\n1,,,02\n2,2,NA,\n")
    files = open_files(path, text=["code"])
    assert files.index_names == [""]
    assert files.read(files.names).to_pydict() == {
        "size": [1.5, None, 2.0],
        "color": ["red", None, "NA"],
        "code": ["01", "02", None],
    }


def test_parquet_with_text(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "color": ["red", None]}, index=["i", "j"])
    frame.to_parquet(tmp_path / "mixed.parquet")
    files = open_files(tmp_path / "mixed.parquet")
    table = files.read(files.names)
    assert table.to_pydict() == {"x": [1.0, 2.0], "color": ["red", None]}
