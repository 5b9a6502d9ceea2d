"""Input to DPMixture that cannot be right: each error says what is wrong.

Every case is (how to call, words that the message must hold).
"""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from kplus import DPMixture
from kplus.core.errors import DataError
from kplus.data.reading import ColumnsWarning
from kplus.observations import Bernoulli, DiagGaussian, Gaussian, Mixed

GOOD = np.random.default_rng(0).normal(size=(20, 3))
WORDS = ["red", "green"] * 10


def spoiled(value, where=(4, 1)):
    X = GOOD.copy()
    X[where] = value
    return X


def frame(**columns):
    return pd.DataFrame({"a": GOOD[:, 0], "b": GOOD[:, 1]} | columns)


BAD_TABLES = {
    "empty": ("gaussian", spoiled(np.nan, np.s_[:, 1]), "Column 1 has no value"),
    "infinity": ("gaussian", spoiled(np.inf), r"infinity: column 1 \(1 row\)"),
    "nan": ("multinomial", spoiled(np.nan), "Column 1 holds nan"),
    "infinity_diag": ("diag_gaussian", spoiled(-np.inf), "Column 1 holds -inf"),
    "infinity_named": (
        "diag_gaussian",
        frame(c=[np.inf] + [1.0] * 19),
        "Column 'c' holds inf",
    ),
    "infinity_poisson": ("poisson", np.abs(spoiled(np.inf)), "Column 0|Column 1"),
    "words": ("gaussian", frame(c=WORDS), "Column 'c'.*observations='mixed'"),
    "words_diag": ("diag_gaussian", frame(c=WORDS), "Column 'c'.*'mixed'"),
    "negative_counts": ("poisson", GOOD, "Column 0 holds -?0"),
    "fractions": ("multinomial", np.abs(GOOD), "Column 0 holds 0"),
    "not_bits": ("bernoulli", np.arange(6.0)[:, None], "Column 0 holds 2"),
    "not_codes": ("categorical", np.abs(GOOD), "Column 0 holds 0.*no code"),
}


@pytest.mark.parametrize(
    ("name", "X", "words"), BAD_TABLES.values(), ids=BAD_TABLES.keys()
)
def test_bad_tables(name, X, words):
    with pytest.raises(ValueError, match=words):
        DPMixture(name).fit(X)


@pytest.mark.parametrize(
    ("values", "words"),
    [([np.nan] * 20, "empty: c"), ([datetime.datetime(2020, 1, 1)] * 20, "dates: c")],
)
def test_columns_that_tell_nothing_are_left_out_and_named(values, words):
    with pytest.warns(ColumnsWarning, match=words):
        model = DPMixture(random_state=0).fit(frame(c=values))
    assert list(model.feature_names_in_) == ["a", "b"]


def test_names_of_columns_are_not_taken_for_what_is_wrong():
    X = pd.DataFrame({"NaN": spoiled(np.inf)[:, 1], "not numbers": GOOD[:, 0]})
    with pytest.raises(DataError, match="infinity: column 'NaN'") as caught:
        DPMixture().fit(X)
    assert "missing" not in str(caught.value)
    with pytest.raises(DataError, match=r"0 sample\(s\)") as caught:
        DPMixture().fit(X[:0])
    assert "mixed" not in str(caught.value)


BAD_SETTINGS = {
    "observations": ({"observations": "normal"}, "observations"),
    "observations_class": ({"observations": Gaussian}, "observations must be one of"),
    "algorithm": ({"algorithm": "gibbs"}, "algorithm"),
    "move": ({"moves": ("birth", "split")}, "moves holds 'split'.*'delete'"),
    "move_text": ({"moves": "birth"}, "moves"),
    "components": ({"n_components": 0}, "n_components"),
    "components_bool": ({"n_components": True}, "n_components.*bool"),
    "too_many": ({"n_components": 21}, "n_samples=20 should be >= n_components=21"),
    "cap": ({"n_components": 3, "max_components": 2}, "max_components=2 should be"),
    "concentration": ({"concentration": 0.0}, "concentration"),
    "concentration_text": ({"concentration": "auto"}, "concentration"),
    "active": ({"n_active": 0}, "n_active"),
    "memory": ({"memory_limit": -1.0}, "memory_limit"),
    "decay": ({"learning_decay": 1.5}, "learning_decay"),
    "delay": ({"learning_delay": -1.0}, "learning_delay"),
    "prior": ({"observations": Gaussian(covariance=-1.0)}, "positive definite"),
    "prior_shape": ({"observations": Gaussian(covariance=np.eye(2))}, "shape"),
    "prior_dof": ({"observations": DiagGaussian(dof=1.0)}, "dof"),
    "no_such_column": ({"observations": Mixed(counts=["visits"])}, "'visits'"),
}


@pytest.mark.parametrize(
    ("how", "words"), BAD_SETTINGS.values(), ids=BAD_SETTINGS.keys()
)
def test_bad_settings(how, words):
    with pytest.raises(ValueError, match=words):
        DPMixture(**how).fit(GOOD)


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "score_samples", "score"]
)
def test_rows_that_do_not_suit_the_fit(method):
    ask = getattr(DPMixture(), method)
    with pytest.raises(NotFittedError):
        ask(GOOD)
    model = DPMixture(random_state=0).fit(GOOD)
    ask = getattr(model, method)
    with pytest.raises(ValueError, match="2 features, but DPMixture is expecting 3"):
        ask(GOOD[:, :2])
    with pytest.raises(ValueError, match="infinity: column 1"):
        ask(spoiled(np.inf))


def test_sample_needs_a_fit_and_a_number():
    with pytest.raises(NotFittedError):
        DPMixture().sample()
    model = DPMixture(random_state=0).fit(GOOD)
    for bad in (0, -1, 2.5, "3", None):
        with pytest.raises(ValueError, match="n_samples"):
            model.sample(bad)


def test_unseen_categories():
    table = frame(color=WORDS)
    model = DPMixture("mixed", random_state=0).fit(table)
    with pytest.raises(ValueError, match="'color' holds 'blue'"):
        model.predict(table.assign(color="blue"))
    with pytest.raises(ValueError, match="no column names"):
        model.predict(GOOD)
    with pytest.raises(ValueError, match=r"columns|feature names"):
        model.predict(table[["a", "color", "b"]])
    missing = table.assign(color=[None] * 20)
    assert np.all(np.isfinite(model.predict_proba(missing)))
    codes = DPMixture("categorical", random_state=0).fit(np.arange(3.0)[:, None])
    with pytest.raises(ValueError, match=r"Column 0 holds 3.*unseen category"):
        codes.predict([[3.0]])


def test_categories_where_the_fit_had_numbers():
    model = DPMixture("mixed", random_state=0).fit(frame())
    with pytest.raises(ValueError, match="'b' holds String"):
        model.predict(pl.DataFrame({"a": GOOD[:, 0], "b": WORDS}))


def test_bits_with_too_many_categories():
    table = pd.DataFrame({"a": [0, 1, 2]})
    with pytest.raises(ValueError, match="Column 'a' holds 2"):
        DPMixture(Bernoulli(ones=1, zeros=1)).fit(table)
