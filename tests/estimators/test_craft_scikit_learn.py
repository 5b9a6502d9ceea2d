"""CRAFT as scikit-learn expects an estimator to be; streams and warm starts."""

import pickle
import re
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import kplus
from craft_objective import objective_of
from kplus import CRAFT

MODELS = [
    CRAFT(),
    CRAFT(n_clusters=2),
    CRAFT(feature_fraction=0.5),
    CRAFT(numeric="quantile"),
]
# The data of scikit-learn's checks are often small integers.
pytestmark = pytest.mark.filterwarnings(
    "ignore:More than half of the rows have the same"
)
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
    check("CRAFT", clone(model))


def rows(n=160, seed=0):
    """Three groups in a frame of numbers and categories, with gaps."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    age = rng.normal(30.0 + 15.0 * z, 3.0)
    age[rng.random(n) < 0.1] = np.nan
    color = np.array(["red", "green", "blue"])[z]
    return pd.DataFrame({"age": age, "color": color, "noise": rng.normal(size=n)}), z


def objective_by_rows(frame, labels, K):
    color = frame["color"].map({"blue": 0, "green": 1, "red": 2})
    X = np.column_stack([frame["age"], color, frame["noise"]]).astype(float)
    return objective_of(X, np.ones(len(X)), (None, 3, None), labels, K)


@pytest.fixture(scope="module")
def mixed():
    return rows()


def test_tags():
    tags = get_tags(CRAFT())
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    assert tags.estimator_type == "clusterer"
    assert tags.transformer_tags is not None


def test_parameters():
    assert set(CRAFT._parameter_constraints) == set(CRAFT().get_params())
    assert CRAFT(0.3).feature_fraction == 0.3
    with pytest.raises(TypeError, match="positional"):
        CRAFT(0.3, 2.0)
    assert "CRAFT" in kplus.__all__


def test_unfitted(mixed):
    craft = CRAFT()
    for call in ("predict", "transform", "score", "score_samples"):
        with pytest.raises(NotFittedError):
            getattr(craft, call)(mixed[0])
    for call in ("describe", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(craft, call)()


# -------------------------------------------------------------------- composition


def test_clone_and_pickle(mixed):
    frame, _ = mixed
    craft = CRAFT(n_clusters=3, smoothing=0.5, random_state=0).fit(frame)
    fresh = clone(craft)
    assert fresh.get_params() == craft.get_params()
    assert not hasattr(fresh, "labels_")
    again = pickle.loads(pickle.dumps(craft))
    assert vars(again).keys() == vars(craft).keys()
    np.testing.assert_array_equal(again.transform(frame), craft.transform(frame))
    assert again.describe().equals(craft.describe())
    again.partial_fit(frame[:40])
    craft.partial_fit(frame[:40])
    assert again.objective_ == craft.objective_


def test_no_rows_are_kept():
    """A model that is passed on must not give its data away."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6)) + 9.0 * (np.arange(500)[:, None] % 2)
    X[7, 2] = 12345.678
    craft = CRAFT(numeric="quantile", random_state=0).fit(X)
    assert b"12345.678" not in repr(vars(craft)).encode()
    assert np.float64(12345.678).tobytes() not in pickle.dumps(craft)
    assert max(np.size(value) for value in vars(craft).values()) <= 500


def test_inside_a_pipeline(mixed):
    frame, z = mixed
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


def test_inside_a_grid_search(mixed):
    grid = {"n_clusters": [1, 3]}
    search = GridSearchCV(CRAFT(random_state=0), grid, cv=3).fit(mixed[0])
    assert search.best_params_ == {"n_clusters": 3}


@every_model
def test_fit_leaves_data_and_parameters_alone(model, mixed):
    frame = mixed[0].copy()
    weights = np.linspace(0.5, 1.5, len(frame))
    before, craft = weights.copy(), clone(model)
    params = craft.get_params()
    craft.fit(frame, sample_weight=weights).partial_fit(frame, sample_weight=weights)
    pd.testing.assert_frame_equal(frame, mixed[0])
    np.testing.assert_array_equal(weights, before)
    assert craft.get_params() == params


@every_model
def test_a_seed_decides_all(model, mixed):
    one, two = (clone(model).set_params(random_state=3).fit(mixed[0]) for _ in range(2))
    assert one.transform(mixed[0]).tobytes() == two.transform(mixed[0]).tobytes()
    assert one.path_.tobytes() == two.path_.tobytes()


# ------------------------------------------------------------------ watching a fit


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
        labels = fitted_estimator.predict(X)
        assert labels.max() < fitted_estimator.n_clusters_
        return self.passes == self.stop_after


@every_model
def test_callbacks_see_every_pass(model, mixed):
    frame, _ = mixed
    model = clone(model).set_params(random_state=0)
    recorder = Recorder()
    craft = clone(model).set_callbacks(recorder).fit(frame)
    assert recorder.passes == craft.n_iter_
    assert recorder.events[0] == "setup"
    assert recorder.events[-1] == "teardown"
    assert recorder.scores[-1] == pytest.approx(craft.score(frame), rel=1e-9)
    np.testing.assert_array_equal(model.fit(frame).labels_, craft.labels_)


def test_a_callback_can_stop_the_fit(mixed):
    """Stopping on purpose is no reason for a warning."""
    recorder = Recorder(stop_after=1)
    craft = CRAFT(random_state=0).set_callbacks(recorder).fit(mixed[0])
    assert recorder.passes == craft.n_iter_ == 1
    assert recorder.events[-1] == "teardown"


def test_verbose_prints_a_line_a_pass(mixed, capsys):
    craft = CRAFT(verbose=1, random_state=0).fit(mixed[0])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == craft.n_iter_
    for i, line in enumerate(lines, start=1):
        assert re.match(rf"\[CRAFT\] pass {i}: \d+ clusters, objective \S+", line)
    CRAFT(random_state=0).fit(mixed[0])
    assert capsys.readouterr() == ("", "")


# --------------------------------------------------------- streams and warm starts


def test_streams(mixed):
    """What was seen counts, as if it were there; labels are those of the batch."""
    frame, z = mixed
    craft = CRAFT(random_state=0).partial_fit(frame[:80])
    first = craft.labels_
    np.testing.assert_array_equal(first, CRAFT(random_state=0).fit(frame[:80]).labels_)
    for start in (80, 120):
        craft.partial_fit(frame[start : start + 40])
        assert craft.labels_.shape == (40,)
        np.testing.assert_array_equal(
            craft.predict(frame[start : start + 40]), craft.labels_
        )
    assert craft.cluster_sizes_.sum() == 160
    assert craft.n_iter_ == len(craft.objective_history_)
    np.testing.assert_array_equal(craft.n_missing_, frame.isna().sum())
    assert adjusted_rand_score(z, craft.predict(frame)) > 0.95
    two = CRAFT(random_state=0).fit(frame[:80]).partial_fit(frame[80:])
    expected = [  # clusters may have been renumbered
        objective_by_rows(frame, np.append(np.array(order)[first], two.labels_), 3)
        for order in permutations(range(3))
    ]
    assert two.objective_ == pytest.approx(min(expected), rel=1e-9)


def test_streams_of_weighted_rows(mixed):
    frame, _ = mixed
    weights = np.random.default_rng(0).integers(1, 4, 160)
    one = CRAFT(random_state=0).fit(frame[:80], sample_weight=weights[:80])
    one.partial_fit(frame[80:], sample_weight=weights[80:])
    copies = np.repeat(np.arange(160), weights)
    two = CRAFT(random_state=0).fit(frame.iloc[copies[copies < 80]])
    two.partial_fit(frame.iloc[copies[copies >= 80]])
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-10)


def test_streams_whose_batches_lack_something(mixed):
    """A batch may have one row, one cluster, a column of gaps, other units."""
    frame, _ = mixed
    craft = CRAFT(random_state=0).fit(frame)
    sizes = craft.cluster_sizes_
    craft.partial_fit(frame[:1])
    assert craft.cluster_sizes_.sum() == sizes.sum() + 1
    craft.partial_fit(frame[:9].assign(age=np.nan))
    craft.partial_fit(frame[:9].assign(color=None))
    assert craft.n_clusters_ == 3
    far = frame[:20].assign(age=frame["age"] * 1e3)
    craft.partial_fit(far)
    assert np.isfinite(craft.objective_)


def test_warm_starts_begin_where_the_last_fit_ended(mixed):
    frame, _ = mixed
    craft = CRAFT(warm_start=True, random_state=0).fit(frame)
    before = craft.labels_
    craft.fit(frame)
    np.testing.assert_array_equal(craft.labels_, before)
    assert craft.n_iter_ <= 2
    order = np.random.default_rng(0).permutation(160)
    craft.fit(frame.iloc[order])
    np.testing.assert_array_equal(craft.labels_, before[order])
    expected = objective_by_rows(frame, before, craft.n_clusters_)
    assert craft.objective_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("max_iter", [1, 300])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warm_starts_on_rows_without_some_cluster(mixed, max_iter):
    """Clusters that find no rows are gone, also when passes are few."""
    frame, z = mixed
    craft = CRAFT(warm_start=True, random_state=0).fit(frame)
    craft.set_params(max_iter=max_iter).fit(frame[z != 1])
    assert np.all(craft.cluster_sizes_ > 0.0)
    assert craft.n_clusters_ == 2
    np.testing.assert_array_equal(craft.predict(frame[z != 1]), craft.labels_)
    assert np.all(np.isfinite(craft.transform(frame)))


def test_warm_starts_with_other_settings(mixed):
    """Other units, other ways to see numbers, other columns of categories."""
    frame, z = mixed
    craft = CRAFT(warm_start=True, random_state=0).fit(frame)
    craft.fit(frame.assign(age=1e-3 * frame["age"] + 7.0))
    assert np.all(craft.cluster_sizes_ > 0.0)
    for settings in (
        {"numeric": "quantile"},
        {"numeric": "yeo-johnson"},
        {"feature_fraction": 0.5},
        {"penalty": 3.0},
        {"sharing": 0.5},
    ):
        craft.set_params(**settings).fit(frame)
        assert adjusted_rand_score(z, craft.labels_) > 0.9


def test_warm_starts_with_other_categories():
    """Columns that become categories, or cease to be: another table."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), rng.integers(0, 4, 60)])
    X[:, 0] += 9.0 * (X[:, 1] > 1)
    craft = CRAFT(warm_start=True, random_state=0).fit(X)
    for chosen in ([1], "from_dtype", [1]):
        craft.set_params(categorical_features=chosen)
        craft.fit(X)
        fresh = CRAFT(categorical_features=chosen, random_state=0).fit(X)
        assert getattr(craft, "categories_", None) == getattr(
            fresh, "categories_", None
        )
        assert craft.objective_ == pytest.approx(fresh.objective_)


def test_too_few_passes_are_told(mixed):
    frame, _ = mixed
    craft = CRAFT(warm_start=True, n_clusters=3, random_state=0).fit(frame)
    noise = frame.sample(frac=1.0, random_state=1).reset_index(drop=True)
    noise = noise.assign(age=np.random.default_rng(1).permutation(noise["age"]))
    craft.set_params(max_iter=1, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        craft.fit(noise)
