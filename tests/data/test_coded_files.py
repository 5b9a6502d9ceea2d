"""Parquet files with categories stay on disk; codes and errors are those of a frame."""

import datetime
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest

from coded_tables import coded, coding_of
from kplus.core.errors import DataError
from kplus.data.categories import Coding
from kplus.data.files import open_files
from kplus.data.open import Coder

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

nan = np.nan


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """Blocks of small files are kept, those of large ones decoded anew."""
    if request.param == "large":
        monkeypatch.setattr("kplus.data.wrapped.CACHE_BYTES", 0)


def read_table(path):
    files = open_files(path)
    return files.read(files.names)


def write(folder, table, row_group_size=10):
    path = folder / "table.parquet"
    pq.write_table(pa.table(table), path, row_group_size=row_group_size)
    return path


def mixed_table(n_rows=107):
    rng = np.random.default_rng(0)
    colors = rng.choice(["red", "blue", "green", "é", ""], n_rows)
    absent = rng.random((n_rows, 4)) < 0.2
    return pa.table(
        {
            "size": pa.array(rng.normal(size=n_rows), mask=absent[:, 0]),
            "color": pa.array(colors, pa.string(), mask=absent[:, 1]),
            "large": pa.array(colors, pa.large_string()),
            "kind": pa.array(colors, mask=absent[:, 1]).dictionary_encode(),
            "warm": pa.array(rng.random(n_rows) < 0.5, mask=absent[:, 2]),
            "room": pa.array(rng.integers(7, 12, n_rows), mask=absent[:, 3]),
            "rank": pa.array(rng.integers(0, 300, n_rows), pa.int16()),
        }
    )


def all_rows(blocks):
    n_blocks = -(-blocks.n_rows // blocks.block_rows)
    return np.concatenate([blocks.read(i) for i in range(n_blocks)])


# ---------------------------------------------------------------- as in memory


@pytest.mark.parametrize("row_group_size", [10, 64, 1000])
@pytest.mark.parametrize("block_rows", [1, 7, 25, None])
def test_codes_are_those_of_the_table_in_memory(
    tmp_path, row_group_size, block_rows, size
):
    path = write(tmp_path, mixed_table(), row_group_size)
    coding = coding_of(path, ["room"])
    assert coding == coding_of(read_table(path), ["room"])
    blocks = coded(path, coding, block_rows)
    expected = coded(read_table(path), coding, block_rows)
    assert (blocks.n_rows, blocks.n_features) == (107, 7)
    assert blocks.block_rows == expected.block_rows
    assert blocks.feature_names == expected.feature_names
    np.testing.assert_array_equal(all_rows(blocks), all_rows(expected))
    rows = np.array([0, 9, 10, 11, 57, 106])
    np.testing.assert_array_equal(blocks.take(rows), expected.take(rows))
    assert blocks.read(0).flags.c_contiguous
    assert blocks.read(0).dtype == np.float64


@pytest.mark.parametrize("choice", [["room"], [5], np.arange(7) == 5])
def test_categorical_by_name_number_or_mask(tmp_path, choice):
    path = write(tmp_path, mixed_table())
    assert coding_of(path, choice).categories[5] == (7, 8, 9, 10, 11)
    assert coding_of(path).categories[5] is None


def test_categories_come_from_all_row_groups(tmp_path, size):
    kinds = [["b", "a"], ["c", "b"], ["a", None]]
    chunks = [pa.array(part).dictionary_encode() for part in kinds]
    table = {
        "text": [v for part in kinds for v in part],
        "kind": pa.chunked_array(chunks),
    }
    path = write(tmp_path, table, 2)
    coding = coding_of(path)
    assert coding.categories[0] == ("a", "b", "c")
    assert coding == coding_of(read_table(path))
    blocks = coded(path, coding, 4)
    expected = coded(read_table(path), coding)
    np.testing.assert_array_equal(all_rows(blocks), all_rows(expected))


def test_values_in_a_dictionary_that_do_not_occur(tmp_path):
    unused = pa.DictionaryArray.from_arrays(pa.array([1, 2]), pa.array(["c", "b", "a"]))
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"x": unused}), path, store_schema=False)
    assert coding_of(path).categories == (("a", "b"),)
    pq.write_table(pa.table({"x": unused}), path)
    assert coding_of(path).categories == (("c", "b", "a"),)


def test_declared_categories_of_pandas_and_polars(tmp_path, size):
    kinds = ["b", None, "a"]
    frame = pd.DataFrame({"x": pd.Categorical(kinds, categories=["c", "b", "a"])})
    frame.index = ["i", "j", "k"]
    frame.to_parquet(tmp_path / "pandas.parquet")
    coding = coding_of(tmp_path / "pandas.parquet")
    assert coding == Coding(("x",), (("c", "b", "a"),))
    codes = coded(tmp_path / "pandas.parquet", coding).read(0)
    np.testing.assert_array_equal(codes, [[1], [nan], [2]])
    enum = pl.Series("x", kinds, dtype=pl.Enum(["c", "b", "a"]))
    pl.DataFrame(enum).write_parquet(tmp_path / "polars.parquet")
    path = tmp_path / "polars.parquet"
    assert coding_of(path) == coding_of(read_table(path))


def test_threads_read_what_one_reads(tmp_path, size):
    path = write(tmp_path, mixed_table(2000), 150)
    coding = coding_of(path)
    blocks = coded(path, coding, 64)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(blocks.read, range(-(-2000 // 64))))
    np.testing.assert_array_equal(np.concatenate(parts), all_rows(blocks))


def test_memory_holds_one_row_group(tmp_path, monkeypatch):
    monkeypatch.setattr("kplus.data.wrapped.CACHE_BYTES", 0)
    path = write(tmp_path, mixed_table(400_000), 20_000)
    most = {}
    for n_groups in (5, 20):
        blocks = coded(path, coding_of(path), 20_000)
        before = pa.default_memory_pool().bytes_allocated()
        for index in range(n_groups):
            blocks.read(index)
        most[n_groups] = pa.default_memory_pool().bytes_allocated() - before
    assert most[20] <= most[5] + 2**20
    assert most[20] < 2**22


# ---------------------------------------------------------------- later files


CODING = Coding(("color", "size"), (("blue", "red"), None))


def test_unknown_categories(tmp_path, size):
    colors = ["red"] * 12 + ["pink", "blue"]
    path = write(tmp_path, {"color": colors, "size": range(14)}, 5)
    message = r"'color' holds 'pink' \(row 12\).*\('blue', 'red'\)"
    with pytest.raises(DataError, match=message):
        Coder(coding=CODING, block_rows=3).open(path)
    blocks, _ = Coder(coding=CODING, block_rows=3, unknown="missing").open(path)
    np.testing.assert_array_equal(all_rows(blocks)[11:], [[1, 11], [nan, 12], [0, 13]])


def test_columns_must_be_those_of_the_coding(tmp_path):
    path = write(tmp_path, {"size": [1.0], "color": ["red"]})
    with pytest.raises(DataError, match="not those of the fit"):
        coded(path, CODING)


def test_number_columns_must_hold_numbers(tmp_path):
    path = write(tmp_path, {"color": ["red"], "size": ["1"]})
    with pytest.raises(DataError, match="'size' holds String, but held numbers"):
        coded(path, CODING)


@pytest.mark.parametrize("dtype", [pa.null(), pa.string(), pa.date32()])
def test_after_the_fit_columns_may_be_missing_altogether(tmp_path, dtype, size):
    nothing = pa.nulls(15, dtype)
    path = write(tmp_path, {"color": nothing, "size": nothing}, 10)
    assert np.isnan(all_rows(coded(path, CODING))).all()


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([datetime.date(2024, 1, 1)], "holds Date, neither numbers"),
        ([datetime.datetime(2024, 1, 1)], "holds Datetime.*, neither numbers"),
        ([[1, 2]], "holds List.*, neither numbers"),
        ([{"a": 1}], "holds Struct.*, neither numbers"),
        ([b"a"], "holds Binary, neither numbers"),
        ([None], "holds no values"),
        (pa.nulls(1, pa.string()), "holds no values"),
        (pa.nulls(1, pa.date32()), "holds no values"),
    ],
)
def test_what_is_neither_number_nor_category(tmp_path, values, what):
    path = write(tmp_path, {"a": [1.0], "x": values})
    for find in (coding_of, lambda path: coding_of(read_table(path))):
        with pytest.raises(DataError, match=f"Column 'x' {what}"):
            find(path)


def test_files_cut_short_are_told(tmp_path):
    path = write(tmp_path, mixed_table())
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        coding_of(path)
