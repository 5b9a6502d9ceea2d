"""Columns that miss the same rows share a covariance: posteriors column by column."""

import numpy as np
import pytest

from kplus.ibp.factors import GaussianFactors
from kplus.ibp.meibp_model import sums_of
from kplus.ibp.prior import FiniteIBP, InfiniteIBP
from kplus.ibp.variational_model import MeanField, VariationalModel
from kplus.linear.gaps import Gaps

PATTERNS = [
    [[], [], [0], [], [0]],  # the second group begins after two columns of the first
    [[0, 1], [], [], [0, 1], [2]],
    [[3], [3], [3], [], []],
]
gap_patterns = pytest.mark.parametrize("gaps", PATTERNS, ids=str)


def table(gaps, n=12, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, len(gaps)))
    for d, rows in enumerate(gaps):
        X[rows, d] = np.nan
    return X


@gap_patterns
def test_mean_field_factors_are_the_posterior_of_each_column(gaps):
    X, K, noise, factor = table(gaps), 3, 0.7, 1.9
    rng = np.random.default_rng(1)
    nu = rng.uniform(0.1, 0.9, (len(X), K))
    start = GaussianFactors.uncoupled(rng.normal(size=(K, X.shape[1])), 0.3)
    ibp = FiniteIBP.fitted(nu.sum(axis=0), len(X), 1.0)
    params = MeanField(start, ibp, noise, factor)
    model = VariationalModel()
    found = model.with_factors(params, model.sums(params, X, nu)).factors
    for d in range(X.shape[1]):
        has = ~np.isnan(X[:, d])
        S = nu[has].T @ nu[has]
        np.fill_diagonal(S, nu[has].sum(axis=0))
        cov = np.linalg.inv(S / noise + np.eye(K) / factor)
        np.testing.assert_allclose(found.covariance[found.group[d]], cov, rtol=1e-9)
        mean = cov @ (nu[has].T @ X[has, d]) / noise
        np.testing.assert_allclose(found.mean[:, d], mean, atol=1e-9)


@gap_patterns
def test_gaussian_factors_are_the_posterior_of_each_column(gaps):
    X, K, noise, spread = table(gaps), 3, 0.7, 1.9
    rng = np.random.default_rng(2)
    Z = (rng.random((len(X), K)) < 0.5).astype(np.uint8)
    missing = np.isnan(X)
    start = GaussianFactors.near(rng.normal(size=(K, X.shape[1])), noise)
    filled = np.where(missing, 0.0, X)
    sums = sums_of(filled, missing, Gaps.of(missing), Z, start.mean)
    found = start.refreshed(sums, noise, spread)
    for d in range(X.shape[1]):
        z = Z[~missing[:, d]].astype(float)
        cov = np.linalg.inv(z.T @ z / noise + np.eye(K) / spread)
        np.testing.assert_allclose(found.covariance[found.group[d]], cov, rtol=1e-6)
        mean = cov @ (z.T @ X[~missing[:, d], d]) / noise
        np.testing.assert_allclose(found.mean[:, d], mean, atol=1e-6)


def test_covariances_are_symmetric_to_the_bit():
    X, K = table([[], [0], [1], [1], []], n=40), 9
    rng = np.random.default_rng(3)
    Z, missing = (rng.random((40, K)) < 0.4).astype(np.uint8), np.isnan(X)
    start = GaussianFactors.near(rng.normal(size=(K, 5)), 1.0)
    sums = sums_of(np.where(missing, 0.0, X), missing, Gaps.of(missing), Z, start.mean)
    covariance = start.refreshed(sums, 0.3, 2.0).covariance
    np.testing.assert_array_equal(covariance, covariance.swapaxes(1, 2))


@gap_patterns
def test_factors_without_covariances(gaps):
    group = Gaps.of(np.isnan(table(gaps))).group
    rng = np.random.default_rng(4)
    by_group = rng.uniform(0.1, 1.0, (3, group.max() + 1))
    mean, variance = rng.normal(size=(3, 5)), by_group[:, group]
    found = GaussianFactors.independent(mean, variance, group)
    for d in range(5):
        np.testing.assert_array_equal(
            found.covariance[found.group[d]], np.diag(variance[:, d])
        )
    assert found.squares == pytest.approx(np.sum(mean**2 + variance))


@pytest.mark.parametrize("kind", [FiniteIBP, InfiniteIBP])
@pytest.mark.parametrize("alpha", [0.2, 1.0, 7.0])
def test_a_given_alpha_stays(kind, alpha):
    counts = np.array([40.0, 3.0, 0.5, 25.0])
    ibp = kind.fitted(counts, 60.0, alpha)
    assert ibp.alpha == alpha
    assert ibp.updated(counts, 60.0, False).alpha == alpha
    learned = ibp.updated(counts, 60.0, True)
    assert learned.bound(counts, 60.0) >= ibp.bound(counts, 60.0)


def test_sticks_begin_with_products_that_are_the_shares():
    """The ascent is short: it must begin near."""
    counts = np.array([50.0, 900.0, 300.0])
    guess = InfiniteIBP._guess(counts, 1000.0, 1.0)
    np.testing.assert_allclose(guess.probabilities, counts / 1000.0, rtol=0.1)
    np.testing.assert_array_equal(guess.order, [1, 2, 0])
