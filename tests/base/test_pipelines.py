"""Estimators at work inside scikit-learn: searches choose right, others build on it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from every_estimator import (
    ROWS,
    assert_same_answers,
    assert_same_attributes,
    mixed_rows,
    seeded,
)
from kplus import CRAFT, MEIBP, BPMeans, DPMeans, DPMixture, KFeatures
from kplus.observations import DiagGaussian


@pytest.fixture(scope="module")
def shuffled(blobs):
    return np.random.default_rng(0).permutation(blobs)


@pytest.mark.parametrize(
    ("model", "grid", "best"),
    [
        (KFeatures(random_state=0), {"n_components": [1, 3]}, 3),
        (MEIBP(random_state=0), {"max_components": [1, 5]}, 5),
    ],
    ids=["KFeatures", "MEIBP"],
)
def test_searches_for_features(model, grid, best):
    assert list(GridSearchCV(model, grid, cv=3).fit(ROWS).best_params_.values()) == [
        best
    ]


def test_searches_for_clusters(shuffled):
    search = GridSearchCV(DPMeans(), {"n_clusters": [1, 2, 4]}, cv=3).fit(shuffled)
    assert search.best_params_ == {"n_clusters": 4}
    assert search.best_estimator_.n_clusters_ == 4
    pipe = make_pipeline(StandardScaler(), DPMeans())
    grid = {"dpmeans__penalty": [0.5, 4.0]}
    assert GridSearchCV(pipe, grid, cv=3).fit(shuffled).best_score_ < 0.0


def test_searches_for_clusters_of_mixed_tables():
    search = GridSearchCV(CRAFT(random_state=0), {"n_clusters": [1, 3]}, cv=3)
    assert search.fit(mixed_rows()[0]).best_params_ == {"n_clusters": 3}


def test_searches_for_observations(shuffled):
    families = ["gaussian", "spherical_gaussian", DiagGaussian()]
    search = GridSearchCV(DPMixture(random_state=0), {"observations": families}, cv=2)
    assert np.isfinite(search.fit(shuffled).best_score_)


def test_scaled_rows(blobs):
    for model in (DPMeans(n_clusters=4), DPMixture(random_state=0)):
        pipe = make_pipeline(StandardScaler(), model)
        assert len(np.unique(pipe.fit_predict(blobs))) == 4


@pytest.mark.parametrize(
    "model",
    [BPMeans(10.0), BPMeans(10.0, sparse_output=True), MEIBP()],
    ids=repr,
)
def test_regression_on_features(model):
    chain = make_pipeline(model.set_params(random_state=0), Ridge(alpha=1e-6))
    assert chain.fit(ROWS, ROWS[:, 0]).score(ROWS, ROWS[:, 0]) > 0.99


def test_features_of_scaled_rows():
    pipe = make_pipeline(StandardScaler(), KFeatures(3, random_state=0)).fit(ROWS)
    assert pipe.score(ROWS) == pytest.approx(-pipe[-1].objective_, rel=1e-9)


def test_mixed_tables():
    frame, z = mixed_rows()
    alone = make_pipeline(CRAFT(random_state=0)).fit(frame)
    np.testing.assert_array_equal(alone.predict(frame), alone[-1].labels_)
    assert adjusted_rand_score(z, alone[-1].labels_) > 0.95
    assert alone.score(frame) == alone[-1].score(frame)
    for library in ("default", "pandas"):
        prepare = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "noise"]),
            ("passthrough", ["color"]),
        ).set_output(transform=library)
        pipe = make_pipeline(prepare, CRAFT(random_state=0))
        labels = pipe.fit_predict(frame)
        assert adjusted_rand_score(z, labels) > 0.8  # what is filled in is a spike
        np.testing.assert_array_equal(pipe.predict(frame), labels)
        assert pipe.transform(frame).shape == (160, 3)


@pytest.mark.parametrize("model", [CRAFT(), DPMixture("mixed")], ids=repr)
def test_mixed_tables_survive_a_pickle(model):
    frame, _ = mixed_rows()
    model = seeded(model).fit(frame)
    again = pickle.loads(pickle.dumps(model))
    assert_same_attributes(again, model)
    assert_same_answers(again, model, frame)
    again.partial_fit(frame[:40])
    assert_same_attributes(again, model.partial_fit(frame[:40]))


def test_mixed_tables_are_left_alone():
    frame, weights = mixed_rows()[0], np.linspace(0.5, 1.5, 160)
    for model in (CRAFT(random_state=0), DPMixture("mixed", random_state=0)):
        model.fit(frame, sample_weight=weights)
        model.partial_fit(frame, sample_weight=weights)
        pd.testing.assert_frame_equal(frame, mixed_rows()[0])
        np.testing.assert_array_equal(weights, np.linspace(0.5, 1.5, 160))
