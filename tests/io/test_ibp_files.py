"""Model files of the Indian buffet process: round trips and forgeries."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from kplus import MEIBP, IBPGibbs, IBPVariational
from kplus.io import ArrayInfo, inspect, load, save

RNG = np.random.default_rng(0)
X = (RNG.random((50, 2)) < 0.5) @ [[4.0, 4, 0], [0, 0, 3]] + RNG.normal(
    scale=0.1, size=(50, 3)
)
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
GAPS[:, 0] = X[:, 0]  # no row without any value
CASES = {
    "nonnegative": (MEIBP(negative="noise"), X),
    "shifted": (MEIBP(4, negative="shift"), X - 7.0),
    "gaps": (MEIBP(negative="noise"), GAPS),
    "gaussian": (MEIBP(factor_prior="gaussian"), X),
    "gaussian with gaps": (MEIBP(factor_prior="gaussian", noise_scale=0.1), GAPS),
    "sampler": (IBPGibbs(n_samples=9, burn_in=3, store_samples=True), X),
    "sampler with gaps": (IBPGibbs(sampler="collapsed", n_samples=5), GAPS),
    "nonnegative sampler": (
        IBPGibbs(
            5, sampler="uncollapsed", prior="nonnegative", negative="shift", n_samples=5
        ),
        X,
    ),
    "finite": (IBPVariational(4), X),
    "infinite with gaps": (IBPVariational(4, process="infinite"), GAPS),
}


def bits(value):
    value = np.asarray(value)
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
    for name in vars(model):
        if name.endswith("_"):
            assert bits(getattr(again, name)) == bits(getattr(model, name)), name
    assert again.get_params() == model.get_params()
    assert bits(again.transform(rows)) == bits(model.transform(rows))
    assert bits(again.impute(rows)) == bits(model.impute(rows))
    assert again.score(rows) == model.score(rows)
    for part, other in zip(again.sample(5), model.sample(5), strict=True):
        assert bits(part) == bits(other)
    again.fit(rows)  # the parameters came back, too


def test_a_loaded_model_starts_warm(tmp_path):
    model = MEIBP(negative="noise", warm_start=True, random_state=0).fit(X)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz").fit(X)
    assert bits(again.components_) == bits(model.fit(X).components_)


def test_samples_come_back(tmp_path):
    model = IBPGibbs(n_samples=9, store_samples=True, random_state=0).fit(X)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert bits(again.comembership()) == bits(model.comembership())


def test_a_model_within_a_model_is_refused(tmp_path):
    start = MEIBP(negative="noise", random_state=0).fit(X)
    model = IBPGibbs(init=start, n_samples=3, random_state=0).fit(X)
    with pytest.raises(
        TypeError, match=r"init is a .*MEIBP, which a model file cannot"
    ):
        save(model, tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()
    save(model.set_params(init=None), tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert bits(again.transform(X)) == bits(model.transform(X))


def test_equal_models_make_equal_files(case, tmp_path):
    model, _ = case
    save(model, tmp_path / "a.npz")
    save(load(tmp_path / "a.npz"), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_names_and_inspect(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "größe"])
    model = MEIBP(negative="noise", random_state=0).fit(frame)
    save(model, tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").feature_names_in_.tolist() == list(frame)
    info = inspect(tmp_path / "model.npz")
    assert info.class_name == "MEIBP"
    assert info.params["negative"] == "noise"
    assert info.attributes["components_"] == ArrayInfo("float64", (2, 3))
    assert info.attributes["noise_scale_"] == model.noise_scale_


# -------------------------------------------------------------------- forgeries


MEIBP_OF_TWO = MEIBP(negative="noise", random_state=0)


def forge(tmp_path, change, model=MEIBP_OF_TWO):
    """A model file whose manifest was changed after it was written."""
    path = tmp_path / "model.npz"
    save(model.fit(X), path)
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


def swapped_variance(manifest):
    attributes, state = manifest["attributes"], manifest["state"]
    attributes["feature_counts_"], state["variance"] = (
        state["variance"],
        attributes["feature_counts_"],
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_number_of_columns, r"has shape \(2, 3\), not \(2, 4\)"),
        (other_number_of_features, r"has shape \(2, 3\), not \(3, 3\)"),
        (swapped_variance, r"variance has shape \(2,\), not \(2, 3\)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_forged_files(refuse, tmp_path, change, message):
    refuse(forge(tmp_path, change), message)


def test_state_that_is_missing(refuse, tmp_path):
    def without_rows(manifest):
        del manifest["state"]["n_rows"]

    refuse(forge(tmp_path, without_rows), "do not make a MEIBP: 'n_rows'")


@pytest.mark.parametrize(
    "model",
    [IBPGibbs(2, n_samples=9, random_state=0), IBPVariational(2)],
    ids=["sampler", "variational"],
)
@pytest.mark.parametrize("change", [other_number_of_columns, other_number_of_features])
def test_other_forged_files(refuse, tmp_path, model, change):
    refuse(forge(tmp_path, change, model), "has shape")
