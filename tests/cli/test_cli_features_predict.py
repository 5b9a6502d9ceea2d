"""``kplus predict`` and ``kplus inspect`` with models of features."""

import numpy as np
import polars as pl
import pytest

import kplus as library


@pytest.fixture
def fit(kplus, data, out):
    def call(*words, path=data):
        options = ["--model", "k-features", "--components", 3, *words]
        done = kplus("fit", path, "-o", out, *options)
        assert done.code == 0, done.err

    return call


def bits_of(folder):
    return pl.read_csv(folder / "features.csv").drop("row").to_numpy()


@pytest.mark.parametrize("options", [[], ["--scale"]])
@pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
def test_repeats_the_fit(kplus, fit, tmp_path, frame, X, out, kind, options):
    path = tmp_path / f"again.{kind}"
    if kind == "npy":
        np.save(path, X)
    else:
        getattr(frame.drop("id"), f"write_{kind}")(path)
    fit(*options, path=path)
    done = kplus("predict", out / "model.kplus", path)
    assert (done.code, done.err) == (0, "")
    assert done.out == (out / "features.csv").read_text()


def test_columns_are_found_by_name(kplus, fit, tmp_path, frame, out):
    fit()
    frame.select("id", "c", "b", "a").write_csv(tmp_path / "other.csv")
    done = kplus("predict", out / "model.kplus", tmp_path / "other.csv")
    assert done.out == (out / "features.csv").read_text()


def test_file_and_json(kplus, fit, data, tmp_path, out):
    fit()
    target = tmp_path / "bits.parquet"
    words = ["predict", out / "model.kplus", data, "--json"]
    result = kplus(*words, "-o", target).json
    assert result == {"n_rows": 120, "files": {"features": str(target)}}
    bits = pl.read_parquet(target).drop("row").to_numpy()
    np.testing.assert_array_equal(bits, bits_of(out))
    assert kplus(*words).json == {"n_rows": 120, "features": bits.tolist()}


def test_no_shares(kplus, fit, data, out):
    fit()
    done = kplus("predict", out / "model.kplus", data, "--proba")
    assert (done.code, done.out) == (2, "")
    assert "KFeatures has no shares" in done.err


def test_model_with_sparse_output(kplus, data, tmp_path):
    model = library.BPMeans(penalty=50, sparse_output=True, random_state=0)
    library.save(model.fit(pl.read_csv(data)), tmp_path / "m.kplus")
    done = kplus("predict", tmp_path / "m.kplus", data)
    assert done.code == 0, done.err
    assert done.out.startswith("row,feature 0,")


def test_inspect(kplus, fit, out):
    fit()
    done = kplus("inspect", out / "model.kplus")
    assert done.code == 0
    assert "KFeatures" in done.out
    assert "3 × 3 float64" in done.out
    info = kplus("inspect", out / "model.kplus", "--json").json
    assert info["class_name"] == "KFeatures"
