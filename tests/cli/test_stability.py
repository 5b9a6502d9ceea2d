"""The line of ``kplus fit`` on stability, and ``--stability``."""

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def table(frame, tmp_path):
    frame.write_csv(tmp_path / "table.csv")
    return tmp_path / "table.csv"


def test_small_tables_have_a_line(kplus, table, tmp_path):
    words = ["fit", table, "--index", "id", "--model", "dp-means", "-o", tmp_path / "o"]
    done = kplus(*words)
    assert "Stable: all 3 clusters come back. Stability 1.00, 10 fits" in done.out
    same = kplus(*words, "--stability", 4, "--json", "--force").json["stability"]
    assert (same["overall"], same["resamples"]) == (1.0, 4)
    assert same["numbers"] == {"3": 4}
    assert [cluster["stability"] for cluster in same["clusters"]] == [1.0] * 3
    none = kplus(*words, "--stability", 0, "--force")
    assert "come back" not in none.out
    assert (
        kplus(*words, "--stability", 0, "--json", "--force").json["stability"] is None
    )


@pytest.mark.parametrize("words", ["craft", "dp-mixture --scale"])
def test_categories_gaps_and_scales(kplus, frame, X, tmp_path, words):
    a = [None if i == 7 else value for i, value in enumerate(X[:, 0])]
    kinds = pl.Series(np.repeat(["x", "y", "z"], 40))
    frame.drop("id").with_columns(a=pl.Series(a), kind=kinds).write_csv(
        tmp_path / "t.csv"
    )
    words = [*words.split(), "--stability", 1, "--clusters", 3, "--json"]
    done = kplus("fit", tmp_path / "t.csv", "-o", tmp_path / "o", "--model", *words)
    assert done.code == 0, done.err
    assert done.json["stability"]["overall"] > 0.9


def test_large_tables_and_features_only_if_asked(kplus, tmp_path):
    rows = np.random.default_rng(0).normal(size=(4_000, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", rows)
    words = [
        "fit",
        tmp_path / "x.npy",
        "--model",
        "dp-means",
        "--clusters",
        2,
        "--json",
    ]
    assert kplus(*words, "-o", tmp_path / "o").json["stability"] is None
    np.save(tmp_path / "y.npy", rows[:60])
    words = ["fit", tmp_path / "y.npy", "--model", "k-features", "--components", 2]
    assert kplus(*words, "-o", tmp_path / "p", "--json").json["stability"] is None
    asked = kplus(*words, "-o", tmp_path / "q", "--json", "--stability", 2).json
    assert len(asked["stability"]["features"]) == 2


def test_an_interrupt_leaves_the_answer(kplus, table, tmp_path, monkeypatch):
    def interrupted(*args, **given):
        raise KeyboardInterrupt

    monkeypatch.setattr("kplus.validation.stability.stability", interrupted)
    words = ["fit", table, "--index", "id", "--model", "dp-means", "-o", tmp_path / "o"]
    done = kplus(*words, "--json")
    assert done.code == 0
    assert "stability of the answer is left out" in done.err
    assert done.json["stability"] is None
    assert (tmp_path / "o" / "labels.csv").exists()


def test_mistakes(kplus, table, tmp_path):
    done = kplus("fit", table, "--index", "id", "-o", tmp_path, "--stability", -1)
    done.refuses("--stability is a number of fits, 0 for none, not -1.")


def test_weights_count(kplus, frame, tmp_path):
    counted = frame.with_columns(count=pl.Series(np.repeat([1, 1, 0], 40)))
    counted.write_csv(tmp_path / "t.csv")
    words = ["--index", "id", "--weights", "count", "--model", "dp-means", "--json"]
    done = kplus("fit", tmp_path / "t.csv", "-o", tmp_path / "o", *words)
    assert done.code == 0, done.err
    assert done.json["stability"]["rows"] == 80
