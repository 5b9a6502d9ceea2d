"""Splitting a cluster in two, against all ways to do it."""

import numpy as np
import pytest

import reference
from kplus.dp_means.kernels_split import group_rows, split_cluster


def split(X, weights=None, max_iter=20):
    """Gain and the two centres, from rows in any place."""
    w = reference.weights_or_ones(X, weights)
    center = np.average(X, axis=0, weights=w)
    first, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    gain = split_cluster(X - center, w, max_iter, first, second)
    return gain, np.array([first, second]) + center


@pytest.mark.parametrize("K", [1, 3, 7])
def test_rows_are_grouped_in_order(K):
    labels = np.random.default_rng(K).integers(0, K, 40).astype(np.int32)
    rows, starts = group_rows(labels, K)
    assert starts[0] == 0
    assert starts[-1] == 40
    for k in range(K):
        mine = rows[starts[k] : starts[k + 1]]
        np.testing.assert_array_equal(mine, np.flatnonzero(labels == k))


def test_an_empty_group():
    rows, starts = group_rows(np.array([0, 2, 0], dtype=np.int32), 4)
    np.testing.assert_array_equal(rows, [0, 2, 1])
    np.testing.assert_array_equal(starts, [0, 2, 2, 3, 3])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gain_is_the_fall_of_the_squared_error(seed, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 60)), int(rng.integers(1, 6))))
    weights = rng.uniform(0.1, 3.0, len(X)) if weighted else None
    gain, C = split(X, weights)
    labels = reference.nearest(X, C)[0]
    whole = np.zeros(len(X), dtype=int)
    before = reference.squared_error(
        X, whole, reference.means(X, whole, 1, weights), weights
    )
    after = reference.squared_error(X, labels, C, weights)
    assert 0.0 < gain <= before - after + 1e-9
    assert gain == pytest.approx(before - after, rel=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_never_better_than_the_best_cut_of_a_line_and_often_as_good(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=25) + 6.0 * rng.integers(0, 2, 25)
    weights = [None, rng.uniform(0.1, 2.0, 25)][seed % 2]
    gain, _ = split(x[:, None], weights)
    best = reference.best_split_1d(x, weights)
    assert 0.9 * best <= gain <= best * (1 + 1e-9)


def test_two_clear_groups_are_separated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[30:] += 10.0
    _, C = split(X)
    labels = reference.nearest(X, C)[0]
    assert len(set(labels[:30])) == len(set(labels[30:])) == 1
    np.testing.assert_allclose(C, reference.means(X, labels, 2))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_order_and_copies_do_not_matter(offset):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3)) + offset
    weights = rng.integers(1, 4, 30)
    copies = rng.permutation(np.repeat(np.arange(30), weights))
    one, C = split(X, weights.astype(float))
    other, D = split(X[copies])
    assert one == pytest.approx(other, rel=1e-6)
    np.testing.assert_allclose(
        C[np.lexsort(C.T)], D[np.lexsort(D.T)], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.full((1, 3), 2.0)])
def test_equal_rows_do_not_split(X):
    assert split(X)[0] == 0.0


def test_rows_of_no_weight_do_not_count():
    X = np.array([[0.0], [1.0], [1000.0]])
    gain, C = split(X, np.array([1.0, 1.0, 0.0]))
    assert gain == pytest.approx(0.5)
    np.testing.assert_allclose(np.sort(C.ravel()), [0.0, 1.0])


def test_read_only_rows():
    X = np.random.default_rng(0).normal(size=(10, 2))
    X -= X.mean(axis=0)
    X.flags.writeable = False
    first, second = np.zeros(2), np.zeros(2)
    assert split_cluster(X, np.ones(10), 5, first, second) > 0.0
