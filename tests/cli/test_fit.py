"""``kplus fit``: what it writes and prints."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kplus as library
from kplus.cli.console import PassProgress


def labels(folder):
    return pl.read_csv(folder / "labels.csv", schema_overrides={"id": pl.String})


def groups(labels):
    """Labels renumbered by first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].tolist()


TRUTH = [0] * 40 + [1] * 40 + [2] * 40


def test_writes_labels_and_model(kplus, data, out):
    done = kplus("fit", data, "--model", "dp-means", "--clusters", 3, "-o", out)
    assert done.code == 0, done.err
    assert sorted(p.name for p in out.iterdir()) == [
        "labels.csv",
        "model.kplus",
        "report.html",
    ]
    table = labels(out)
    assert table.columns == ["row", "cluster"]
    assert table["row"].to_list() == list(range(120))
    assert groups(table["cluster"]) == TRUTH
    model = library.load(out / "model.kplus")
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.labels_.tolist() == table["cluster"].to_list()


def test_prints_table_to_stdout_and_files_to_stderr(kplus, data, out):
    done = kplus("fit", data, "--clusters", 3, "-o", out)
    assert "3 clusters of 120 rows" in done.out
    assert "33.3%" in done.out
    assert "set apart by" in done.out
    assert re.search(r"a high \(1\d\.\d, overall 3\.\d\)|a high \(\d", done.out)
    assert "Wrote" not in done.out
    assert f"Wrote {out / 'labels.csv'}" in done.err


def test_json(kplus, data, out):
    words = ["--model", "dp-means", "--clusters", 3, "--json", "--plot"]
    done = kplus("fit", data, "-o", out, *words)
    result = done.json
    assert (result["n_rows"], result["n_features"], result["n_clusters"]) == (120, 3, 3)
    assert result["files"] == {
        "labels": str(out / "labels.csv"),
        "model": str(out / "model.kplus"),
        "plot": str(out / "clusters.png"),
        "report": str(out / "report.html"),
    }
    assert {"objective", "penalty", "iterations", "seconds"} < set(result)
    assert [c["size"] for c in result["clusters"]] == [40, 40, 40]
    assert sum(c["share"] for c in result["clusters"]) == pytest.approx(1)
    model = library.load(out / "model.kplus")
    told = model.summary()
    assert [c["sureness"] for c in result["clusters"]] == told["sureness"].tolist()
    assert [c["name"] for c in result["clusters"]] == told["name"].tolist()
    for cluster, apart in zip(result["clusters"], told["set_apart"], strict=True):
        words = [column["words"] for column in cluster["columns"]]
        assert "; ".join(words[:3]) == apart


def test_telling_columns_are_in_units_of_the_file(kplus, data, X, out):
    for options in ([], ["--scale", "--force"]):
        done = kplus("fit", data, "--clusters", 3, "-o", out, "--json", *options)
        cluster = done.json["clusters"][labels(out)["cluster"][50]]
        (column,) = (c for c in cluster["columns"] if c["name"] == "a")
        assert column["mean"] == pytest.approx(X[40:80, 0].mean())
        assert column["deviation"] == pytest.approx(
            (X[40:80, 0].mean() - X[:, 0].mean()) / X[:, 0].std()
        )


def test_quiet(kplus, data, out):
    done = kplus("fit", data, "--clusters", 3, "-o", out, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_plot(kplus, data, out):
    pytest.importorskip("matplotlib")
    assert kplus("fit", data, "--clusters", 3, "-o", out, "--plot").code == 0
    assert (out / "clusters.png").read_bytes().startswith(b"\x89PNG")


def test_finds_the_number_itself(kplus, data, out):
    assert kplus("fit", data, "-o", out, "--json").json["n_clusters"] == 3


def test_penalty_is_a_squared_distance(kplus, data, out):
    words = ["--model", "dp-means", "--json", "--penalty", 100]
    done = kplus("fit", data, "-o", out, *words)
    assert done.json["n_clusters"] == 3
    assert done.json["penalty"] == 100


def test_many_clusters_show_the_largest(kplus, data, out):
    done = kplus("fit", data, "--model", "dp-means", "--clusters", 30, "-o", out)
    assert "30 clusters" in done.out
    assert "the largest 20" in done.out


@pytest.mark.parametrize("options", [[], ["--scale"], ["--clusters", 1]])
@pytest.mark.parametrize("n", [1, 3])
def test_equal_rows(kplus, tmp_path, out, options, n):
    (tmp_path / "x.csv").write_text("a,b,c\n" + "1,2,3\n" * n)
    done = kplus("fit", tmp_path / "x.csv", "-o", out, "--plot", *options)
    assert done.code == 0, done.err
    assert f"1 cluster of {n} row" in done.out


class TestSources:
    def test_same_labels_from_every_kind(self, kplus, tmp_path, frame, X, data):
        frame.drop("id").write_parquet(tmp_path / "data.parquet")
        np.save(tmp_path / "data.npy", X)
        found = []
        for kind in ("csv", "parquet", "npy"):
            out = tmp_path / kind
            done = kplus("fit", tmp_path / f"data.{kind}", "--clusters", 5, "-o", out)
            assert done.code == 0, done.err
            found.append(labels(out)["cluster"].to_list())
        assert found[0] == found[1] == found[2]

    def test_parquet_labels(self, kplus, named, out):
        kplus("fit", named, "--index", "id", "-o", out, "--format", "parquet")
        table = pl.read_parquet(out / "labels.parquet")
        assert table.schema == {"id": pl.String, "cluster": pl.Int32}

    def test_index_of_pandas(self, kplus, tmp_path, X, out):
        frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(120) + 7)
        frame.to_parquet(tmp_path / "p.parquet")
        assert (
            kplus("fit", tmp_path / "p.parquet", "-o", out, "--json").json["n_features"]
            == 3
        )
        assert (out / "labels.csv").read_text().startswith(",cluster\n7,")

    def test_row_names_without_a_header(self, kplus, tmp_path, X, out):
        frame = pd.DataFrame(X, columns=list("abc")).rename(index="r{}".format)
        frame.to_csv(tmp_path / "p.csv")
        assert kplus("fit", tmp_path / "p.csv", "-o", out).code == 0
        assert (out / "labels.csv").read_text().startswith(",cluster\nr0,")


class TestColumns:
    def test_index_is_kept_as_written(self, kplus, named, out):
        assert kplus("fit", named, "--index", "id", "-o", out).code == 0
        table = labels(out)
        assert table.columns == ["id", "cluster"]
        assert table["id"].to_list() == [f"{i:04d}" for i in range(120)]

    def test_index_that_needs_quotes(self, kplus, tmp_path, frame, out):
        strange = ['a,"b"', "line\nbreak", *frame["id"][2:]]
        frame = frame.with_columns(pl.Series("id, or name", strange)).drop("id")
        frame.write_csv(tmp_path / "q.csv")
        assert kplus("fit", tmp_path / "q.csv", "--index", "id, or name", "-o", out)
        table = pl.read_csv(out / "labels.csv")
        assert table["id, or name"].to_list() == strange

    @pytest.mark.parametrize(
        "options",
        [
            ["--columns", "b,a"],
            ["--columns", "b, a", "--index", "id"],
            ["--drop", "id", "--drop", "c"],
            ["--index", "id", "--drop", "c"],
        ],
    )
    def test_choice(self, kplus, named, out, options):
        done = kplus("fit", named, "-o", out, "--json", *options)
        assert done.json["n_features"] == 2
        names = library.load(out / "model.kplus").feature_names_in_
        assert sorted(names) == ["a", "b"]

    def test_hint_about_scales(self, kplus, tmp_path, frame, out):
        frame = frame.drop("id").with_columns(pl.col("c") * 1000)
        frame.write_csv(tmp_path / "s.csv")
        words = ["fit", tmp_path / "s.csv", "--model", "dp-means", "-o", out]
        done = kplus(*words)
        assert "Hint: column 'c' varies" in done.err
        done = kplus(*words, "--scale", "--force")
        assert "Hint" not in done.err

    def test_scale_makes_units_irrelevant(self, kplus, tmp_path, frame, out):
        frame = frame.with_columns(pl.col("c") * 1e6 + 1e7, constant=pl.lit(3))
        frame.drop("id").write_csv(tmp_path / "s.csv")
        done = kplus("fit", tmp_path / "s.csv", "-o", out, "--scale", "--json")
        assert done.json["n_clusters"] == 3
        assert groups(labels(out)["cluster"]) == TRUTH


class TestOutput:
    def test_makes_parents(self, kplus, data, tmp_path):
        assert kplus("fit", data, "-o", tmp_path / "x" / "y" / "z").code == 0
        assert (tmp_path / "x" / "y" / "z" / "labels.csv").exists()

    def test_existing_folder_keeps_other_files(self, kplus, data, out):
        out.mkdir()
        (out / "notes.txt").write_text("mine")
        assert kplus("fit", data, "-o", out).code == 0
        assert sorted(p.name for p in out.iterdir()) == [
            "labels.csv",
            "model.kplus",
            "notes.txt",
            "report.html",
        ]

    def test_does_not_overwrite_unasked(self, kplus, data, out):
        kplus("fit", data, "-o", out)
        before = (out / "model.kplus").read_bytes()
        done = kplus("fit", data, "-o", out, "--clusters", 2)
        assert done.code == 2
        assert "--force" in done.err
        assert (out / "model.kplus").read_bytes() == before

    def test_force_replaces_all_of_an_earlier_run(self, kplus, data, out):
        kplus("fit", data, "-o", out, "--plot")
        done = kplus("fit", data, "-o", out, "--force", "--format", "parquet")
        assert done.code == 0
        assert sorted(p.name for p in out.iterdir()) == [
            "labels.parquet",
            "model.kplus",
            "report.html",
        ]

    def test_relative_folder(self, kplus, data, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        done = kplus("fit", "data.csv", "-o", "out", "--json")
        assert done.json["files"]["labels"] == "out/labels.csv"

    @pytest.mark.parametrize("there", [True, False])
    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_failure_leaves_nothing(
        self, kplus, data, tmp_path, out, monkeypatch, there, error
    ):
        def fail(table, pieces, file, *others):
            file.write(b"half")
            raise error("no more")

        if there:
            out.mkdir()
        monkeypatch.setattr("kplus.cli.fit.write_rows", fail)
        before = sorted(tmp_path.rglob("*"))
        if error is RuntimeError:
            with pytest.raises(RuntimeError):
                kplus("fit", data, "-o", out)
        else:
            assert kplus("fit", data, "-o", out).code == 130
        assert sorted(tmp_path.rglob("*")) == before


def test_progress_tells_of_passes(X):
    lines = []
    model = library.DPMeans(penalty=100.0, random_state=0)
    model.set_callbacks(PassProgress(lines.append)).fit(X)
    assert [line.split(", ")[0] for line in lines] == [
        f"Clustering: pass {i + 1}" for i in range(model.n_iter_)
    ]
    assert all(line.endswith(" rows/s") for line in lines)
    assert f"3 clusters, objective {model.objective_history_[-1]:.6g}," in lines[-1]


def test_drop_also_counts_among_chosen_columns(kplus, named, out):
    words = ["--columns", "a,b", "--drop", "b", "--json"]
    done = kplus("fit", named, *words, "-o", out)
    assert done.json["n_features"] == 1


def test_cells_make_clusters_of_any_shape(kplus, tmp_path, out):
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 800)
    ring = 5 * np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.concatenate([ring, np.zeros((200, 2))]) + rng.normal(0, 0.3, (1000, 2))
    path = tmp_path / "ring.npy"
    np.save(path, X)
    words = ("fit", path, "-o", out, "--model", "dp-means", "--force")
    done = kplus(*words, "--cells", "auto")
    assert "dp-means: 2 clusters of 1,000 rows" in done.out
    assert "joined from 25 cells, clear cut, objective" in done.out
    result = kplus(*words, "--cells", "30", "--clusters", "3", "--json").json
    assert (result["n_clusters"], result["n_cells"]) == (3, 30)
    assert 0.0 <= result["clearness"] <= 1.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--model", "dp-means", "--cells", "many"),
            "must be one of auto, if_needed or at least 1",
        ),
        (("--model", "dp-means", "--cells", "0"), "must be at least 1"),
        (("--cells", "9"), "--cells is for --model dp-means, not dp-mixture"),
        (
            ("--model", "dp-means", "--cells", "9", "--penalty", "2"),
            "Give --penalty or --cells, not both",
        ),
    ],
)
def test_cells_that_are_none(kplus, data, out, words, message):
    assert message in kplus("fit", data, "-o", out, *words).err
