"""Zarr arrays: chunks, shards, both formats, and words for what is no matrix."""

import json
import pickle

import numpy as np
import pytest

from kplus import DPMeans, DPMixture
from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.data.files import open_files
from kplus.data.open import number_blocks

zarr = pytest.importorskip("zarr")

X = np.random.default_rng(0).normal(size=(57, 5))
X[30:] += 12.0


def write(path, rows=X, chunks=(8, 5), **more):
    """Write rows as a Zarr array; return its path."""
    array = zarr.create_array(
        store=str(path), shape=rows.shape, dtype=rows.dtype, chunks=chunks, **more
    )
    array[...] = rows
    return path


@pytest.fixture(
    params=[
        {},
        {"chunks": (57, 5)},
        {"chunks": (100, 7)},
        {"chunks": (8, 2)},
        {"chunks": (1, 1)},
        {"chunks": (4, 5), "shards": (16, 5)},
        {"chunks": (4, 2), "shards": (8, 4)},
        {"zarr_format": 2},
        {"zarr_format": 2, "chunks": (8, 3)},
        {"compressors": None},
    ],
    ids=str,
)
def path(request, tmp_path):
    return write(tmp_path / "X.zarr", **request.param)


class TestRows:
    @pytest.mark.parametrize("block_rows", [1, 7, 29, 1000, None])
    def test_are_those_written(self, path, block_rows):
        blocks = number_blocks(open_files(path), block_rows)
        assert (blocks.n_rows, blocks.n_features) == X.shape
        np.testing.assert_array_equal(read_all(blocks), X)
        rows = np.array([0, 7, 8, 9, 31, 32, 56])
        np.testing.assert_array_equal(blocks.take(rows), X[rows])
        assert blocks.take(rows[:0]).shape == (0, 5)

    def test_are_not_pickled(self, path):
        blocks = number_blocks(open_files(path), 7)
        assert blocks.remote
        pickled = pickle.dumps(blocks)
        np.testing.assert_array_equal(read_all(pickle.loads(pickled)), X)

    @pytest.mark.parametrize("model", [DPMeans(penalty=40.0), DPMixture()], ids=repr)
    @pytest.mark.parametrize("shards", [None, (16, 4)])
    def test_fits_are_those_of_the_array(self, tmp_path, model, shards):
        path = write(tmp_path / "X.zarr", chunks=(8, 2), shards=shards)
        model.set_params(random_state=0, batch_size=16)
        found = model.fit(path).labels_.copy()
        measure = model.fit_report_.n_rows, model._history.tobytes()
        np.testing.assert_array_equal(found, model.fit(X).labels_)
        assert measure == (57, model._history.tobytes())
        np.testing.assert_array_equal(model.predict(str(path)), found)

    def test_are_read_without_the_suffix(self, tmp_path):
        blocks = open_files(write(tmp_path / "plain"))
        np.testing.assert_array_equal(read_all(blocks), X)

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [
            ("float32", "float32"),
            ("float16", "float64"),
            ("int8", "float64"),
            ("uint64", "float64"),
            ("bool", "float64"),
            (">f8", "float64"),
        ],
    )
    def test_of_other_types_are_floats(self, tmp_path, kind, expected):
        rows = np.abs(X * 3).astype(kind)
        found = read_all(open_files(write(tmp_path / "X.zarr", rows)))
        assert found.dtype == expected
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, rows.astype(expected))

    def test_that_were_never_written_have_the_fill_value(self, tmp_path):
        zarr.create_array(
            store=str(tmp_path / "X.zarr"),
            shape=(9, 2),
            chunks=(4, 2),
            dtype="f8",
            fill_value=7.0,
        )
        found = read_all(open_files(tmp_path / "X.zarr"))
        np.testing.assert_array_equal(found, np.full((9, 2), 7.0))


class TestMistakes:
    def test_columns_have_no_names(self, tmp_path):
        with pytest.raises(DataError, match=r"no names of columns.*'a'"):
            open_files(write(tmp_path / "X.zarr"), columns=["a"])

    def test_several_arrays(self, tmp_path):
        for name in "ab":
            write(tmp_path / f"{name}.zarr")
        with pytest.raises(DataError, match="give one Zarr array"):
            open_files(tmp_path)

    def test_a_group(self, tmp_path):
        group = zarr.create_group(store=str(tmp_path / "X.zarr"))
        group.create_array("inside", data=X)
        with pytest.raises(DataError, match=r"X\.zarr cannot be read as a Zarr array"):
            open_files(tmp_path / "X.zarr")
        np.testing.assert_array_equal(
            read_all(open_files(tmp_path / "X.zarr" / "inside")), X
        )

    @pytest.mark.parametrize(
        ("rows", "chunks", "message"),
        [
            (X[:, 0].copy(), (8,), "1 dimensions; a matrix"),
            (X[None], (1, 8, 5), "3 dimensions; a matrix"),
            (np.zeros((0, 5)), (8, 5), r"no data: its shape is \(0, 5\)"),
            (np.zeros((5, 0)), (8, 1), r"no data: its shape is \(5, 0\)"),
            (X.astype(complex), (8, 5), "complex128, not real numbers"),
            (X.astype("U8"), (8, 5), "not real numbers"),
            (X.astype("M8[s]"), (8, 5), "not real numbers"),
        ],
        ids=lambda value: str(getattr(value, "dtype", value))[:20],
    )
    @pytest.mark.filterwarnings("ignore:The data type")  # zarr: text is not settled
    def test_no_matrix_of_numbers(self, tmp_path, rows, chunks, message):
        with pytest.raises(DataError, match=message):
            open_files(write(tmp_path / "X.zarr", rows, chunks))

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"zarr_format": 3}'])
    def test_a_damaged_description(self, tmp_path, text):
        write(tmp_path / "X.zarr")
        (tmp_path / "X.zarr" / "zarr.json").write_text(text)
        with pytest.raises(DataError, match="cannot be read as a Zarr array"):
            open_files(tmp_path / "X.zarr")

    @pytest.mark.parametrize("content", [b"", b"garbage", b"\0" * 500])
    def test_a_damaged_chunk(self, tmp_path, content):
        path = write(tmp_path / "X.zarr")
        blocks = number_blocks(open_files(path), 8)
        (path / "c" / "2" / "0").write_bytes(content)
        np.testing.assert_array_equal(blocks.read(0), X[:8])
        with pytest.raises(DataError, match=r"Rows from 16 on of .*X\.zarr"):
            blocks.read(2)
        with pytest.raises(DataError, match="damaged"):
            DPMeans(penalty=40.0).fit(path)

    @pytest.mark.parametrize(
        ("shape", "chunks", "message"),
        [
            ([10**15, 5], [8, 5], "125,000,000,000,000 chunks"),
            ([57, 10**18], [8, 5], f"{10**18:,} columns"),
            ([57, 10**18], [8, 10**18], f"{10**18:,} columns"),
        ],
    )
    def test_more_than_there_can_be(self, tmp_path, shape, chunks, message):
        """Sizes that are not true must not fill the memory."""
        path = write(tmp_path / "X.zarr")
        note = json.loads((path / "zarr.json").read_text())
        note["shape"] = shape
        note["chunk_grid"]["configuration"]["chunk_shape"] = chunks
        (path / "zarr.json").write_text(json.dumps(note))
        with pytest.raises(DataError, match=message):
            open_files(path)

    @pytest.mark.parametrize("chunks", [[0, 5], [8, 0]])
    def test_chunks_without_rows_or_columns(self, tmp_path, chunks):
        path = write(tmp_path / "X.zarr", zarr_format=2)
        note = json.loads((path / ".zarray").read_text()) | {"chunks": chunks}
        (path / ".zarray").write_text(json.dumps(note))
        with pytest.raises(DataError, match="holds no data"):
            open_files(path)
