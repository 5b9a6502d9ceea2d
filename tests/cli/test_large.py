"""Tables with categories that are not read whole: the same results, and errors."""

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from kplus.data import csv
from kplus.data.arrow import Columns

N = 150
Z = np.arange(N) % 2


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "size": rng.normal(8.0 * Z, 1.0).round(3),
            "color": np.where(rng.random(N) < 0.1 + 0.8 * Z, "red", "blue"),
            "code": 2 * Z + rng.integers(3, 6, N),
            "sold": rng.random(N) < 0.5,
        }
    ).with_columns(
        color=pl.when(pl.int_range(N) % 5 != 0).then("color"),
        size=pl.when(pl.int_range(N) % 7 != 0).then("size"),
    )


@pytest.fixture
def write(tmp_path):
    def write(table, kind, name="table"):
        path = tmp_path / f"{name}.{kind}"
        if kind == "csv":
            table.write_csv(path)
        else:
            pq.write_table(table.to_arrow(), path, row_group_size=20)
        return path

    return write


@pytest.fixture
def large(monkeypatch):
    """Every table counts as large, and none may be read whole."""

    def whole(self, names):
        pytest.fail("a table is read whole")

    monkeypatch.setattr("kplus.data.csv._SMALL_BYTES", 0)
    monkeypatch.setattr("kplus.data.csv._PIECE_BYTES", 500)
    monkeypatch.setattr("kplus.data.wrapped.CACHE_BYTES", 0)
    monkeypatch.setattr(Columns, "read", whole)


MODELS = {
    "craft": ["craft", "--clusters", 2],
    "codes": ["craft", "--clusters", 2, "--categorical", "code"],
    "scaled": ["dp-mixture", "--observations", "mixed", "--scale"],
    "categorical": [
        *("dp-mixture", "--observations", "categorical"),
        *("--columns", "color", "--columns", "code"),
    ],
}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("model", MODELS)
def test_results_are_those_of_a_table_in_memory(
    kplus, table, write, tmp_path, request, model, kind
):
    path = write(table, kind)
    printed = []
    for out in (tmp_path / "small", tmp_path / "large"):
        done = kplus("fit", path, "--model", *MODELS[model], "-o", out)
        assert done.code == 0, done.err
        again = kplus("predict", out / "model.kplus", path)
        assert again.out == (out / "labels.csv").read_text()
        files = sorted(file for file in out.iterdir() if file.suffix == ".csv")
        printed.append([(file.name, file.read_bytes()) for file in files])
        request.getfixturevalue("large")
    assert printed[0] == printed[1]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_names_of_rows_are_left_out(kplus, large, table, write, out, kind):
    """However many rows have none."""
    names = [None if i % 3 == 0 else f"row {i}" for i in range(N)]
    path = write(table.with_columns(name=pl.Series(names)), kind)
    words = ["fit", path, "--model", "craft", "-o", out]
    done = kplus(*words)
    assert (done.code, done.err.count("Left out: ids: name. --keep COL")) == (0, 1)
    assert kplus(*words, "--force", "--index", "name").code == 0
    assert kplus(*words, "--force", "--categorical", "name").code == 0


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_unknown_categories_are_refused(kplus, large, table, write, out, kind):
    words = ["--model", "craft", "--clusters", 2, "--quiet", "-o", out]
    assert kplus("fit", write(table, kind), *words).code == 0
    color = pl.when(pl.int_range(N) == 97).then(pl.lit("pink")).otherwise("color")
    later = write(table.with_columns(color=color), kind, "later")
    kplus("predict", out / "model.kplus", later).refuses("'pink' (row 97)")


@pytest.mark.parametrize("dtype", [pl.Null, pl.String, pl.Date])
def test_a_column_of_nothing_is_missing(kplus, large, table, write, out, dtype):
    numbers = table.select("size", "code")
    words = ["--model", "k-features", "--clusters", 2, "--quiet", "-o", out]
    assert kplus("fit", write(numbers, "parquet"), *words).code == 0
    answers = []
    for kind in (dtype, pl.Float64):
        gone = numbers.with_columns(size=pl.lit(None, kind))
        path = write(gone, "parquet", "gone")
        done = kplus("predict", out / "model.kplus", path)
        assert done.code == 0, done.err
        answers.append(done.out)
    assert answers[0] == answers[1]


def test_copies_of_csv_files_are_in_the_scratch_folder(
    kplus, large, table, write, tmp_path, out, monkeypatch
):
    seen = []

    def copy_csv(path, copy, *how):
        seen.append(copy)
        copy_all(path, copy, *how)

    copy_all = csv.copy_csv
    monkeypatch.setattr(csv, "copy_csv", copy_csv)
    words = ["--model", "craft", "--scratch", tmp_path / "scratch", "-o", out]
    assert kplus("fit", write(table, "csv"), *words).code == 0
    assert [copy.parent.parent for copy in seen] == [tmp_path / "scratch"]
