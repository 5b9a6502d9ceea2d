"""Input to CRAFT that cannot be right, or is odd: what it says and does about it."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kplus
from kplus import CRAFT
from kplus.core.errors import DataError
from kplus.data.reading import ColumnsWarning

RNG = np.random.default_rng(0)
GOOD = RNG.normal(size=(40, 3))
WORDS = ["red", "green"] * 20


def spoiled(value, where=(4, 1)):
    X = GOOD.copy()
    X[where] = value
    return X


def frame(**columns):
    return pd.DataFrame({"a": GOOD[:, 0], "b": GOOD[:, 1]} | columns)


# ------------------------------------------------------------------ what is refused


BAD_TABLES = {
    "mixture": (frame(c=[1, "two"] * 20), "'c' mixes numbers and text"),
    "mixture_bool": (frame(c=[True, "two"] * 20), "'c' mixes booleans and text"),
    "lists": (frame(c=[[1], [2]] * 20), "'c'"),
}


@pytest.mark.parametrize(("X", "words"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
@pytest.mark.parametrize("model", [CRAFT(), CRAFT(n_clusters=2)], ids=repr)
def test_bad_tables(model, X, words):
    with pytest.raises(ValueError, match=words):
        model.fit(X)


LEFT_OUT = {
    "words": (frame(c=[None] * 40), "empty: c"),
    "polars": (
        pl.DataFrame({"a": GOOD[:, 0], "c": pl.Series([None] * 40, dtype=pl.String)}),
        "empty: c",
    ),
    "date_objects": (frame(c=[datetime.date(2020, 1, 1)] * 40), "dates: c"),
    "durations": (frame(c=pd.to_timedelta(range(40), unit="s")), "dates: c"),
    "dates": (frame(c=pd.date_range("2020-01-01", periods=40)), "dates: c.*parts"),
    "constant": (frame(c=["same"] * 40), "constant: c"),
    "row_names": (frame(c=[f"row {i}" for i in range(40)]), "ids: c"),
}


@pytest.mark.parametrize(("X", "words"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_columns_that_tell_nothing_are_left_out_and_named(X, words):
    with pytest.warns(ColumnsWarning, match=words):
        model = CRAFT(random_state=0).fit(X)
    assert "c" not in model.feature_names_in_
    np.testing.assert_array_equal(model.predict(X), model.labels_)


BAD_SETTINGS = {
    "fraction_zero": ({"feature_fraction": 0.0}, "feature_fraction"),
    "fraction_above": ({"feature_fraction": 1.2}, "feature_fraction"),
    "fraction_negative": ({"feature_fraction": -0.5}, "feature_fraction"),
    "fraction_nan": ({"feature_fraction": np.nan}, "feature_fraction"),
    "fraction_text": ({"feature_fraction": "half"}, "feature_fraction"),
    "penalty": ({"penalty": -1.0}, "penalty"),
    "penalty_text": ({"penalty": "bic"}, "penalty"),
    "penalty_nan": ({"penalty": np.nan}, "penalty"),
    "clusters": ({"n_clusters": 0}, "n_clusters"),
    "clusters_float": ({"n_clusters": 2.5}, "n_clusters"),
    "clusters_bool": ({"n_clusters": True}, "n_clusters.*bool"),
    "clusters_numpy_bool": ({"n_clusters": np.True_}, "n_clusters"),
    "most_bool": ({"max_clusters": True}, "max_clusters.*bool"),
    "most_below": ({"n_clusters": 3, "max_clusters": 2}, "max_clusters=2 is below"),
    "too_many": ({"n_clusters": 41}, "n_samples=40 should be >= n_clusters=41"),
    "sharing": ({"sharing": 1.1}, "sharing"),
    "numeric": ({"numeric": "ranks"}, "numeric"),
    "variant": ({"variant": "book"}, "variant"),
    "smoothing": ({"smoothing": 0.0}, "smoothing"),
    "floor": ({"variance_floor": 0.0}, "variance_floor"),
    "category_threshold": ({"category_threshold": 1.0}, "category_threshold"),
    "variance_threshold": ({"variance_threshold": 0.0}, "variance_threshold"),
    "unknown": ({"handle_unknown": "ignore"}, "handle_unknown"),
    "paper": ({"variant": "paper"}, "penalty or n_clusters"),
    "no_such_index": ({"categorical_features": [3]}, "no column 3"),
    "no_names": ({"categorical_features": ["a"]}, "no names"),
    "short_mask": ({"categorical_features": [True, False]}, "mask of 2 entries"),
    "mixed_choice": ({"categorical_features": [0, "a"]}, "mixture"),
}


@pytest.mark.parametrize(
    ("how", "words"), BAD_SETTINGS.values(), ids=BAD_SETTINGS.keys()
)
def test_bad_settings(how, words):
    with pytest.raises(ValueError, match=words):
        CRAFT(**how).fit(GOOD)


def test_no_such_column_by_name():
    with pytest.raises(DataError, match="no column 'color'"):
        CRAFT(categorical_features=["color"]).fit(frame())


def test_no_categories_at_all():
    """As by the types."""
    plain = CRAFT(random_state=0).fit(GOOD)
    for nothing in ([], [False] * 3):
        again = CRAFT(categorical_features=nothing, random_state=0).fit(GOOD)
        np.testing.assert_array_equal(again.labels_, plain.labels_)


# ------------------------------------------------------------------- after the fit


@pytest.mark.parametrize("method", ["predict", "transform", "score", "partial_fit"])
def test_rows_that_do_not_suit_the_fit(method):
    model = CRAFT(random_state=0).fit(GOOD)
    ask = getattr(model, method)
    with pytest.raises(ValueError, match="2 features, but CRAFT is expecting 3"):
        ask(GOOD[:, :2])
    with pytest.raises(ValueError, match="infinity: column 1"):
        ask(spoiled(np.inf))
    with pytest.raises(ValueError, match="0 sample"):
        ask(GOOD[:0])
    words = CRAFT(random_state=0).fit(frame(c=WORDS))
    ask = getattr(words, method)
    with pytest.raises(ValueError, match=r"feature names|columns"):
        ask(frame(d=WORDS))
    with pytest.raises(ValueError, match=r"feature names|columns"):
        ask(frame(c=WORDS)[["c", "a", "b"]])
    with pytest.raises(ValueError, match="names"):
        ask(GOOD)
    with pytest.raises(ValueError, match="'c'"):
        ask(frame(c=["purple"] * 40))
    with pytest.raises(ValueError, match="'c'"):
        ask(frame(c=GOOD[:, 0]))
    with pytest.raises(ValueError, match="'a'"):
        ask(frame(c=WORDS).assign(a="x"))


def test_streams_do_not_go_with_the_papers_variant():
    model = CRAFT(random_state=0).fit(GOOD)
    model.set_params(variant="paper", penalty=3.0)
    with pytest.raises(ValueError, match=r"partial_fit.*variant='paper'"):
        model.partial_fit(GOOD)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sharing": 1.0}, "sharing=1 does not go with variant='paper'"),
        ({"numeric": "quantile"}, "numeric='quantile' does not go with"),
        ({"penalty": "auto"}, "needs a penalty or n_clusters"),
    ],
)
def test_what_the_paper_has_no_place_for(settings, message):
    model = CRAFT(variant="paper", penalty=3.0).set_params(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(GOOD)


# ------------------------------------------------------- odd, but no reason to stop


@pytest.mark.parametrize("numeric", ["gaussian", "quantile", "yeo-johnson"])
@pytest.mark.parametrize("value", [0.0, 7.0, -3.0, 1e9, 0.1])
def test_all_columns_constant(numeric, value):
    X = np.full((30, 2), value)
    model = CRAFT(numeric=numeric, random_state=0).fit(X)
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.labels_, 0)
    assert not model.selected_features_.any()
    np.testing.assert_array_equal(model.feature_scores_, 0.0)
    assert len(model.describe()) == 1
    np.testing.assert_array_equal(model.predict(X + 5.0), 0)


@pytest.mark.parametrize("numeric", ["gaussian", "quantile", "yeo-johnson"])
def test_some_columns_constant(numeric):
    """They change nothing."""
    X = GOOD.copy()
    X[::2] += 9.0
    wide = np.column_stack([np.full(40, 4.0), X, np.full(40, -1e6)])
    one = CRAFT(numeric=numeric, random_state=0).fit(X)
    two = CRAFT(numeric=numeric, random_state=0).fit(wide)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert not two.selected_features_[:, [0, -1]].any()


def test_one_category_only():
    X = kplus.read_table(frame(c=["same"] * 40), keep=["c"])
    model = CRAFT(random_state=0).fit(X)
    assert model.categories_[2] == ("same",)
    assert not model.selected_features_[:, 2].any()
    alone = CRAFT(random_state=0).fit(pd.DataFrame({"c": ["same"] * 40}))
    assert alone.n_clusters_ == 1


def test_declared_categories_that_do_not_occur():
    c = pd.Categorical(WORDS, categories=["blue", "green", "red", "white"])
    model = CRAFT(random_state=0).fit(frame(c=c))
    assert model.categories_[2] == ("blue", "green", "red", "white")
    new = frame(c=pd.Categorical(["white"] * 40, categories=c.categories))
    assert np.all(np.isfinite(model.transform(new)))


def test_a_category_for_each_row_is_warned_of():
    ids = [f"row {i}" for i in range(40)]
    X = kplus.read_table(frame(name=ids, c=WORDS), keep=["name"])
    with pytest.warns(UserWarning, match="'name'") as told:
        model = CRAFT(random_state=0).fit(X)
    assert len(told) == 1
    assert "'c'" not in str(told[0].message)
    assert not model.selected_features_[:, 2].any()
    with pytest.warns(UserWarning, match="'0'"):
        CRAFT(categorical_features=[0], random_state=0).fit(GOOD)


def test_a_spike_is_warned_of():
    X = np.where(RNG.random((40, 1)) < 0.7, 0.0, GOOD)
    with pytest.warns(UserWarning, match=r"same number in '0'.*numeric='quantile'"):
        CRAFT(random_state=0).fit(np.column_stack([X[:, 0], GOOD]))
    CRAFT(numeric="quantile", random_state=0).fit(X)


def test_many_spikes_are_not_all_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 14)) * (rng.random((100, 14)) < 0.3)
    with pytest.warns(UserWarning, match=r"'9', and 4 other columns\."):
        CRAFT(random_state=0).fit(X)


def test_rows_without_any_value_are_warned_of():
    X = GOOD.copy()
    X[[3, 8]] = np.nan
    with pytest.warns(UserWarning, match=r"without any value \(weight 2\)"):
        model = CRAFT(random_state=0).fit(X)
    assert model.labels_[3] == model.labels_[8] == 0


def test_fewer_clusters_than_asked_for_are_warned_of():
    X = np.repeat([[0.0, 1.0], [5.0, 2.0]], 20, axis=0)
    with pytest.warns(UserWarning, match="Found [12] clusters, not n_clusters=4"):
        CRAFT(n_clusters=4, random_state=0).fit(X)


@pytest.mark.parametrize("model", [CRAFT(), CRAFT(n_clusters=1), CRAFT(0.5)], ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_rows(model, n):
    for X in (GOOD[:n], frame(c=WORDS).iloc[:n]):
        model.fit(X)
        assert model.labels_.shape == (n,)
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.filterwarnings("ignore:Found . clusters")  # one row is hardly a cluster
def test_as_many_clusters_as_rows():
    model = CRAFT(n_clusters=4, random_state=0)
    model.fit(10.0 * GOOD[:4])
    np.testing.assert_array_equal(model.predict(10.0 * GOOD[:4]), model.labels_)


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e12, 1e150])
def test_units_of_any_size(scale):
    X = GOOD.copy()
    X[::2] += 9.0
    plain = CRAFT(random_state=0).fit(X)
    model = CRAFT(random_state=0).fit(X * scale)
    np.testing.assert_array_equal(model.labels_, plain.labels_)


def test_numbers_far_from_zero():
    X = GOOD.copy()
    X[::2] += 9.0
    plain = CRAFT(random_state=0).fit(X)
    model = CRAFT(random_state=0).fit(X + 1e9)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-4)
