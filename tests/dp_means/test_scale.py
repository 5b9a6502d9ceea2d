"""Columns on one scale, by the estimator."""

import numpy as np
import pytest

from kplus import DPMeans, load, penalty_path, save
from kplus.datasets import make_spherical_mixture

UNITS = np.array([1.0, 1000.0, 0.01])


def table():
    X, _ = make_spherical_mixture(600, 3, 4, separation=8, random_state=0)
    return X * UNITS + np.array([1e4, 0.0, -3.0])


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize(
    "settings",
    [{}, {"n_clusters": 4}, {"penalty": 30.0}, {"cells": "auto"},
     {"penalty": 3.0, "algorithm": "serial"}, {"n_clusters": 4, "collapsed": True}],
)  # fmt: skip
def test_as_on_standardised_rows(settings):
    X = table()
    Z = standardised(X)
    ours = DPMeans(scale=True, random_state=0, **settings).fit(X)
    plain = DPMeans(random_state=0, **settings).fit(Z)
    np.testing.assert_array_equal(ours.labels_, plain.labels_)
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)
    assert ours.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    back = (ours.cluster_centers_ - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(back, plain.cluster_centers_, atol=1e-9)
    np.testing.assert_allclose(ours.transform(X), plain.transform(Z), atol=1e-8)
    assert ours.score(X) == pytest.approx(plain.score(Z), rel=1e-9)
    np.testing.assert_allclose(ours.mean_, X.mean(axis=0))
    np.testing.assert_allclose(ours.scale_, X.std(axis=0))


def test_weights_count_as_copies():
    X = table()[:80]
    weights = 1.0 + np.arange(80) % 3
    weighed = DPMeans(n_clusters=3, scale=True, random_state=0)
    weighed.fit(X, sample_weight=weights)
    copies = DPMeans(n_clusters=3, scale=True, random_state=0)
    copies.fit(np.repeat(X, weights.astype(int), axis=0))
    np.testing.assert_allclose(weighed.scale_, copies.scale_)
    np.testing.assert_allclose(weighed.cluster_centers_, copies.cluster_centers_)


def test_streams_keep_the_scale_of_the_first_batch(tmp_path):
    X = table()
    stream = DPMeans(n_clusters=4, scale=True, random_state=0)
    for batch in np.array_split(X, 3):
        stream.partial_fit(batch)
    np.testing.assert_allclose(stream.scale_, np.array_split(X, 3)[0].std(axis=0))
    assert stream.cluster_sizes_.sum() == 600
    save(stream, tmp_path / "model.kplus")
    again = load(tmp_path / "model.kplus")
    np.testing.assert_array_equal(again.predict(X), stream.predict(X))
    again.partial_fit(X)
    stream.partial_fit(X)
    np.testing.assert_array_equal(again.cluster_centers_, stream.cluster_centers_)


@pytest.mark.parametrize("batch_size", [7, 100])
def test_files_and_blocks(tmp_path, batch_size):
    X = table()[:200]
    np.save(tmp_path / "X.npy", X)
    model = DPMeans(n_clusters=4, scale=True, batch_size=batch_size, random_state=0)
    from_file = model.fit(tmp_path / "X.npy").cluster_centers_
    np.testing.assert_allclose(from_file, model.fit(X).cluster_centers_, rtol=1e-12)


def test_constant_columns_and_warm_starts():
    X = table()
    X[:, 1] = 0.1
    model = DPMeans(n_clusters=4, scale=True, warm_start=True, random_state=0).fit(X)
    assert model.scale_[1] == 1.0
    first = model.objective_
    assert model.fit(X).objective_ <= first * (1.0 + 1e-9)
    assert not hasattr(model.set_params(scale=False).fit(X), "scale_")


def test_the_path_is_on_one_scale_too():
    X = table()
    ours = penalty_path(DPMeans(scale=True, random_state=0), X)
    plain = penalty_path(DPMeans(random_state=0), standardised(X))
    np.testing.assert_allclose(ours.sse, plain.sse, rtol=1e-9)


def test_mistakes():
    with pytest.raises(ValueError, match="scales of their own"):
        DPMeans(1.0, covariance="full", scale=True).fit(table())
    X = table()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN|missing"):
        DPMeans(scale=True).fit(X)
