"""The small implementations that kplus is compared with find planted structure."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score


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


@pytest.fixture
def sums_of_factors():
    """Rows that are sums of nonnegative factors; a third of the last half is hidden."""
    rng = np.random.default_rng(0)
    B, A = rng.exponential(size=(60, 3)), rng.exponential(size=(3, 30))
    truth = B @ A + 0.1 * rng.standard_normal((60, 30))
    X = truth.copy()
    X[30:, 20:] = np.nan
    return X, truth


def test_bnmf_predicts_missing_entries(sums_of_factors):
    from baselines import bnmf

    X, truth = sums_of_factors
    found = bnmf(X, 3, tol=1e-6, random_state=0)
    assert found.converged
    assert min(found.B.min(), found.A.min()) >= 0
    errors = (found.B @ found.A - truth)[np.isnan(X)]
    assert np.sqrt(np.mean(errors**2)) < 0.2
    assert np.sqrt(found.variance) == pytest.approx(0.1, rel=0.15)


def test_bnmf_never_looks_at_missing_entries(sums_of_factors):
    from baselines.bnmf import Patterns

    X, _ = sums_of_factors
    rng = np.random.default_rng(1)
    B, A = rng.exponential(size=(60, 3)), rng.exponential(size=(3, 30))
    expected = B.copy()
    for k in range(3):
        for n in range(60):
            seen = ~np.isnan(X[n])
            rest = X[n, seen] - expected[n] @ A[:, seen] + expected[n, k] * A[k, seen]
            best = (rest @ A[k, seen] - 0.5) / (A[k, seen] @ A[k, seen])
            expected[n, k] = max(best, 0.0)
    table = Patterns(X)
    table.improve(B, A, 0.5)
    np.testing.assert_allclose(B, expected)
    assert table.squared_error(B, A) == pytest.approx(np.nanmean((X - B @ A) ** 2))


def test_bnmf_raises_the_posterior(sums_of_factors):
    """Each step goes to the mode of its conditional, so that their product rises."""
    from baselines import bnmf

    X, _ = sums_of_factors
    rate, ends = np.sqrt(4 / np.nanmean(X)), []
    for n in (1, 2, 5, 20):
        found = bnmf(X, 4, max_iter=n, random_state=0)
        squares = np.nansum((X - found.B @ found.A) ** 2)
        fit = squares / found.variance + np.sum(~np.isnan(X)) * np.log(found.variance)
        ends.append(-0.5 * fit - rate * (found.B.sum() + found.A.sum()))
    assert ends == sorted(ends)


def test_bnmf_survives_a_factor_without_columns():
    from baselines.bnmf import Patterns

    B, A = np.ones((2, 2)), np.array([[1.0, 1.0], [0.0, 0.0]])
    Patterns(np.ones((2, 2))).improve(B, A, 0.0)
    np.testing.assert_array_equal(B, [[1.0, 0.0], [1.0, 0.0]])


def marginal(X, Z, noise, prior):
    """log p(X | Z) with the factors integrated out, from all rows at once."""
    covariance = noise * np.eye(len(X)) + prior * Z @ Z.T
    _, size = np.linalg.slogdet(2 * np.pi * covariance)
    fit = np.sum(X * np.linalg.solve(covariance, X))
    return -0.5 * (X.shape[1] * size + fit)


def test_plain_sampler_knows_what_a_row_says():
    from baselines import PlainAccelerated

    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((6, 4)), np.array([[1, 0]] * 3 + [[1, 1]] * 3)
    state = PlainAccelerated(X, Z, alpha=1.0, noise_scale=0.7, factor_scale=1.3)
    state.gram, state.cross = state.Z.T @ state.Z, state.Z.T @ X
    state.count(2, -1.0)
    posterior = state.posterior()
    found, expected = [], []
    for bits, own in (((0, 0), 0), ((1, 0), 0), ((0, 1), 0), ((1, 1), 2)):
        found.append(state.log_likelihood(2, np.array(bits), own, *posterior))
        new = np.zeros((6, own))
        new[2] = 1.0
        changed = np.hstack([state.Z, new])
        changed[2, :2] = bits
        expected.append(marginal(X, changed, 0.7**2, 1.3**2))
    np.testing.assert_allclose(np.diff(found), np.diff(expected))


def test_plain_sampler_draws_from_the_prior_where_data_say_nothing():
    """The number of features is then Poisson with mean αH_N."""
    from baselines import PlainAccelerated

    X, numbers = np.zeros((2, 1)), []
    state = PlainAccelerated(
        X, np.zeros((2, 0)), alpha=1.0, noise_scale=1e3, factor_scale=1e-3
    )
    for _ in range(3000):
        state.sweep()
        numbers.append(state.Z.shape[1])
    assert np.mean(numbers) == pytest.approx(1.5, abs=0.15)
    assert np.var(numbers) == pytest.approx(1.5, abs=0.3)


def test_plain_sampler_finds_planted_features():
    from baselines import PlainAccelerated

    rng = np.random.default_rng(0)
    Z = (rng.uniform(size=(60, 3)) < 0.5).astype(float)
    X = Z @ rng.normal(scale=2.0, size=(3, 20)) + 0.3 * rng.standard_normal((60, 20))
    state = PlainAccelerated(
        X, np.zeros((60, 0)), alpha=1.0, noise_scale=0.3, factor_scale=2.0
    )
    for _ in range(30):
        state.sweep()
    found = state.Z[:, state.Z.sum(axis=0) > 1]
    same = (found.T @ Z + (1 - found).T @ (1 - Z)) / 60
    assert same.max(axis=0).min() > 0.95
    np.testing.assert_allclose(state.gram, state.Z.T @ state.Z, atol=1e-9)
