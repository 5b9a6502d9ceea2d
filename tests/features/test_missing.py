"""Missing values: rows and columns are solved on what was observed of them."""

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


def spoiled(value, where=(4, 1), dtype=np.float64):
    X = GOOD.astype(dtype)
    X[where] = value
    return X


def frame(make=pd.DataFrame, **columns):
    return make(dict(zip("abc", GOOD.T, strict=True)) | columns)


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
