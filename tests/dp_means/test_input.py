"""Input of DPMeans that is refused, and input at the edge of what can be clustered."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from kplus import DPMeans, penalty_for, penalty_path

GOOD = np.random.default_rng(0).normal(size=(20, 3))
MODES = [{"penalty": 2.0}, {"n_clusters": 2}, {}]
every_mode = pytest.mark.parametrize("how", MODES, ids=["penalty", "number", "auto"])

ERRORS = (ValueError, TypeError, FileNotFoundError)


@pytest.mark.parametrize("D", [1, 2, 3, 7, 8, 9, 17, 33])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_bad_value_slips_through(D, value, dtype):
    """Wherever it sits in a row: fast arithmetic must not lose it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, D)).astype(dtype)
    model = DPMeans(2.0).fit(X)
    for row, column in [(0, 0), (69, D - 1), (35, D // 2), (64, 0)]:
        bad = X.copy()
        bad[row, column] = value
        for call in (model.predict, model.transform, DPMeans(2.0).fit):
            with pytest.raises(ValueError, match=f"column {column} "):
                call(bad)


@every_mode
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_bad_row_among_many(how, value):
    """Beyond the samples that a fit looks at first."""
    X = np.random.default_rng(0).normal(size=(25_000, 2))
    X[24_321, 1] = value
    how = {"penalty": 8.0} if "penalty" in how else how
    with pytest.raises(ValueError, match=r"column 1 \(1 row\)"):
        DPMeans(**how, random_state=0, n_jobs=2).fit(X)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_bad_row_among_many_to_predict(value):
    """Many rows go another way than few; each row is seen just once."""
    X = np.random.default_rng(0).normal(size=(25_000, 2))
    model = DPMeans(n_clusters=3, random_state=0).fit(X)
    X[24_321, 1] = value
    for call in (model.predict, model.score, model.transform):
        with pytest.raises(ValueError, match=r"column 1 \(1 row\)"):
            call(X)


# -------------------------------------------------------------------- parameters

BAD_PARAMETERS = {
    "penalty_zero": {"penalty": 0.0},
    "penalty_negative": {"penalty": -1.0},
    "penalty_nan": {"penalty": np.nan},
    "penalty_infinite": {"penalty": np.inf},
    "penalty_text": {"penalty": "big"},
    "penalty_none": {"penalty": None},
    "penalty_complex": {"penalty": 1j},
    "penalty_list": {"penalty": [1.0]},
    "n_clusters_zero": {"n_clusters": 0},
    "n_clusters_negative": {"n_clusters": -3},
    "n_clusters_fraction": {"n_clusters": 1.5},
    "n_clusters_true": {"n_clusters": True},
    "n_clusters_text": {"n_clusters": "auto"},
    "n_clusters_nan": {"n_clusters": np.nan},
    "max_clusters_zero": {"max_clusters": 0, "penalty": 1.0},
    "max_clusters_fraction": {"max_clusters": 2.5, "penalty": 1.0},
    "max_clusters_text": {"max_clusters": "many", "penalty": 1.0},
    "algorithm": {"algorithm": "lloyd"},
    "covariance": {"covariance": "diag"},
    "collapsed": {"collapsed": "yes"},
    "min_covariance": {"min_covariance": 0.0},
    "max_iter_fraction": {"max_iter": 1.5},
    "tol_nan": {"tol": np.nan},
    "n_jobs_zero": {"n_jobs": 0},
    "n_jobs_text": {"n_jobs": "all"},
    "n_init_zero": {"n_init": 0},
    "max_iter_zero": {"max_iter": 0},
    "batch_size_zero": {"batch_size": 0},
    "warm_start_text": {"warm_start": "yes"},
    "random_state_text": {"random_state": "seed"},
    "verbose_negative": {"verbose": -1},
    "tol_negative": {"tol": -1e-3},
    "number_and_cap": {"n_clusters": 2, "max_clusters": 3},
    "serial_and_number": {"algorithm": "serial", "n_clusters": 2},
    "serial_and_auto": {"algorithm": "serial"},
    "full_and_auto": {"covariance": "full"},
    "full_and_number": {"covariance": "full", "n_clusters": 2},
    "collapsed_and_auto": {"collapsed": True},
    "serial_and_collapsed": {"penalty": 1.0, "algorithm": "serial", "collapsed": True},
    "serial_and_full": {"penalty": 1.0, "algorithm": "serial", "covariance": "full"},
    "collapsed_and_full": {"penalty": 1.0, "collapsed": True, "covariance": "full"},
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_parameters_are_checked(case):
    parameters = BAD_PARAMETERS[case]
    words = "|".join([*parameters, "serial", "collapsed", "full"])
    with pytest.raises(ERRORS, match=words):
        DPMeans(**parameters).fit(GOOD)
    with pytest.raises(ERRORS, match=words):
        DPMeans(**parameters).partial_fit(GOOD)


@pytest.mark.parametrize("n_clusters", [0, -1, 1.5, True, "two", None, np.nan])
def test_penalty_for_checks_its_number(n_clusters):
    with pytest.raises(ERRORS, match="n_clusters"):
        penalty_for(GOOD, n_clusters)


@pytest.mark.parametrize("max_clusters", [0, -1, 1.5, True, "two", np.nan])
def test_penalty_path_checks_its_cap(max_clusters):
    with pytest.raises(ERRORS, match="max_clusters"):
        penalty_path(DPMeans(), GOOD, max_clusters=max_clusters)


@pytest.mark.parametrize("estimator", [KMeans(), None, "DPMeans", DPMeans])
def test_penalty_path_wants_a_dp_means(estimator):
    with pytest.raises(ERRORS, match="DPMeans"):
        penalty_path(estimator, GOOD)


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
