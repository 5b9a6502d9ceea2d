"""Arrow files: compressed or not, mapped for as long as needed, and other formats."""

import gc
import pickle

import numpy as np
import pytest

from every_estimator import assert_same_attributes, mixed_rows
from kplus import CRAFT, DPMeans
from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.data.files import open_files
from kplus.data.open import number_blocks

pa = pytest.importorskip("pyarrow")
ipc = pytest.importorskip("pyarrow.ipc")

X = np.random.default_rng(0).normal(size=(57, 3))
X[30:] += 12.0
TABLE = pa.table(dict(zip("abc", X.T.copy(), strict=True)))


def write(path, table=TABLE, compression=None, rows=8, make=ipc.new_file):
    options = ipc.IpcWriteOptions(compression=compression)
    with make(str(path), table.schema, options=options) as out:
        out.write_table(table, max_chunksize=rows)
    return path


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
class TestRows:
    @pytest.fixture
    def path(self, tmp_path, compression):
        return write(tmp_path / "X.arrow", compression=compression)

    @pytest.mark.parametrize("block_rows", [1, 7, 1000, None])
    def test_are_those_written(self, path, block_rows):
        blocks = number_blocks(open_files(path), block_rows)
        np.testing.assert_array_equal(read_all(blocks), X)
        rows = np.array([0, 7, 8, 56])
        np.testing.assert_array_equal(blocks.take(rows), X[rows])

    def test_last_longer_than_the_table(self, path):
        """Columns without a copy refer to a file that was closed long ago."""
        column = open_files(path).column(1, "b")
        gc.collect()
        np.testing.assert_array_equal(column.to_numpy(), X[8:16, 1])
        first = number_blocks(open_files(path), 8).read(1)
        gc.collect()
        np.testing.assert_array_equal(first, X[8:16])

    def test_last_longer_than_the_file(self, path):
        column = open_files(path).column(1, "b")
        path.unlink()
        np.testing.assert_array_equal(column.to_numpy(), X[8:16, 1])

    def test_are_gone_with_the_file(self, path):
        blocks = number_blocks(open_files(path), 8)
        path.unlink()
        with pytest.raises(FileNotFoundError):
            blocks.read(0)

    def test_may_be_read_elsewhere(self, path):
        blocks = number_blocks(open_files(path), 8)
        assert blocks.remote
        np.testing.assert_array_equal(read_all(pickle.loads(pickle.dumps(blocks))), X)

    def test_with_categories(self, tmp_path, compression):
        frame, _ = mixed_rows(80)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        path = write(tmp_path / "mixed.arrow", table, compression, rows=9)
        model = CRAFT(random_state=0, batch_size=32)
        other = CRAFT(random_state=0, batch_size=32).fit(frame)
        assert_same_attributes(model.fit(path), other)


def test_no_batch_at_all(tmp_path):
    path = write(tmp_path / "X.arrow", TABLE.slice(0, 0))
    with pytest.raises(DataError, match="columns but no rows"):
        open_files(path)


def test_empty_batches(tmp_path):
    path = tmp_path / "X.arrow"
    with ipc.new_file(str(path), TABLE.schema) as out:
        for part in (slice(0, 0), slice(0, 20), slice(20, 20), slice(20, 57)):
            out.write(pa.record_batch(dict(zip("abc", X[part].T.copy(), strict=True))))
    np.testing.assert_array_equal(read_all(number_blocks(open_files(path))), X)


def test_streams_are_another_format(tmp_path):
    path = write(tmp_path / "X.arrow", make=ipc.new_stream)
    with pytest.raises(DataError, match=r"Arrow stream.*new_file"):
        open_files(path)


def test_the_first_feather_is_another_format(tmp_path):
    (tmp_path / "X.feather").write_bytes(b"FEA1" + b"\0" * 64 + b"FEA1")
    with pytest.raises(DataError, match="of another format"):
        open_files(tmp_path / "X.feather")


def test_a_file_that_changes_under_way(tmp_path):
    path = write(tmp_path / "X.arrow")
    blocks = number_blocks(open_files(path), 8)
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(DataError, match=r"X\.arrow"):
        DPMeans(penalty=40.0).fit(blocks)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_damaged_compression(tmp_path, compression):
    path = write(tmp_path / "X.arrow", compression=compression)
    content = bytearray(path.read_bytes())
    place = content.find(
        b"\x28\xb5\x2f\xfd" if compression == "zstd" else b"\x04\x22\x4d"
    )
    assert place > 0
    content[place : place + 4] = b"????"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"X\.arrow cannot be read as an Arrow file"):
        read_all(number_blocks(open_files(path)))


def test_damaged_offsets_of_text(tmp_path):
    """Arrow itself would go where they point, and crash."""
    words = pa.table({"word": [f"w{i:02d}" for i in range(20)]})
    path = write(tmp_path / "X.arrow", words, rows=20)
    content = path.read_bytes()
    offsets = np.arange(0, 63, 3, dtype="<i4").tobytes()
    assert content.count(offsets) == 1
    wrong = np.arange(0, 63, 3, dtype="<i4")
    wrong[5:] += 10**9
    path.write_bytes(content.replace(offsets, wrong.tobytes()))
    with pytest.raises(DataError, match=r"X\.arrow cannot be read as an Arrow file"):
        CRAFT().fit(path)


@pytest.mark.parametrize("note", [b"{", b"[]", b"3", b'{"index_columns": 3}', b"\xff"])
def test_a_note_of_pandas_that_makes_no_sense(tmp_path, note):
    path = write(tmp_path / "X.arrow", TABLE.replace_schema_metadata({"pandas": note}))
    np.testing.assert_array_equal(read_all(number_blocks(open_files(path))), X)


@pytest.mark.parametrize("coded", [False, True])
def test_text_that_is_not_utf8(tmp_path, coded):
    """As written by programs that do not care."""
    pq = pytest.importorskip("pyarrow.parquet")
    raw = pa.array([b"r\xf8d", b"blue"] * 5)
    words = pa.StringArray.from_buffers(10, *raw.buffers()[1:])
    table = pa.table({"word": words.dictionary_encode() if coded else words})
    write(tmp_path / "X.arrow", table)
    pq.write_table(table, tmp_path / "X.parquet")
    for name in ("X.arrow", "X.parquet"):
        with pytest.raises(DataError, match=f"{name} cannot be read.*UTF"):
            CRAFT().fit(tmp_path / name)


def test_names_that_are_not_utf8(tmp_path):
    path = write(tmp_path / "X.arrow", pa.table({"breadth": X[:, 0]}))
    path.write_bytes(path.read_bytes().replace(b"breadth", b"brea\xfeth"))
    with pytest.raises(DataError, match=r"X\.arrow cannot be read as an Arrow file"):
        open_files(path)
