"""Features of unusual data: wrong input, constants, scales, missing values."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from kplus import BPMeans, KFeatures
from planted_features import check_consistent, error_of

GOOD = np.random.default_rng(0).normal(size=(20, 3))
MODELS = [
    BPMeans(2.0, random_state=0),
    BPMeans(n_components=2, random_state=0),
    BPMeans(random_state=0),
    BPMeans(2.0, collapsed=True, random_state=0),
    KFeatures(2, random_state=0),
    KFeatures(penalty=2.0, random_state=0),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)
ERRORS = (ValueError, TypeError, FileNotFoundError)
# What penalty="auto" makes of noise, and rightly so.
may_find_nothing = pytest.mark.filterwarnings("ignore:BPMeans found no feature that is")


def spoiled(value, where=(4, 1), dtype=np.float64):
    X = GOOD.astype(dtype)
    X[where] = value
    return X


def frame(make=pd.DataFrame, **columns):
    return make(dict(zip("abc", GOOD.T, strict=True)) | columns)


def test_one_infinite_row_among_many():
    X = np.random.default_rng(0).normal(size=(25_000, 2))
    X[24_321, 1] = np.inf
    with pytest.raises(ValueError, match=r"column 1 \(1 row\)"):
        KFeatures(2, effort=0, random_state=0, n_jobs=2).fit(X)


# -------------------------------------------------------------------- parameters

BAD_PARAMETERS = {
    "penalty_zero": {"penalty": 0.0},
    "penalty_negative": {"penalty": -1.0},
    "penalty_nan": {"penalty": np.nan},
    "penalty_infinite": {"penalty": np.inf},
    "penalty_text": {"penalty": "big"},
    "penalty_none": {"penalty": None},
    "n_components_zero": {"n_components": 0},
    "n_components_fraction": {"n_components": 1.5},
    "n_components_true": {"n_components": True},
    "n_components_text": {"n_components": "auto"},
    "max_components_zero": {"max_components": 0},
    "max_components_true": {"max_components": True},
    "max_components_below": {"max_components": 2, "n_components": 3},
    "collapsed": {"collapsed": "yes"},
    "init": {"init": "k-means++"},
    "init_array": {"init": np.ones((2, 3))},
    "assignment": {"assignment": "greedy"},
    "effort": {"effort": -1.0},
    "effort_nan": {"effort": np.nan},
    "effort_infinite": {"effort": np.inf},
    "sparse_output": {"sparse_output": "csr"},
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
@pytest.mark.parametrize("cls", [BPMeans, KFeatures])
def test_parameters_are_checked(case, cls):
    parameters = BAD_PARAMETERS[case]
    for call in (cls(**parameters).fit, cls(**parameters).partial_fit):
        with pytest.raises(ERRORS, match="|".join(parameters)):
            call(GOOD)


def test_more_features_than_rows():
    for call in (
        lambda: KFeatures(21).fit(GOOD),
        lambda: BPMeans(n_components=2).fit(GOOD[:1]),
        lambda: BPMeans(3.0, n_components=21).partial_fit(GOOD),
    ):
        with pytest.raises(ValueError, match=r"n_samples=\d+ should be >= n_comp"):
            call()


def test_as_many_features_as_rows():
    model = KFeatures(6, random_state=0).fit(GOOD[:6])
    assert model.n_components_ <= 6
    check_consistent(model, GOOD[:6])
    assert model.objective_ == pytest.approx(0.0, abs=1e-12)


# ------------------------------------------------- unusual, and yet an answer


@pytest.mark.parametrize(
    "model",
    [*MODELS[:1], *MODELS[3:4], *MODELS[5:], BPMeans(2.0, effort=0)],
    ids=repr,
)
@pytest.mark.parametrize("factor", [1.0001, 1e6])
def test_no_feature_pays(model, factor):
    total = float(np.sum(GOOD**2))
    fitted = clone(model).set_params(penalty=factor * total)
    with pytest.warns(UserWarning, match=r"no feature .*n_components_ is 0"):
        fitted.fit(GOOD)
    assert fitted.n_components_ == 0
    assert fitted.components_.shape == (0, 3)
    assert fitted.feature_counts_.shape == (0,)
    assert fitted.objective_ == pytest.approx(total)
    assert fitted.reconstruction_err_ == pytest.approx(np.sqrt(total))
    assert fitted.score(GOOD) == pytest.approx(-total)
    assert fitted.transform(GOOD).shape == (20, 0)
    assert fitted.get_feature_names_out().shape == (0,)
    np.testing.assert_array_equal(
        fitted.inverse_transform(fitted.transform(GOOD)), np.zeros((20, 3))
    )
    sparse = fitted.set_params(sparse_output=True).transform(GOOD)
    assert sparse.shape == (20, 0)
    fitted.set_params(sparse_output=False).set_output(transform="pandas")
    assert fitted.transform(frame().set_axis([0, 1, 2], axis=1)).shape == (20, 0)


def test_features_that_pay_only_in_a_later_batch():
    model = BPMeans(1.5 * float(np.sum(GOOD**2)), random_state=0)
    with pytest.warns(UserWarning, match="no feature"):
        model.partial_fit(GOOD)
    model.partial_fit(GOOD + 100.0)
    assert model.n_components_ >= 1
    assert model.objective_ < np.sum((GOOD + 100.0) ** 2)


@every_model
def test_all_zero_data(model):
    X = np.zeros((9, 2))
    with pytest.warns(UserWarning, match="no feature"):
        fitted = clone(model).fit(X)
    assert fitted.n_components_ == 0
    assert fitted.objective_ == 0.0
    assert fitted.transform(X).shape == (9, 0)


@every_model
def test_equal_rows_are_one_feature(model):
    X = np.full((9, 2), 3.0)
    fitted = clone(model).fit(X)
    assert fitted.n_components_ == 1
    np.testing.assert_allclose(fitted.components_, [[3.0, 3.0]])
    np.testing.assert_array_equal(fitted.transform(X), np.ones((9, 1)))
    np.testing.assert_array_equal(fitted.feature_counts_, [9.0])


@pytest.mark.parametrize(
    "model", [BPMeans(2.0), BPMeans(), BPMeans(n_components=1), KFeatures(1),
              KFeatures(penalty=2.0), KFeatures()],
    ids=repr,
)  # fmt: skip
def test_one_row(model):
    X = np.array([[3.0, 4.0]])
    fitted = clone(model).fit(X)
    assert fitted.n_components_ == 1
    np.testing.assert_allclose(fitted.components_, X)
    assert fitted.objective_ == pytest.approx(fitted.penalty_)


@may_find_nothing
@every_model
def test_one_column(model):
    fitted = clone(model).fit(GOOD[:, :1])
    check_consistent(fitted, GOOD[:, :1])


@every_model
def test_constant_columns(model):
    X = np.column_stack([GOOD, np.full(20, 1e3), np.zeros(20)])
    fitted = clone(model).set_params(max_components=4).fit(X)
    check_consistent(fitted, X)
    assert fitted.objective_ < 20 * 1e6
    np.testing.assert_array_equal(fitted.components_[:, 4], 0.0)


@every_model
def test_duplicates(model):
    X = np.repeat(GOOD[:4], 6, axis=0)
    fitted = clone(model).fit(X)
    check_consistent(fitted, X)
    Z = fitted.transform(X).reshape(4, 6, -1)
    np.testing.assert_array_equal(Z, np.repeat(Z[:, :1], 6, axis=1))


@pytest.mark.parametrize("seed", range(10))
def test_more_features_than_distinct_rows(seed):
    """Fewer are found: the others would be empty or equal."""
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0)
    model = KFeatures(5, random_state=seed).fit(X)
    assert model.n_components_ == 2
    assert model.objective_ == pytest.approx(0.0, abs=1e-20)


@may_find_nothing
@every_model
@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 2.0**332])
def test_scales(model, scale):
    how = {"max_components": 5}
    if not isinstance(model.penalty, str):
        how["penalty"] = 2.0 * scale**2
    plain = clone(model).set_params(max_components=5).fit(GOOD)
    fitted = clone(model).set_params(**how).fit(GOOD * scale)
    assert fitted.n_components_ == plain.n_components_
    np.testing.assert_allclose(
        fitted.components_ / scale, plain.components_, rtol=1e-6, atol=1e-9
    )
    assert fitted.objective_ == pytest.approx(plain.objective_ * scale**2, rel=1e-9)


def test_a_base_far_from_zero():
    """A level a million times what differs between rows."""
    X = GOOD + 1e6
    model = KFeatures(3, random_state=0).fit(X)
    check_consistent(model, X)
    assert model.objective_ < np.sum((X - X.mean(axis=0)) ** 2)


# ------------------------------------------------------------ missing values


@every_model
@pytest.mark.parametrize("share", [0.05, 0.4])
def test_missing_values(model, share):
    rng = np.random.default_rng(1)
    Z = rng.random((80, 2)) < 0.5
    full = Z @ [[4.0, 4, 0, 0], [0, 0, 3, 3]] + rng.normal(scale=0.1, size=(80, 4))
    X = np.where(rng.random(full.shape) < share, np.nan, full)
    fitted = clone(model).set_params(penalty=20.0, max_components=3).fit(X)
    assert fitted.n_components_ == 2
    check_consistent(fitted, X)
    assert fitted.score(X) == pytest.approx(
        -error_of(X, fitted.transform(X), fitted.components_), rel=1e-9
    )
    seen = np.isfinite(X).any(axis=1)
    np.testing.assert_allclose(
        np.sort(np.abs(fitted.components_).sum(axis=1)), [6.0, 8.0], atol=0.2
    )
    back = fitted.inverse_transform(fitted.transform(X[seen]))
    assert np.all(np.isfinite(back))


@pytest.mark.parametrize("model", MODELS[:2] + MODELS[4:], ids=repr)
def test_each_column_is_solved_on_what_was_observed(model):
    rng = np.random.default_rng(2)
    X = np.where(rng.random((40, 3)) < 0.2, np.nan, GOOD.repeat(2, axis=0))
    fitted = clone(model).fit(X)
    Z = fitted.transform(X)
    for d in range(3):
        seen = np.isfinite(X[:, d])
        left = X[seen, d] - Z[seen] @ fitted.components_[:, d]
        np.testing.assert_allclose(Z[seen].T @ left, 0.0, atol=1e-8)


def test_a_row_without_values():
    X = np.vstack([GOOD, np.full((1, 3), np.nan)])
    model = KFeatures(2, random_state=0).fit(X)
    np.testing.assert_allclose(
        model.components_, KFeatures(2, random_state=0).fit(GOOD).components_,
        atol=1e-8,
    )  # fmt: skip
    np.testing.assert_array_equal(model.transform(X)[-1], [0.0, 0.0])
    assert model.score(X[-1:]) == 0.0


def test_a_column_seen_only_in_rows_of_no_weight():
    X = spoiled(np.nan, (slice(1, None), 1))
    weights = np.append(0.0, np.ones(19))
    with pytest.raises(ValueError, match="column 1"):
        KFeatures(2).fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match="column 1"):
        BPMeans(1.0).fit(X, sample_weight=weights)


def test_missing_values_of_frames():
    X = spoiled([np.nan, np.nan], ([3, 5], 1))
    plain = KFeatures(2, random_state=0).fit(X)
    nullable = frame(b=pd.array([None if v != v else v for v in X[:, 1]], "Float64"))
    nulls = frame(pl.DataFrame, b=[None if v != v else v for v in X[:, 1]])
    for rows in (frame(b=X[:, 1]), nullable, nulls):
        fitted = KFeatures(2, random_state=0).fit(rows)
        np.testing.assert_array_equal(fitted.components_, plain.components_)
        np.testing.assert_array_equal(fitted.transform(rows), plain.transform(X))


def test_missing_values_of_sparse_tables():
    X = np.where(np.abs(GOOD) < 0.5, 0.0, GOOD)
    X[4, 1] = np.nan
    plain = KFeatures(2, random_state=0).fit(X)
    fitted = KFeatures(2, random_state=0).fit(sp.csr_array(X))
    np.testing.assert_array_equal(fitted.components_, plain.components_)


def test_gaps_that_come_and_go_in_a_stream():
    model = KFeatures(2, random_state=0).fit(GOOD)
    model.partial_fit(spoiled(np.nan)).partial_fit(GOOD)
    assert np.all(np.isfinite(model.components_))
    assert -model.score(GOOD) <= model.objective_


def test_a_column_may_be_missing_from_a_later_batch():
    """Earlier rows tell about it."""
    model = KFeatures(2, random_state=0).fit(GOOD)
    model.partial_fit(spoiled(np.nan, (slice(None), 1)))
    assert np.all(np.isfinite(model.components_))
