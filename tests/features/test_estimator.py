"""BPMeans and KFeatures: what a fit says of itself, weights, streams, warm starts."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kplus import BPMeans, KFeatures
from planted_features import TRUE_A, error_of, planted, same_columns, same_fit

MODELS = [
    BPMeans(20.0, random_state=0),
    BPMeans(n_components=3, random_state=0),
    BPMeans(random_state=0),
    BPMeans(20.0, collapsed=True, random_state=0),
    KFeatures(3, random_state=0),
    KFeatures(penalty=20.0, random_state=0),
    KFeatures(random_state=0),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)
NUMBERS = [BPMeans(20.0, random_state=0), KFeatures(3, random_state=0)]


@pytest.fixture(scope="module")
def data():
    return planted()


# ------------------------------------------------------------------------ a fit


@every_model
def test_the_planted_features_are_found(model, data):
    Z, X = data
    fitted = clone(model).fit(X)
    assert fitted.n_components_ == 3
    found = fitted.transform(X)
    assert same_columns(found, Z)
    np.testing.assert_array_equal(fitted.feature_counts_, found.sum(axis=0))
    best = np.linalg.lstsq(found, X, rcond=None)[0]
    np.testing.assert_allclose(fitted.components_, best, atol=1e-9)


@every_model
@pytest.mark.parametrize("weighted", [False, True])
def test_what_a_fit_says_of_itself(model, weighted, data):
    _, X = data
    weights = np.linspace(0.2, 2.0, len(X)) if weighted else None
    fitted = clone(model).fit(X, sample_weight=weights)
    found = fitted.transform(X)
    error = error_of(X, found, fitted.components_, weights)
    charge = fitted.penalty_ * fitted.n_components_
    assert fitted.objective_ == pytest.approx(error + charge, rel=1e-9)
    assert fitted.reconstruction_err_ == pytest.approx(np.sqrt(error), rel=1e-9)
    assert fitted.score(X, sample_weight=weights) == pytest.approx(-error, rel=1e-9)
    counts = found.sum(axis=0) if weights is None else weights @ found
    np.testing.assert_allclose(fitted.feature_counts_, counts, rtol=1e-12)
    history = fitted.objective_history_
    assert history[-1] == pytest.approx(fitted.objective_, rel=1e-12)
    assert len(history) == fitted.n_iter_
    assert np.all(np.diff(history) <= 1e-9 * history[0])


@every_model
def test_transform_gives_zeros_and_ones(model, data):
    _, X = data
    fitted = clone(model).fit(X)
    Z = fitted.transform(X)
    assert Z.dtype == np.float64
    assert set(np.unique(Z)) <= {0.0, 1.0}
    np.testing.assert_array_equal(clone(model).fit_transform(X), Z)
    sparse = fitted.set_params(sparse_output=True).transform(X)
    assert sp.issparse(sparse)
    assert sparse.format == "csr"
    assert sparse.dtype == np.float64
    np.testing.assert_array_equal(sparse.toarray(), Z)


def test_fit_transform_takes_weights(data):
    _, X = data
    weights = np.linspace(0.0, 2.0, len(X))
    one, other = KFeatures(2, random_state=0), KFeatures(2, random_state=0)
    Z = one.fit_transform(X, sample_weight=weights)
    np.testing.assert_array_equal(Z, other.fit(X, sample_weight=weights).transform(X))
    same_fit(one, other)


def test_the_penalty_is_charged_if_it_is_a_number(data):
    _, X = data
    free = KFeatures(3, random_state=0).fit(X)
    charged = KFeatures(3, penalty=7.0, random_state=0).fit(X)
    assert (free.penalty_, charged.penalty_) == (0.0, 7.0)
    assert charged.n_components_ == 3
    assert charged.objective_ == pytest.approx(free.objective_ + 21.0, rel=1e-9)
    assert free.objective_ == pytest.approx(free.reconstruction_err_**2, rel=1e-12)


@pytest.mark.parametrize(
    "model", [KFeatures(penalty=20.0), KFeatures(), BPMeans()], ids=repr
)
def test_the_path_is_kept(model, data):
    _, X = data
    fitted = clone(model).set_params(random_state=0).fit(X)
    path = fitted.path_
    assert path.dtype.names == ("n_components", "error", "objective")
    charge = fitted.penalty_ * path["n_components"]
    np.testing.assert_allclose(path["objective"], path["error"] + charge, rtol=1e-9)
    assert fitted.n_components_ in path["n_components"]
    assert np.all(np.diff(path["n_components"]) > 0)


def test_there_is_a_path_only_where_something_was_chosen(data):
    _, X = data
    model = KFeatures(penalty=20.0, random_state=0).fit(X)
    assert hasattr(model, "path_")
    model.set_params(n_components=2).fit(X)
    assert not hasattr(model, "path_")
    assert not hasattr(BPMeans(20.0, random_state=0).fit(X), "path_")


@pytest.mark.parametrize("cap", [1, 2, 3, 9])
def test_a_cap(cap, data):
    _, X = data
    for model in (BPMeans(20.0), BPMeans(), KFeatures(penalty=20.0), KFeatures()):
        fitted = model.set_params(max_components=cap, random_state=0).fit(X)
        assert fitted.n_components_ <= cap
        if cap > 3:
            assert fitted.n_components_ == 3


@pytest.mark.parametrize("init", ["auto", "++", "split", "ica", "random"])
@pytest.mark.parametrize("assignment", ["auto", "flips", "exact"])
def test_every_start_and_every_assignment(init, assignment, data):
    _, X = data
    how = {"init": init, "assignment": assignment, "effort": 0.5}
    for model in (BPMeans(20.0, **how), KFeatures(3, n_init=3, **how)):
        fitted = model.set_params(random_state=0).fit(X)
        error = error_of(X, fitted.transform(X), fitted.components_)
        assert fitted.score(X) == pytest.approx(-error, rel=1e-9)
        if assignment != "flips":  # which depend on where they start
            assert fitted.reconstruction_err_**2 == pytest.approx(error, rel=1e-9)


def test_more_starts_are_never_worse():
    X = np.random.default_rng(3).normal(size=(60, 5))
    how = {"effort": 0, "init": "random", "random_state": 0}
    one = KFeatures(4, **how).fit(X)
    many = KFeatures(4, n_init=8, **how).fit(X)
    assert many.objective_ <= one.objective_


def test_warns_when_passes_run_out():
    X = np.random.default_rng(0).normal(size=(200, 8))
    model = KFeatures(6, max_iter=1, init="random", effort=0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="KFeatures .*max_iter=1"):
        model.fit(X)
    assert model.n_iter_ == 1
    assert np.all(np.isfinite(model.components_))


# ------------------------------------------------------------ inverse_transform


def test_inverse_transform(data):
    _, X = data
    model = KFeatures(3, random_state=0).fit(X)
    Z = model.transform(X)
    expected = Z @ model.components_
    for form in (np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array, pd.DataFrame):
        back = model.inverse_transform(form(Z))
        assert isinstance(back, np.ndarray)
        np.testing.assert_allclose(back, expected, rtol=1e-12, atol=1e-12)
    back = model.inverse_transform(pl.DataFrame(Z.astype(np.int8)))
    np.testing.assert_allclose(back, expected, rtol=1e-12, atol=1e-12)
    back = model.inverse_transform(Z.astype(bool))
    np.testing.assert_allclose(back, expected, rtol=1e-12, atol=1e-12)
    assert error_of(X, Z, model.components_) == pytest.approx(
        np.sum((X - expected) ** 2)
    )


def test_inverse_transform_of_another_width(data):
    _, X = data
    model = KFeatures(3, random_state=0).fit(X)
    for Z in (np.ones((2, 2)), sp.csr_array(np.ones((2, 4))), np.ones((2, 6))):
        with pytest.raises(ValueError, match=r"columns, but .* 3 features"):
            model.inverse_transform(Z)
    with pytest.raises(ValueError, match="2D"):
        model.inverse_transform([1.0, 0.0, 1.0])


# ---------------------------------------------------------------------- weights


@pytest.mark.parametrize("model", [*NUMBERS, KFeatures(penalty=20.0)], ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_weights_equal_copies(model, seed):
    """Zero: left out; two: twice there, in whatever order."""
    rng = np.random.default_rng(seed)
    _, X = planted(60, seed=seed)
    weights = rng.integers(0, 4, len(X))
    copies = rng.permutation(np.repeat(np.arange(len(X)), weights))
    one = clone(model).fit(X, sample_weight=weights)
    other = clone(model).fit(X[copies])
    assert one.n_components_ == other.n_components_
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)
    np.testing.assert_allclose(one.feature_counts_, other.feature_counts_)
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-9)


def test_rows_of_no_weight_do_not_count(data):
    _, X = data
    far = np.vstack([X, np.full((1, 6), 1e4)])
    weights = np.append(np.ones(len(X)), 0.0)
    for model in NUMBERS:
        with_it = clone(model).fit(far, sample_weight=weights)
        without = clone(model).fit(X)
        np.testing.assert_allclose(with_it.components_, without.components_, atol=1e-9)
        assert with_it.objective_ == pytest.approx(without.objective_, rel=1e-9)
        assert with_it.transform(far).shape == (len(far), 3)


# --------------------------------------------------- streams and warm starts


@pytest.mark.parametrize("n_batches", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_a_stream_covers_every_row_seen(n_batches, weighted, missing):
    """Earlier rows keep their features; all rows together decide what these are."""
    rng = np.random.default_rng(0)
    _, X = planted(150, noise=1.0)
    if missing:
        X[40:][rng.random((110, 6)) < 0.2] = np.nan
    weights = rng.uniform(0.1, 2.0, len(X)) if weighted else np.ones(len(X))
    model = KFeatures(3, assignment="exact", random_state=0)
    Z = []
    for rows in np.array_split(np.arange(len(X)), n_batches):
        model.partial_fit(X[rows], sample_weight=weights[rows])
        assert model.n_components_ == 3
        Z.append(model.transform(X[rows]))
        seen = slice(0, rows[-1] + 1)
        error = error_of(X[seen], np.vstack(Z), model.components_, weights[seen])
        assert model.n_samples_seen_ == pytest.approx(weights[seen].sum(), rel=1e-12)
        assert model.objective_ == pytest.approx(error, rel=1e-9)
        assert model.objective_history_[-1] == pytest.approx(error, rel=1e-9)
        np.testing.assert_allclose(
            model.feature_counts_, weights[seen] @ np.vstack(Z), rtol=1e-12
        )
    assert len(model.objective_history_) == model.n_iter_


@every_model
def test_a_stream_finds_what_a_fit_finds(model, data):
    Z, X = data
    streamed = clone(model)
    for batch in np.array_split(X, 3):
        streamed.partial_fit(batch)
    assert same_columns(streamed.transform(X), Z)
    best = np.linalg.lstsq(streamed.transform(X), X, rcond=None)[0]
    np.testing.assert_allclose(streamed.components_, best, atol=1e-8)


def test_new_features_turn_up_in_a_stream():
    rng = np.random.default_rng(0)
    X = rng.normal(scale=0.1, size=(120, 6))
    for i, feature in enumerate(TRUE_A):
        X[40 * i :: 2] += feature
    model = BPMeans(20.0, random_state=0)
    found = [model.partial_fit(batch).n_components_ for batch in np.split(X, 3)]
    assert found[0] == 1
    assert found[0] <= found[1] <= found[2]
    assert len(model.get_feature_names_out()) == found[2]


def test_a_cap_holds_in_a_stream(data):
    _, X = data
    model = BPMeans(5.0, max_components=2, random_state=0)
    for batch in np.array_split(X, 4):
        assert model.partial_fit(batch).n_components_ <= 2


def test_one_row_at_a_time(data):
    _, X = data
    model = BPMeans(20.0, random_state=0)
    for row in X[7:30]:
        model.partial_fit(row[None])
    assert np.all(np.isfinite(model.components_))
    assert -model.score(X[7:30]) <= model.objective_
    assert model.n_components_ >= 1


def test_warm_start(data):
    _, X = data
    model = KFeatures(3, warm_start=True, effort=0, random_state=0).fit(X)
    first, objective = model.components_, model.objective_
    model.fit(X)
    assert model.objective_ <= objective * (1 + 1e-12)
    np.testing.assert_allclose(model.components_, first, atol=1e-9)
    assert model.n_iter_ <= 2
    model.set_params(n_components=2).fit(X)
    assert model.n_components_ == 2
    with pytest.raises(ValueError, match="warm_start=True, but X has 4 features"):
        model.fit(X[:, :4])


@every_model
def test_a_warm_start_is_never_worse_than_where_it_starts(model):
    _, X = planted(80, noise=1.5, seed=1)
    fitted = clone(model).set_params(warm_start=True).fit(X)
    before = fitted.objective_
    assert fitted.fit(X).objective_ <= before * (1 + 1e-12)
