"""``kplus fit --weights COLUMN``: rows that count for more or less."""

import numpy as np
import polars as pl
import pytest

import kplus as library
from crashes import Crash, crash_after

TAKING = ["dp-mixture", "dp-means", "craft", "bp-means", "k-features"]


@pytest.fixture
def weighted(tmp_path, frame):
    weight = pl.Series("count", np.arange(120) % 3)
    path = tmp_path / "weighted.csv"
    frame.with_columns(weight).write_csv(path)
    return path


def same_models(one, other):
    one, other = (library.load(path / "model.kplus") for path in (one, other))
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(other, name))


@pytest.mark.parametrize("model", TAKING)
def test_weights_are_those_of_fit(kplus, weighted, frame, tmp_path, model):
    words = ["--model", model, "--columns", "a,b,c", "-o", tmp_path / "out"]
    done = kplus("fit", weighted, *words, "--weights", "count")
    assert done.code == 0, done.err
    found = library.load(tmp_path / "out" / "model.kplus")
    plain = type(found)(**found.get_params())
    X = frame.select(["a", "b", "c"]).to_numpy()
    plain.fit(X, sample_weight=np.arange(120) % 3)
    name = "labels_" if hasattr(found, "labels_") else "components_"
    np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))


def test_the_column_is_no_feature(kplus, weighted, tmp_path):
    out = tmp_path / "out"
    words = [weighted, "--index", "id", "--weights", "count"]
    assert kplus("fit", *words, "-o", out).code == 0
    model = library.load(out / "model.kplus")
    assert "count" not in list(model.feature_names_in_)
    labels = pl.read_csv(out / "labels.csv")["cluster"]
    done = kplus("predict", out / "model.kplus", weighted, "--json")
    assert done.json["labels"] == labels.to_list()
    gaps = pl.read_csv(weighted).with_columns(
        a=pl.when(pl.col("count") > 1).then(None).otherwise(pl.col("a"))
    )
    gaps.write_csv(tmp_path / "gaps.csv")
    for words in (
        [out / "model.kplus", tmp_path / "gaps.csv"],
        [tmp_path / "gaps.csv", "--index", "id", "--weights", "count"],
    ):
        filled = tmp_path / "filled.csv"
        done = kplus("impute", *words, "-o", filled, "--force")
        assert done.code == 0, done.err
        table = pl.read_csv(filled)
        assert table["a"].null_count() == 0
        assert table["count"].to_list() == gaps["count"].to_list()


def test_an_interrupted_fit_resumes(kplus, weighted, tmp_path, monkeypatch):
    words = ["fit", weighted, "--drop", "id", "--weights", "count"]
    assert kplus(*words, "-o", tmp_path / "whole").code == 0
    words += ["--checkpoint", tmp_path / "here"]
    with monkeypatch.context() as patch:
        crash_after(2, patch)
        with pytest.raises(Crash):
            kplus(*words, "-o", tmp_path / "parts")
    done = kplus("resume", tmp_path / "here")
    assert done.code == 0, done.err
    same_models(tmp_path / "whole", tmp_path / "parts")


BAD = {
    "unknown": (["--weights", "cuont"], "did you mean 'count'"),
    "feature": (["--weights", "a", "--columns", "a,b"], "weights are no feature"),
    "names": (["--weights", "c", "--index", "c"], "weights are no feature"),
    "text": (["--weights", "id"], "not numbers"),
    "negative": (["--weights", "minus"], "column 'minus' has -1 in row 3"),
    "gap": (["--weights", "gap"], "column 'gap' has no value in row 2"),
    "none": (["--weights", "zero"], "column 'zero' is 0 in all rows"),
    "model": (
        ["--weights", "count", "--model", "meibp"],
        "dp-mixture, dp-means, craft, bp-means or k-features, not meibp",
    ),
}


@pytest.mark.parametrize(("words", "error"), BAD.values(), ids=BAD)
def test_mistakes(kplus, weighted, tmp_path, words, error):
    counts = np.ones(120)
    table = pl.read_csv(weighted).with_columns(
        minus=pl.Series(np.where(np.arange(120) == 3, -1.0, counts)),
        gap=pl.Series([None if n == 2 else 1.0 for n in range(120)]),
        zero=pl.Series(np.zeros(120)),
        id=pl.Series([f"r{n}" for n in range(120)]),
    )
    table.write_csv(weighted)
    kplus("fit", weighted, "-o", tmp_path / "out", "--drop", "id", *words).refuses(
        error
    )


def test_tables_without_such_a_column(kplus, weighted, tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((10, 2)))
    words = ["-o", tmp_path / "out", "--weights", "count"]
    kplus("fit", tmp_path / "rows.npy", *words).refuses("no column names")
    folder = tmp_path / "rows"
    assert kplus("convert", weighted, "--index", "id", "-o", folder).code == 0
    kplus("fit", folder, *words).refuses("was converted", "--weights 'count'")
