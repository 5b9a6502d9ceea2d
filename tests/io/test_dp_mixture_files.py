"""Model files of mixtures: families, categories, tables of moves, forgeries."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from kplus import DPMixture
from kplus.io import ArrayInfo, inspect, load, save
from kplus.observations import DiagGaussian, Gaussian, Mixed, NegativeBinomial

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, (60, 4)).astype(float)
COUNTS = RNG.poisson(np.where(np.arange(60)[:, None] < 30, 3.0, 30.0), (60, 3))
NUMBERS = RNG.normal(size=(60, 3)) + 9.0 * (np.arange(60)[:, None] < 25)
FRAME = pd.DataFrame(
    {
        "size": NUMBERS[:, 0],
        "color": np.where(BITS[:, 0] > 0, "red", "größe"),
        "ok": BITS[:, 1] > 0,
        "visits": COUNTS[:, 0],
    }
)
CASES = {
    "gaussian": ("gaussian", NUMBERS),
    "gaussian_prior": (Gaussian(covariance=np.eye(3), mean=[1, 2, 3]), NUMBERS),
    "zero_mean_gaussian": ("zero_mean_gaussian", NUMBERS),
    "diag_gaussian": ("diag_gaussian", NUMBERS),
    "diag_gaussian_prior": (DiagGaussian(expected_variance=(1.0, 2.0, 1.0)), NUMBERS),
    "spherical_gaussian": ("spherical_gaussian", NUMBERS),
    "bernoulli": ("bernoulli", BITS),
    "categorical": ("categorical", BITS),
    "poisson": ("poisson", COUNTS),
    "negative_binomial": ("negative_binomial", COUNTS),
    "multinomial": ("multinomial", COUNTS),
    "mixed": ("mixed", FRAME),
    "mixed_counts": (Mixed(counts=["visits"]), FRAME),
    "mixed_count_family": (
        Mixed(counts=["visits"], count_family=NegativeBinomial(0.1)),
        FRAME,
    ),
}


@pytest.fixture(params=CASES, ids=str)
def case(request):
    observations, X = CASES[request.param]
    return DPMixture(observations, random_state=0).fit(X), X


def equal(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and np.array_equal(a, b)


def test_a_loaded_mixture_does_all_that_the_saved_one_did(case, tmp_path):
    model, X = case
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    names = {name for name in vars(model) if not name.startswith("_")}
    assert names == {name for name in vars(again) if not name.startswith("_")}
    for name in names - {"observations", "observations_"}:
        assert equal(getattr(model, name), getattr(again, name)), name
    assert type(again.observations_) is type(model.observations_)
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    assert equal(again.predict_proba(X), model.predict_proba(X))
    assert equal(again.score_samples(X), model.score_samples(X))
    assert equal(again.sample(7), model.sample(7))
    model.partial_fit(X[:40])
    again.partial_fit(X[:40])
    assert model.lower_bound_ == again.lower_bound_
    assert equal(again.labels_, model.labels_)
    again.fit(X)  # the parameters came back, too


def test_equal_mixtures_make_equal_files(case, tmp_path):
    model, _ = case
    save(model, tmp_path / "a.npz")
    save(load(tmp_path / "a.npz"), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_inspect_tells_of_moves_and_categories(tmp_path):
    model = DPMixture("mixed", random_state=0).fit(FRAME)
    save(model, tmp_path / "model.npz")
    info = inspect(tmp_path / "model.npz")
    assert info.class_name == "DPMixture"
    assert info.attributes["categories_"][1] == ("größe", "red")
    moves = info.attributes["moves_"]
    assert list(moves) == list(model.moves_.dtype.names)
    assert moves["change"] == ArrayInfo("float64", (len(model.moves_),))


def test_a_table_without_rows(tmp_path):
    model = DPMixture(moves=(), random_state=0).fit(NUMBERS)
    save(model, tmp_path / "model.npz")
    assert equal(load(tmp_path / "model.npz").moves_, model.moves_)


def forge(tmp_path, change):
    """A model file whose manifest was changed after it was written."""
    path = tmp_path / "model.npz"
    save(DPMixture("mixed", random_state=0).fit(FRAME), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest)
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def swap_columns(manifest):
    columns = manifest["attributes"]["moves_"]["columns"]
    columns["change"] = manifest["attributes"]["weights_"]
    manifest["attributes"]["weights_"] = {"kind": "array", "name": "moves_.5"}


def table_of_a_number(manifest):
    manifest["attributes"]["more_"] = {"kind": "table", "columns": {"a": 1}}


def table_of_nothing(manifest):
    manifest["attributes"]["more_"] = {"kind": "table", "columns": {}}


def table_that_is_none(manifest):
    manifest["attributes"]["more_"] = {"kind": "table", "columns": []}


def other_number_of_columns(manifest):
    manifest["attributes"]["n_features_in_"] = 3


def other_number_of_components(manifest):
    manifest["attributes"]["n_components_"] += 1


def no_family(manifest):
    manifest["attributes"]["observations_"] = 7


def no_sums(manifest):
    manifest["state"]["N"] = 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap_columns, "columns do not match"),
        (table_of_a_number, "columns do not match"),
        (table_of_nothing, "columns do not match"),
        (table_that_is_none, "dict that is none"),
        (other_number_of_columns, "do not make a DPMixture: .*not 3"),
        (other_number_of_components, "do not make a DPMixture: N has shape"),
        (no_family, "belongs to nothing"),
        (no_sums, "belongs to nothing"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_forged_files(refuse, tmp_path, change, message):
    refuse(forge(tmp_path, change), message)


def test_observations_of_ones_own_cannot_be_saved(tmp_path):
    class Mine(DiagGaussian):
        pass

    model = DPMixture(Mine(), random_state=0).fit(NUMBERS)
    with pytest.raises(TypeError, match=r"params.observations is a .*Mine"):
        save(model, tmp_path / "model.npz")
