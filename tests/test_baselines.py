"""The small implementations that CRAFT is compared with find planted structure."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks_on_path(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def planted():
    """Three groups that differ in features 0 to 3 of 12; the others are noise."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    X = rng.standard_normal((120, 12))
    X[:, :4] += 6.0 * rng.standard_normal((3, 4))[labels]
    return X, labels


def test_mcfs_ranks_planted_features_first(planted):
    from baselines import mcfs, mcfs_scores

    X, labels = planted
    scores = mcfs_scores(X, 3, 1 / 3, 0)
    assert set(np.argsort(-scores)[:3]) <= {0, 1, 2, 3}
    assert adjusted_rand_score(labels, mcfs(X, 3, 1 / 3, 0)) > 0.95


def test_mcfs_keeps_to_the_budget(planted):
    from baselines import mcfs_scores

    assert np.count_nonzero(mcfs_scores(planted[0], 1, 1 / 6, 0)) <= 2


def test_ndfs_ranks_planted_features_first(planted):
    from baselines import ndfs, ndfs_scores

    X, labels = planted
    scores = ndfs_scores(X, 3, 0)
    assert set(np.argsort(-scores)[:3]) <= {0, 1, 2, 3}
    assert adjusted_rand_score(labels, ndfs(X, 3, 1 / 3, 0)) > 0.95


def test_sequential_dp_means_with_all_features_is_plain_dp_means():
    from baselines import farthest_first, sequential_dp_means

    X = np.array([[0.0], [1.0], [10.0], [11.0], [30.0], [31.0]])
    mean = X.mean(axis=0)
    penalty = farthest_first(X, 3, mean)
    rng = np.random.default_rng(0)
    labels = sequential_dp_means(X, penalty - 1e-9, mean, 1.0, rng)
    assert adjusted_rand_score([0, 0, 1, 1, 2, 2], labels) == 1.0


def test_farthest_first_by_hand():
    from baselines import farthest_first

    X = np.array([[0.0], [4.0], [10.0]])
    assert farthest_first(X, 1, X[0]) == 100.0
    assert farthest_first(X, 2, X[0]) == 16.0


def test_dp_rf_selects_features_in_which_a_cluster_is_tight():
    from baselines.dp_rf import Shapes, steadiest

    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, 6)) * [1.0, 9.0, 0.1, 9.0, 0.2, 9.0]
    np.testing.assert_array_equal(
        steadiest(rows, 0.5), [True, False, True, False, True, False]
    )
    # Eq. 1 of the paper at m = .5 and its default ρ: no difference by symmetry.
    assert Shapes.of(0.5).step == pytest.approx(0.0, abs=1e-12)
    assert Shapes.of(1 / 3).step == pytest.approx(0.06, abs=0.01)
    assert Shapes.of(0.8).step == pytest.approx(-0.14, abs=0.01)


def test_dp_rf_finds_clusters_that_live_in_few_features():
    from baselines import dp_means_rf

    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 60)
    X = 0.1 * rng.standard_normal((120, 4))
    X[:, :2] += 5.0 * labels[:, None]
    found = [
        adjusted_rand_score(labels, dp_means_rf(X, 2, 0.5, seed)) for seed in range(10)
    ]
    assert max(found) == 1.0
