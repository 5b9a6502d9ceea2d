"""Whatever users pass is opened in one place, to the same rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import kplus
from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.data.open import Coder, is_stored, open_data, open_numbers, row_slices

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

X = np.random.default_rng(0).normal(size=(40, 3)).round(3)
NAMES = ["a", "b", "c"]


class Own:
    """Blocks as they are documented: `take` may be missing."""

    n_rows, n_features, block_rows = 40, 3, 8

    def read(self, index):
        return X[index * 8 : (index + 1) * 8]


def in_memory(folder):
    yield X
    yield X.tolist()
    yield sp.csr_array(X)
    yield sp.coo_matrix(X)
    yield pd.DataFrame(X, columns=NAMES)
    yield pl.DataFrame(X, schema=NAMES)
    yield pa.table(dict(zip(NAMES, X.T, strict=True)))


def stored(folder):
    np.save(folder / "x.npy", X)
    pd.DataFrame(X, columns=NAMES).to_csv(folder / "x.csv", index=False)
    table = pa.table(dict(zip(NAMES, X.T, strict=True)))
    pq.write_table(table, folder / "x.parquet", row_group_size=16)
    kplus.convert(folder / "x.csv", folder / "rows")
    for name in ("x.npy", "x.csv", "x.parquet", "rows"):
        yield folder / name
        yield str(folder / name)
        yield kplus.open_files(folder / name)
    yield Own()
    da = pytest.importorskip("dask.array")
    yield da.from_array(X, chunks=(16, 3))


@pytest.mark.parametrize("make", [in_memory, stored])
def test_rows(make, tmp_path):
    for data in make(tmp_path):
        blocks = open_numbers(data)
        np.testing.assert_array_equal(read_all(blocks), X)
        rows = np.array([0, 7, 8, 39])
        np.testing.assert_array_equal(blocks.take(rows), X[rows])
        mixed, coding = Coder().open(data)
        assert coding is None
        np.testing.assert_array_equal(read_all(mixed), X)
        assert is_stored(data) == (make is stored)


def test_what_is_open_stays_as_it_is(tmp_path):
    for data in (*in_memory(tmp_path), *stored(tmp_path)):
        table = open_data(data)
        assert open_data(table) is table


def test_slices_are_of_the_same_kind(tmp_path):
    for data in in_memory(tmp_path):
        n_rows, parts = row_slices(data, 16)
        parts = list(parts)
        assert n_rows == 40
        assert {type(part) for part in parts} <= {type(data), sp.csr_matrix}
        found = [read_all(open_numbers(part)) for part in parts]
        np.testing.assert_array_equal(np.concatenate(found), X)
        assert len(parts) == (1 if isinstance(data, list) else 3)


def test_frames_of_text_are_no_numbers():
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    with pytest.raises(DataError, match="'b' holds String, not numbers"):
        open_numbers(frame)
