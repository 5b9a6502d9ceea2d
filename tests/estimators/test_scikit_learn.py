"""DPMeans as scikit-learn expects an estimator to be, none of its checks excused."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import kplus
from kplus import DPMeans

MODELS = [DPMeans(), DPMeans(n_clusters=2), DPMeans(penalty=1.0)]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


@parametrize_with_checks(MODELS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_model
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
    check("DPMeans", clone(model))


# ------------------------------------------------------------------- predictions


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


# ------------------------------------------------------------------ composition


@every_model
def test_clone_and_params(model):
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert repr(again) == repr(model)
    assert not hasattr(again, "cluster_centers_")


@every_model
def test_pickle_keeps_everything(model, blobs):
    fitted = clone(model).fit(blobs)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(blobs), fitted.labels_)
    np.testing.assert_array_equal(again.transform(blobs), fitted.transform(blobs))
    assert vars(again).keys() == vars(fitted).keys()


def test_inside_a_pipeline(blobs):
    pipe = make_pipeline(StandardScaler(), PCA(2), DPMeans(n_clusters=4))
    labels = pipe.fit_predict(blobs)
    np.testing.assert_array_equal(labels, pipe.predict(blobs))
    assert pipe.transform(blobs).shape == (200, 4)
    assert pipe[-1].n_features_in_ == 2
    assert pipe.score(blobs) == pytest.approx(-pipe[-1].objective_, rel=1e-4)


def test_inside_a_grid_search(blobs):
    X = np.random.default_rng(0).permutation(blobs)
    search = GridSearchCV(DPMeans(), {"n_clusters": [1, 2, 4]}, cv=3).fit(X)
    assert search.best_params_ == {"n_clusters": 4}
    assert search.best_estimator_.n_clusters_ == 4
    pipe = Pipeline([("scale", StandardScaler()), ("cluster", DPMeans())])
    grid = {"cluster__penalty": [0.5, 4.0]}
    assert GridSearchCV(pipe, grid, cv=3).fit(X).best_score_ < 0.0


def test_output_as_frames(blobs):
    frame = pd.DataFrame(blobs, columns=["a", "b", "c"], index=np.arange(200) * 3)
    model = DPMeans(n_clusters=4).fit(frame)
    names = ["dpmeans0", "dpmeans1", "dpmeans2", "dpmeans3"]
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


def test_number_of_columns_out_follows_a_stream(blobs):
    model = DPMeans(150.0).partial_fit(blobs[:50])
    before = len(model.get_feature_names_out())
    model.partial_fit(blobs)
    assert len(model.get_feature_names_out()) == model.n_clusters_ > before


def test_unfitted(blobs):
    for call in ("predict", "transform", "score"):
        with pytest.raises(NotFittedError):
            getattr(DPMeans(), call)(blobs)
    with pytest.raises(NotFittedError):
        DPMeans().get_feature_names_out()


@every_model
def test_fit_leaves_data_and_parameters_alone(model, blobs):
    X, weights = blobs.copy(), np.linspace(0.5, 1.5, len(blobs))
    before = weights.copy()
    estimator = clone(model)
    params = estimator.get_params()
    estimator.fit(X, sample_weight=weights)
    np.testing.assert_array_equal(X, blobs)
    np.testing.assert_array_equal(weights, before)
    assert estimator.get_params() == params


def test_fitted_attributes_are_those_of_the_last_fit(blobs):
    model = DPMeans().fit(blobs)
    assert hasattr(model, "path_")
    model.set_params(penalty=150.0).fit(blobs[:, :2])
    assert not hasattr(model, "path_")
    assert model.n_features_in_ == 2
    assert model.cluster_centers_.shape[1] == 2


# --------------------------------------------------------------- watching a fit


class Recorder:
    """A scikit-learn callback that notes passes and may stop the fit."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.passes, self.objectives, self.events = 0, [], []

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
        self.objectives.append(fitted_estimator.score(X))
        return self.passes == self.stop_after


@every_model
def test_callbacks_see_every_pass(model, blobs):
    recorder = Recorder()
    fitted = clone(model).set_callbacks(recorder).fit(blobs)
    assert recorder.passes == fitted.n_iter_
    assert recorder.events[0] == "setup"
    assert recorder.events[-1] == "teardown"
    assert recorder.events.count("begin pass") == fitted.n_iter_
    assert recorder.objectives[-1] == pytest.approx(fitted.score(blobs), rel=1e-9)
    plain = clone(model).fit(blobs)
    np.testing.assert_array_equal(plain.labels_, fitted.labels_)


def test_a_callback_can_stop_the_fit(blobs):
    """Stopping on purpose is no reason for a warning."""
    recorder = Recorder(stop_after=2)
    model = DPMeans(150.0).set_callbacks(recorder).fit(blobs)
    assert recorder.passes == model.n_iter_ == 2
    assert recorder.events[-1] == "teardown"
    np.testing.assert_array_equal(model.predict(blobs), model.labels_)


def test_callbacks_are_torn_down_after_an_error(blobs):
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        DPMeans(1.0).set_callbacks(recorder).fit(np.full((4, 2), np.nan))
    assert recorder.events in ([], [*recorder.events[:-1], "teardown"])


@every_model
def test_verbose_prints_a_line_a_pass(model, blobs, capsys):
    fitted = clone(model).set_params(verbose=1).fit(blobs)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == fitted.n_iter_
    for i, line in enumerate(lines, start=1):
        assert re.match(rf"\[DPMeans\] pass {i}: \d+ clusters?, objective \S+", line)
    assert f"{fitted.n_clusters_} clusters" in lines[-1]
    value = float(lines[-1].rsplit(" ", 1)[1])
    charged = (
        fitted.penalty_ * (fitted.n_clusters_ - 1) if hasattr(fitted, "path_") else 0
    )
    assert value == pytest.approx(fitted.objective_ - charged, rel=1e-4)


def test_silent_by_default(blobs, capsys):
    DPMeans(150.0).fit(blobs)
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------------ files


@every_model
def test_saved_models_predict_the_same_bits(model, blobs, tmp_path):
    frame = pd.DataFrame(blobs, columns=["a", "b", "größe"])
    fitted = clone(model).fit(frame)
    kplus.save(fitted, tmp_path / "model.npz")
    again = kplus.load(tmp_path / "model.npz")
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.predict(frame), fitted.labels_)
    np.testing.assert_array_equal(again.transform(frame), fitted.transform(frame))
    assert again.score(frame) == fitted.score(frame)
    assert again.feature_names_in_.tolist() == ["a", "b", "größe"]
    for name in ("objective_history_", "cluster_sizes_", "cluster_centers_", "labels_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))


def test_the_path_is_saved(blobs, tmp_path):
    fitted = DPMeans().fit(blobs)
    kplus.save(fitted, tmp_path / "model.npz")
    path = kplus.load(tmp_path / "model.npz").path_
    assert type(path) is type(fitted.path_)
    for name, value in vars(fitted.path_).items():
        np.testing.assert_array_equal(getattr(path, name), value)
