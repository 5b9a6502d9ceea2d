"""Tables and weights that cannot be right: estimators say what is wrong.

Every case is (table, words that the message must hold). No case may end in anything
but ValueError or TypeError, in a crash, a hang or a silent answer.

The form of a table is checked where it is opened: each way to open one sees all cases.
Bad values are found by the fit itself: every estimator sees those.
"""

import datetime
from functools import cache
from inspect import signature
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags

from every_estimator import (
    DEFAULTS,
    MODELS,
    ROW_BY_ROW,
    every_default,
    offered,
    seeded,
)
from kplus import CRAFT, MEIBP, DPMeans, DPMixture, KFeatures, penalty_for, penalty_path

NAMES = ["a", "b", "c"]
GOOD = np.abs(np.random.default_rng(0).normal(size=(20, 3)))
DATES = [datetime.datetime(2020, 1, 1 + i) for i in range(20)]
WORDS = ["red", "green"] * 10
ERRORS = (ValueError, TypeError, FileNotFoundError)
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\w+ found no feature"),
    # scikit-learn's own warning about names that came or went precedes our error
    pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names"),
]


def spoiled(value, where=(4, 1), dtype=np.float64):
    X = GOOD.astype(dtype)
    X[where] = value
    return X


def frame(make=pd.DataFrame, **columns):
    return make({name: GOOD[:, i] for i, name in enumerate(NAMES)} | columns)


def column(value):
    """A column of a frame with one value that is not good, in the first row."""
    return [value, *GOOD[1:, 1]]


BAD_FORMS = {
    "no_rows": (np.empty((0, 3)), "0 sample"),
    "no_columns": (np.empty((20, 0)), "0 feature"),
    "nothing": (np.empty((0, 0)), "0 sample|0 feature"),
    "one_dimension": (GOOD[:, 0], "2D array"),
    "three_dimensions": (GOOD[:, :, None], "dim 3"),
    "scalar": (3.0, "2D array"),
    "none": (None, "."),
    "complex": (GOOD + 1j, "[Cc]omplex"),
    "dates": (np.array(DATES, dtype="M8[s]")[:, None], "."),
    "ragged": ([[1.0, 2.0], [3.0]], "."),
    "dictionary": ({"a": [1.0, 2.0]}, "."),
    "series": (pd.Series(GOOD[:, 0]), "2D|1D|dim"),
    "polars_series": (pl.Series(GOOD[:, 0]), "2D|1D|dim"),
    "objects": (np.array([[object()], [object()]]), "float|number|object"),
    "sparse_complex": (sp.csr_array(GOOD + 1j), "[Cc]omplex"),
    "sparse_no_rows": (sp.csr_array((0, 3)), "0 sample"),
    "frame_objects": (frame(b=pd.Series([1, "x"] * 10, dtype=object)), "'b'"),
    "frame_complex": (frame(b=GOOD[:, 1] + 1j), "'b'"),
    "polars_lists": (frame(pl.DataFrame, b=[[1.0]] * 20), "'b'"),
    "frame_no_rows": (frame().iloc[:0], "0 sample"),
    "frame_no_columns": (frame()[[]], "0 feature"),
    "polars_no_columns": (pl.DataFrame(), "0 sample|0 feature"),
    "missing_file": ("no_such_file.npy", "does not exist"),
    "wrong_suffix": (__file__, "kind of file"),
    "folder": (str(Path(__file__).parent), "kind of file"),
}
BAD_VALUES = {
    "infinity": (spoiled(np.inf), r"infinity: column 1 \(1 row\)"),
    "minus_infinity": (spoiled(-np.inf, (0, 2)), "infinity: column 2"),
    "infinity_float32": (spoiled(np.inf, dtype=np.float32), "infinity: column 1"),
    "sparse_infinity": (sp.csc_array(spoiled(np.inf)), "infinity: column 1"),
    "frame_infinity": (frame(b=column(np.inf)), r"infinity: column 'b' \(1 row\)"),
    "polars_infinity": (frame(pl.DataFrame, b=column(np.inf)), "column 'b'"),
    "both_infinities": (spoiled([np.inf, -np.inf], ([3, 5], 0)), r"0 \(2 rows\)"),
    "squares_overflow": (GOOD * 1e200, "large|infinity"),
    "one_square_overflows": (spoiled(1e200), "large|infinity"),
}
# Rows without any value have no features to be found.
BAD_FOR_IBP = {"nan_row": (spoiled(np.nan, (7, slice(None))), r"NaN only in row 7\b")}
BAD_WITHOUT_CATEGORIES = {
    "text": ([["red", "1"], ["green", "2"]], "string|text|str"),
    "text_objects": (np.array([["red", 1], ["blue", 2]], dtype=object), "string|float"),
    "frame_text": (frame(b=WORDS), "'b'"),
    "frame_categories": (frame(b=pd.Categorical(WORDS)), "'b'"),
    "polars_text": (frame(pl.DataFrame, b=WORDS), "'b'"),
    "polars_categories": (
        frame(pl.DataFrame, b=pl.Series(WORDS, dtype=pl.Categorical)),
        "'b'",
    ),
}
BAD_WITHOUT_GAPS = {
    "nan": (spoiled(np.nan), r"NaN: column 1 \(1 row\)"),
    "nan_float32": (spoiled(np.nan, dtype=np.float32), "NaN: column 1"),
    "nan_first_row": (spoiled(np.nan, (0, 0)), "NaN: column 0"),
    "nan_last_row": (spoiled(np.nan, (19, 2)), "NaN: column 2"),
    "nan_everywhere": (np.full((20, 3), np.nan), "NaN.*20 rows"),
    "sparse_nan": (sp.csr_array(spoiled(np.nan)), "NaN: column 1"),
    "frame_nan": (frame(b=column(np.nan)), r"NaN: column 'b' \(1 row\)"),
    "frame_na": (frame(b=pd.array(column(None), "Float64")), r"NaN.*'b' \(1 row\)"),
    "frame_null": (frame(pl.DataFrame, b=column(None)), r"NaN: column 'b' \(1 row\)"),
}
BAD_WITH_GAPS = {
    "infinity_and_gap": (spoiled([np.inf, np.nan], ([3, 5], 0)), r"y: column 0 \(1 r"),
    "empty_column": (spoiled(np.nan, (slice(None), 1)), "NaN only.*column 1"),
    "nothing_observed": (np.full((20, 3), np.nan), "NaN only.*column 0"),
}

# Numbers; numbers and categories, twice; numbers of which a survey is made.
OPENINGS = [DPMeans(), CRAFT(), DPMixture("mixed"), MEIBP()]
# Observations of single columns tell of bad values themselves: see tests/dp_mixture.
OWN_WORDS = [
    model
    for model in (*OPENINGS, *MODELS)
    if getattr(model, "observations", "gaussian") != "gaussian"
]
every_opening = pytest.mark.parametrize("model", OPENINGS, ids=repr)
VALUES = (
    "infinity",
    "infinity_and_gap",
    "one_square_overflows",
    "nan",
    "nan_row",
    "nan_last_row",
    "empty_column",
)


def bad_tables(model):
    tags = get_tags(model).input_tags
    bad = BAD_FORMS if tags.categorical else BAD_FORMS | BAD_WITHOUT_CATEGORIES
    if model in OWN_WORDS:
        return bad
    bad = bad | BAD_VALUES | (BAD_WITH_GAPS if tags.allow_nan else BAD_WITHOUT_GAPS)
    return bad | BAD_FOR_IBP if hasattr(model, "noise_scale") else bad


def cases(models, names=None):
    return [
        pytest.param(model, *table, id=f"{model!r}-{case}")
        for model in models
        for case, table in bad_tables(model).items()
        if names is None or case in names
    ]


ALL_CASES = cases(OPENINGS)
# Opened as by DPMeans, but gaps are no mistake.
ALL_CASES += cases([KFeatures()], BAD_VALUES.keys() | BAD_WITH_GAPS.keys())
# A mixture of numbers only says which observations take categories.
ALL_CASES += cases([DPMixture()], BAD_WITHOUT_CATEGORIES)
SEEN = {repr(model) for model in (*OPENINGS, KFeatures())}


def others(models):
    return [model for model in models if repr(model) not in SEEN]


@cache
def good_fit(model, named):
    return seeded(model).fit(frame() if named else GOOD)


@pytest.mark.parametrize(
    ("model", "X", "words"), ALL_CASES + cases(others(MODELS), VALUES)
)
def test_fit_refuses(model, X, words):
    for name in offered(model, ("fit", "partial_fit")):
        with pytest.raises(ERRORS, match=words):
            getattr(clone(model), name)(X)


@pytest.mark.parametrize(
    ("model", "X", "words"), ALL_CASES + cases(others(DEFAULTS), VALUES)
)
def test_later_rows_are_refused(model, X, words):
    """Rows may now lack a column, and a column may now be empty."""
    if "NaN only" in words:
        return
    fitted = good_fit(model, isinstance(X, pd.DataFrame | pl.DataFrame))
    for name in offered(model, (*ROW_BY_ROW, "partial_fit")):
        with pytest.raises(ERRORS) as caught:
            getattr(fitted, name)(X)
        caught.match(f"{words}|expecting 3 features|feature names|columns")


@pytest.mark.parametrize("case", ["no_rows", "frame_text", "frame_nan", *VALUES[:4:2]])
def test_penalties_refuse(case):
    X, words = bad_tables(DEFAULTS[0])[case]
    with pytest.raises(ERRORS, match=words):
        penalty_for(X, 2)
    with pytest.raises(ERRORS, match=words):
        penalty_path(DEFAULTS[0], X)


@pytest.mark.parametrize("model", [DPMeans(), KFeatures(), CRAFT(), MEIBP()], ids=repr)
def test_many_bad_columns_are_counted(model):
    X = np.full((5, 9), 1.0)
    X[2:, 1:] = np.inf
    with pytest.raises(ValueError, match=r"column 1 \(3 rows\).* 3 more columns"):
        clone(model).fit(X)


@every_opening
def test_names_that_are_not_all_text_or_stand_twice(model):
    with pytest.raises(TypeError, match="string"):
        clone(model).fit(pd.DataFrame(GOOD, columns=["a", 1, 2]))
    with pytest.raises(ValueError, match=r"'a'|[Dd]uplicate|unique"):
        clone(model).fit(pd.DataFrame(GOOD, columns=["a", "a", "b"]))


# ------------------------------------------------------------------- wrong columns


@every_default
def test_every_method_compares_the_columns(model):
    other = frame().rename(columns={"a": "z"})
    for name in offered(model, (*ROW_BY_ROW, "partial_fit")):
        with pytest.raises(ValueError, match=r"feature names|columns"):
            getattr(good_fit(model, named=True), name)(other)
        with pytest.raises(ValueError, match="expecting 3 features"):
            getattr(good_fit(model, named=False), name)(GOOD[:, :2])
    if hasattr(model, "inverse_transform"):
        with pytest.raises(ValueError, match="n_components_"):
            good_fit(model, named=False).inverse_transform(np.ones((2, 9)))


@every_opening
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("names", ["abx", "cba"])
def test_wrong_names_or_order(model, make, names, tmp_path):
    fitted = good_fit(model, named=True)
    wrong = make(dict(zip(names, GOOD.T, strict=True)))
    pl.DataFrame(wrong).write_csv(tmp_path / "wrong.csv")
    for X in (wrong, tmp_path / "wrong.csv"):
        for name in offered(fitted, ("score", "partial_fit")):
            with pytest.raises(ValueError, match=r"feature names|columns"):
                getattr(fitted, name)(X)


@every_opening
@pytest.mark.parametrize("named", [False, True])
def test_wrong_number_of_columns(model, named, tmp_path):
    np.save(tmp_path / "two.npy", GOOD[:, :2])
    fitted = good_fit(model, named)
    for X in (GOOD[:, :2], tmp_path / "two.npy", sp.csr_array(GOOD[:, :2])):
        with pytest.raises(ValueError, match="expecting 3 features"):
            fitted.score(X)
    with pytest.raises(ValueError, match=r"expecting 3 features|feature names"):
        fitted.score(frame().iloc[:, :2])


# -------------------------------------------------------------------------- weights

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
WEIGHTED = [model for model in DEFAULTS if hasattr(model, "partial_fit")]


def calls_with_weights(model):
    """Methods of a new model, and of one that is fitted."""
    fitted = good_fit(model, named=False)
    yield from (clone(model).fit, clone(model).partial_fit, fitted.partial_fit)
    if "sample_weight" in signature(model.score).parameters:
        yield fitted.score
    for name in offered(model, ("predict", "transform")):
        yield getattr(clone(model), f"fit_{name}")


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_weights_are_checked(case):
    weights, words = BAD_WEIGHTS[case]
    with pytest.raises(ERRORS, match=words):
        DPMeans().fit(GOOD, sample_weight=weights)


@pytest.mark.parametrize("model", WEIGHTED, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("case", ["negative", "too_short"])
def test_every_method_checks_its_weights(model, case):
    weights, words = BAD_WEIGHTS[case]
    for call in calls_with_weights(model):
        with pytest.raises(ERRORS, match=words):
            call(GOOD, sample_weight=weights)


def test_penalties_check_their_weights():
    with pytest.raises(ValueError, match="zero"):
        penalty_for(GOOD, 2, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match="zero"):
        penalty_path(DPMeans(), GOOD, sample_weight=np.zeros(20))
