"""Columns as text, and columns of nothing as missing numbers, piece by piece."""

import pickle

import pytest

from kplus.data.files import open_files

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from kplus.data.arrow import as_missing, as_text  # noqa: E402


@pytest.fixture
def files(tmp_path):
    table = pa.table(
        {
            "id": [f"r{i}" for i in range(7)],
            "code": [7, None, 9, 7, 7, 8, 10],
            "color": ["red", "blue", None, "red", "red", "blue", "blue"],
            "none": pa.nulls(7),
            "blank": pa.nulls(7, pa.string()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=3)
    return open_files(tmp_path / "t.parquet")


def test_numbers_become_text(files):
    text = as_text(files, ["code", "color"])
    assert text.counts == files.counts == [3, 3, 1]
    found = text.read(["code"])["code"].to_pylist()
    assert found == ["7", None, "9", "7", "7", "8", "10"]
    assert text.column(1, "code", as_dictionary=True).type == pa.dictionary(
        pa.int32(), pa.string()
    )
    assert text.column(1, "color").equals(files.column(1, "color"))


def test_what_is_text_stays_as_it_is(files):
    assert as_text(files, ["color"]) is files
    assert as_missing(files, []) is files


@pytest.mark.parametrize("name", ["none", "blank"])
def test_columns_of_nothing_become_numbers(files, name):
    numbers = as_missing(files, [name])
    assert numbers.schema.field(name).type == pa.float64()
    whole = numbers.read([name])[name]
    assert (len(whole), whole.null_count) == (7, 7)


def test_all_else_is_that_of_the_files(files):
    text = as_text(files.select(["code", "color"]), ["code"])
    assert text.names == ["code", "color"]
    assert text.select(["color"]).names == ["color"]
    assert (str(text), text.paths) == (str(files), files.paths)
    assert text.stamps is files.stamps
    assert text.remote
    again = pickle.loads(pickle.dumps(text))
    assert again.read(["code"]).equals(text.read(["code"]))
