"""``kplus predict`` and ``kplus inspect``."""

import numpy as np
import polars as pl
import pytest

import kplus as library


@pytest.fixture(params=["dp-means", "dp-mixture"])
def model(request, kplus, data, out):
    words = ["--model", request.param, "--clusters", 3, "-o", out]
    assert kplus("fit", data, *words).code == 0
    return out / "model.kplus"


def test_prints_the_labels_of_the_fit(kplus, model, data):
    done = kplus("predict", model, data)
    assert (done.code, done.err) == (0, "")
    assert done.out == (model.parent / "labels.csv").read_text()


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_after_scaling(kplus, data, X, tmp_path, out, kind):
    np.save(tmp_path / "data.npy", X)
    path = tmp_path / f"data.{kind}"
    assert kplus("fit", path, "--scale", "--clusters", 4, "-o", out).code == 0
    done = kplus("predict", out / "model.kplus", path)
    assert done.out == (out / "labels.csv").read_text()


def test_scaled_model_refuses_unscaled_frames_in_python(kplus, data, out):
    kplus("fit", data, "--scale", "-o", out)
    model = library.load(out / "model.kplus")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pl.read_csv(data))


def test_columns_are_found_by_name(kplus, model, tmp_path, frame):
    frame.select("c", "id", "a", "b").write_csv(tmp_path / "other.csv")
    done = kplus("predict", model, tmp_path / "other.csv", "--index", "id")
    lines = (model.parent / "labels.csv").read_text().splitlines()[1:]
    expected = [f"{i:04d},{line.split(',')[1]}" for i, line in enumerate(lines)]
    assert done.out.splitlines() == ["id,cluster", *expected]


def test_array_without_names(kplus, model, tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    done = kplus("predict", model, tmp_path / "x.npy")
    assert done.code == 0
    assert done.out == (model.parent / "labels.csv").read_text()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_to_file(kplus, model, data, tmp_path, kind):
    target = tmp_path / f"new.{kind}"
    done = kplus("predict", model, data, "-o", target)
    assert (done.code, done.out) == (0, "")
    table = pl.read_csv(target) if kind == "csv" else pl.read_parquet(target)
    assert table["cluster"].to_list() == library.load(model).labels_.tolist()
    assert kplus("predict", model, data, "-o", target).code == 2
    assert kplus("predict", model, data, "-o", target, "--force").code == 0


def test_json(kplus, model, data, tmp_path):
    result = kplus("predict", model, data, "--json").json
    assert result["labels"] == library.load(model).labels_.tolist()
    target = tmp_path / "new.csv"
    result = kplus("predict", model, data, "--json", "-o", target).json
    assert result == {"n_rows": 120, "files": {"labels": str(target)}}


def test_wrong_columns(kplus, model, tmp_path, frame):
    frame.select("a", "b", d="c").write_csv(tmp_path / "x.csv")
    done = kplus("predict", model, tmp_path / "x.csv")
    assert done.code == 2
    assert "no column 'c'" in done.err
    assert "The model needs 'a', 'b', 'c'" in done.err


def test_wrong_number_of_columns(kplus, model, tmp_path, X):
    np.save(tmp_path / "x.npy", X[:, :2])
    done = kplus("predict", model, tmp_path / "x.npy")
    assert done.code == 2
    assert "has 2 columns, but the model was fitted on 3" in done.err


def test_missing_values(kplus, model, tmp_path):
    (tmp_path / "x.csv").write_text("a,b,c\n1,2,\n1,2,3\n")
    done = kplus("predict", model, tmp_path / "x.csv")
    assert done.code == 2
    assert "'c' has 1 missing value." in done.err


@pytest.mark.parametrize("command", [["predict"], ["inspect"]])
def test_damaged_model(kplus, model, data, command):
    model.write_bytes(model.read_bytes()[:-100])
    rest = [data] if command == ["predict"] else []
    done = kplus(*command, model, *rest)
    done.refuses("model.kplus")


def test_forged_scaling(kplus, data, out):
    kplus("fit", data, "--scale", "-o", out)
    model = library.load(out / "model.kplus")
    model.scaling_["mean"] = np.zeros(2)
    library.save(model, out / "model.kplus")
    done = kplus("predict", out / "model.kplus", data)
    assert done.code == 2
    assert "scaling" in done.err


def test_inspect(kplus, model):
    done = kplus("inspect", model)
    assert done.code == 0
    assert type(library.load(model)).__name__ in done.out
    assert "3 × 3 float64" in done.out


def test_inspect_json(kplus, model):
    result = kplus("inspect", model, "--json").json
    class_name = type(library.load(model)).__name__
    number, where = {
        "DPMeans": ("n_clusters", "cluster_centers_"),
        "DPMixture": ("n_components", "means_"),
    }[class_name]
    assert result["class_name"] == class_name
    assert result["params"][number] == 3
    assert result["attributes"][where]["shape"] == [3, 3]


@pytest.mark.parametrize("words", [[], ["--proba"], ["--scale"]])
@pytest.mark.parametrize("strange", [" ", ",", '"'])
def test_many_parts(kplus, frame, tmp_path, monkeypatch, words, strange):
    """As all at once, also where only the last part has text to be quoted."""
    ids = [*frame["id"][:-1], f"a{strange}b"]
    frame = frame.with_columns(id=pl.Series(ids))
    frame.write_parquet(tmp_path / "x.parquet", row_group_size=13)
    scale, proba = (words, []) if words == ["--scale"] else ([], words)
    out = tmp_path / "out"
    fitting = ["fit", tmp_path / "x.parquet", "--index", "id", *scale, "-o", out]
    assert kplus(*fitting).code == 0
    words = [out / "model.kplus", tmp_path / "x.parquet", "--index", "id", *proba]
    whole = kplus("predict", *words).out
    assert kplus("predict", *words, "-o", tmp_path / "whole.parquet").code == 0
    monkeypatch.setattr("kplus.io.answers.PART_ROWS", 1)
    monkeypatch.setattr("kplus.sources.blocks._BLOCK_BYTES", 1)
    assert kplus("predict", *words).out == whole
    assert kplus("predict", *words, "-o", tmp_path / "parts.csv").code == 0
    assert (tmp_path / "parts.csv").read_text() == whole
    assert kplus("predict", *words, "-o", tmp_path / "parts.parquet").code == 0
    parts = pl.read_parquet(tmp_path / "parts.parquet")
    assert parts.equals(pl.read_parquet(tmp_path / "whole.parquet"))
    assert parts["id"].to_list() == ids


def test_a_failure_leaves_what_was_there(kplus, model, data, tmp_path, monkeypatch):
    target = tmp_path / "labels.csv"
    target.write_text("before")
    monkeypatch.setattr("kplus.io.answers.PART_ROWS", 1)
    monkeypatch.setattr("kplus.sources.blocks._BLOCK_BYTES", 1)
    cls = type(library.load(model))
    predict, calls = cls.predict, []

    def failing(self, X):
        calls.append(X.n_rows)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        return predict(self, X)

    monkeypatch.setattr(cls, "predict", failing)
    done = kplus("predict", model, data, "-o", target, "--force")
    done.refuses("No space left")
    assert calls == [32, 32, 32]
    assert target.read_text() == "before"
