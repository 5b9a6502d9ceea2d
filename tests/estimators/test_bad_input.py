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
from sklearn.exceptions import NotFittedError

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
    "both_infinities": (spoiled([np.inf, -np.inf], ([3, 5], 0)), r"column 0 \(2 rows\)"),
    "text": ([["red", "1"], ["green", "2"]], "string|text|str"),
    "text_objects": (np.array([["red", 1], ["green", 2]], dtype=object), "string|float"),
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
    "frame_na": (frame(b=pd.array([None, *GOOD[1:, 1]], "Float64")), r"NaN.*'b' \(1 row\)"),
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
ERRORS = (ValueError, TypeError, FileNotFoundError)


def like(X):
    """Good rows, with names if X has names."""
    return frame() if hasattr(X, "columns") else GOOD


@every_mode
@every_table
def test_fit_refuses(case, how):
    X, words = BAD_TABLES[case]
    with pytest.raises(ERRORS, match=words):
        DPMeans(**how).fit(X)


@every_table
def test_predict_refuses(case):
    X, words = BAD_TABLES[case]
    model = DPMeans(2.0).fit(like(X))
    for call in (model.predict, model.transform, model.score):
        with pytest.raises(ERRORS) as caught:
            call(X)
        if "0 feature" not in words and "nothing" not in case:
            caught.match(f"{words}|expecting 3 features|feature names")


@every_table
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
    X = np.random.default_rng(0).normal(size=(45_000, 2))
    X[44_321, 1] = value
    how = {"penalty": 8.0} if "penalty" in how else how
    with pytest.raises(ValueError, match=r"column 1 \(1 row\)"):
        DPMeans(**how, random_state=0, n_jobs=2).fit(X)


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
    "penalty_true": {"penalty": True},
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
    "penalty_and_number": {"penalty": 1.0, "n_clusters": 2},
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
    fitted = DPMeans(1.0).fit(GOOD)
    with pytest.raises(ERRORS, match=words):
        fitted.set_params(**{"penalty": "auto"} | parameters).partial_fit(GOOD)


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
    with pytest.raises(ValueError, match="distinct|different"):
        DPMeans(n_clusters=rows + 1, n_init=n_init, random_state=0).fit(X)


def test_more_clusters_than_rows_that_count():
    weights = np.zeros(20)
    weights[:3] = 1.0
    assert DPMeans(n_clusters=3).fit(GOOD, sample_weight=weights).n_clusters_ == 3
    with pytest.raises(ValueError, match="distinct|different|weight"):
        DPMeans(n_clusters=4).fit(GOOD, sample_weight=weights)


def test_more_clusters_than_distinct_rows_of_many():
    """Beyond the sample that a wished number starts on."""
    X = np.repeat(GOOD[:3], 10_000, axis=0)
    with pytest.raises(ValueError, match="distinct|different"):
        DPMeans(n_clusters=4, random_state=0).fit(X)


def test_penalty_for_more_clusters_than_distinct_rows():
    """A penalty of 0 would be refused by DPMeans later, far from its cause."""
    with pytest.raises(ValueError, match="distinct|different"):
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


@every_mode
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
        how = {
            "penalty": float(np.clip(1000.0 * scale, 1e-320, 1e150) * scale) or 1e-320
        }
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


# ------------------------------------------------------------------ wrong columns


@pytest.fixture(params=["array", "pandas", "polars"])
def fitted(request):
    X = {"array": GOOD, "pandas": frame(), "polars": frame(pl.DataFrame)}[request.param]
    return DPMeans(2.0).fit(X)


@pytest.mark.parametrize("call", ["predict", "transform", "score", "partial_fit"])
def test_wrong_number_of_columns(fitted, call, tmp_path):
    np.save(tmp_path / "two.npy", GOOD[:, :2])
    for X in (tmp_path / "two.npy", sp.csr_array(GOOD[:, :2])):
        with pytest.raises(ValueError, match="expecting 3 features"):
            getattr(fitted, call)(X)
    with pytest.raises(ValueError, match="expecting 3 features|feature names"):
        getattr(fitted, call)(frame().iloc[:, :2])


@pytest.mark.parametrize("call", ["predict", "transform", "score", "partial_fit"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("names", [["a", "b", "x"], ["c", "b", "a"]])
def test_wrong_names_or_order(call, make, names, tmp_path):
    model = DPMeans(2.0).fit(frame())
    wrong = make(dict(zip(names, GOOD.T, strict=True)))
    with pytest.raises(ValueError, match="feature names|columns"):
        getattr(model, call)(wrong)
    pl.DataFrame(dict(zip(names, GOOD.T, strict=True))).write_csv(
        tmp_path / "wrong.csv"
    )
    with pytest.raises(ValueError, match="feature names|columns"):
        getattr(model, call)(tmp_path / "wrong.csv")


def test_names_that_are_not_all_text():
    mixed = pd.DataFrame(GOOD, columns=["a", 1, 2])
    with pytest.raises(TypeError, match="string"):
        DPMeans(2.0).fit(mixed)


def test_two_columns_of_one_name():
    twice = pd.DataFrame(GOOD, columns=["a", "a", "b"])
    with pytest.raises(ERRORS, match="'a'|[Dd]uplicate|unique"):
        DPMeans(2.0).fit(twice)


def test_unfitted():
    for call in ("predict", "transform", "score"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(DPMeans(), call)(GOOD)


def test_a_failed_fit_does_not_look_fitted():
    model = DPMeans(2.0)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(spoiled(np.nan))
    with pytest.raises(NotFittedError):
        model.predict(GOOD)
