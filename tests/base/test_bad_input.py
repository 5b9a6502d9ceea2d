"""Bad values that DPMeans must not overlook, and parameters that cannot be right."""

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
