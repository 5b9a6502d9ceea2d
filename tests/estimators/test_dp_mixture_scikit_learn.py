"""DPMixture as scikit-learn expects an estimator to be."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from kplus import DPMixture
from kplus.observations import DiagGaussian

MODELS = [
    DPMixture(),
    DPMixture("diag_gaussian"),
    DPMixture("diag_gaussian", concentration="learn"),
    DPMixture(algorithm="full"),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)

# These two take whatever has predict_proba for a classifier of four classes;
# `test_sparse_tables` looks at the same.
CANNOT_BE = dict.fromkeys(
    ["check_estimator_sparse_array", "check_estimator_sparse_matrix"],
    "the check needs the tags of a classifier",
)


@parametrize_with_checks(MODELS, expected_failed_checks=lambda estimator: CANNOT_BE)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_model
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize(
    "check",
    [
        checks.check_dataframe_column_names_consistency,
        checks.check_param_validation,
        checks.check_n_features_in_after_fitting,
    ],
    ids=lambda check: check.__name__,
)
def test_checks_outside_the_list(model, check):
    check("DPMixture", clone(model))


@every_model
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_matrix])
def test_sparse_tables(model, make):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 3))
    X[X < 0.6] = 0.0
    dense = clone(model).set_params(random_state=0).fit(X)
    sparse = clone(model).set_params(random_state=0).fit(make(X))
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
    np.testing.assert_array_equal(sparse.predict(make(X)), sparse.labels_)
    assert sparse.predict_proba(make(X)).shape == (40, sparse.n_components_)


def test_tags_follow_the_observations():
    for observations, nan, categories, positive in (
        ("gaussian", False, False, False),
        ("diag_gaussian", True, False, False),
        (DiagGaussian(), True, False, False),
        ("mixed", True, True, False),
        ("categorical", True, True, True),
        ("multinomial", False, False, True),
    ):
        tags = get_tags(DPMixture(observations)).input_tags
        assert tags.allow_nan is nan
        assert tags.categorical is categories
        assert tags.positive_only is positive


@every_model
def test_fit_predict_equals_fit_then_predict(model, blobs):
    model = clone(model).set_params(random_state=0)
    labels = clone(model).fit_predict(blobs)
    np.testing.assert_array_equal(labels, model.fit(blobs).predict(blobs))
    assert labels.dtype == np.int32


def test_a_seed_decides_all(blobs):
    one, two = (DPMixture(random_state=3).fit(blobs) for _ in range(2))
    assert one.means_.tobytes() == two.means_.tobytes()
    assert one.sample(9)[0].tobytes() == two.sample(9)[0].tobytes()
    state = np.random.RandomState(0)
    model = DPMixture(random_state=state).fit(blobs)
    assert not np.array_equal(model.sample(9)[0], model.sample(9)[0])


def test_pipelines_and_searches(blobs):
    pipe = make_pipeline(StandardScaler(), DPMixture(random_state=0))
    assert len(np.unique(pipe.fit_predict(blobs))) == 4
    grid = GridSearchCV(
        DPMixture(random_state=0),
        {"observations": ["gaussian", "spherical_gaussian", DiagGaussian()]},
        cv=2,
    )
    shuffled = np.random.default_rng(0).permutation(blobs)
    assert np.isfinite(grid.fit(shuffled).best_score_)


def test_names_of_columns_are_checked(blobs):
    frame = pd.DataFrame(blobs, columns=["a", "b", "c"])
    model = DPMixture(random_state=0).fit(frame)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_pickle(blobs):
    model = DPMixture("diag_gaussian", random_state=0).fit(blobs)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(blobs), model.labels_)
    assert again.score(blobs) == model.score(blobs)


def test_callbacks_see_fitted_estimators(blobs):
    class Watch:
        def __init__(self):
            self.seen = []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if context.parent is not None:
                labels = fitted_estimator.predict(blobs)
                self.seen.append((fitted_estimator.n_components_, labels))

    watch = Watch()
    model = DPMixture(random_state=0).set_callbacks(watch).fit(blobs)
    assert len(watch.seen) == model.n_iter_
    assert watch.seen[0][0] == 1
    assert watch.seen[-1][1].shape == (200,)
