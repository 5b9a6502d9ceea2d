"""``kplus predict`` and ``kplus inspect``."""

import numpy as np
import polars as pl
import pytest

import kplus as library
from kplus.cli.scaling import takes_missing


@pytest.fixture(params=["dp-means", "dp-mixture", "k-features"])
def model(request, kplus, data, out):
    words = ["--model", request.param, "--clusters", 3, "-o", out]
    assert kplus("fit", data, *words).code == 0
    return out / "model.kplus"


def said(model):
    """The table of rows that the fit wrote."""
    names = ("labels", "features")
    (path,) = (path for path in model.parent.iterdir() if path.stem in names)
    return path.read_text()


def test_prints_what_the_fit_wrote(kplus, model, data):
    done = kplus("predict", model, data)
    assert (done.code, done.err) == (0, "")
    assert done.out == said(model)


@pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
@pytest.mark.parametrize("name", ["dp-mixture", "k-features"])
def test_after_scaling(kplus, frame, X, tmp_path, out, kind, name):
    path = tmp_path / f"again.{kind}"
    if kind == "npy":
        np.save(path, X)
    else:
        getattr(frame.drop("id"), f"write_{kind}")(path)
    words = ["--model", name, "--scale", "--clusters", 4, "-o", out]
    assert kplus("fit", path, *words).code == 0
    done = kplus("predict", out / "model.kplus", path)
    assert done.out == said(out / "model.kplus")


def test_scaled_model_refuses_unscaled_frames_in_python(kplus, data, out):
    kplus("fit", data, "--scale", "-o", out)
    model = library.load(out / "model.kplus")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pl.read_csv(data))


def test_columns_are_found_by_name(kplus, model, tmp_path, frame):
    frame.select("c", "id", "a", "b").write_csv(tmp_path / "other.csv")
    done = kplus("predict", model, tmp_path / "other.csv", "--index", "id")
    header, *lines = (line.partition(",")[2] for line in said(model).splitlines())
    expected = [f"{i:04d},{line}" for i, line in enumerate(lines)]
    assert done.out.splitlines() == [f"id,{header}", *expected]


def test_array_without_names(kplus, model, tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    done = kplus("predict", model, tmp_path / "x.npy")
    assert done.code == 0
    assert done.out == said(model)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_to_file(kplus, model, data, tmp_path, kind):
    target = tmp_path / f"new.{kind}"
    done = kplus("predict", model, data, "-o", target)
    assert (done.code, done.out) == (0, "")
    table = pl.read_csv(target) if kind == "csv" else pl.read_parquet(target)
    assert table.write_csv() == said(model)
    assert kplus("predict", model, data, "-o", target).code == 2
    assert kplus("predict", model, data, "-o", target, "--force").code == 0


def test_json(kplus, model, data, tmp_path):
    table = pl.read_csv(said(model).encode()).drop("row")
    main, rows = "features", table.to_numpy()
    if table.columns == ["cluster"]:
        main, rows = "labels", table["cluster"].to_numpy()
    result = kplus("predict", model, data, "--json").json
    assert result == {"n_rows": 120, main: rows.tolist()}
    target = tmp_path / "new.csv"
    result = kplus("predict", model, data, "--json", "-o", target).json
    assert result == {"n_rows": 120, "files": {main: str(target)}}


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
    if takes_missing(library.load(model)):
        assert done.code == 0
        return
    assert done.code == 2
    assert "'c' has 1 missing value." in done.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dp-means", "a DPMeans has no shares; a row is in one cluster."),
        ("craft", "a CRAFT has no shares; a row is in one cluster."),
        ("k-features", "a KFeatures has no shares; a row has a feature or has it not."),
    ],
)
def test_no_shares(kplus, data, out, name, words):
    kplus("fit", data, "--model", name, "--clusters", 3, "-o", out)
    done = kplus("predict", out / "model.kplus", data, "--proba")
    done.refuses(f"--proba: {words}")


def test_model_with_sparse_output(kplus, data, tmp_path):
    model = library.BPMeans(penalty=50, sparse_output=True, random_state=0)
    library.save(model.fit(pl.read_csv(data)), tmp_path / "m.kplus")
    done = kplus("predict", tmp_path / "m.kplus", data)
    assert done.code == 0, done.err
    assert done.out.startswith("row,feature 0,")


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
    told = library.load(model).summary()
    assert "sureness" in done.out
    assert "dtype" not in done.out
    for words in "; ".join(told["set_apart"]).split("; "):
        assert words in done.out


def test_inspect_tells_groups_in_units_of_the_file(kplus, data, out):
    kplus("fit", data, "--scale", "--clusters", 3, "--seed", 7, "-o", out)
    fitted = (out / "model.kplus", "--json")
    told = kplus("inspect", *fitted).json["summary"]
    said = kplus(
        "fit",
        data,
        "--scale",
        "--clusters",
        3,
        "--seed",
        7,
        "-o",
        out,
        "--force",
        "--json",
    ).json["clusters"]
    for line, cluster in zip(told, said, strict=True):
        words = [column["words"] for column in cluster["columns"]]
        assert line["set_apart"] == "; ".join(words[:3])
    shown = kplus("inspect", out / "model.kplus").out
    assert "random_state" in shown  # which was set
    assert "max_iter" not in shown  # which was not


def test_inspect_json(kplus, model):
    result = kplus("inspect", model, "--json").json
    class_name = type(library.load(model)).__name__
    number, where = {
        "DPMeans": ("n_clusters", "cluster_centers_"),
        "DPMixture": ("n_clusters", "means_"),
        "KFeatures": ("n_components", "components_"),
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
    monkeypatch.setattr("kplus.base.answers.PART_ROWS", 1)
    monkeypatch.setattr("kplus.data.blocks._BLOCK_BYTES", 1)
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
    monkeypatch.setattr("kplus.base.answers.PART_ROWS", 1)
    monkeypatch.setattr("kplus.data.blocks._BLOCK_BYTES", 1)
    cls = type(library.load(model))
    name = "predict" if hasattr(cls, "predict") else "transform"
    answer, calls = getattr(cls, name), []

    def failing(self, X):
        calls.append(X.n_rows)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        return answer(self, X)

    monkeypatch.setattr(cls, name, failing)
    done = kplus("predict", model, data, "-o", target, "--force")
    done.refuses("No space left")
    assert calls == [32, 32, 32]
    assert target.read_text() == "before"
