"""BPMeans and KFeatures as scikit-learn expects transformers to be."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import kplus
from kplus import BPMeans, KFeatures

MODELS = [
    BPMeans(),
    BPMeans(0.5),
    BPMeans(n_components=2),
    BPMeans(0.5, collapsed=True),
    KFeatures(),
    KFeatures(2),
    KFeatures(2, sparse_output=True),
    KFeatures(penalty=0.5, assignment="exact", max_components=5),
]
DENSE = [model for model in MODELS if not model.sparse_output]
# The data of scikit-learn's checks are often noise, in which nothing pays.
pytestmark = pytest.mark.filterwarnings("ignore:(BPMeans|KFeatures) found no feature")
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)
every_dense = pytest.mark.parametrize("model", DENSE, ids=repr)


@parametrize_with_checks(MODELS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_dense
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize(
    "check",
    [
        checks.check_dataframe_column_names_consistency,
        checks.check_set_output_transform,
        checks.check_set_output_transform_pandas,
        checks.check_set_output_transform_polars,
        checks.check_global_output_transform_pandas,
        checks.check_global_set_output_transform_polars,
        checks.check_transformer_get_feature_names_out,
        checks.check_transformer_get_feature_names_out_pandas,
        checks.check_param_validation,
        checks.check_n_features_in_after_fitting,
    ],
    ids=lambda check: check.__name__,
)
def test_checks_outside_the_list(model, check):
    check(type(model).__name__, clone(model))


@pytest.fixture(scope="module")
def rows():
    """Three features in five columns, 60 rows."""
    rng = np.random.default_rng(0)
    A = np.array([[5.0, 5, 0, 0, 0], [0, 0, 4, 0, 4], [0, 3, 0, 3, 0]])
    Z = rng.random((60, 3)) < (0.6, 0.45, 0.3)
    X = Z @ A + rng.normal(scale=0.1, size=(60, 5))
    X.flags.writeable = False
    return X


def test_tags():
    for model in MODELS:
        tags = get_tags(model)
        assert tags.input_tags.allow_nan
        assert tags.input_tags.sparse
        assert tags.transformer_tags is not None


def test_both_take_the_same_parameters():
    """Only the first differs, and with it the meaning of a bare number."""
    assert BPMeans().get_params() == KFeatures().get_params()
    assert BPMeans(3.0).penalty == 3.0
    assert KFeatures(3).n_components == 3
    for cls in (BPMeans, KFeatures):
        with pytest.raises(TypeError, match="positional"):
            cls(3, 4)
        assert set(cls._parameter_constraints) == set(cls().get_params())


# ------------------------------------------------------------------ composition


@every_model
def test_clone_and_params(model, rows):
    fitted = clone(model).fit(rows)
    again = clone(fitted)
    assert again.get_params() == model.get_params()
    assert repr(again) == repr(model)
    assert not hasattr(again, "components_")


@every_dense
def test_pickle_keeps_everything(model, rows):
    fitted = clone(model).set_params(random_state=0).fit(rows)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(rows), fitted.transform(rows))
    assert again.score(rows) == fitted.score(rows)
    assert vars(again).keys() == vars(fitted).keys()
    fitted.partial_fit(rows[:20])
    again.partial_fit(rows[:20])
    np.testing.assert_array_equal(again.components_, fitted.components_)


def test_no_rows_are_kept(rows):
    """A model that is passed on must not give its data away."""
    secret = rows.copy()
    secret[7, 2] = 12345.678
    for model in (BPMeans(1.0), KFeatures(2), KFeatures(penalty=1.0)):
        model.set_params(max_components=2, random_state=0).fit(secret)
        kept = vars(model)["_sums"]
        assert len(kept.candidates.rows) == 0
        assert max(np.size(value) for value in vars(model).values()) < rows.size


def test_inside_a_pipeline(rows):
    pipe = make_pipeline(StandardScaler(), PCA(4), KFeatures(3, random_state=0))
    Z = pipe.fit_transform(rows)
    np.testing.assert_array_equal(pipe.transform(rows), Z)
    assert pipe.inverse_transform(Z).shape == rows.shape
    assert pipe.score(rows) == pytest.approx(-pipe[-1].objective_, rel=1e-9)
    assert pipe.get_feature_names_out().tolist() == [f"kfeatures{i}" for i in range(3)]
    for sparse in (False, True):
        features = BPMeans(10.0, sparse_output=sparse, random_state=0)
        chain = make_pipeline(features, Ridge(alpha=1e-6))
        assert chain.fit(rows, rows[:, 0]).score(rows, rows[:, 0]) > 0.99


def test_inside_a_grid_search(rows):
    grid = {"n_components": [1, 3]}
    search = GridSearchCV(KFeatures(random_state=0), grid, cv=3).fit(rows)
    assert search.best_params_ == {"n_components": 3}


def test_output_as_frames(rows):
    frame = pd.DataFrame(rows, columns=list("abcde"), index=np.arange(60) * 3)
    model = KFeatures(3, random_state=0).fit(frame)
    names = ["kfeatures0", "kfeatures1", "kfeatures2"]
    assert model.get_feature_names_out().tolist() == names
    plain = model.transform(frame)
    as_pandas = model.set_output(transform="pandas").transform(frame)
    assert isinstance(as_pandas, pd.DataFrame)
    assert as_pandas.columns.tolist() == names
    assert as_pandas.index.equals(frame.index)
    np.testing.assert_array_equal(as_pandas.to_numpy(), plain)
    as_polars = model.set_output(transform="polars").transform(frame)
    assert isinstance(as_polars, pl.DataFrame)
    assert as_polars.columns == names
    np.testing.assert_array_equal(as_polars.to_numpy(), plain)
    np.testing.assert_array_equal(
        model.inverse_transform(as_polars), model.inverse_transform(plain)
    )


def test_frames_cannot_be_sparse(rows):
    model = KFeatures(2, sparse_output=True, random_state=0)
    with pytest.raises(ValueError, match="sparse"):
        model.set_output(transform="pandas").fit_transform(rows)


def test_names(rows):
    model = BPMeans(10.0, random_state=0).fit(rows)
    names = [f"bpmeans{i}" for i in range(model.n_components_)]
    assert model.get_feature_names_out().tolist() == names


def test_unfitted(rows):
    for model in (BPMeans(), KFeatures()):
        for call in ("transform", "score", "inverse_transform"):
            with pytest.raises(NotFittedError):
                getattr(model, call)(rows)
        with pytest.raises(NotFittedError):
            model.get_feature_names_out()


@every_model
def test_fit_leaves_data_and_parameters_alone(model, rows):
    X, weights = rows.copy(), np.linspace(0.5, 1.5, len(rows))
    before = weights.copy()
    estimator = clone(model)
    params = estimator.get_params()
    estimator.fit(X, sample_weight=weights)
    estimator.partial_fit(X, sample_weight=weights)
    np.testing.assert_array_equal(X, rows)
    np.testing.assert_array_equal(weights, before)
    assert estimator.get_params() == params


# --------------------------------------------------------------- watching a fit


class Recorder:
    """A scikit-learn callback that notes passes and may stop the fit."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.passes, self.scores, self.events = 0, [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name != "pass":
            return False
        self.passes += 1
        self.scores.append(fitted_estimator.score(X))
        assert fitted_estimator.transform(X).shape[1] == fitted_estimator.n_components_
        return self.passes == self.stop_after


@every_model
def test_callbacks_see_every_pass(model, rows):
    model = clone(model).set_params(random_state=0)
    recorder = Recorder()
    fitted = clone(model).set_callbacks(recorder).fit(rows)
    assert recorder.passes == fitted.n_iter_
    assert recorder.events[0] == "setup"
    assert recorder.events[-1] == "teardown"
    assert recorder.scores[-1] == pytest.approx(fitted.score(rows), rel=1e-9)
    np.testing.assert_array_equal(model.fit(rows).components_, fitted.components_)


def test_a_callback_can_stop_the_fit(rows):
    """Stopping on purpose is no reason for a warning."""
    noise = np.random.default_rng(0).normal(size=(300, 8))
    recorder = Recorder(stop_after=1)
    model = KFeatures(6, init="random", effort=0, random_state=0)
    model.set_callbacks(recorder).fit(noise)
    assert recorder.passes == model.n_iter_ == 1
    assert recorder.events[-1] == "teardown"
    assert np.all(np.isfinite(model.components_))


def test_callbacks_are_torn_down_after_an_error():
    recorder = Recorder()
    with pytest.raises(ValueError, match="infinity"):
        BPMeans(1.0).set_callbacks(recorder).fit(np.full((4, 2), np.inf))
    assert recorder.events in ([], [*recorder.events[:-1], "teardown"])


@every_model
def test_verbose_prints_a_line_a_pass(model, rows, capsys):
    fitted = clone(model).set_params(verbose=1).fit(rows)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == fitted.n_iter_
    name = type(model).__name__
    for i, line in enumerate(lines, start=1):
        assert re.match(rf"\[{name}\] pass {i}: \d+ features, objective \S+", line)
    assert f"{fitted.n_components_} features" in lines[-1]
    value = float(lines[-1].rsplit(" ", 1)[1])
    assert value == pytest.approx(fitted.objective_, rel=1e-4)


def test_silent_by_default(rows, capsys):
    BPMeans(10.0).fit(rows)
    assert capsys.readouterr() == ("", "")


def test_the_package_offers_both():
    assert {"BPMeans", "KFeatures"} <= set(kplus.__all__)
