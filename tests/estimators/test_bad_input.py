"""Input that cannot be right: each case gets an error that says what is wrong.

Every case is (how to call, words that the message must hold). No case may end in
anything but ValueError or TypeError, in a crash, a hang or a silent answer.
"""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans

from kplus import DPMeans, penalty_for, penalty_path

NAMES = ["a", "b", "c"]
GOOD = np.random.default_rng(0).normal(size=(20, 3))
MODES = [{"penalty": 2.0}, {"n_clusters": 2}, {}]
every_mode = pytest.mark.parametrize("how", MODES, ids=["penalty", "number", "auto"])


def spoiled(value, where=(4, 1), dtype=np.float64):
    X = GOOD.astype(dtype)
    X[where] = value
    return X


def frame(make=pd.DataFrame, **columns):
    return make({name: GOOD[:, i] for i, name in enumerate(NAMES)} | columns)


DATES = [datetime.datetime(2020, 1, 1 + i) for i in range(20)]
WORDS = ["red", "green"] * 10

BAD_TABLES = {
    "no_rows": (np.empty((0, 3)), "0 sample"),
    "no_columns": (np.empty((20, 0)), "0 feature"),
    "nothing": (np.empty((0, 0)), "0 sample|0 feature"),
    "one_dimension": (GOOD[:, 0], "2D array"),
    "three_dimensions": (GOOD[:, :, None], "dim 3"),
    "scalar": (3.0, "2D array"),
    "none": (None, "."),
    "nan": (spoiled(np.nan), r"NaN.*column 1 \(1 row\)"),
    "nan_float32": (spoiled(np.nan, dtype=np.float32), "NaN.*column 1"),
    "nan_first_row": (spoiled(np.nan, (0, 0)), "NaN.*column 0"),
    "nan_last_row": (spoiled(np.nan, (19, 2)), "NaN.*column 2"),
    "nan_everywhere": (np.full((20, 3), np.nan), "NaN.*20 rows"),
    "infinity": (spoiled(np.inf), r"infinity.*column 1 \(1 row\)"),
    "minus_infinity": (spoiled(-np.inf, (0, 2)), "infinity.*column 2"),
    "infinity_float32": (spoiled(np.inf, dtype=np.float32), "infinity.*column 1"),
    "both_infinities": (spoiled([np.inf, -np.inf], ([3, 5], 0)), r"0 \(2 rows\)"),
    "text": ([["red", "1"], ["green", "2"]], "string|text|str"),
    "text_objects": (np.array([["red", 1], ["blue", 2]], dtype=object), "string|float"),
    "objects": (np.array([[object()], [object()]]), "float|number"),
    "complex": (GOOD + 1j, "[Cc]omplex"),
    "dates": (np.array(DATES, dtype="M8[s]")[:, None], "."),
    "ragged": ([[1.0, 2.0], [3.0]], "."),
    "dictionary": ({"a": [1.0, 2.0]}, "."),
    "series": (pd.Series(GOOD[:, 0]), "2D|1D|dim"),
    "polars_series": (pl.Series(GOOD[:, 0]), "2D|1D|dim"),
    "lazy_frame": (frame(pl.DataFrame).lazy(), "."),
    "sparse_nan": (sp.csr_array(spoiled(np.nan)), "NaN.*column 1"),
    "sparse_infinity": (sp.csc_array(spoiled(np.inf)), "infinity.*column 1"),
    "sparse_complex": (sp.csr_array(GOOD + 1j), "[Cc]omplex"),
    "sparse_no_rows": (sp.csr_array((0, 3)), "0 sample"),
    "frame_nan": (frame(b=spoiled(np.nan)[:, 1]), r"NaN.*column 'b' \(1 row\)"),
    "frame_infinity": (frame(c=spoiled(np.inf, (4, 2))[:, 2]), "infinity.*'c'"),
    "frame_na": (frame(b=pd.array([None, *GOOD[1:, 1]], "Float64")), r"NaN.*'b' \(1 "),
    "frame_null": (frame(pl.DataFrame, b=[None, *GOOD[1:, 1]]), r"NaN.*'b' \(1 row\)"),
    "frame_text": (frame(b=WORDS), "'b'"),
    "frame_objects": (frame(b=pd.Series([1, "x"] * 10, dtype=object)), "'b'"),
    "frame_dates": (frame(b=DATES), "'b'"),
    "frame_categories": (frame(b=pd.Categorical(WORDS)), "'b'"),
    "frame_complex": (frame(b=GOOD[:, 1] + 1j), "'b'"),
    "polars_text": (frame(pl.DataFrame, b=WORDS), "'b'"),
    "polars_dates": (frame(pl.DataFrame, b=DATES), "'b'"),
    "polars_categories": (
        frame(pl.DataFrame, b=pl.Series(WORDS, dtype=pl.Categorical)), "'b'",
    ),
    "polars_lists": (frame(pl.DataFrame, b=[[1.0]] * 20), "'b'"),
    "frame_no_rows": (frame().iloc[:0], "0 sample"),
    "frame_no_columns": (frame()[[]], "0 feature"),
    "polars_no_columns": (pl.DataFrame(), "0 sample|0 feature"),
    "missing_file": ("no_such_file.npy", "does not exist"),
    "wrong_suffix": (__file__, "kind of a file"),
    "folder": (".", "folder"),
    "squares_overflow": (GOOD * 1e200, "large|infinity"),
}  # fmt: skip
every_table = pytest.mark.parametrize("case", BAD_TABLES)
# scikit-learn's own warning about names that came or went precedes our error
nameless = pytest.mark.filterwarnings(
    "ignore:X (does not have valid|has) feature names"
)
ERRORS = (ValueError, TypeError, FileNotFoundError)


def like(X):
    """Good rows, with names if X has names."""
    return frame() if isinstance(X, pd.DataFrame | pl.DataFrame) else GOOD


@every_mode
@every_table
def test_fit_refuses(case, how):
    X, words = BAD_TABLES[case]
    with pytest.raises(ERRORS, match=words):
        DPMeans(**how).fit(X)


@every_table
@nameless
def test_predict_refuses(case):
    X, words = BAD_TABLES[case]
    model = DPMeans(2.0).fit(like(X))
    for call in (model.predict, model.transform, model.score):
        with pytest.raises(ERRORS) as caught:
            call(X)
        if "0 feature" not in words and "nothing" not in case:
            caught.match(f"{words}|expecting 3 features|feature names")


@every_table
@nameless
def test_partial_fit_refuses(case):
    X, words = BAD_TABLES[case]
    with pytest.raises(ERRORS, match=words):
        DPMeans(2.0).partial_fit(X)
    with pytest.raises(ERRORS):
        DPMeans(2.0).fit(like(X)).partial_fit(X)


@every_table
def test_penalties_refuse(case):
    X, words = BAD_TABLES[case]
    with pytest.raises(ERRORS, match=words):
        penalty_for(X, 2)
    with pytest.raises(ERRORS, match=words):
        penalty_path(DPMeans(), X)


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


def test_many_bad_columns_are_counted():
    X = np.full((5, 9), 1.0)
    X[2:, 1:] = np.nan
    with pytest.raises(ValueError, match=r"column 1 \(3 rows\).* 3 more columns"):
        DPMeans().fit(X)


# ---------------------------------------------------------------------- weights

BAD_WEIGHTS = {
    "negative": (np.append(np.ones(19), -1.0), "[Nn]egative.*row 19"),
    "nan": (np.append(np.ones(19), np.nan), "NaN.*row 19"),
    "infinite": (np.append(np.ones(19), np.inf), "infinity.*row 19"),
    "all_zero": (np.zeros(20), "zero"),
    "too_short": (np.ones(19), r"\(19,\)"),
    "too_long": (np.ones(21), r"\(21,\)"),
    "empty": (np.ones(0), r"\(0,\)"),
    "two_dimensions": (np.ones((20, 1)), "1D"),
    "text": (["heavy"] * 20, "."),
    "complex": (np.ones(20) + 1j, "[Cc]omplex"),
    "scalar_zero": (0.0, "zero"),
    "scalar_negative": (-1.0, "[Nn]egative"),
    "scalar_nan": (np.nan, "NaN"),
    "dates": (np.array(DATES, dtype="M8[s]"), "."),
    "sum_overflows": (np.full(20, 1e308), "."),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_weights_are_checked(case):
    weights, words = BAD_WEIGHTS[case]
    fitted = DPMeans(2.0).fit(GOOD)
    calls = [
        DPMeans(2.0).fit,
        DPMeans(n_clusters=2).fit,
        DPMeans().fit,
        DPMeans(2.0).fit_predict,
        fitted.partial_fit,
        fitted.score,
        lambda X, sample_weight: penalty_for(X, 2, sample_weight=sample_weight),
        lambda X, sample_weight: penalty_path(
            DPMeans(), X, sample_weight=sample_weight
        ),
    ]
    for call in calls:
        with pytest.raises(ERRORS, match=words):
            call(GOOD, sample_weight=weights)


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
    "n_init": {"n_init": 0},
    "max_iter": {"max_iter": 0},
    "max_iter_fraction": {"max_iter": 1.5},
    "tol": {"tol": -1e-3},
    "tol_nan": {"tol": np.nan},
    "batch_size": {"batch_size": 0},
    "warm_start": {"warm_start": "yes"},
    "n_jobs_zero": {"n_jobs": 0},
    "n_jobs_text": {"n_jobs": "all"},
    "random_state": {"random_state": "seed"},
    "verbose": {"verbose": -1},
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
