"""MEIBP with wrong and with unusual input: clear errors, or a sound answer."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from kplus import MEIBP

pa = pytest.importorskip("pyarrow")

NAMES = ["a", "b", "c", "d"]
ERRORS = (ValueError, TypeError, FileNotFoundError)
MODELS = [MEIBP(random_state=0), MEIBP(prior="gaussian", random_state=0)]
every_model = pytest.mark.parametrize("model", MODELS, ids=["nonnegative", "gaussian"])
quiet = pytest.mark.filterwarnings("ignore:MEIBP found no feature")


def some_rows():
    """Three features in four columns; halves, so that every type holds them."""
    rng = np.random.default_rng(0)
    A = np.array([[8.0, 8, 0, 0], [0, 0, 6, 0], [0, 4, 0, 9]])
    X = (rng.random((60, 3)) < 0.5) @ A + rng.integers(0, 3, (60, 4)) / 2.0
    X.flags.writeable = False
    return X


GOOD = some_rows()


def spoiled(value, where=(4, 1), dtype=np.float64):
    X = GOOD.astype(dtype)
    X[where] = value
    return X


def frame(make=pd.DataFrame, **columns):
    return make(dict(zip(NAMES, GOOD.T, strict=True)) | columns)


def check_sound(model, X):
    """All that a fit promises, whatever the data."""
    X = np.asarray(X, dtype=np.float64)
    K = model.n_components_
    assert model.components_.shape == (K, X.shape[1])
    assert np.all(np.isfinite(model.components_))
    assert model.feature_counts_.shape == (K,)
    assert np.all(model.feature_counts_ > 0)
    history = model.lower_bound_history_
    assert np.all(np.isfinite(history))
    assert np.all(np.diff(history) >= -1e-9 * np.abs(history).max())
    for value in (model.alpha_, model.noise_scale_, model.factor_scale_):
        assert 0.0 < value < np.inf
    Z = model.transform(X)
    assert Z.shape == (len(X), K)
    assert model.inverse_transform(Z).shape == X.shape
    assert np.isfinite(model.score(X))
    np.testing.assert_array_equal(model.impute(X), X)
    assert model.sample(3)[0].shape == (3, X.shape[1])


# ---------------------------------------------------------------- parameters

BAD_PARAMETERS = {
    "alpha_zero": {"alpha": 0.0},
    "alpha_negative": {"alpha": -1.0},
    "alpha_nan": {"alpha": np.nan},
    "alpha_infinite": {"alpha": np.inf},
    "alpha_text": {"alpha": "auto"},
    "noise_scale_zero": {"noise_scale": 0.0},
    "noise_scale_nan": {"noise_scale": np.nan},
    "noise_scale_infinite": {"noise_scale": np.inf},
    "factor_scale_zero": {"factor_scale": 0},
    "factor_scale_nan": {"factor_scale": np.nan},
    "max_components_zero": {"max_components": 0},
    "max_components_fraction": {"max_components": 2.5},
    "prior": {"prior": "positive"},
    "maximizer": {"maximizer": "greedy"},
    "sweep": {"sweep": "columns"},
    "negative": {"negative": "clip"},
    "init": {"init": "svd"},
    "tol_nan": {"tol": np.nan},
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_parameters_are_checked(case):
    parameters = BAD_PARAMETERS[case]
    with pytest.raises(ERRORS, match="|".join(parameters)):
        MEIBP(**parameters).fit(GOOD)


@pytest.mark.parametrize("name", ["noise_scale", "factor_scale"])
@pytest.mark.parametrize("value", [1e-200, 1e200])
def test_scales_whose_squares_are_no_numbers(name, value):
    """Refused by name, or kept as given; never replaced in silence."""
    model = MEIBP(random_state=0, **{name: value})
    refused = None
    try:
        model.fit(GOOD)
    except ValueError as error:
        refused = str(error)
    if refused is None:
        assert getattr(model, f"{name}_") == pytest.approx(value, abs=0.0)
    else:
        assert name in refused


# -------------------------------------------------------------- negative values


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_negative_values_are_refused_with_ways_out(make):
    X = make(spoiled([-0.25, -3.5], ([2, 9], [0, 2])))
    with pytest.raises(ValueError, match=r"-3\.5 in column 2") as caught:
        MEIBP().fit(X)
    for way in ("negative='shift'", "negative='noise'", "prior='gaussian'"):
        assert way in str(caught.value)


def test_negative_values_in_a_named_column():
    with pytest.raises(ValueError, match=r"-3\.5 in column 'c'"):
        MEIBP().fit(frame(c=spoiled(-3.5, (9, 2))[:, 2]))


@pytest.mark.parametrize("how", [{"negative": "noise"}, {"prior": "gaussian"},
                                 {"negative": "shift"}])  # fmt: skip
def test_ways_out(how):
    X = spoiled(-0.5, (3, 1))
    model = MEIBP(random_state=0, **how).fit(X)
    check_sound(model, X)
    if how.get("negative") == "shift":
        np.testing.assert_array_equal(model.offset_, X.min(axis=0))
    else:
        np.testing.assert_array_equal(model.offset_, np.zeros(4))


@pytest.mark.parametrize("offset", [-100.0, 3.0, 1e6])
def test_shift_answers_in_the_units_of_the_data(offset):
    X = GOOD + offset * np.arange(1, 5)
    plain = MEIBP(negative="shift", random_state=0).fit(GOOD)
    model = MEIBP(negative="shift", random_state=0).fit(X)
    np.testing.assert_array_equal(model.offset_, X.min(axis=0))
    assert model.n_components_ == plain.n_components_
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-6)
    Z = model.transform(X)
    np.testing.assert_array_equal(Z, plain.transform(GOOD))
    moved = X - GOOD
    np.testing.assert_allclose(
        model.inverse_transform(Z), plain.inverse_transform(Z) + moved[:1], atol=1e-5
    )
    assert model.score(X) == pytest.approx(plain.score(GOOD), rel=1e-6)
    gaps = X.copy()
    gaps[5, 2] = np.nan
    assert abs(model.impute(gaps)[5, 2] - X[5, 2]) < 7.0
    drawn, bits = model.sample(4000, random_state=0)
    noise = drawn - model.inverse_transform(bits)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.2)


# ------------------------------------------------- unusual, and yet an answer

ODD = {
    "one_row": np.array([[3.0, 4.0]]),
    "one_value": np.array([[3.0]]),
    "two_rows": np.array([[3.0, 4.0], [1.0, 0.0]]),
    "two_equal_rows": np.array([[3.0, 4.0], [3.0, 4.0]]),
    "one_column": GOOD[:, :1],
    "constant": np.full((9, 2), 3.0),
    "zero": np.zeros((9, 2)),
    "constant_columns": np.column_stack([GOOD, np.full(60, 1e3), np.zeros(60)]),
    "duplicates": np.repeat(GOOD[:4], 6, axis=0),
    "without_noise": np.repeat(np.eye(3), 20, axis=0)[::-1] @ np.full((3, 4), 2.0),
    "sums_without_noise": (np.random.default_rng(0).random((80, 3)) < 0.5)
    @ np.array([[1.0, 0, 2, 0, 1], [0, 3, 0, 0, 1], [1, 1, 0, 4, 0]]),
    "wide": np.abs(np.random.default_rng(0).normal(size=(4, 50))),
    "high": GOOD + 1e5,
    "tiny": GOOD * 1e-12,
    "huge": GOOD * 1e12,
    "noise": np.abs(np.random.default_rng(1).normal(size=(80, 5))),
}


@quiet
@every_model
@pytest.mark.parametrize("case", ODD)
def test_odd_tables(model, case):
    fitted = clone(model).fit(ODD[case])
    check_sound(fitted, ODD[case])


@quiet
@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("how", [{"negative": "shift"}, {"init": "nmf"},
                                 {"init": "random", "max_components": 3},
                                 {"maximizer": "double_greedy"},
                                 {"noise_scale": 0.5}])  # fmt: skip
def test_odd_tables_other_ways(case, how):
    fitted = MEIBP(random_state=0, **how).fit(ODD[case])
    check_sound(fitted, ODD[case])


@every_model
@pytest.mark.parametrize("power", [-40, 40, -100, 100])
def test_units_do_not_matter(model, power):
    """Powers of two change no digit."""
    plain = clone(model).fit(GOOD)
    fitted = clone(model).fit(GOOD * 2.0**power)
    assert fitted.n_components_ == plain.n_components_
    np.testing.assert_allclose(
        fitted.components_ * 2.0**-power, plain.components_, rtol=1e-6, atol=1e-9
    )
    assert fitted.noise_scale_ * 2.0**-power == pytest.approx(plain.noise_scale_)


def test_equal_rows_are_one_feature():
    for model in MODELS:
        fitted = clone(model).fit(np.full((9, 2), 3.0))
        assert fitted.n_components_ == 1
        np.testing.assert_allclose(fitted.components_, [[3.0, 3.0]], rtol=1e-3)
        np.testing.assert_array_equal(fitted.feature_counts_, [9.0])


def test_a_high_level_is_one_feature():
    """Two equal features of half of it each would be worth less."""
    rng = np.random.default_rng(0)
    for model in MODELS:
        fitted = clone(model).fit(1e5 + rng.uniform(size=(100, 6)))
        assert fitted.n_components_ == 1
        np.testing.assert_allclose(fitted.components_, 1e5, rtol=1e-4)


def test_a_level_beyond_the_digits():
    """Refused, with a way out that works."""
    X = np.column_stack([GOOD, 1e8 + GOOD[:, 0]])
    with pytest.raises(ValueError, match=r"column 4 .*1e\+08.*negative='shift'"):
        MEIBP().fit(X)
    with pytest.raises(ValueError, match=r"column 4 .*column means"):
        MEIBP(prior="gaussian").fit(X)
    model = MEIBP(negative="shift", random_state=0).fit(X)
    check_sound(model, X)
    near = np.column_stack([GOOD, GOOD[:, 0]])
    plain = MEIBP(negative="shift", random_state=0).fit(near)
    np.testing.assert_array_equal(model.components_, plain.components_)


@every_model
def test_nothing_to_find(model):
    X = np.random.default_rng(0).normal(size=(50, 5))
    model = clone(model).set_params(negative="noise", noise_scale=10.0)
    with pytest.warns(UserWarning, match=r"no feature .*n_components_ is 0"):
        model.fit(X)
    assert model.components_.shape == (0, 5)
    assert model.transform(X).shape == (50, 0)
    check_sound(model, X)
    assert model.get_feature_names_out().shape == (0,)
