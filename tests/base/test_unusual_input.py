"""Data at the edge of what can be clustered, and columns that do not match."""

import numpy as np
import pytest

from kplus import DPMeans, penalty_for

GOOD = np.random.default_rng(0).normal(size=(20, 3))
MODES = [{"penalty": 2.0}, {"n_clusters": 2}, {}]
every_mode = pytest.mark.parametrize("how", MODES, ids=["penalty", "number", "auto"])


# ----------------------------------------------------------- more than there is


def test_more_clusters_than_rows():
    for call in (
        lambda: DPMeans(n_clusters=21).fit(GOOD),
        lambda: DPMeans(n_clusters=2).fit(GOOD[:1]),
        lambda: penalty_for(GOOD, 21),
    ):
        with pytest.raises(ValueError, match=r"n_samples=\d+ should be >= "):
            call()


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("n_init", [1, 4])
def test_more_clusters_than_distinct_rows(rows, n_init):
    X = np.repeat(GOOD[:rows], 4, axis=0)
    model = DPMeans(n_clusters=rows, n_init=n_init, random_state=0).fit(X)
    np.testing.assert_array_equal(model.cluster_sizes_, np.full(rows, 4.0))
    assert model.objective_ == pytest.approx(0.0, abs=1e-20)
    with pytest.raises(ValueError, match=r"distinct|different"):
        DPMeans(n_clusters=rows + 1, n_init=n_init, random_state=0).fit(X)


def test_more_clusters_than_rows_that_count():
    weights = np.zeros(20)
    weights[:3] = 1.0
    assert DPMeans(n_clusters=3).fit(GOOD, sample_weight=weights).n_clusters_ == 3
    with pytest.raises(ValueError, match=r"distinct|different|weight"):
        DPMeans(n_clusters=4).fit(GOOD, sample_weight=weights)


def test_more_clusters_than_distinct_rows_of_many():
    """Beyond the sample that a wished number starts on."""
    X = np.repeat(GOOD[:3], 10_000, axis=0)
    with pytest.raises(ValueError, match=r"distinct|different"):
        DPMeans(n_clusters=4, random_state=0).fit(X)


def test_clusters_of_rows_that_the_sample_may_have_missed():
    """Two of the distinct rows are there once among thirty thousand."""
    X = np.repeat(GOOD[:3], 10_000, axis=0)
    X[[7, 29_000]] = GOOD[3:5] + 10.0
    model = DPMeans(n_clusters=5, random_state=0).fit(X)
    assert model.cluster_sizes_.tolist() == [10_000.0, 9_999.0, 9_999.0, 1.0, 1.0]
    assert model.objective_ == pytest.approx(0.0, abs=1e-9)


def test_weights_kept_as_objects():
    weights = np.array([1, 2.5] * 10, dtype=object)
    plain = DPMeans(2.0).fit(GOOD, sample_weight=weights.astype(float))
    model = DPMeans(2.0).fit(GOOD, sample_weight=weights)
    np.testing.assert_array_equal(model.cluster_centers_, plain.cluster_centers_)
    for bad in (weights.astype(str), np.array([*weights[:-1], "many"], dtype=object)):
        with pytest.raises(ValueError, match=r"sample_weight holds .*, not numbers"):
            DPMeans(2.0).fit(GOOD, sample_weight=bad)


def test_penalty_for_more_clusters_than_distinct_rows():
    """A penalty of 0 would be refused by DPMeans later, far from its cause."""
    with pytest.raises(ValueError, match=r"distinct|different"):
        penalty_for(np.repeat(GOOD[:2], 5, axis=0), 4)


# ------------------------------------------------- unusual, and yet an answer


@every_mode
@pytest.mark.parametrize(
    "X", [np.ones((9, 2)), np.zeros((9, 2)), np.full((9, 1), 1e300)]
)
def test_equal_rows_are_one_cluster(how, X):
    if "n_clusters" in how:
        how = {"n_clusters": 1}
    model = DPMeans(**how).fit(X)
    assert model.n_clusters_ == 1
    assert model.objective_ == 0.0
    np.testing.assert_array_equal(model.cluster_centers_, X[:1])
    np.testing.assert_array_equal(model.predict(X), np.zeros(9))


@every_mode
def test_one_row(how):
    if "n_clusters" in how:
        how = {"n_clusters": 1}
    model = DPMeans(**how).fit([[3.0, 4.0]])
    assert model.n_clusters_ == 1
    assert model.penalty_ >= 0.0
    assert model.objective_ == 0.0


@every_mode
def test_two_rows(how):
    model = DPMeans(**how).fit([[0.0], [10.0]])
    assert model.n_clusters_ in (1, 2)
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("how", MODES[:2])
def test_a_constant_column(how):
    plain = DPMeans(**how).fit(GOOD)
    model = DPMeans(**how).fit(np.column_stack([GOOD, np.full(20, 1e6)]))
    np.testing.assert_array_equal(model.labels_, plain.labels_)


@every_mode
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-160, 1e150, 1e160, 1e300])
def test_extreme_scales(how, scale):
    """The right answer, or an error that says what to do; nothing in between."""
    X = np.round(np.vstack([GOOD * 4, GOOD * 4 + 100.0])) * scale
    if "penalty" in how:
        how = {"penalty": max(min(1000.0 * scale * scale, 1e300), 1e-320)}
    try:
        model = DPMeans(**how).fit(X)
    except ValueError as error:
        message = str(error)
    else:
        message = "scale"
        assert np.all(np.isfinite(model.cluster_centers_))
        assert np.isfinite(model.objective_)
        if "penalty" not in how:
            np.testing.assert_array_equal(model.cluster_sizes_, [20.0, 20.0])
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert "scale" in message or "large" in message
