"""Features of streams, and fits that start from the last one."""

import numpy as np
import pytest
from sklearn.base import clone

from kplus import BPMeans, KFeatures
from planted_features import TRUE_A, error_of, planted, same_columns

MODELS = [
    BPMeans(20.0, random_state=0),
    BPMeans(n_components=3, random_state=0),
    BPMeans(random_state=0),
    KFeatures(3, random_state=0),
    KFeatures(penalty=20.0, random_state=0),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


@pytest.fixture(scope="module")
def data():
    return planted()


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
