"""Model files of every estimator: what comes back does all that was saved."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from every_estimator import (
    CLASSES,
    assert_same_answers,
    assert_same_attributes,
    bits,
    every_default,
    seeded,
)
from kplus import (
    CRAFT,
    MEIBP,
    BPMeans,
    DPMeans,
    DPMixture,
    IBPGibbs,
    IBPVariational,
    KFeatures,
)
from kplus.observations import DiagGaussian, Gaussian, Mixed, NegativeBinomial
from kplus.persist import ArrayInfo, inspect, load, save

RNG = np.random.default_rng(0)
X = (RNG.random((50, 2)) < 0.5) @ [[4.0, 4, 0], [0, 0, 3]] + RNG.normal(
    scale=0.1, size=(50, 3)
)
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
GAPS[:, 0] = X[:, 0]  # no row without any value
BITS = RNG.integers(0, 2, (60, 4)).astype(float)
COUNTS = RNG.poisson(np.where(np.arange(60)[:, None] < 30, 3.0, 30.0), (60, 3))
GROUP = np.arange(60) % 3
FRAME = pd.DataFrame(
    {
        "größe": np.where(RNG.random(60) < 0.1, np.nan, RNG.normal(9.0 * GROUP, 1.0)),
        "color": np.array(["red", "blue", "weiß"])[GROUP],
        "ok": GROUP == 1,
        "visits": COUNTS[:, 0],
    }
)
CODES = np.column_stack([FRAME["größe"], COUNTS[:, 0], GROUP])
CASES = {
    "clusters, auto": (DPMeans(), X),
    "clusters, penalty": (DPMeans(9.0), X),
    "clusters, number": (DPMeans(n_clusters=3), X),
    "clusters, full covariance": (DPMeans(9.0, covariance="full"), X),
    "gaussian": (DPMixture("gaussian"), X),
    "gaussian, prior": (
        DPMixture(Gaussian(covariance=0.05 * np.eye(3), mean=[1, 2, 3])),
        X,
    ),
    "factor_gaussian": (DPMixture("factor_gaussian"), X),
    "zero_mean_gaussian": (DPMixture("zero_mean_gaussian"), X),
    "diag_gaussian": (DPMixture("diag_gaussian"), GAPS),
    "diag_gaussian, prior": (
        DPMixture(DiagGaussian(expected_variance=(1.0, 2.0, 1.0))),
        X,
    ),
    "spherical_gaussian": (DPMixture("spherical_gaussian"), X),
    "bernoulli": (DPMixture("bernoulli"), BITS),
    "categorical": (DPMixture("categorical"), BITS),
    "poisson": (DPMixture("poisson"), COUNTS),
    "negative_binomial": (DPMixture("negative_binomial"), COUNTS),
    "multinomial": (DPMixture("multinomial"), COUNTS),
    "mixed": (DPMixture("mixed"), FRAME),
    "mixed, counts": (DPMixture(Mixed(counts=["visits"])), FRAME),
    "mixed, count family": (
        DPMixture(Mixed(counts=["visits"], count_family=NegativeBinomial(0.1))),
        FRAME,
    ),
    "mixture without moves": (DPMixture(moves=()), X),
    "mixture with noise": (DPMixture(noise=True), X),
    "mixed, noise": (DPMixture("mixed", noise=0.1), FRAME),
    "multinomial, noise": (DPMixture("multinomial", noise=True), COUNTS),
    "penalty": (BPMeans(9.0), X),
    "auto": (BPMeans(), X),
    "number": (BPMeans(n_components=2), X),
    "sparse": (KFeatures(2, sparse_output=True), X),
    "stepwise": (KFeatures(penalty=9.0), X),
    "gaps": (KFeatures(2), GAPS),
    "craft": (CRAFT(), FRAME),
    "craft, numbers": (CRAFT(), GAPS),
    "craft, number given": (CRAFT(n_clusters=4), FRAME),
    "craft, fraction": (CRAFT(0.5, sharing=0.3), FRAME),
    "craft, quantile": (CRAFT(numeric="quantile"), FRAME),
    "craft, yeo_johnson": (CRAFT(numeric="yeo-johnson"), FRAME),
    "craft, codes": (CRAFT(categorical_features=[2]), CODES),
    "craft, thresholds": (CRAFT(variance_threshold=2.0, category_threshold=0.5), FRAME),
    "craft, unknown": (CRAFT(handle_unknown="missing"), FRAME),
    "nonnegative": (MEIBP(negative="noise"), X),
    "shifted": (MEIBP(4, negative="shift"), X - 7.0),
    "nonnegative, gaps": (MEIBP(negative="noise"), GAPS),
    "gaussian factors": (MEIBP(prior="gaussian"), X),
    "gaussian factors, gaps": (MEIBP(prior="gaussian", noise_scale=0.1), GAPS),
    "sampler": (IBPGibbs(n_samples=9, burn_in=3, store_samples=True), X),
    "sampler, gaps": (IBPGibbs(sampler="collapsed", n_samples=5), GAPS),
    "nonnegative sampler": (
        IBPGibbs(
            5, sampler="uncollapsed", prior="nonnegative", negative="shift", n_samples=5
        ),
        X,
    ),
    "finite": (IBPVariational(4), X),
    "infinite, gaps": (IBPVariational(4, process="infinite"), GAPS),
}


def test_no_estimator_is_left_out():
    assert {type(model) for model, _ in CASES.values()} == set(CLASSES)


@cache
def fitted(name):
    model, rows = CASES[name]
    return seeded(model).fit(rows)


@pytest.fixture(params=CASES)
def case(request):
    """A fitted model, which other tests use too, and its rows."""
    return fitted(request.param), CASES[request.param][1]


def by_way_of(path, model):
    save(model, path)
    return load(path)


@pytest.mark.filterwarnings("ignore:Found . clusters")
def test_a_loaded_model_does_all_that_the_saved_one_did(case, tmp_path):
    model, rows = case
    again = by_way_of(tmp_path / "model.npz", model)
    assert type(again) is type(model)
    assert_same_attributes(again, model)
    assert_same_answers(again, model, rows)
    assert_same_attributes(again.fit(rows), model)  # the parameters came back, too


STREAMS = [
    name
    for name, (model, _) in CASES.items()
    if hasattr(model, "partial_fit") and "full covariance" not in name
]


@pytest.mark.filterwarnings("ignore:Found . clusters")
@pytest.mark.parametrize("name", STREAMS)
def test_a_loaded_stream_continues(name, tmp_path):
    model, rows = CASES[name]
    stream = seeded(model).partial_fit(rows[:30])
    again = by_way_of(tmp_path / "model.npz", stream)
    for rest in (rows[30:40], rows[40:]):
        assert_same_attributes(again.partial_fit(rest), stream.partial_fit(rest))


def test_equal_models_make_equal_files(case, tmp_path):
    save(by_way_of(tmp_path / "a.npz", case[0]), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.filterwarnings(r"ignore:\w+ found no feature")
@every_default
def test_names_and_inspect(model, tmp_path):
    frame = pd.DataFrame(np.abs(X), columns=["a", "b", "größe"])
    model = seeded(model).fit(frame)
    again = by_way_of(tmp_path / "model.npz", model)
    assert again.feature_names_in_.tolist() == list(frame)
    info = inspect(tmp_path / "model.npz")
    assert info.class_name == type(model).__name__
    assert info.params["random_state"] == 0
    assert info.attributes["n_iter_"] == model.n_iter_
    assert info.attributes["feature_names_in_"] == ArrayInfo("object", (3,))


def test_inspect_lists_paths_categories_and_moves(tmp_path):
    save(fitted("craft"), tmp_path / "craft.npz")
    found = inspect(tmp_path / "craft.npz").attributes
    assert found["selected_features_"] == ArrayInfo("bool", (3, 4))
    assert found["categories_"][1] == ("blue", "red", "weiß")
    assert list(found["path_"]) == ["n_clusters", "objective"]
    again = load(tmp_path / "craft.npz")
    assert again.categories_ == (None, ("blue", "red", "weiß"), (False, True), None)
    save(fitted("stepwise"), tmp_path / "features.npz")
    found = inspect(tmp_path / "features.npz").attributes
    assert list(found["path_"]) == ["n_components", "error", "objective"]
    save(fitted("mixed"), tmp_path / "mixture.npz")
    found, moves = inspect(tmp_path / "mixture.npz").attributes, fitted("mixed").moves_
    assert list(found["moves_"]) == list(moves.dtype.names)
    assert found["moves_"]["change"] == ArrayInfo("float64", (len(moves),))


# -------------------------------------------------------------------------- large

MANY = np.arange(40_000)
CATEGORIES = {
    "text": [f"{i:05}" for i in MANY],
    "text of other lengths": [str(i) * (1 + i % 7) for i in MANY] + ["x" * 10**6],
    "text that ends in a null character": [f"{i}\0" for i in MANY],
    "integers": MANY,
    "large integers": MANY.astype("u8") + 2**63,
    "floats": MANY + 0.5,
    "booleans and others": [False, True, *map(str, MANY)],
    "days": [f"{i // 360}-{i // 30 % 12 + 1}-{i % 30 + 1}" for i in MANY],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CATEGORIES)
@pytest.mark.parametrize(
    "model",
    [CRAFT(n_clusters=2), DPMixture("mixed", moves=()), DPMixture("categorical")],
    ids=lambda model: getattr(model, "observations", "craft"),
)
def test_a_column_of_many_categories(kind, model, tmp_path):
    """They are declared: so few rows have many of them."""
    values = list(CATEGORIES[kind])
    codes = np.arange(12) % 3
    column = pd.Categorical.from_codes(codes, categories=pd.Index(values, dtype=object))
    if kind in ("integers", "large integers", "floats"):
        column = pd.Categorical.from_codes(codes, categories=CATEGORIES[kind])
    rows = pd.DataFrame({"code": column})
    if model.__class__ is CRAFT or model.observations == "mixed":
        rows["size"] = 9.0 * codes
    model = seeded(model).set_params(max_iter=2).fit(rows)
    again = by_way_of(tmp_path / "model.npz", model)
    assert again.categories_ == model.categories_
    assert len(again.categories_[0]) == len(values)
    assert set(map(type, again.categories_[0])) == set(map(type, model.categories_[0]))
    assert bits(again.predict(rows)) == bits(model.predict(rows))
    if kind == "text":
        assert (tmp_path / "model.npz").stat().st_size < 10**7
        found = inspect(tmp_path / "model.npz").attributes["categories_"]
        assert found[0] == ArrayInfo("str160", (40_000,))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [
        DPMeans(n_clusters=2),
        DPMixture("diag_gaussian", moves=()),
        DPMixture("mixed", moves=()),
        CRAFT(n_clusters=2),
        KFeatures(2, max_iter=1),
    ],
    ids=repr,
)
def test_a_table_of_many_columns(model, tmp_path):
    n = 2000
    rows = pd.DataFrame(
        np.repeat([0.0, 9.0], 3)[:, None] + RNG.normal(size=(6, n)),
        columns=[f"column {j} {'of many ' * 100}" for j in range(n)],
    )
    model = seeded(model).fit(rows)
    again = by_way_of(tmp_path / "model.npz", model)
    assert again.feature_names_in_.tolist() == list(rows)
    assert_same_attributes(again, model)
    assert inspect(tmp_path / "model.npz").attributes["n_features_in_"] == n


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [CRAFT(n_clusters=2), DPMixture("mixed", moves=()), DPMixture("categorical")],
    ids=lambda model: getattr(model, "observations", "craft"),
)
def test_many_columns_of_categories(model, tmp_path):
    rows = pd.DataFrame({f"column {j}": list("aabbcc") for j in range(7000)})
    model = seeded(model).set_params(max_iter=2).fit(rows)
    again = by_way_of(tmp_path / "model.npz", model)
    assert_same_attributes(again, model)
    assert bits(again.predict(rows)) == bits(model.predict(rows))
    inspect(tmp_path / "model.npz")


# ------------------------------------------------------------------------ special


def test_the_path_is_saved(tmp_path):
    path = by_way_of(tmp_path / "model.npz", fitted("clusters, auto")).path_
    assert type(path) is type(fitted("clusters, auto").path_)
    assert bits(path) == bits(fitted("clusters, auto").path_)


@pytest.mark.parametrize("model", [BPMeans(1e9), MEIBP(noise_scale=99.0)], ids=repr)
def test_a_model_without_features(model, tmp_path):
    with pytest.warns(UserWarning, match="no feature"):
        model.fit(np.abs(X))
    again = by_way_of(tmp_path / "model.npz", model)
    assert again.transform(X).shape == (50, 0)
    assert bits(again.components_) == bits(model.components_)


@pytest.mark.parametrize(
    "model", [MEIBP(negative="noise"), DPMeans(9.0), KFeatures(2)], ids=repr
)
def test_a_loaded_model_starts_warm(model, tmp_path):
    model = seeded(model).set_params(warm_start=True).fit(X)
    again = by_way_of(tmp_path / "model.npz", model)
    assert_same_attributes(again.fit(X), model.fit(X))


def test_samples_come_back(tmp_path):
    again = by_way_of(tmp_path / "model.npz", fitted("sampler"))
    assert bits(again.comembership()) == bits(fitted("sampler").comembership())


def test_a_model_within_a_model_is_refused(tmp_path):
    model = IBPGibbs(init=fitted("nonnegative"), n_samples=3, random_state=0).fit(X)
    with pytest.raises(
        TypeError, match=r"init is a .*MEIBP, which a model file cannot"
    ):
        save(model, tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()
    again = by_way_of(tmp_path / "model.npz", model.set_params(init=None))
    assert bits(again.transform(X)) == bits(model.transform(X))


def test_observations_of_ones_own_cannot_be_saved(tmp_path):
    class Mine(DiagGaussian):
        pass

    model = DPMixture(Mine(), random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"params.observations is a .*Mine"):
        save(model, tmp_path / "model.npz")
