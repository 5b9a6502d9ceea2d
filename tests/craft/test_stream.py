"""CRAFT on streams, and fits that start from the last one."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from craft_objective import objective_of
from every_estimator import mixed_rows
from kplus import CRAFT


def objective_by_rows(frame, labels, K):
    color = frame["color"].map({"blue": 0, "green": 1, "red": 2})
    X = np.column_stack([frame["age"], color, frame["noise"]]).astype(float)
    return objective_of(X, np.ones(len(X)), (None, 3, None), labels, K)


@pytest.fixture(scope="module")
def mixed():
    return mixed_rows()


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


def test_too_few_passes_are_warned_of(mixed):
    frame, _ = mixed
    craft = CRAFT(warm_start=True, n_clusters=3, random_state=0).fit(frame)
    noise = frame.sample(frac=1.0, random_state=1).reset_index(drop=True)
    noise = noise.assign(age=np.random.default_rng(1).permutation(noise["age"]))
    craft.set_params(max_iter=1, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        craft.fit(noise)
