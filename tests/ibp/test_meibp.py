"""MEIBP finds what was planted, and its parameters do what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from core.test_laws import tables
from kplus import MEIBP
from kplus.datasets import make_binary_features, make_nonnegative_features

PRIORS = {
    "nonnegative": {"negative": "noise"},
    "gaussian": {"prior": "gaussian"},
}
every_prior = pytest.mark.parametrize("prior", PRIORS)


def a_model(prior="nonnegative", **how):
    return MEIBP(**PRIORS[prior] | {"random_state": 0} | how)


def planted(seed=0, N=200, D=60, K=5, noise=0.5):
    return make_nonnegative_features(N, D, K, noise=noise, random_state=seed)


def matched(found, truth):
    """Columns of `found` in the order of those of the truth."""
    agree = np.mean(found[:, :, None] == truth[:, None, :], axis=0)
    rows, columns = linear_sum_assignment(-agree)
    return rows[np.argsort(columns)], agree[rows, columns]


def rises(model):
    history = model.lower_bound_history_
    return np.all(np.diff(history) >= -1e-9 * np.abs(history[-1]))


def check_fitted(model, X):
    """Attributes that belong together."""
    K = model.n_components_
    N, D = X.shape
    assert model.components_.shape == (K, D)
    assert model.feature_counts_.shape == (K,)
    assert np.all(model.feature_counts_ > 0)
    assert np.all(model.feature_counts_ <= model.n_samples_seen_)
    assert model.n_samples_seen_ == N
    assert np.all(np.diff(model.feature_counts_) <= 0)
    assert len(model.lower_bound_history_) == model.n_iter_
    assert model.lower_bound_ == model.lower_bound_history_[-1]
    for value in (model.alpha_, model.noise_scale_, model.factor_scale_):
        assert isinstance(value, float)
        assert 0.0 < value < np.inf
    if model.prior == "nonnegative":
        assert np.all(model.components_ >= 0.0)
    assert rises(model)


# --------------------------------------------------------------------- recovery


@every_prior
@pytest.mark.parametrize("seed", range(5))
def test_features_are_recovered(prior, seed):
    X, Z, A = planted(seed)
    model = a_model(prior, random_state=seed).fit(X)
    check_fitted(model, X)
    assert model.n_components_ == 5
    order, agree = matched(model.transform(X), Z)
    assert np.all(agree > 0.97)
    np.testing.assert_allclose(model.components_[order], A, atol=0.35)
    assert model.noise_scale_ == pytest.approx(0.5, rel=0.03)
    # sqrt of mean E[a²], a third of the factors being 1
    assert model.factor_scale_ == pytest.approx(np.sqrt(1 / 3), rel=0.06)
    assert model.alpha_ == pytest.approx(5 / np.sum(1 / np.arange(1, 201)), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_features_of_either_sign_are_recovered(seed):
    X, Z, A = make_binary_features(400, 40, 6, noise=0.5, random_state=seed)
    model = a_model("gaussian", random_state=seed).fit(X)
    check_fitted(model, X)
    assert model.n_components_ == 6
    order, agree = matched(model.transform(X), Z)
    assert np.all(agree > 0.99)
    np.testing.assert_allclose(model.components_[order], A, atol=0.35)
    assert model.noise_scale_ == pytest.approx(0.5, rel=0.03)
    assert model.factor_scale_ == pytest.approx(1.0, rel=0.1)


@every_prior
def test_a_level_that_all_rows_share(prior):
    """Is one feature more, of all rows."""
    X, _, _ = planted()
    model = a_model(prior).fit(X + 20.0)
    assert model.n_components_ == 6
    assert model.feature_counts_[0] == 200
    assert model.noise_scale_ == pytest.approx(0.5, rel=0.04)


@every_prior
def test_held_out_entries_are_predicted(prior):
    """Nearly as well as with the true Z and A."""
    X, Z, A = planted(N=300)
    hidden = np.zeros(X.shape, bool)
    hidden[150:, :12] = True
    model = a_model(prior).fit(np.where(hidden, np.nan, X))
    found = model.score(np.where(hidden, np.nan, X), X)
    error = np.mean((X - Z @ A)[hidden] ** 2)
    oracle = -0.5 * (np.log(2 * np.pi * 0.25) + error / 0.25)
    assert oracle - 0.06 < found < oracle + 0.03
    filled = model.impute(np.where(hidden, np.nan, X))
    np.testing.assert_array_equal(filled[~hidden], X[~hidden])
    assert np.sqrt(np.mean((filled - Z @ A)[hidden] ** 2)) < 0.15


@every_prior
@pytest.mark.parametrize("init", ["auto", "ica", "nmf", "random"])
def test_every_start(prior, init):
    X, _, _ = planted()
    best = a_model(prior).fit(X).lower_bound_
    model = a_model(prior, init=init, max_components=20).fit(X)
    check_fitted(model, X)
    if (prior, init) == ("gaussian", "random"):  # features may be turned inside out
        assert model.lower_bound_ > 1.05 * best
    else:
        assert model.n_components_ == 5
        assert model.lower_bound_ == pytest.approx(best, rel=1e-4)


@pytest.mark.slow
def test_the_data_of_the_paper():
    """500 × 500, K = 20, noise 1: the number, and the median held-out likelihood."""
    scores = []
    for seed in range(5):
        X, _, _ = make_nonnegative_features(random_state=seed)
        hidden = np.zeros(X.shape, bool)
        hidden[250:, np.random.default_rng(seed).permutation(500)[:100]] = True
        gaps = np.where(hidden, np.nan, X)
        model = a_model(random_state=seed, max_components=40).fit(gaps)
        assert model.n_components_ == 20
        assert model.noise_scale_ == pytest.approx(1.0, rel=0.03)
        scores.append(model.score(gaps, X))
    assert np.median(scores) > -1.465


# ----------------------------------------------------------------- the parameters


@every_prior
def test_given_scales(prior):
    X, _, _ = planted()
    how = {"alpha": 2.0, "noise_scale": 0.6, "factor_scale": 0.9}
    model = a_model(prior, **how).fit(X)
    check_fitted(model, X)
    for name, value in how.items():
        assert getattr(model, f"{name}_") == pytest.approx(value, rel=1e-12)
        alone = a_model(prior, **{name: value}).fit(X)
        assert getattr(alone, f"{name}_") == pytest.approx(value, rel=1e-12)
        assert alone.n_components_ == 5


@pytest.mark.filterwarnings("ignore:MEIBP (found no feature|did not converge)")
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0, 1e3])
def test_the_bound_rises_for_any_alpha(alpha):
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = np.abs(rng.normal(size=(rng.integers(1, 12), 2)))
        assert rises(a_model(alpha=alpha, init="random", tol=0.0).fit(X))


@pytest.mark.filterwarnings("ignore:MEIBP found no feature")
@every_prior
@settings(max_examples=40)
@given(tables(weights=(None,), kinds=("grid", "plain", "tiny", "constant", "float32"),
              least=6), st.booleans())  # fmt: skip
def test_the_bound_rises_on_any_table(prior, table, gaps):
    X = table.X.copy()
    if gaps and X.dtype.kind == "f":
        X[table.rng.random(X.shape) < 0.2] = np.nan
        X[0], X[:, 0] = table.X[0], table.X[:, 0]
    model = a_model(prior, batch_size=11).fit(X)
    assert np.all(np.isfinite(model.components_))
    assert model.noise_scale_ > 0.0
    assert rises(model)


@pytest.mark.filterwarnings("ignore:MEIBP found no feature")
@pytest.mark.parametrize("scale", [1.0, 3e-12])
def test_a_useless_feature_goes_at_once(scale):
    """As it shrinks, σ_A does: every pass gained a little, for more than 300 passes."""
    X = scale * np.array([[-2.0], [1.0], [0.0], [1.0], [0.0], [0.0], [-2.0]])
    model = a_model(max_iter=20).fit(X)
    assert model.converged_
    assert model.n_components_ == 0
    assert rises(model)


@every_prior
@pytest.mark.parametrize("most", [1, 2, 4, 5, 100])
def test_never_more_than_max_components(prior, most):
    X, _, _ = planted()
    for init in ("auto", "random", "nmf"):
        model = a_model(prior, max_components=most, init=init).fit(X)
        assert model.n_components_ <= most
        if (prior, init) != ("gaussian", "random"):
            assert model.n_components_ == min(most, 5)


def test_births_from_a_random_start():
    """More features are found than the start had."""
    X, _, _ = planted(N=400, D=80, K=8, noise=0.3)
    model = a_model(init="random", max_components=60).fit(X)
    assert model.n_components_ == 8


@every_prior
def test_double_greedy(prior):
    X, _, _ = planted()
    model = a_model(prior, maximizer="double_greedy").fit(X)
    check_fitted(model, X)
    assert model.lower_bound_ <= a_model(prior).fit(X).lower_bound_ + 1e-3
    again = a_model(prior, maximizer="double_greedy").fit(X)
    assert again.lower_bound_ == model.lower_bound_
    blocks = a_model(prior, maximizer="double_greedy", batch_size=33).fit(X)
    assert blocks.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-8)


def test_several_starts_are_no_worse():
    X, _, _ = planted(noise=1.0)
    one = a_model(init="random", random_state=1, max_components=5).fit(X)
    many = a_model(init="random", random_state=1, n_init=5, max_components=5).fit(X)
    assert many.lower_bound_ >= one.lower_bound_ - 1e-3 * abs(one.lower_bound_)


@every_prior
def test_threads_and_blocks_do_not_matter(prior):
    X, _, _ = planted(N=900, D=30)
    X[::7, :9] = np.nan
    model = a_model(prior, batch_size=50).fit(X)
    for n_jobs in (2, 3):
        other = a_model(prior, batch_size=50, n_jobs=n_jobs).fit(X)
        np.testing.assert_array_equal(model.components_, other.components_)
        assert model.lower_bound_ == other.lower_bound_
    for batch_size in (7, 400, None):
        other = a_model(prior, batch_size=batch_size).fit(X)
        assert other.n_components_ == model.n_components_
        assert other.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-9)
        np.testing.assert_allclose(other.components_, model.components_, atol=1e-6)
        np.testing.assert_array_equal(other.transform(X), model.transform(X))


def test_a_batch_size_is_heeded():
    """Blocks of that many rows are what is read."""
    X, _, _ = planted()
    model = a_model(batch_size=33)
    assert model._open(X, reset=True).source.block_rows == 33
    assert model.fit(X)._open(X, reset=False).source.block_rows == 33


def test_max_iter():
    X, _, _ = planted(noise=1.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = a_model(max_iter=1, init="random", tol=0.0).fit(X)
    check_fitted(model, X)
    assert model.n_iter_ == 1


def test_the_fit_and_transform_agree():
    """Where rows are clear, the counts are those of transform."""
    for how in ({}, {"maximizer": "double_greedy"}, {"batch_size": 30}):
        X, _, _ = planted(noise=0.3)
        model = a_model(**how)
        Z = model.fit_transform(X)
        np.testing.assert_array_equal(Z, model.transform(X))
        np.testing.assert_array_equal(Z.sum(axis=0), model.feature_counts_)
        assert set(np.unique(Z)) <= {0.0, 1.0}


# ------------------------------------------------------------------- warm starts


@every_prior
def test_warm_start_continues(prior):
    X, _, _ = planted(N=400)
    model = a_model(prior, warm_start=True).fit(X[:200])
    before = model.components_
    model.fit(X)
    assert model.n_components_ == 5
    assert model.n_iter_ <= 6
    np.testing.assert_allclose(model.components_.sum(), before.sum(), rtol=0.05)
    last = model.lower_bound_
    assert model.fit(X).lower_bound_ >= last - 1e-9 * abs(last)
    assert rises(model)


@pytest.mark.parametrize(
    "how", [{"noise_scale": 0.8}, {"alpha": 3.0}, {"factor_scale": 2.0}]
)
def test_warm_start_takes_new_scales(how):
    X, _, _ = planted()
    model = a_model(warm_start=True).fit(X).set_params(**how).fit(X)
    name, value = next(iter(how.items()))
    assert getattr(model, f"{name}_") == pytest.approx(value)


def test_warm_start_with_fewer_features_or_another_prior():
    X, _, _ = planted()
    model = a_model(warm_start=True).fit(X)
    assert model.set_params(max_components=2).fit(X).n_components_ <= 2
    model = a_model(warm_start=True).fit(X).set_params(prior="gaussian").fit(X)
    cold = a_model("gaussian").fit(X)
    assert model.lower_bound_ == pytest.approx(cold.lower_bound_, rel=1e-4)


def test_warm_start_with_other_columns():
    """Starts afresh or says clearly that it cannot."""
    X, _, _ = planted()
    model = a_model(warm_start=True).fit(X)
    refused = None
    try:
        model.fit(X[:, :30])
    except ValueError as error:
        refused = str(error)
    assert refused is None or "warm_start" in refused
    assert refused is not None or model.components_.shape[1] == 30


def test_warm_start_from_nothing():
    """After a fit that found no feature."""
    rng = np.random.default_rng(0)
    model = a_model(warm_start=True)
    with pytest.warns(UserWarning, match="no feature"):
        model.fit(rng.normal(size=(50, 60)))
    X, _, _ = planted()
    assert model.fit(X).n_components_ == 5


# ------------------------------------------------------------------------ samples


@every_prior
def test_samples_look_like_the_rows(prior):
    X, _, _ = planted(N=1000, D=20)
    model = a_model(prior).fit(X)
    drawn, Z = model.sample(20_000, random_state=1)
    assert drawn.shape == (20_000, 20)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=0), X.std(axis=0), atol=0.1)
    np.testing.assert_allclose(Z.mean(axis=0), model.feature_counts_ / 1000, atol=0.02)
    left = drawn - model.inverse_transform(Z)
    assert left.std() == pytest.approx(model.noise_scale_, rel=0.02)
    np.testing.assert_array_equal(model.sample(3, 5)[0], model.sample(3, 5)[0])
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)
