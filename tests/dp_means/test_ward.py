"""Ward's tree, against scipy and by its definition."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from kplus.dp_means.ward import merge_costs, ward


@pytest.mark.parametrize("n", [2, 3, 30, 150])
def test_as_scipy(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    tree, expected = ward(X, np.ones(n)), linkage(X, "ward")
    np.testing.assert_allclose(tree.costs, 0.5 * expected[:, 2] ** 2, rtol=1e-9)
    for K in {1, 2, n // 2 + 1, n}:
        group = fcluster(expected, K, "maxclust")
        pairs = {*zip(group.tolist(), tree.cut(K).tolist(), strict=True)}
        assert len(pairs) == K


def test_weights_count_as_copies():
    X = np.random.default_rng(0).normal(size=(12, 2))
    counts = np.arange(1, 13)
    weighed = ward(X, counts.astype(float))
    copies = ward(np.repeat(X, counts, axis=0), np.ones(counts.sum()))
    np.testing.assert_allclose(weighed.costs, copies.costs[-11:], rtol=1e-9)


def test_costs_are_rises_of_the_error():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(4, 2)), rng.normal(size=(7, 2)) + 3.0
    both = np.concatenate([a, b])
    error = [np.sum((rows - rows.mean(axis=0)) ** 2) for rows in (both, a, b)]
    cost = merge_costs(
        a.mean(0)[None], np.array([4.0]), b.mean(0)[None], np.array([7.0])
    )
    assert cost[0, 0] == pytest.approx(error[0] - error[1] - error[2])


def test_single_point_and_equal_points():
    assert ward(np.zeros((1, 2)), np.ones(1)).cut(1).tolist() == [0]
    tree = ward(np.zeros((5, 2)), np.ones(5))
    assert np.all(tree.costs == 0.0)
    assert len(set(tree.cut(2).tolist())) == 2
