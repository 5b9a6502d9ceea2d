"""IBPGibbs: what a chain finds, its starts, its samples, its mistakes."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

from kplus import MEIBP, BPMeans, IBPGibbs, KFeatures

QUICK = {"n_samples": 10, "burn_in": 10}
NONNEGATIVE = {"sampler": "uncollapsed", "prior": "nonnegative"}
MODELS = [
    IBPGibbs(**QUICK),
    IBPGibbs(3, sampler="collapsed", new_features="metropolis", **QUICK),
    IBPGibbs(sampler="uncollapsed", alpha=1.0, noise_scale=0.5, **QUICK),
    IBPGibbs(**NONNEGATIVE, **QUICK),
    IBPGibbs(**NONNEGATIVE, new_features="metropolis", negative="shift", **QUICK),
]
pytestmark = pytest.mark.filterwarnings("ignore:IBPGibbs found no feature")
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


@pytest.fixture(scope="module")
def made():
    """Rows of three nonnegative features with a little noise, and these."""
    rng = np.random.default_rng(0)
    A = np.array([[5.0, 5, 0, 0, 0, 1], [0, 0, 4, 0, 4, 1], [0, 3, 0, 3, 0, 4]])
    Z = (rng.random((60, 3)) < (0.6, 0.45, 0.35)).astype(float)
    X = np.abs(Z @ A + rng.normal(scale=0.2, size=(60, 6)))
    X.flags.writeable = False
    return X, Z, A


def matches(model, A, atol=0.25):
    """Whether each true feature was found."""
    distances = np.abs(model.components_[:, None] - A[None]).max(axis=2)
    return bool((distances.min(axis=0) < atol).all())


@every_model
def test_finds_features_from_their_allocation(model, made):
    X, Z, A = made
    model = clone(model).set_params(init=Z, random_state=0, alpha="infer").fit(X)
    assert model.n_components_ in (3, 4)
    assert model.components_.shape == (model.n_components_, 6)
    if model.negative != "shift":
        assert matches(model, A)
        assert model.score(X) > -0.7
    np.testing.assert_array_equal(model.feature_counts_, model.Z_.sum(axis=0))
    assert (np.diff(model.feature_counts_) <= 0).all()
    Z_new = model.transform(X)
    assert Z_new.min() >= 0.0
    assert Z_new.max() <= 1.0
    assert np.mean(np.abs(Z_new - model.Z_) > 0.5) < 0.05


@pytest.mark.parametrize("sampler", ["accelerated", "collapsed", "uncollapsed"])
@pytest.mark.parametrize("new_features", ["poisson", "metropolis"])
def test_finds_features_from_the_prior(sampler, new_features, made):
    X, _, A = made
    best = max(
        (
            IBPGibbs(
                sampler=sampler,
                new_features=new_features,
                n_samples=60,
                burn_in=60,
                random_state=seed,
            ).fit(X)
            for seed in range(4)
        ),
        key=lambda model: model.log_joint_,
    )
    assert matches(best, A)
    assert best.noise_scale_ == pytest.approx(0.2, abs=0.06)


def test_attributes(made):
    X, _, _ = made
    model = IBPGibbs(n_samples=4, burn_in=3, thin=2, random_state=0).fit(X)
    assert model.n_iter_ == 11
    for name in ("log_joint", "n_components", "alpha", "noise_scale", "factor_scale"):
        assert getattr(model, f"{name}_history_").shape == (11,)
    kept = model.log_joint_history_[[4, 6, 8, 10]]
    assert model.log_joint_ == kept.max()
    best = [4, 6, 8, 10][int(np.argmax(kept))]
    assert model.n_components_ == model.n_components_history_[best]
    assert model.noise_scale_ == pytest.approx(model.noise_scale_history_[best])
    assert model.factor_scale_ == pytest.approx(model.factor_scale_history_[best])
    assert model.alpha_ == model.alpha_history_[best]
    assert model.Z_.dtype == np.uint8
    assert set(np.unique(model.Z_)) <= {0, 1}
    assert not model.offset_.any()


def test_what_is_given_stays(made):
    X, _, _ = made
    model = IBPGibbs(alpha=2.0, noise_scale=0.3, factor_scale=3.0, **QUICK).fit(X)
    assert (model.alpha_, model.noise_scale_, model.factor_scale_) == (
        2.0,
        pytest.approx(0.3),
        pytest.approx(3.0),
    )
    np.testing.assert_allclose(model.noise_scale_history_, 0.3)


def test_another_seed_is_another_chain(made):
    one, two = (IBPGibbs(random_state=seed, **QUICK).fit(made[0]) for seed in (3, 4))
    assert not np.array_equal(one.log_joint_history_, two.log_joint_history_)


@every_model
def test_units_do_not_matter_much(model, made):
    """In other units the chain takes the same way: priors go with the data."""
    X, _, _ = made
    model = clone(model).set_params(random_state=0, noise_scale="infer")
    plain, large = clone(model).fit(X), clone(model).fit(X * 1024.0)
    np.testing.assert_array_equal(plain.Z_, large.Z_)
    np.testing.assert_allclose(large.components_, plain.components_ * 1024.0, rtol=1e-6)


# ------------------------------------------------------------------------------ gaps


@every_model
def test_gaps(model, made):
    X, Z, _ = made
    gappy = X.copy()
    gappy[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    gappy[:5, 0], gappy[5, :] = X[:5, 0], X[5]
    model = clone(model).set_params(init=Z, random_state=0).fit(gappy)
    filled = model.impute(gappy)
    missing = np.isnan(gappy)
    np.testing.assert_allclose(filled[~missing], X[~missing])
    assert np.sqrt(np.mean((filled - X)[missing] ** 2)) < 0.6
    assert np.isfinite(model.score(gappy, X))


def test_held_out_halves_of_rows(made):
    """Rows of which most is missing still find their features."""
    X, Z, _ = made
    gappy = X.copy()
    gappy[40:, [0, 2, 3, 5]] = np.nan
    model = IBPGibbs(init=Z, random_state=0, **QUICK).fit(gappy)
    assert model.score(gappy, X) > -1.0


# ------------------------------------------------------------------------------ starts


@pytest.mark.parametrize(
    "init",
    [
        MEIBP(random_state=0),
        BPMeans(20.0, random_state=0),
        KFeatures(3, sparse_output=True, random_state=0),
        KFeatures(3, random_state=0).set_output(transform="pandas"),
        IBPGibbs(random_state=0, **QUICK),
    ],
    ids=lambda init: type(init).__name__,
)
@pytest.mark.parametrize("model", [MODELS[0], MODELS[3]], ids=repr)
def test_starts_from_fitted_models(init, model, made):
    X, _, _ = made
    init = clone(init).fit(X)
    model = clone(model).set_params(init=init, n_samples=1, burn_in=0, random_state=0)
    model.fit(X)
    assert abs(model.n_components_ - init.n_components_) <= 1
    assert model.score(X) > -1.5


def test_starts_from_an_array(made):
    X, Z, _ = made
    Z = np.column_stack([Z, np.zeros(60), np.ones(60)])  # one that no row has
    model = IBPGibbs(init=Z, n_samples=1, burn_in=0, random_state=0).fit(X)
    assert model.n_components_ <= 5
    few = IBPGibbs(2, init=Z.tolist(), n_samples=3, burn_in=0, random_state=0).fit(X)
    assert few.n_components_history_.max() <= 2


def test_a_start_survives_cloning_if_frozen(made):
    X, _, _ = made
    start = FrozenEstimator(MEIBP(random_state=0).fit(X))
    search = GridSearchCV(
        IBPGibbs(init=start, random_state=0, **QUICK), {"alpha": [0.5, 2.0]}, cv=2
    ).fit(X)
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"prior": "nonnegative"}, "needs sampler='uncollapsed': the accelerated"),
        (
            {"prior": "nonnegative", "sampler": "collapsed"},
            "needs sampler='uncollapsed': the collapsed",
        ),
        ({"max_components": True}, "not a bool"),
        ({"max_components": 0}, "max_components"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": -1.0}, "alpha"),
        ({"noise_scale": 0.0}, "noise_scale"),
        ({"noise_scale": 1e-5}, "noise_scale=1e-05 is too small.*at least 0.000"),
        ({"factor_scale": 1e6}, "factor_scale=1e.06 is too large.*deviation"),
        ({"noise_scale": 0.1, "factor_scale": 2e3}, "10000 times noise_scale"),
        ({"n_samples": 0}, "n_samples"),
        ({"burn_in": -1}, "burn_in"),
        ({"thin": 0}, "thin"),
        ({"sampler": "nuts"}, "sampler"),
        ({"new_features": "none"}, "new_features"),
        ({"init": "auto"}, "init"),
        ({"init": np.ones((3, 2))}, "init has 3 rows, X has 60"),
        ({"init": np.full((60, 2), 0.5)}, "zeros and ones"),
        ({"init": np.full((60, 2), np.nan)}, "NaN"),
        ({"init": BPMeans()}, "BPMeans that is not fitted.*FrozenEstimator"),
    ],
)
def test_mistakes(params, words, made):
    with pytest.raises(ValueError, match=words):
        IBPGibbs(**params).fit(made[0])


def test_bad_tables(made):
    X, _, _ = made
    for value, words in (
        (np.inf, "infinity: column 2"),
        (np.nan, "NaN only.*column 2"),
    ):
        bad = X.copy()
        bad[:, 2] = value
        with pytest.raises(ValueError, match=words):
            IBPGibbs(**QUICK).fit(bad)
    with pytest.raises(ValueError, match=r"Negative values.*prior='gaussian'"):
        IBPGibbs(**NONNEGATIVE).fit(-X)
    for negative in ("shift", "noise"):
        IBPGibbs(**NONNEGATIVE, negative=negative, **QUICK).fit(-X)


def test_nothing_to_find():
    for X in (np.zeros((10, 3)), np.ones((1, 2)), np.full((8, 2), 3.0)):
        for model in MODELS[:4]:
            found = clone(model).set_params(random_state=0).fit(X)
            assert np.isfinite(found.log_joint_history_).all()
            assert found.transform(X).shape == (len(X), found.n_components_)


def test_warns_where_nothing_is_found():
    with pytest.warns(UserWarning, match="no feature in its best sample"):
        IBPGibbs(alpha=1e-9, random_state=0, **QUICK).fit(np.zeros((10, 3)))


# ----------------------------------------------------------------------- the posterior


@every_model
def test_comembership(model, made):
    X, Z, _ = made
    model = clone(model).set_params(store_samples=True, init=Z, random_state=0).fit(X)
    number, any_of = model.comembership(), model.comembership("probability")
    assert number.shape == any_of.shape == (60, 60)
    np.testing.assert_array_equal(number, number.T)
    assert (any_of <= 1.0).all()
    assert (number >= any_of - 1e-12).all()
    if model.negative != "shift":
        shared = Z @ Z.T
        assert np.mean(np.abs(number - shared)) < 0.25
    with pytest.raises(ValueError, match="kind must be"):
        model.comembership("both")


def test_samples_are_kept_only_with_store_samples(made):
    model = IBPGibbs(**QUICK)
    with pytest.raises(NotFittedError):
        model.comembership()
    with pytest.raises(ValueError, match="store_samples=True"):
        model.fit(made[0]).comembership()
    assert "samples" not in model._to_state()


def test_the_number_of_features_is_uncertain():
    """Two rows, one value: the chain visits several numbers of features."""
    model = IBPGibbs(n_samples=200, alpha=2.0, random_state=0)
    model.fit(np.array([[1.0], [2.0], [0.5]]))
    assert len(np.unique(model.n_components_history_)) > 2


# ------------------------------------------------------------------------- state


@every_model
def test_pickle_and_state(model, made):
    X, _, _ = made
    model = clone(model).set_params(store_samples=True, random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    state = again._to_state()
    for name in ("_samples", "_sizes", "_n_rows"):
        delattr(again, name)
    again._from_state(state)
    np.testing.assert_array_equal(again.comembership(), model.comembership())
    with pytest.raises(ValueError, match="samples has shape"):
        again._from_state(state | {"samples": state["samples"][1:]})
    with pytest.raises(ValueError, match="Z_ has shape"):
        again._from_state(state | {"n_rows": 3})
