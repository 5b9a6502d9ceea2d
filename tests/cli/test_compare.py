"""``kplus compare`` and ``kplus path``."""

import polars as pl
import pytest


def test_models_side_by_side(kplus, named, out):
    words = ["compare", named, "--index", "id", "--stability", 2]
    done = kplus(*words, "-o", out)
    assert done.code == 0, done.err
    assert "3 models on 120 rows" in done.out
    assert "Start here." in done.out
    assert "The same groups as dp-mixture." in done.out
    assert "Start with dp-mixture" in (out / "comparison.html").read_text("utf-8")
    table = pl.read_csv(out / "comparison.csv")
    assert table["model"].to_list() == ["dp-mixture", "dp-means", "craft"]
    assert table["groups"].to_list() == [3, 3, 3]
    kplus(*words, "-o", out).refuses("already has comparison.csv", "--force")
    told = kplus(*words, "--json", "--models", "dp-means,craft", "--rows", 60).json
    assert (told["n_rows"], told["n_compared"], told["best"]) == (120, 60, "dp-means")
    assert told["agreement"] == [[1.0, 1.0], [1.0, 1.0]]
    assert [model["groups"] for model in told["models"]] == [3, 3]


def test_models_that_do_not_take_the_table(kplus, frame, tmp_path):
    kinds = pl.Series(["x", "y", "z"]).gather([i // 40 for i in range(120)])
    frame.drop("id").with_columns(kind=kinds).write_csv(tmp_path / "t.csv")
    done = kplus("compare", tmp_path / "t.csv", "--stability", 0)
    assert done.code == 0, done.err
    assert "Not fitted: Column 'kind' holds" in " ".join(done.out.split())
    kplus("compare", tmp_path / "t.csv", "--models", "dp-means").refuses(
        "No model takes this table. dp-means: Column 'kind' holds"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--models k-means", "--models: there is no 'k-means'; there are dp-mixture"),
        ("--rows 3", "--rows must be at least 10, not 3"),
        ("--stability -1", "--stability must be at least 0, not -1"),
    ],
)
def test_mistakes_of_compare(kplus, data, words, said):
    kplus("compare", data, *words.split()).refuses(said)


def test_path(kplus, named, out):
    words = ["path", named, "--index", "id"]
    done = kplus(*words, "--plot", "-o", out)
    assert done.code == 0, done.err
    assert done.out.startswith("3 clusters, clear")
    assert "chosen" in done.out
    assert (out / "path.png").stat().st_size > 10_000
    table = pl.read_csv(out / "path.csv")
    told = kplus(*words, "--json", "--max-clusters", 9, "--scale").json
    assert told["n_clusters"] == 3
    assert told["is_clear"]
    assert max(step["clusters"] for step in told["path"]) <= 9
    chosen = table.filter(pl.col("chosen"))
    assert chosen["clusters"].to_list() == [3]
    assert chosen["penalty_from"][0] < chosen["penalty_to"][0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--plot", "--plot writes a picture; name a folder for it with -o"),
        ("--max-clusters 0", "--max-clusters must be at least 1, not 0"),
    ],
)
def test_mistakes_of_path(kplus, data, words, said):
    kplus("path", data, *words.split()).refuses(said)
