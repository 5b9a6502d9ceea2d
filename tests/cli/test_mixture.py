"""dp-mixture on the command line: categories, missing values, shares."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

import kplus as library

Z = np.repeat([0, 1], 60)


@pytest.fixture
def table():
    """Two groups in numbers, text and codes."""
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "size": rng.normal(8.0 * Z, 1.0),
            "color": np.where(rng.random(120) < 0.1 + 0.8 * Z, "red", "blue"),
            "code": np.where(rng.random(120) < 0.9, 2 * Z + 3, 4),
        }
    )


@pytest.fixture(params=["csv", "parquet"])
def mixed(request, tmp_path, table):
    path = tmp_path / f"mixed.{request.param}"
    getattr(table, f"write_{request.param}")(path)
    return path


def labels(folder):
    return pl.read_csv(folder / "labels.csv")["cluster"].to_numpy()


def test_numbers_are_gaussian(kplus, data, out):
    done = kplus("fit", data, "-o", out, "--json")
    result = done.json
    assert (result["model"], result["observations"]) == ("dp-mixture", "gaussian")
    assert result["n_clusters"] == 3
    assert np.isfinite(result["lower_bound"])
    assert not {"objective", "penalty"} & set(result)
    model = library.load(out / "model.kplus")
    assert result["lower_bound"] == model.lower_bound_


def test_the_title_tells_what_was_found(kplus, data, out):
    done = kplus("fit", data, "-o", out)
    assert "dp-mixture: 3 clusters of 120 rows, 3 columns" in done.out
    assert "gaussian, described by 3 components, clear cut, " in done.out
    assert "nats" not in done.out


def test_other_observations(kplus, data, out):
    words = ["--observations", "diag_gaussian", "--max-clusters", 2, "--json"]
    result = kplus("fit", data, "-o", out, *words).json
    assert result["observations"] == "diag_gaussian"
    assert result["n_clusters"] <= 2


def test_text_makes_it_mixed(kplus, mixed, out):
    done = kplus("fit", mixed, "-o", out, "--drop", "code", "--json", "--plot")
    result = done.json
    assert result["observations"] == "mixed"
    assert result["n_features"] == 2
    assert adjusted_rand_score(Z, labels(out)) > 0.9
    columns = {c["name"]: c for c in result["clusters"][0]["columns"]}
    assert columns["color"]["category"] in ("red", "blue")
    assert 0.7 < columns["color"]["share"] <= 1.0
    assert "mean" in columns["size"]
    assert (out / "clusters.png").exists()
    done = kplus("fit", mixed, "-o", out, "--drop", "code", "--force")
    assert "color red" in done.out
    assert "color blue" in done.out


def test_numbers_that_are_codes(kplus, mixed, out):
    assert kplus("fit", mixed, "-o", out, "--categorical", "code").code == 0
    model = library.load(out / "model.kplus")
    assert model.categories_ == (None, ("blue", "red"), ("3", "4", "5"))
    done = kplus("predict", out / "model.kplus", mixed)
    assert done.out == (out / "labels.csv").read_text(), done.err


@pytest.mark.parametrize("options", [[], ["--scale"]])
def test_predict_with_categories(kplus, mixed, table, tmp_path, out, options):
    words = ["--categorical", "code", "-o", out, *options]
    assert kplus("fit", mixed, *words).code == 0
    expected = (out / "labels.csv").read_text()
    table.select("code", "size", "color").write_parquet(tmp_path / "other.parquet")
    for path in (mixed, tmp_path / "other.parquet"):
        done = kplus("predict", out / "model.kplus", path)
        assert done.out == expected, done.err
    table.with_columns(color=pl.lit("green")).write_csv(tmp_path / "new.csv")
    done = kplus("predict", out / "model.kplus", tmp_path / "new.csv")
    assert (done.code, done.out) == (2, "")
    assert "'color' holds 'green'" in done.err
    np.save(tmp_path / "x.npy", np.zeros((3, 3)))
    done = kplus("predict", out / "model.kplus", tmp_path / "x.npy")
    assert done.code == 2
    assert "names of the columns" in done.err


def test_scaled_categories_keep_their_names(kplus, mixed, out):
    assert kplus("fit", mixed, "--scale", "--drop", "code", "-o", out).code == 0
    model = library.load(out / "model.kplus")
    assert list(model.feature_names_in_) == ["size (standardised)", "color"]


def test_missing_values(kplus, table, tmp_path, out):
    rows = table.drop("code").with_row_index("i")
    size = pl.when(pl.col("i") % 7 != 0).then("size").alias("size")
    color = pl.when(pl.col("i") % 5 != 0).then("color").alias("color")
    rows.select(size, color).write_csv(tmp_path / "holes.csv")
    done = kplus("fit", tmp_path / "holes.csv", "-o", out, "--plot", "--scale")
    assert done.code == 0, done.err
    model = library.load(out / "model.kplus")
    assert model.categories_ == (None, ("blue", "red"))
    done = kplus("predict", out / "model.kplus", tmp_path / "holes.csv")
    assert done.out == (out / "labels.csv").read_text()
    # A model of whole rows takes none, and says that others do.
    rows.select(size, other="size").write_csv(tmp_path / "numbers.csv")
    words = [tmp_path / "numbers.csv", "-o", out, "--force"]
    done = kplus("fit", *words, "--observations", "multinomial")
    assert done.code == 2
    assert "'size' has 18 missing values" in done.err
    assert "leave --observations out" in done.err
    done = kplus("fit", *words, "--json")
    assert done.json["observations"] == "gaussian"


def test_categories_alone_have_a_picture(kplus, mixed, out):
    words = ["--observations", "categorical", "--columns", "color,code", "--plot"]
    done = kplus("fit", mixed, "-o", out, *words)
    assert done.code == 0, done.err
    assert (out / "clusters.png").exists()
    done = kplus("predict", out / "model.kplus", mixed)
    assert done.out == (out / "labels.csv").read_text(), done.err


def test_yes_and_no_are_categories(kplus, table, tmp_path, out):
    table.select("size", red=pl.col("color") == "red").write_csv(tmp_path / "x.csv")
    done = kplus("fit", tmp_path / "x.csv", "-o", out, "--json")
    assert done.json["observations"] == "mixed"
    assert library.load(out / "model.kplus").categories_ == (None, (False, True))
    done = kplus("predict", out / "model.kplus", tmp_path / "x.csv")
    assert done.out == (out / "labels.csv").read_text(), done.err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_shares(kplus, data, tmp_path, out, kind):
    kplus("fit", data, "-o", out)
    target = tmp_path / f"shares.{kind}"
    done = kplus("predict", out / "model.kplus", data, "--proba", "-o", target)
    assert done.code == 0, done.err
    found = pl.read_csv(target) if kind == "csv" else pl.read_parquet(target)
    assert found.columns == ["row", "cluster", "share 0", "share 1", "share 2"]
    shares = found.select(pl.col("^share .*$")).to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), found["cluster"].to_numpy())
    result = kplus("predict", out / "model.kplus", data, "--proba", "--json").json
    np.testing.assert_allclose(result["shares"], shares, rtol=1e-12, atol=1e-300)


def test_inspect_tells_observations(kplus, mixed, out):
    kplus("fit", mixed, "-o", out)
    done = kplus("inspect", out / "model.kplus")
    assert done.code == 0
    assert "DPMixture" in done.out
    assert "red" in done.out
    assert "mixed, numbers " in done.out
    told = kplus("inspect", out / "model.kplus", "--json").json
    assert told["params"]["observations"] == "auto"
    assert told["attributes"]["choice_"].startswith("mixed, numbers ")


def test_inspect_tells_the_prior_by_column(kplus, mixed, out):
    result = kplus("fit", mixed, "-o", out, "--json").json
    shown = kplus("inspect", out / "model.kplus", "--json").json["prior"]
    assert shown == result["prior"]
    assert "pseudo-counts in all" in shown["learned"]
    words = kplus("inspect", out / "model.kplus").out
    assert "ArrayInfo" not in words
    for setting in shown:
        assert setting in words
    assert all(name in words for name in shown["mean"])


def test_inspect_tells_of_many_columns_the_first(kplus, tmp_path, out):
    X = np.random.default_rng(0).normal(size=(60, 30))
    np.save(tmp_path / "wide.npy", X)
    kplus("fit", tmp_path / "wide.npy", "--observations", "diag_gaussian", "-o", out)
    words = " ".join(kplus("inspect", out / "model.kplus").out.split())
    assert "and 22 columns more" in words.replace("│ │ ", "")


@pytest.fixture
def scattered(tmp_path):
    """Two groups, and rows all over."""
    rng = np.random.default_rng(0)
    parts = rng.normal(0, 1, (80, 2)), rng.normal(20, 1, (60, 2))
    X = np.vstack([*parts, rng.uniform(-30, 50, (20, 2))])
    path = tmp_path / "scattered.csv"
    pl.DataFrame(X, schema=["a", "b"]).write_csv(path)
    return path


def test_noise(kplus, scattered, out, tmp_path):
    done = kplus("fit", scattered, "--noise", "-o", out, "--plot")
    assert done.code == 0, done.err
    labels = pl.read_csv(out / "labels.csv")["cluster"].to_numpy()
    n_noise = int(np.sum(labels < 0))
    assert 15 <= n_noise <= 21
    assert "2 clusters of 160 rows" in done.out
    assert f"noise {n_noise} rows ({n_noise / 160:.1%})" in done.out
    result = kplus("fit", scattered, "--noise", "-o", out, "--force", "--json").json
    assert result["n_noise"] == n_noise
    assert [c["size"] for c in result["clusters"]] == np.bincount(labels + 1)[
        1:
    ].tolist()
    # Means are those of the rows in the clusters.
    rows = pl.read_csv(scattered)
    for k, cluster in enumerate(result["clusters"]):
        (a,) = (c for c in cluster["columns"] if c["name"] == "a")
        assert a["mean"] == pytest.approx(rows["a"].to_numpy()[labels == k].mean())
    done = kplus("predict", out / "model.kplus", scattered, "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    predicted = pl.read_csv(tmp_path / "p.csv")["cluster"].to_numpy()
    np.testing.assert_array_equal(predicted, labels)
    done = kplus("inspect", out / "model.kplus")
    assert "noise_share_" in done.out


def test_without_noise_nothing_is_said_of_it(kplus, scattered, out):
    done = kplus("fit", scattered, "-o", out)
    assert "noise" not in done.out


def test_noise_is_not_for_others(kplus, scattered, out):
    done = kplus("fit", scattered, "--noise", "--model", "dp-means", "-o", out)
    assert done.code != 0
    assert "--noise is for --model dp-mixture" in done.err
