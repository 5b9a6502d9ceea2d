"""MEIBP as scikit-learn expects transformers to be; callbacks; model files."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import kplus
from kplus import MEIBP

MODELS = [
    MEIBP(),
    MEIBP(negative="shift"),
    MEIBP(2, negative="noise", init="random"),
    MEIBP(factor_prior="gaussian"),
    MEIBP(maximizer="double_greedy", negative="shift"),
]
# The data of scikit-learn's checks are often noise, in which nothing pays.
pytestmark = pytest.mark.filterwarnings("ignore:MEIBP found no feature")
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
    check(type(model).__name__, clone(model))


@pytest.fixture(scope="module")
def rows():
    """Three features in five columns, 60 rows; all positive."""
    rng = np.random.default_rng(0)
    A = np.array([[5.0, 5, 0, 0, 0], [0, 0, 4, 0, 4], [0, 3, 0, 3, 0]])
    Z = rng.random((60, 3)) < (0.6, 0.45, 0.3)
    X = Z @ A + rng.uniform(0.0, 0.3, size=(60, 5))
    X.flags.writeable = False
    return X


def test_tags_and_parameters():
    for model in MODELS:
        tags = get_tags(model)
        assert tags.input_tags.allow_nan
        assert tags.input_tags.sparse
        assert tags.transformer_tags is not None
        plain = model.factor_prior == "nonnegative" and model.negative == "error"
        assert tags.input_tags.positive_only == plain
    assert set(MEIBP._parameter_constraints) == set(MEIBP().get_params())
    with pytest.raises(TypeError, match="positional"):
        MEIBP(3, 1.0)
    assert "MEIBP" in kplus.__all__


@every_model
def test_clone_and_params(model, rows):
    fitted = clone(model).fit(rows)
    again = clone(fitted)
    assert again.get_params() == model.get_params()
    assert repr(again) == repr(model)
    assert not hasattr(again, "components_")


@every_model
def test_pickle_keeps_everything(model, rows):
    fitted = clone(model).set_params(random_state=0).fit(rows)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(rows), fitted.transform(rows))
    assert again.score(rows) == fitted.score(rows)
    assert vars(again).keys() == vars(fitted).keys()
    np.testing.assert_array_equal(again.sample(3)[0], fitted.sample(3)[0])


def test_no_rows_are_kept(rows):
    """A model that is passed on must not give its data away."""
    table = np.vstack([rows] * 20)
    model = MEIBP(random_state=0).fit(table)
    assert len(pickle.dumps(model)) < 0.5 * table.nbytes


def test_inside_a_pipeline(rows):
    pipe = make_pipeline(MinMaxScaler(), MEIBP(random_state=0))
    Z = pipe.fit_transform(rows)
    np.testing.assert_array_equal(pipe.transform(rows), Z)
    np.testing.assert_allclose(pipe.inverse_transform(Z), rows, atol=2.0)
    names = [f"meibp{i}" for i in range(Z.shape[1])]
    assert pipe.get_feature_names_out().tolist() == names
    chain = make_pipeline(MEIBP(random_state=0), Ridge(alpha=1e-6))
    assert chain.fit(rows, rows[:, 0]).score(rows, rows[:, 0]) > 0.99


def test_inside_a_grid_search(rows):
    grid = {"max_components": [1, 5]}
    search = GridSearchCV(MEIBP(random_state=0), grid, cv=3).fit(rows)
    assert search.best_params_ == {"max_components": 5}


def test_output_as_frames(rows):
    frame = pd.DataFrame(rows, columns=list("abcde"), index=np.arange(60) * 3)
    model = MEIBP(random_state=0).fit(frame)
    names = [f"meibp{i}" for i in range(model.n_components_)]
    assert model.get_feature_names_out().tolist() == names
    plain = model.transform(frame)
    as_pandas = model.set_output(transform="pandas").transform(frame)
    assert isinstance(as_pandas, pd.DataFrame)
    assert as_pandas.columns.tolist() == names
    assert as_pandas.index.equals(frame.index)
    np.testing.assert_array_equal(as_pandas.to_numpy(), plain)
    # What is not the output of transform does not change.
    assert model.score(frame) == MEIBP(random_state=0).fit(frame).score(frame)
    assert isinstance(model.impute(frame), np.ndarray)
    as_polars = model.set_output(transform="polars").transform(frame)
    assert isinstance(as_polars, pl.DataFrame)
    assert as_polars.columns == names
    np.testing.assert_array_equal(
        model.inverse_transform(as_polars), model.inverse_transform(plain)
    )
    assert np.isfinite(model.score(frame))


def test_unfitted(rows):
    for call in ("transform", "score", "inverse_transform", "impute", "sample"):
        with pytest.raises(NotFittedError):
            getattr(MEIBP(), call)(*([] if call == "sample" else [rows]))
    with pytest.raises(NotFittedError):
        MEIBP().get_feature_names_out()


@every_model
def test_fit_leaves_data_and_parameters_alone(model, rows):
    X = rows.copy()
    X[3, 2] = np.nan
    before = X.copy()
    estimator = clone(model)
    params = estimator.get_params()
    estimator.fit(X)
    estimator.transform(X)
    estimator.impute(X)
    estimator.score(X, rows)
    np.testing.assert_array_equal(X, before)
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
    assert recorder.scores[-1] == pytest.approx(fitted.score(rows), rel=1e-6)
    np.testing.assert_array_equal(model.fit(rows).components_, fitted.components_)


def test_a_callback_can_stop_the_fit(rows):
    """Stopping on purpose is no reason for a warning."""
    recorder = Recorder(stop_after=1)
    model = MEIBP(init="random", max_components=3, random_state=0)
    model.set_callbacks(recorder).fit(rows)
    assert recorder.passes == model.n_iter_ == 1
    assert recorder.events[-1] == "teardown"
    assert np.all(np.isfinite(model.components_))


def test_callbacks_are_torn_down_after_an_error():
    recorder = Recorder()
    with pytest.raises(ValueError, match="infinity"):
        MEIBP().set_callbacks(recorder).fit(np.full((4, 2), np.inf))
    assert recorder.events in ([], [*recorder.events[:-1], "teardown"])


@every_model
def test_verbose_prints_a_line_a_pass(model, rows, capsys):
    fitted = clone(model).set_params(verbose=1, random_state=0).fit(rows)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == fitted.n_iter_
    for i, line in enumerate(lines, start=1):
        assert re.match(rf"\[MEIBP\] pass {i}: \d+ features, lower bound \S+", line)
    assert f"{fitted.n_components_} features" in lines[-1]
    value = float(lines[-1].rsplit(" ", 1)[1])
    assert value == pytest.approx(fitted.lower_bound_, rel=1e-4)


def test_silent_by_default(rows, capsys):
    MEIBP().fit(rows)
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------- model files


@every_model
@pytest.mark.parametrize("gaps", [False, True])
def test_save_and_load(model, gaps, rows, tmp_path):
    X = rows.copy()
    if gaps:
        X[:30, 1] = np.nan
        X[40, 2:] = np.nan
    fitted = clone(model).set_params(random_state=0).fit(X)
    kplus.save(fitted, tmp_path / "model.npz")
    again = kplus.load(tmp_path / "model.npz")
    assert vars(again).keys() == vars(fitted).keys()
    assert again.get_params() == fitted.get_params()
    for name in vars(fitted):
        if name.endswith("_"):
            np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(again.impute(X), fitted.impute(X))
    np.testing.assert_array_equal(again.sample(4)[0], fitted.sample(4)[0])
    assert again.score(X) == fitted.score(X)
    kplus.save(again, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (
        tmp_path / "model.npz"
    ).read_bytes()
    warm = again.set_params(warm_start=True).fit(X)
    assert warm.lower_bound_ >= fitted.lower_bound_ - 1e-6 * abs(fitted.lower_bound_)


@pytest.mark.parametrize("prior", ["nonnegative", "gaussian"])
def test_parts_that_do_not_fit_together_are_refused(prior, rows):
    """Factors of another fit, with fewer features or columns."""
    model = MEIBP(factor_prior=prior, random_state=0).fit(rows)
    other = MEIBP(1, factor_prior=prior, random_state=0).fit(rows[:, :4])
    parts = ["mu", "variance"] if prior == "nonnegative" else ["covariance", "group"]
    state = model._to_state()
    assert set(parts) < set(state)
    for part in parts:
        mixed = state | {part: other._to_state()[part]}
        with pytest.raises(ValueError, match=part):
            clone_of(model)._from_state(mixed)
    again = clone_of(model)
    again._from_state(state)
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))


def clone_of(model):
    """All but what the state restores."""
    again = clone(model)
    for name, value in vars(model).items():
        if name.endswith("_"):
            setattr(again, name, value)
    return again


def test_a_cut_file_is_refused(rows, tmp_path):
    model = MEIBP(random_state=0).fit(rows)
    kplus.save(model, tmp_path / "model.npz")
    data = (tmp_path / "model.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(Exception, match=r"(?i)model|file|zip"):
        kplus.load(tmp_path / "cut.npz")
