"""``kplus convert``, and the other commands on what it wrote."""

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def mixed(tmp_path, frame):
    """Numbers, gaps, text, numbers that are categories, and names of rows."""
    number = np.arange(120)
    frame = frame.with_columns(
        color=pl.Series(["red", "blue", "green"]).gather(number // 40),
        room=pl.Series([9, 10]).gather(number % 2),
        b=pl.when(pl.col("b") > 11).then(None).otherwise(pl.col("b")),
    )
    frame.write_parquet(tmp_path / "mixed.parquet")
    frame.write_csv(tmp_path / "mixed.csv")
    return tmp_path / "mixed.parquet"


CHOICE = ["--index", "id", "--categorical", "room"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--model", "craft", "--clusters", 3], ["labels.csv", "description.csv"]),
        (["--observations", "mixed"], ["labels.csv"]),
        (["--observations", "mixed", "--scale"], ["labels.csv"]),
    ],
)
def test_fits_are_the_same(kplus, mixed, tmp_path, words, names, kind):
    data = mixed.with_suffix(f".{kind}")
    assert kplus("fit", data, *CHOICE, *words, "-o", tmp_path / "one").code == 0
    done = kplus("convert", data, *CHOICE, "-o", tmp_path / "rows")
    assert done.code == 0
    assert "120 rows, 5 columns, 2 of them categories, as float64" in done.err
    done = kplus("fit", tmp_path / "rows", *words, "-o", tmp_path / "two")
    assert done.code == 0, done.err
    for name in names:
        one = (tmp_path / "one" / name).read_bytes()
        assert (tmp_path / "two" / name).read_bytes() == one
    labels = (tmp_path / "one" / "labels.csv").read_text()
    for model in ("one", "two"):
        model = tmp_path / model / "model.kplus"
        assert kplus("predict", model, tmp_path / "rows").out == labels
        assert kplus("predict", model, data, "--index", "id").out == labels


@pytest.mark.parametrize("scale", [[], ["--scale"]])
def test_numbers(kplus, named, tmp_path, out, scale):
    words = ["--model", "dp-means", "--clusters", 3, *scale, "-o"]
    assert kplus("fit", named, "--index", "id", *words, out).code == 0
    rows = tmp_path / "rows"
    assert kplus("convert", named, "--index", "id", "-o", rows, "--quiet").err == ""
    assert kplus("fit", rows, *words, tmp_path / "two").code == 0
    labels = (out / "labels.csv").read_text()
    assert (tmp_path / "two" / "labels.csv").read_text() == labels
    assert kplus("predict", out / "model.kplus", rows).out == labels


def test_without_names(kplus, data, X, tmp_path, out):
    np.save(tmp_path / "x.npy", X)
    assert kplus("convert", tmp_path / "x.npy", "-o", tmp_path / "rows").code == 0
    assert kplus("fit", tmp_path / "rows", "-o", out).code == 0
    labels = (out / "labels.csv").read_text()
    assert kplus("predict", out / "model.kplus", data).out == labels


def test_impute(kplus, named, frame, tmp_path, out):
    rows = tmp_path / "rows"
    assert kplus("convert", named, "--index", "id", "-o", rows).code == 0
    words = ["--model", "meibp", "--prior", "gaussian", "-o", out]
    assert kplus("fit", rows, *words).code == 0
    done = kplus("impute", out / "model.kplus", rows)
    assert done.out == named.read_text()


def test_json(kplus, mixed, tmp_path):
    rows = tmp_path / "rows"
    words = ["--columns", "a,room", "--dtype", "float32", "--json"]
    result = kplus("convert", mixed, "-o", rows, *words).json
    assert (result["n_rows"], result["n_features"]) == (120, 2)
    assert result["files"] == {"folder": str(rows)}
    assert result["dtype"] == "float32"
    assert result["categories"] == [None, None]


def test_what_is_there(kplus, named, tmp_path):
    words = ["convert", named, "--index", "id", "-o", tmp_path / "rows"]
    assert kplus(*words).code == 0
    kplus(*words).refuses("is there already; --force replaces it")
    assert kplus(*words, "--force").code == 0
    (tmp_path / "rows" / "mine.txt").touch()
    kplus(*words, "--force").refuses("is not replaced")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dtype", "int8"], "--dtype is float32 or float64"),
        (["--categorical", "rom"], "no column 'rom'; did you mean 'room'"),
        (["--drop", "x"], "no column 'x'"),
    ],
)
def test_mistakes(kplus, mixed, tmp_path, words, said):
    kplus("convert", mixed, *words, "-o", tmp_path / "rows").refuses(said)
    assert not (tmp_path / "rows").exists()


def test_what_names_rows_is_left_out(kplus, mixed, tmp_path):
    pl.read_parquet(mixed).rename({"id": "row's id"}).write_parquet(mixed)
    done = kplus("convert", mixed, "-o", tmp_path / "rows")
    assert done.code == 0
    assert done.err.count("Left out: ids: row's id. --keep COL uses a column") == 1
    words = ["--keep", "row's id", "-o", tmp_path / "all"]
    assert "Left out" not in kplus("convert", mixed, *words).err


def test_numbers_too_large(kplus, mixed, tmp_path):
    pl.read_parquet(mixed).with_columns(pl.col("a") * 1e300).write_parquet(mixed)
    words = ["--index", "id", "--dtype", "float32", "-o", tmp_path / "rows"]
    kplus("convert", mixed, *words).refuses("say --dtype float64")


@pytest.mark.parametrize(
    "words", [["--columns", "a"], ["--drop", "a"], CHOICE[:2], CHOICE[2:]]
)
def test_columns_are_chosen_when_converting(kplus, mixed, tmp_path, out, words):
    kplus("convert", mixed, *CHOICE, "-o", tmp_path / "rows")
    done = kplus("fit", tmp_path / "rows", *words, "-o", out)
    done.refuses(f"choose {words[1]!r} when converting")


def test_models_that_do_not_go_with_it(kplus, mixed, named, tmp_path, out):
    kplus("convert", mixed, *CHOICE, "-o", tmp_path / "rows")
    done = kplus("fit", tmp_path / "rows", "--model", "dp-means", "-o", out)
    done.refuses("'color' holds categories", "again without it (--drop 'color')")
    assert kplus("fit", named, "--index", "id", "-o", out).code == 0
    done = kplus("predict", out / "model.kplus", tmp_path / "rows")
    assert done.code == 2
    assert "'color' holds categories" in done.err
    kplus("convert", named, "--columns", "b,a,c", "-o", tmp_path / "order")
    done = kplus("predict", out / "model.kplus", tmp_path / "order")
    done.refuses("has the columns 'b', 'a', 'c'", "needs 'a', 'b', 'c', in this order")


def test_damage(kplus, mixed, tmp_path, out):
    rows = tmp_path / "rows"
    kplus("convert", mixed, *CHOICE, "-o", rows)
    index = pl.read_parquet(rows / "index.parquet")
    for other in (index[1:], index.rename({"id": "di"})):
        other.write_parquet(rows / "index.parquet")
        done = kplus("fit", rows, "--model", "craft", "-o", out)
        done.refuses("does not go with", "convert the table again")
    (rows / "index.parquet").unlink()
    done = kplus("fit", rows, "--model", "craft", "-o", out)
    done.refuses("index.parquet is damaged", "convert the table again")
    (rows / "manifest.json").write_text("{")
    kplus("fit", rows, "--model", "craft", "-o", out).refuses(
        "manifest.json is damaged"
    )
