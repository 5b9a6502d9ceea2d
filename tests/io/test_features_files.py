"""Model files of latent features: sums of streams, paths, forgeries."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from kplus import BPMeans, KFeatures
from kplus.io import ArrayInfo, inspect, load, save

RNG = np.random.default_rng(0)
X = (RNG.random((50, 2)) < 0.5) @ [[4.0, 4, 0], [0, 0, 3]] + RNG.normal(
    scale=0.1, size=(50, 3)
)
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
CASES = {
    "penalty": (BPMeans(9.0), X),
    "auto": (BPMeans(), X),
    "number": (BPMeans(n_components=2), X),
    "sparse": (KFeatures(2, sparse_output=True), X),
    "stepwise": (KFeatures(penalty=9.0), X),
    "gaps": (KFeatures(2), GAPS),
}


def bits(value):
    value = value.toarray() if hasattr(value, "toarray") else np.asarray(value)
    return value.dtype, value.shape, value.tobytes()


@pytest.fixture(params=CASES)
def case(request):
    model, rows = CASES[request.param]
    return model.set_params(random_state=0).fit(rows), rows


def test_a_loaded_model_does_all_that_the_saved_one_did(case, tmp_path):
    model, rows = case
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys()
    for name in vars(model).keys() - {"_sums"}:
        if name.endswith("_"):
            assert bits(getattr(again, name)) == bits(getattr(model, name)), name
    assert again.get_params() == model.get_params()
    assert bits(again.transform(rows)) == bits(model.transform(rows))
    assert again.score(rows) == model.score(rows)
    Z = model.transform(rows)
    assert bits(again.inverse_transform(Z)) == bits(model.inverse_transform(Z))
    again.fit(rows)  # the parameters came back, too


def test_a_loaded_stream_goes_on(case, tmp_path):
    model, rows = case
    model = type(model)(**model.get_params()).partial_fit(rows[:30])
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for rest in (rows[30:40], rows[40:]):
        model.partial_fit(rest)
        again.partial_fit(rest)
        assert bits(again.components_) == bits(model.components_)
        assert bits(again.feature_counts_) == bits(model.feature_counts_)
        assert again.objective_ == model.objective_


def test_equal_models_make_equal_files(case, tmp_path):
    model, _ = case
    save(model, tmp_path / "a.npz")
    save(load(tmp_path / "a.npz"), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_names_and_inspect(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "größe"])
    model = KFeatures(penalty=9.0, random_state=0).fit(frame)
    save(model, tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").feature_names_in_.tolist() == list(frame)
    info = inspect(tmp_path / "model.npz")
    assert info.class_name == "KFeatures"
    assert info.params["penalty"] == 9.0
    assert info.attributes["components_"] == ArrayInfo("float64", (2, 3))
    assert list(info.attributes["path_"]) == ["n_components", "error", "objective"]


def test_a_model_without_features(tmp_path):
    model = BPMeans(1e9)
    with pytest.warns(UserWarning, match="no feature"):
        model.fit(X)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.transform(X).shape == (50, 0)
    assert bits(again.components_) == bits(model.components_)


# -------------------------------------------------------------------- forgeries


def forge(tmp_path, change):
    """A model file whose manifest was changed after it was written."""
    path = tmp_path / "model.npz"
    save(BPMeans(9.0, random_state=0).fit(X), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest)
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def other_number_of_columns(manifest):
    manifest["attributes"]["n_features_in_"] = 4


def other_number_of_features(manifest):
    manifest["attributes"]["n_components_"] = 3


def swapped_sums(manifest):
    state = manifest["state"]
    state["S"], state["T"] = state["T"], state["S"]


def swapped_counts(manifest):
    attributes, state = manifest["attributes"], manifest["state"]
    attributes["feature_counts_"], state["T"] = (
        state["T"],
        attributes["feature_counts_"],
    )


def no_error(manifest):
    manifest["state"]["error"] = "much"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_number_of_columns, r"components_ has shape \(2, 3\), not \(2, 4\)"),
        (other_number_of_features, r"components_ has shape \(2, 3\), not \(3, 3\)"),
        (swapped_sums, r"S has shape \(2, 3\), not \(2, 2\)"),
        (swapped_counts, "feature_counts_ has shape"),
        (no_error, "do not make a BPMeans: could not convert"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_forged_files(refuse, tmp_path, change, message):
    refuse(forge(tmp_path, change), message)


def test_state_that_is_missing(refuse, tmp_path):
    def without_weight(manifest):
        del manifest["state"]["weight"]

    refuse(forge(tmp_path, without_weight), "do not make a BPMeans: 'weight'")
