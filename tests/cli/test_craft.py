"""craft on the command line: mixed tables, and the features that tell clusters."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

import kplus as library

Z = np.repeat([0, 1], [90, 60])


@pytest.fixture
def table():
    """Two groups in numbers, text and codes; one column says nothing. With gaps."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "size": rng.normal(8000.0 * Z, 1000.0).round(1),
            "color": np.where(rng.random(150) < 0.05 + 0.9 * Z, "red, bright", "blue"),
            "code": 2 * Z + rng.integers(3, 6, 150),
            "noise": rng.normal(0.0, 0.01, 150).round(4),
        }
    ).with_row_index("i")
    gaps = [
        pl.when(pl.col("i") % 7 != 0).then("size").alias("size"),
        pl.when(pl.col("i") % 5 != 0).then("color").alias("color"),
    ]
    return frame.with_columns(gaps).drop("i")


@pytest.fixture(params=["csv", "parquet"])
def mixed(request, tmp_path, table):
    path = tmp_path / f"mixed.{request.param}"
    getattr(table, f"write_{request.param}")(path)
    return path


@pytest.fixture
def fit(kplus, out):
    def call(path, *words):
        done = kplus("fit", path, "--model", "craft", "-o", out, *words)
        assert done.code == 0, done.err
        return done

    return call


def labels(folder):
    return pl.read_csv(folder / "labels.csv")["cluster"].to_numpy()


class TestFit:
    def test_finds_groups_and_writes_files(self, fit, mixed, out):
        fit(mixed)
        assert adjusted_rand_score(Z, labels(out)) > 0.9
        found = sorted(path.name for path in out.iterdir())
        assert found == ["description.csv", "labels.csv", "model.kplus", "report.html"]

    def test_prints_the_description(self, fit, mixed, out):
        done = fit(mixed)
        assert "craft: 2 clusters of 150 rows, 4 columns" in done.out
        assert "objective" in done.out
        assert "set apart by" in done.out
        told = library.load(out / "model.kplus").summary()
        for words in "; ".join(told["set_apart"]).split("; "):
            assert words in done.out
        # Units do not matter, so there is nothing to hint at.
        assert "Hint" not in done.err
        assert "Missing values, which were left out: 'size' 22, 'color' 30." in done.err

    def test_json(self, fit, mixed, out):
        result = fit(mixed, "--json").json
        model = library.load(out / "model.kplus")
        assert (result["model"], result["n_clusters"]) == ("craft", 2)
        assert result["objective"] == model.objective_
        assert result["penalty"] == model.penalty_
        assert result["missing"] == {"size": 22, "color": 30}
        assert result["files"]["description"] == str(out / "description.csv")
        sizes = np.bincount(labels(out)).tolist()
        assert [c["size"] for c in result["clusters"]] == sizes
        assert [c["cluster"] for c in result["clusters"]] == [0, 1]
        assert sum(c["share"] for c in result["clusters"]) == pytest.approx(1.0)
        names = {f["name"] for c in result["clusters"] for f in c["features"]}
        assert names
        assert "noise" not in names
        for cluster in result["clusters"]:
            scores = [f["score"] for f in cluster["features"]]
            assert scores == sorted(scores, reverse=True)
            for feature in cluster["features"]:
                numbers = set(feature) - {"name", "score", "here", "overall", "words"}
                assert numbers in ({"mean", "deviation"}, {"category", "share"})

    def test_description_is_that_of_the_model(self, fit, mixed, out):
        result = fit(mixed, "--json").json
        described = pl.read_csv(out / "description.csv")
        frame = library.load(out / "model.kplus").describe()
        columns = ["cluster", "rows", "share", "feature", "score", "here", "overall"]
        assert described.columns == columns
        for name in ("cluster", "feature", "here", "overall"):
            assert described[name].to_list() == pl.Series(frame[name]).to_list()
        told = [
            (c["cluster"], f["name"]) for c in result["clusters"] for f in c["features"]
        ]
        named = described.drop_nulls("feature")
        assert list(named.select("cluster", "feature").iter_rows()) == told

    def test_picture(self, fit, mixed, out):
        result = fit(mixed, "--plot", "--json").json
        assert result["files"]["plot"] == str(out / "clusters.png")
        assert (out / "clusters.png").read_bytes().startswith(b"\x89PNG")

    def test_codes_on_request(self, fit, mixed, out):
        fit(mixed, "--categorical", "code")
        model = library.load(out / "model.kplus")
        categories = model.categories_
        assert categories == (None, ("blue", "red, bright"), tuple("34567"), None)

    def test_options_reach_the_model(self, fit, mixed, out):
        words = ["--feature-fraction", 0.5, "--sharing", 0.25, "--numeric", "quantile"]
        words += ["--penalty", 12, "--max-clusters", 5, "--restarts", 2, "--seed", 3]
        words += ["--jobs", 1, "--max-iter", 50]
        done = fit(mixed, *words)
        assert "penalty 12, objective" in done.out
        params = library.load(out / "model.kplus").get_params()
        expected = {"feature_fraction": 0.5, "sharing": 0.25, "numeric": "quantile"}
        expected |= {"penalty": 12.0, "max_clusters": 5, "n_init": 2, "n_jobs": 1}
        expected |= {"random_state": 3, "max_iter": 50}
        assert expected.items() <= params.items()

    def test_sharing_of_nothing(self, fit, mixed, out):
        fit(mixed, "--sharing", 0)
        assert library.load(out / "model.kplus").sharing == 0.0

    def test_wished_number(self, fit, mixed):
        result = fit(mixed, "--clusters", 3, "--json").json
        assert result["n_clusters"] == 3

    def test_columns_and_drop(self, fit, mixed):
        result = fit(mixed, "--columns", "noise,size", "--json").json
        assert result["n_features"] == 2
        result = fit(
            mixed, "--drop", "size", "--drop", "noise", "--json", "--force"
        ).json
        assert result["n_features"] == 2

    def test_file_without_names(self, fit, tmp_path, X, out):
        np.save(tmp_path / "x.npy", X)
        result = fit(tmp_path / "x.npy", "--json", "--plot").json
        assert result["n_clusters"] == 3
        names = {f["name"] for c in result["clusters"] for f in c["features"]}
        assert names <= {"column 0", "column 1", "column 2"}
        assert set(pl.read_csv(out / "description.csv")["feature"]) - {None} == names

    def test_one_cluster(self, fit, tmp_path, out):
        rng = np.random.default_rng(0)
        path = tmp_path / "x.csv"
        pl.DataFrame(rng.normal(size=(100, 3)), schema=list("abc")).write_csv(path)
        done = fit(path, "--plot")
        assert "1 cluster of 100 rows" in done.out
        assert "--clusters makes more" in done.err
        assert pl.read_csv(out / "description.csv").shape == (1, 7)
        result = fit(path, "--json", "--force").json
        assert result["clusters"][0]["features"] == []

    def test_many_features_are_cut_short(self, fit, tmp_path):
        X, _, _ = library.datasets.make_subspace_clusters("3a", random_state=0)
        np.save(tmp_path / "x.npy", X)
        done = fit(tmp_path / "x.npy")
        assert "features more" in done.out

    def test_force_replaces_other_models(self, kplus, fit, mixed, out):
        fit(mixed, "--plot")
        kplus("fit", mixed, "-o", out, "--force")
        assert sorted(p.name for p in out.iterdir()) == [
            "labels.csv",
            "model.kplus",
            "report.html",
        ]


class TestMistakes:
    def test_values(self, kplus, tmp_path, out):
        cases = {"a,b\n1,2\n2,inf\n": ["'b' has 1 infinite value"]}
        cases["when,b\n2024-01-01,\n2024-01-02,\n"] = ["dates: when; empty: b"]
        for content, words in cases.items():
            (tmp_path / "x.csv").write_text(content)
            done = kplus("fit", tmp_path / "x.csv", "--model", "craft", "-o", out)
            assert (done.code, done.out) == (2, "")
            for word in words:
                assert word in done.err
            assert not out.exists()


class TestPredict:
    @pytest.mark.parametrize("options", [[], ["--categorical", "code"]])
    def test_gives_the_labels_of_the_fit(self, kplus, fit, mixed, out, options):
        fit(mixed, *options)
        done = kplus("predict", out / "model.kplus", mixed)
        assert done.out == (out / "labels.csv").read_text(), done.err

    def test_unknown_categories_as_missing(self, kplus, table, tmp_path):
        model = library.CRAFT(handle_unknown="missing", random_state=0).fit(table)
        library.save(model, tmp_path / "model.kplus")
        for color, name in (("green", "new"), (None, "none")):
            column = pl.lit(color, pl.String).alias("color")
            table.with_columns(column).write_csv(tmp_path / f"{name}.csv")
        found = kplus("predict", tmp_path / "model.kplus", tmp_path / "new.csv")
        assert found.code == 0, found.err
        expected = kplus("predict", tmp_path / "model.kplus", tmp_path / "none.csv")
        assert found.out == expected.out

    def test_categories_of_an_array(self, kplus, tmp_path):
        X, _, _ = library.datasets.make_subspace_clusters("2a", random_state=0)
        np.save(tmp_path / "x.npy", X)
        craft = library.CRAFT(categorical_features=list(range(24)), random_state=0).fit(
            X
        )
        library.save(craft, tmp_path / "model.kplus")
        words = [tmp_path / "model.kplus", tmp_path / "x.npy", "--json"]
        done = kplus("predict", *words)
        assert done.json["labels"] == craft.labels_.tolist(), done.err
