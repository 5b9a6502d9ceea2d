"""bp-means and k-features on the command line: ``kplus fit``."""

import numpy as np
import polars as pl
import pytest

import kplus as library
from kplus.cli.console import PassProgress
from kplus.cli.features import Features
from kplus.cli.scaling import Profile
from kplus.cli.tables import Table
from kplus.data.blocks import ArrayBlocks

NAMES = ["a", "b", "c", "d"]
A = np.array([[0.0, 8.0, 0.0, -8.0], [6.0, 0.0, 6.0, 0.0]])
LEVEL = np.array([100.0, 20.0, -50.0, 3.0])


@pytest.fixture
def Z():
    rng = np.random.default_rng(0)
    return (rng.random((90, 2)) < [0.45, 0.3]).astype(int)


@pytest.fixture
def X(Z):
    """Two features upon a level that all rows have."""
    return LEVEL + Z @ A + np.random.default_rng(1).normal(0, 0.3, (90, 4))


@pytest.fixture
def data(tmp_path, X):
    pl.DataFrame(X, schema=NAMES).write_csv(tmp_path / "data.csv")
    return tmp_path / "data.csv"


@pytest.fixture
def fit(kplus, data, out):
    """Fit three features, the number of the data."""

    def call(*words, path=data):
        options = ["--model", "k-features", "--components", 3, *words]
        done = kplus("fit", path, "-o", out, *options)
        assert done.code == 0, done.err
        return done

    return call


def read_bits(folder):
    return pl.read_csv(folder / "features.csv").drop("row").to_numpy()


def read_components(folder):
    table = pl.read_csv(folder / "components.csv")
    return table, table.drop("feature", "rows", "share").to_numpy()


def test_writes_bits_components_and_model(fit, out, Z):
    fit()
    assert sorted(p.name for p in out.iterdir()) == [
        "components.csv",
        "features.csv",
        "model.kplus",
        "report.html",
    ]
    table = pl.read_csv(out / "features.csv")
    assert table.columns == ["row", "feature 0", "feature 1", "feature 2"]
    assert table["row"].to_list() == list(range(90))
    bits = table.drop("row").to_numpy()
    np.testing.assert_array_equal(bits, np.column_stack([np.ones(90), Z]))
    model = library.load(out / "model.kplus")
    table, values = read_components(out)
    assert table.columns == ["feature", "rows", "share", *NAMES]
    assert table["feature"].to_list() == [0, 1, 2]
    assert table["rows"].to_list() == bits.sum(axis=0).tolist()
    np.testing.assert_allclose(table["share"], bits.mean(axis=0))
    np.testing.assert_array_equal(values, model.components_)
    np.testing.assert_allclose(values, np.vstack([LEVEL, A]), atol=0.3)


def rebuilt(folder, result):
    """The rows that the files and the JSON make up."""
    offset = list(result["offset"].values()) if result["offset"] else 0.0
    return offset + read_bits(folder) @ read_components(folder)[1]


@pytest.mark.parametrize("options", [[], ["--scale"]])
def test_components_make_up_the_rows_of_the_file(fit, out, X, options):
    result = fit("--json", *options).json
    rows = rebuilt(out, result)
    np.testing.assert_allclose(rows, X, atol=1.5)
    unit = X.std(axis=0) if options else 1.0  # what the model sees
    error = np.square((X - rows) / unit).sum()
    total = np.square((X - X.mean(axis=0)) / unit).sum()
    assert result["objective"] == pytest.approx(error)
    assert result["explained_variance"] == pytest.approx(1 - error / total)


def test_the_base_gets_the_means_back(Z):
    base = np.column_stack([np.ones(90, dtype=int), Z])
    X = LEVEL + Z @ A
    mean, scale = X.mean(axis=0), X.std(axis=0)
    components = np.vstack([LEVEL - mean, A]) / scale
    model = library.KFeatures()
    model.components_, model.n_components_ = components, 3
    model.transform = lambda part: base
    profile = Profile(np.full(4, 90.0), mean, scale)
    source = ArrayBlocks((X - mean) / scale)
    results = Features(model, Table(source, source, NAMES), profile, scaled=True)
    assert len(list(results.pieces())) == 1
    table = pl.from_arrow(results.tables()["components"])
    values = table.select(NAMES).to_numpy()
    np.testing.assert_allclose(values, np.vstack([LEVEL, A]), atol=1e-9)


def test_without_a_base_the_means_are_told(kplus, tmp_path, out):
    rng = np.random.default_rng(0)
    side = rng.permutation(np.repeat([1, -1, 0], [30, 30, 20]))
    X = np.column_stack([10.0 * side, -20.0 * side]) + rng.normal(0, 0.1, (80, 2)) + 7
    pl.DataFrame(X, schema=["a", "b"]).write_csv(tmp_path / "x.csv")
    words = ["--model", "bp-means", "--components", 2, "--scale", "-o", out]
    result = kplus("fit", tmp_path / "x.csv", "--json", *words).json
    assert all(30 <= f["rows"] < 80 for f in result["features"])
    means = [result["offset"][name] for name in ("a", "b")]
    np.testing.assert_allclose(means, X.mean(axis=0))
    np.testing.assert_allclose(rebuilt(out, result), X, atol=0.5)
    done = kplus("fit", tmp_path / "x.csv", "--force", *words)
    assert "No feature is in all rows" in done.err


def test_json(fit, out, X, Z):
    result = fit("--json", "--plot").json
    assert (result["n_rows"], result["n_features"]) == (90, 4)
    assert (result["model"], result["n_components"]) == ("k-features", 3)
    assert result["files"] == {
        "features": str(out / "features.csv"),
        "components": str(out / "components.csv"),
        "model": str(out / "model.kplus"),
        "plot": str(out / "features.png"),
        "report": str(out / "report.html"),
    }
    assert {"objective", "penalty", "iterations", "seconds"} < set(result)
    assert "clusters" not in result
    base, first, _ = result["features"]
    assert (base["rows"], base["share"]) == (90, 1.0)
    assert (first["feature"], first["rows"]) == (1, Z[:, 0].sum())
    # What a feature moves, in the file's units and in standard deviations.
    (b,) = (c for c in first["columns"] if c["name"] == "b")
    assert b["value"] == pytest.approx(8.0, abs=0.3)
    assert b["deviation"] == pytest.approx(b["value"] / X[:, 1].std())
    # The base is told by how it differs from the mean, not by its level.
    (b,) = (c for c in base["columns"] if c["name"] == "b")
    assert b["value"] == pytest.approx(20.0, abs=0.3)
    assert b["deviation"] == pytest.approx(
        (b["value"] - X[:, 1].mean()) / X[:, 1].std()
    )
    patterns, counts = np.unique(Z, axis=0, return_counts=True)
    expected = {
        (0, *(np.flatnonzero(pattern) + 1)): n
        for pattern, n in zip(patterns.tolist(), counts.tolist(), strict=True)
    }
    found = {tuple(c["features"]): c["rows"] for c in result["combinations"]}
    assert found == expected
    assert result["n_combinations"] == len(expected)
    rows = [c["rows"] for c in result["combinations"]]
    assert rows == sorted(rows, reverse=True)
    assert (out / "features.png").read_bytes().startswith(b"\x89PNG")


def test_prints_features_and_combinations(fit, out, Z):
    done = fit()
    assert "k-features: 3 features of 90 rows, 4 columns" in done.out
    assert "of the variance explained, objective" in done.out
    assert "base 0" in done.out
    assert f"{Z[:, 0].mean():.1%}" in done.out
    first = library.load(out / "model.kplus").components_[1]
    assert f"b {first[1]:+.1f}" in done.out
    assert "shown by how it differs from the column means" in done.out
    assert "0 + 1 + 2" in done.out
    assert "Wrote" not in done.out


def test_many_features_and_combinations(kplus, tmp_path, out):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(60, 30)))
    words = ["--model", "k-features", "--components", 22, "--max-iter", 3]
    done = kplus("fit", tmp_path / "x.npy", "-o", out, *words, "--plot")
    assert done.code == 0, done.err
    assert "the largest 20" in done.out
    assert "combinations more" in done.out
    result = kplus("fit", tmp_path / "x.npy", "-o", out, *words, "--json", "--force")
    assert len(result.json["features"]) == 22
    assert len(result.json["combinations"]) == 20


@pytest.mark.parametrize("model", ["bp-means", "k-features"])
def test_finds_the_number_itself(kplus, data, out, model):
    words = ["--model", model, "--scale", "--json"]
    result = kplus("fit", data, "-o", out, *words).json
    assert result["penalty"] > 0
    assert result["explained_variance"] > 0.95


def test_options_reach_the_model(kplus, data, out):
    words = ["--penalty", 50, "--max-components", 7, "--restarts", 2, "--seed", 5]
    words += ["--max-iter", 20, "--jobs", 1]
    assert kplus("fit", data, "--model", "bp-means", "-o", out, *words).code == 0
    params = library.load(out / "model.kplus").get_params()
    expected = {"penalty": 50, "max_components": 7, "n_init": 2, "random_state": 5}
    expected |= {"max_iter": 20, "n_jobs": 1}
    assert expected.items() <= params.items()


def test_clusters_is_another_name(kplus, data, out):
    words = ["--model", "bp-means", "--clusters", 2, "--json"]
    assert kplus("fit", data, "-o", out, *words).json["n_components"] == 2


def test_parquet_and_index(kplus, tmp_path, X, out):
    names = pl.Series("id", [f"{i:03d}" for i in range(90)])
    frame = pl.DataFrame(X, schema=NAMES).insert_column(0, names)
    frame.write_parquet(tmp_path / "x.parquet")
    words = ["--model", "k-features", "--components", 3, "--index", "id"]
    words += ["--format", "parquet", "-o", out]
    assert kplus("fit", tmp_path / "x.parquet", *words).code == 0
    table = pl.read_parquet(out / "features.parquet")
    assert table.columns == ["id", "feature 0", "feature 1", "feature 2"]
    assert table["id"].to_list() == names.to_list()
    assert (out / "components.csv").exists()


def test_columns_called_like_ours(kplus, tmp_path, X, out):
    names = ["feature", "share", "share (column)", "rows"]
    pl.DataFrame(X, schema=names).write_csv(tmp_path / "x.csv")
    words = ["--model", "k-features", "--components", 3]
    assert kplus("fit", tmp_path / "x.csv", "-o", out, *words).code == 0
    columns = pl.read_csv(out / "components.csv").columns
    assert len(columns) == len(set(columns)) == 7
    assert columns[:4] == ["feature", "rows", "share", "feature (column)"]


def test_force_replaces_clusters(kplus, data, fit, out):
    kplus("fit", data, "-o", out, "--plot")
    fit("--force", "--plot")
    left = sorted(p.name for p in out.iterdir())
    assert left == [
        "components.csv",
        "features.csv",
        "features.png",
        "model.kplus",
        "report.html",
    ]
    kplus("fit", data, "-o", out, "--force")
    assert sorted(p.name for p in out.iterdir()) == [
        "labels.csv",
        "model.kplus",
        "report.html",
    ]


class TestGaps:
    @pytest.fixture
    def gaps(self, tmp_path, X):
        """A CSV file with empty fields, and one row of nothing else."""
        rows = X.round(3).astype(object)
        rng = np.random.default_rng(2)
        rows[rng.random(rows.shape) < 0.08] = None
        rows[11] = None
        pl.DataFrame(rows.tolist(), schema=NAMES, orient="row").write_csv(
            tmp_path / "gaps.csv"
        )
        return tmp_path / "gaps.csv"

    @pytest.mark.parametrize("options", [[], ["--scale"]])
    def test_are_taken(self, kplus, fit, gaps, X, out, options):
        result = fit("--json", "--plot", *options, path=gaps).json
        assert not read_bits(out)[11].any()
        seen, rows = pl.read_csv(gaps).to_numpy(), rebuilt(out, result)
        # Rows with one or two values may not tell all features.
        whole = ~np.isnan(seen).any(axis=1)
        np.testing.assert_allclose(rows[whole], X[whole], atol=1.5)
        unit = np.nanstd(seen, axis=0) if options else 1.0
        error = np.nansum(np.square((seen - rows) / unit))
        total = np.nansum(np.square((seen - np.nanmean(seen, axis=0)) / unit))
        assert result["explained_variance"] == pytest.approx(1 - error / total)
        done = kplus("predict", out / "model.kplus", gaps)
        assert done.out == (out / "features.csv").read_text(), done.err

    def test_a_row_without_values_is_no_objection_to_a_base(self, fit, gaps):
        result = fit("--json", path=gaps).json
        assert [f["base"] for f in result["features"]] == [True, False, False]
        assert result["features"][0]["rows"] == 89

    @pytest.mark.parametrize("kind", ["csv", "npy"])
    def test_column_without_any_value(self, kplus, tmp_path, out, kind):
        """Tables with names do without it, arrays are never touched."""
        (tmp_path / "x.csv").write_text("a,b\n1,\n2,\n3,\n")
        np.save(tmp_path / "x.npy", [[1.0, np.nan], [2.0, np.nan]])
        done = kplus("fit", tmp_path / f"x.{kind}", "--model", "bp-means", "-o", out)
        if kind == "csv":
            assert done.code == 0
            assert "empty: b" in done.err
        else:
            assert done.code == 2
            assert "column 1" in done.err
        assert out.exists() == (kind == "csv")


class TestNothingFound:
    def test_penalty_too_high(self, kplus, data, out):
        words = ["--model", "bp-means", "--penalty", 1e9, "--plot", "-o", out]
        done = kplus("fit", data, *words)
        assert done.code == 0
        assert "0 features of 90 rows" in done.out
        assert "no feature that is worth the penalty" in done.err
        assert "lower --penalty" in done.err
        assert "There is no picture" in done.err
        left = sorted(p.name for p in out.iterdir())
        assert left == ["components.csv", "features.csv", "model.kplus", "report.html"]
        assert pl.read_csv(out / "features.csv").shape == (90, 1)
        assert pl.read_csv(out / "components.csv").shape == (0, 7)
        done = kplus("predict", out / "model.kplus", data)
        assert done.out == (out / "features.csv").read_text(), done.err
        result = kplus("fit", data, *words, "--force", "--json").json
        assert (result["n_components"], result["features"]) == (0, [])
        assert result["combinations"] == [{"features": [], "rows": 90, "share": 1.0}]

    @pytest.mark.parametrize("options", [[], ["--scale"]])
    def test_all_values_zero(self, kplus, tmp_path, out, options):
        (tmp_path / "x.csv").write_text("a,b\n" + "0,0\n" * 5)
        words = ["--model", "bp-means", "-o", out, *options]
        done = kplus("fit", tmp_path / "x.csv", *words)
        assert done.code == 0
        assert "0 features" in done.out
        assert "zero everywhere" in done.err
        result = kplus("fit", tmp_path / "x.csv", *words, "--force", "--json").json
        assert result["explained_variance"] is None


def test_progress_tells_of_features(X):
    lines = []
    model = library.BPMeans(penalty=50, random_state=0)
    model.set_callbacks(PassProgress(lines.append, "Finding features")).fit(X)
    assert lines[0].startswith("Finding features: pass 1, ")
    assert ", 3 features, objective " in lines[-1]
