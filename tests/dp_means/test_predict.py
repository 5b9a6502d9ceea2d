"""What DPMeans says of rows: distances, scores, and who wins a tie."""

import numpy as np
import pytest
from sklearn.base import clone

from kplus import DPMeans

MODELS = [DPMeans(), DPMeans(n_clusters=2), DPMeans(penalty=1.0)]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


@every_model
def test_transform_gives_distances(model, blobs):
    fitted = clone(model).fit(blobs)
    distances = fitted.transform(blobs)
    expected = np.linalg.norm(blobs[:, None] - fitted.cluster_centers_, axis=2)
    np.testing.assert_allclose(distances, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(distances.argmin(axis=1), fitted.labels_)
    np.testing.assert_array_equal(clone(model).fit_transform(blobs), distances)


@every_model
def test_score_is_minus_the_squared_error(model, blobs):
    fitted = clone(model).set_params(tol=0.0).fit(blobs)
    expected = np.sum(np.min(fitted.transform(blobs) ** 2, axis=1))
    assert fitted.score(blobs) == pytest.approx(-expected, rel=1e-12)
    charge = fitted.penalty_ * (fitted.n_clusters_ - 1)
    assert fitted.objective_ == pytest.approx(expected + charge, rel=1e-10)
    weights = np.linspace(0.0, 2.0, len(blobs))
    expected = np.sum(weights * np.min(fitted.transform(blobs) ** 2, axis=1))
    scored = fitted.score(blobs, sample_weight=weights)
    assert scored == pytest.approx(-expected, rel=1e-12)


@every_model
def test_fit_predict_equals_fit_then_predict(model, blobs):
    weights = np.linspace(0.1, 2.0, len(blobs))
    labels = clone(model).fit_predict(blobs, sample_weight=weights)
    fitted = clone(model).fit(blobs, sample_weight=weights)
    np.testing.assert_array_equal(labels, fitted.labels_)
    np.testing.assert_array_equal(labels, fitted.predict(blobs))


def test_a_tie_goes_to_the_lower_number():
    """In predict as in fit, also after clusters were numbered by size."""
    X = np.array([[0.0], [4.0], [6.0], [6.0], [6.0]])
    for penalty in (4.5, 8.0, 16.0):
        model = DPMeans(penalty, tol=0.0).fit(X)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    model = DPMeans(n_clusters=2).fit([[-1.0], [-1.0], [1.0]])
    assert model.predict([[0.0]])[0] == 0


@pytest.mark.parametrize("seed", range(20))
def test_predict_equals_labels_among_many_ties(seed):
    """Whole numbers in symmetric places: rows as near to two centres."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (int(rng.integers(4, 60)), 2)).astype(float)
    weights = [None, rng.integers(0, 2, len(X)) + (np.arange(len(X)) == 0)][seed % 2]
    for how in ({"penalty": 1.0}, {"penalty": 2.0}, {"n_clusters": 3}, {}):
        for tol in (0.0, 1e-5, 0.1):
            try:
                model = DPMeans(**how, tol=tol).fit(X, sample_weight=weights)
            except ValueError:
                continue  # fewer distinct rows than clusters
            np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_rows_far_beyond_the_centres():
    """Centres a hair apart and rows astronomically far: float32 would overflow."""
    model = DPMeans(n_clusters=2).fit([[0.0], [1e-6]])
    far = np.array([[-1e30], [1e30], [-1e5], [1e5], [0.4e-6], [0.6e-6]])
    expected = np.abs(far - model.cluster_centers_.T).argmin(axis=1)
    near = [2, 3, 4, 5]  # farther out both distances are the same number
    np.testing.assert_array_equal(model.predict(far)[near], expected[near])
    assert set(model.predict(far)) <= {0, 1}
    assert np.all(np.isfinite(model.transform(far)))


def test_number_of_columns_out_follows_a_stream(blobs):
    model = DPMeans(150.0).partial_fit(blobs[:50])
    before = len(model.get_feature_names_out())
    model.partial_fit(blobs)
    assert len(model.get_feature_names_out()) == model.n_clusters_ > before


def test_fitted_attributes_are_those_of_the_last_fit(blobs):
    model = DPMeans().fit(blobs)
    assert hasattr(model, "path_")
    model.set_params(penalty=150.0).fit(blobs[:, :2])
    assert not hasattr(model, "path_")
    assert model.n_features_in_ == 2
    assert model.cluster_centers_.shape[1] == 2
