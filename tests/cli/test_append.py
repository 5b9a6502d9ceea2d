"""``--append``: the table as it came, with what was found after its own columns."""

import numpy as np
import polars as pl
import pytest

import kplus as library


@pytest.fixture
def customers(tmp_path, frame):
    """Columns that are used, and such as are not: codes, dates, text with commas."""
    names = pl.Series("name", [f'Smith, "J" {i}' for i in range(len(frame))])
    since = pl.Series("since", [f"2024-01-{i % 28 + 1:02d}" for i in range(len(frame))])
    path = tmp_path / "customers.csv"
    frame.with_columns(names, since).write_csv(path)
    return path


USED = ["--columns", "a,b,c"]


def as_text(path):
    return pl.read_csv(path, infer_schema=False)


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_all_columns_are_there_in_their_order(kplus, customers, out, tmp_path, command):
    words = ["fit", customers, "-o", out, *USED]
    done = kplus(*words, *["--append"] * (command == "fit"))
    assert done.code == 0, done.err
    written = out / "labels.csv"
    if command == "predict":
        written = tmp_path / "new.csv"
        words = ["predict", out / "model.kplus", customers, "--append", "-o", written]
        assert kplus(*words).code == 0
    before, after = pl.read_csv(customers), pl.read_csv(written)
    assert after.columns == [*before.columns, "cluster"]
    assert after.drop("cluster").equals(before)
    labels = library.load(out / "model.kplus").labels_
    assert after["cluster"].to_list() == labels.tolist()
    # What is not used stays as written: 0007 is no number.
    for name in ("id", "name", "since"):
        assert as_text(written)[name].equals(as_text(customers)[name])


def test_to_standard_output_and_to_parquet(kplus, customers, out, tmp_path):
    kplus("fit", customers, "-o", out, *USED, "--format", "parquet", "--append")
    table = pl.read_parquet(out / "labels.parquet")
    assert table.columns == ["id", "a", "b", "c", "name", "since", "cluster"]
    assert table["id"][7] == "0007"
    done = kplus("predict", out / "model.kplus", customers, "--append")
    assert done.out.splitlines()[0] == "id,a,b,c,name,since,cluster"
    assert done.out.count("\n") == 121


def test_a_name_that_the_table_has(kplus, data, out, tmp_path):
    table = pl.read_csv(data).with_columns(
        cluster=pl.lit("x"), **{"share 0": pl.lit(9)}
    )
    table.write_csv(tmp_path / "again.csv")
    words = ["--drop", "cluster", "--drop", "share 0", "--append"]
    assert kplus("fit", tmp_path / "again.csv", "-o", out, *words).code == 0
    found = pl.read_csv(out / "labels.csv")
    assert found.columns == [*table.columns, "kplus cluster"]
    assert found["cluster"].to_list() == ["x"] * 120
    words = ["predict", out / "model.kplus", tmp_path / "again.csv", "--append"]
    done = kplus(*words, "--proba")
    header = done.out.splitlines()[0].split(",")
    assert header[5:] == ["kplus cluster", *(f"kplus share {k}" for k in range(3))]


def test_with_row_names_and_scaled(kplus, named, out):
    done = kplus("fit", named, "-o", out, "--index", "id", "--scale", "--append")
    assert done.code == 0, done.err
    before = pl.read_csv(named, schema_overrides={"id": pl.String})
    after = pl.read_csv(out / "labels.csv", schema_overrides={"id": pl.String})
    assert after.drop("cluster").equals(before)


def test_arrays(kplus, X, out, tmp_path):
    np.save(tmp_path / "x.npy", X)
    kplus("fit", tmp_path / "x.npy", "-o", out, "--scale", "--append")
    table = pl.read_csv(out / "labels.csv")
    assert table.columns == ["column 0", "column 1", "column 2", "cluster"]
    np.testing.assert_array_equal(table.drop("cluster").to_numpy(), X)


def test_features(kplus, data, out):
    words = ["--model", "k-features", "--components", 2, "--append"]
    assert kplus("fit", data, "-o", out, *words).code == 0
    table = pl.read_csv(out / "features.csv")
    assert table.columns == ["a", "b", "c", "feature 0", "feature 1"]


def test_many_parts(kplus, customers, out, monkeypatch):
    kplus("fit", customers, "-o", out, *USED, "--append")
    words = ["predict", out / "model.kplus", customers, "--append"]
    once = kplus(*words).out
    assert once == (out / "labels.csv").read_text()
    monkeypatch.setattr("kplus.base.answers.PART_ROWS", 7)
    assert kplus(*words).out == once


def test_mistakes(kplus, data, out, tmp_path):
    kplus("fit", data, "-o", out)
    words = ["predict", out / "model.kplus", data, "--append", "--json"]
    kplus(*words).refuses("--append", "-o")
    folder = tmp_path / "folder"
    kplus("convert", data, "-o", folder)
    done = kplus("fit", folder, "-o", tmp_path / "other", "--append")
    done.refuses("--append", "converted")
    assert not (tmp_path / "other").exists()
