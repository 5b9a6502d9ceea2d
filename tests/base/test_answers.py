"""Answers of models, written part by part."""

import os

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import kplus
from kplus import CRAFT, DPMeans, DPMixture, KFeatures
from kplus.base import answers

pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of 64 rows, of blocks with 32."""
    monkeypatch.setattr(answers, "PART_ROWS", 64)
    monkeypatch.setattr("kplus.data.blocks._BLOCK_BYTES", 1)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0, 0], [10, 0, 5], [0, 10, -5]])
    return centers[rng.integers(0, 3, 500)] + rng.normal(size=(500, 3))


@pytest.fixture
def frame(X):
    color = pl.Series("color", ["red", "blue"]).gather((X[:, 0] > 5).astype(int))
    return pl.DataFrame(X, ["a", "b", "c"]).with_columns(color)


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    table = pl.read_parquet(path).to_numpy()
    return table[:, 0] if table.shape[1] == 1 else table


def kinds(X, folder):
    """The same rows in memory, in files and in blocks of one's own."""

    class Own:
        n_rows, n_features, block_rows = 500, 3, 70

        def read(self, index):
            return X[index * 70 : (index + 1) * 70]

    names = ["a", "b", "c"]
    frame = pl.DataFrame(X, names)
    np.save(folder / "x.npy", X)
    frame.write_parquet(folder / "x.parquet", row_group_size=45)
    frame.write_csv(folder / "x.csv")
    kplus.convert(folder / "x.csv", folder / "rows")
    yield from (X, X.tolist(), sp.coo_array(X), Own(), folder / "x.npy")
    yield from (frame, frame.to_pandas(), folder / "x.parquet", str(folder / "x.csv"))
    yield kplus.open_files(folder / "x.parquet", names)
    yield folder / "rows"


@pytest.mark.parametrize(
    "model",
    [
        DPMeans(penalty=20.0, random_state=0),
        DPMeans(penalty=20.0, batch_size=50, random_state=0),
        DPMixture(random_state=0),
    ],
)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_labels_are_those_of_predict(X, tmp_path, model):
    model = type(model)(**model.get_params()).fit(X)
    expected = model.predict(X)
    for number, rows in enumerate(kinds(X, tmp_path)):
        if model.get_params().get("batch_size") and hasattr(rows, "block_rows"):
            continue  # has blocks of its own
        for kind in ("npy", "parquet"):
            path = tmp_path / f"{number}.{kind}"
            kplus.write_answers(model.predict, rows, path)
            np.testing.assert_array_equal(read(path), expected)
    assert np.load(tmp_path / "0.npy").dtype == expected.dtype
    assert pl.read_parquet(tmp_path / "0.parquet").columns == ["cluster"]


def test_shares(X, tmp_path):
    model = DPMixture(random_state=0).fit(X)
    np.save(tmp_path / "x.npy", X)
    expected = model.predict_proba(X)
    for kind in ("npy", "parquet", "pq"):
        path = tmp_path / f"p.{kind}"
        kplus.write_answers(model.predict_proba, tmp_path / "x.npy", path)
        np.testing.assert_array_equal(read(path), expected)
    names = pl.read_parquet(tmp_path / "p.parquet").columns
    assert names == [f"share {k}" for k in range(model.n_clusters_)]


@pytest.mark.parametrize("sparse", [False, True])
def test_features(X, tmp_path, sparse):
    model = KFeatures(n_components=3, sparse_output=sparse, random_state=0).fit(X)
    np.save(tmp_path / "x.npy", X)
    Z = model.transform(X)
    Z = Z.toarray() if sparse else Z
    for kind in ("npy", "parquet"):
        path = tmp_path / f"Z.{kind}"
        kplus.write_answers(model.transform, tmp_path / "x.npy", path)
        np.testing.assert_array_equal(read(path), Z)
    assert pl.read_parquet(path).columns == ["feature 0", "feature 1", "feature 2"]


@pytest.mark.parametrize("model", [CRAFT(n_clusters=3), DPMixture("mixed")])
def test_categories(frame, tmp_path, model):
    model = type(model)(**model.get_params()).set_params(random_state=0).fit(frame)
    frame.write_parquet(tmp_path / "x.parquet", row_group_size=45)
    kplus.convert(tmp_path / "x.parquet", tmp_path / "rows")
    later = frame.with_columns(color=pl.lit("blue"))
    later.write_parquet(tmp_path / "later.parquet")
    kplus.convert(tmp_path / "later.parquet", tmp_path / "later", keep=["color"])
    for rows in (
        frame,
        frame.to_pandas(),
        frame.to_arrow(),
        tmp_path / "x.parquet",
        tmp_path / "rows",
    ):
        kplus.write_answers(model.predict, rows, tmp_path / "labels.npy")
        np.testing.assert_array_equal(read(tmp_path / "labels.npy"), model.labels_)
    kplus.write_answers(model.predict, tmp_path / "later", tmp_path / "labels.npy")
    np.testing.assert_array_equal(read(tmp_path / "labels.npy"), model.predict(later))


def test_categories_by_position(X, tmp_path):
    X = np.column_stack([X, X[:, 0] > 5])
    model = CRAFT(n_clusters=3, categorical_features=[3], random_state=0).fit(X)
    np.save(tmp_path / "x.npy", X)
    kplus.write_answers(model.predict, tmp_path / "x.npy", tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), model.labels_)


@pytest.mark.dask
def test_dask(X, tmp_path):
    array = pytest.importorskip("dask.array")
    model = DPMeans(penalty=20.0, random_state=0).fit(X)
    rows = array.from_array(X, chunks=(130, 3))
    kplus.write_answers(model.predict, rows, tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), model.labels_)


def test_parts_are_small(X, tmp_path):
    model = DPMeans(penalty=20.0, random_state=0).fit(X)
    np.save(tmp_path / "x.npy", X)
    for rows in (X, tmp_path / "x.npy", pl.DataFrame(X)):
        n_rows, parts = answers.parts_of(model, rows)
        sizes = [getattr(part, "n_rows", None) or len(part) for part in parts]
        assert n_rows == sum(sizes) == 500
        assert max(sizes) == 64


def test_a_failure_leaves_what_was_there(X, tmp_path):
    model = DPMeans(penalty=20.0, random_state=0).fit(X)
    np.save(tmp_path / "x.npy", X)
    bad = X.copy()
    bad[400] = np.nan
    for kind in ("npy", "parquet"):
        path = tmp_path / f"labels.{kind}"
        path.write_text("before")
        with pytest.raises(ValueError, match="NaN"):
            kplus.write_answers(model.predict, bad, path)
        assert path.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["labels.npy", "labels.parquet", "x.npy"]


def test_mistakes(X, tmp_path):
    model = DPMeans(penalty=20.0, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"labels.csv: .* \.npy or \.parquet"):
        kplus.write_answers(model.predict, X, tmp_path / "labels.csv")
    with pytest.raises(TypeError, match=r"model\.predict"):
        kplus.write_answers(len, X, tmp_path / "labels.npy")
    with pytest.raises(TypeError, match=r"model\.predict"):
        kplus.write_answers(model, X, tmp_path / "labels.npy")
