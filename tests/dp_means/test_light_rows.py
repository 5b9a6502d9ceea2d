"""Moves of DP-means do not mind how heavy rows are, and end with clusters by size."""

import numpy as np
import pytest

import reference
from kplus.core import loop
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.moves import (
    DropEmpty,
    OpenClusters,
    OrderClusters,
    RemoveCluster,
    best_splits,
)
from kplus.dp_means.params import Centers, Scaling
from kplus.engine import SerialEngine

PLAIN = Scaling(np.zeros(2), 1.0)


def rows(seed=0, n=80):
    return np.random.default_rng(seed).normal(scale=2.0, size=(n, 2))


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1e6])
def test_splits_are_the_same_in_any_unit_of_weight(scale):
    X, weights = rows(), np.random.default_rng(1).uniform(0.0, 2.0, 80)
    labels = reference.nearest(X, X[:5])[0]
    C = reference.means(X, labels, 5, weights)
    gains, pairs = best_splits(X, weights, labels, C, np.arange(5))
    assert np.all(gains > 0.0)
    again = best_splits(X, scale * weights, labels, C, np.arange(5))
    np.testing.assert_allclose(again[0], scale * gains)
    np.testing.assert_allclose(again[1], pairs)


def test_rows_without_weight_are_not_split():
    X, weights = rows(), np.ones(80)
    labels = np.arange(80) % 2
    weights[labels == 1] = 0.0
    C = reference.means(X, labels, 2)
    gains, _ = best_splits(X, weights, labels, C, np.arange(2))
    assert gains[0] > 0.0
    assert gains[1] == 0.0


def fitted(X, centers, **more):
    with SerialEngine(ArrayBlocks(X, 16)) as engine:
        result = loop.run(
            DPMeansModel(8.0), engine, Centers.start(PLAIN, centers),
            moves=[DropEmpty(), OpenClusters(), RemoveCluster()],
            max_iter=100, tol=0.0, **more,
        )  # fmt: skip
        labels = np.concatenate([local.labels for local in engine.locals()])
        return result, labels


def test_clusters_are_presented_by_falling_size():
    X = np.vstack([rows(0, 10), rows(1, 60) + 30.0, rows(2, 30) - 30.0])
    plain, before = fitted(X, X[:1].copy())
    shown, labels = fitted(X, X[:1].copy(), finish=OrderClusters())
    counts = np.bincount(labels)
    assert len(counts) == plain.params.K > 2
    assert not np.all(np.diff(plain.total.counts) <= 0.0)  # there was an order to find
    assert np.all(np.diff(counts) <= 0)
    np.testing.assert_array_equal(shown.total.counts, counts)
    np.testing.assert_array_equal(
        reference.canonical(labels), reference.canonical(before)
    )
    kept, same = fitted(X, X[:1].copy(), finish=OrderClusters(keep_order=True))
    np.testing.assert_array_equal(same, before)
    np.testing.assert_array_equal(kept.total.counts, plain.total.counts)


def test_clusters_of_equal_size_are_presented_by_their_centres():
    X = np.repeat([[5.0, 1.0], [-3.0, 2.0], [-3.0, -7.0]], 4, axis=0)
    shown, _ = fitted(X, X[::4].copy(), finish=OrderClusters())
    np.testing.assert_array_equal(
        shown.params.centers, [[-3.0, -7.0], [-3.0, 2.0], [5.0, 1.0]]
    )
