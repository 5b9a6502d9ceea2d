"""Gaussians cut off below zero: against many digits, quadrature and scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.ibp.factors import truncated_entropy, truncated_moments
from kplus.ibp.prior import (
    count_slopes,
    harmonic,
    log_prior,
    log_prior_left_ordered,
)
from meibp_reference import BEYOND, all_classes, truncated
from meibp_reference import log_prior as obvious_prior

FAR = pytest.mark.parametrize("sigma", [1.0, 1e-6, 1e8])


def as_arrays(mu, variance):
    return np.array([[mu]]), np.array([[variance]])


@FAR
@pytest.mark.parametrize(("t", "mean", "variance", "entropy"), BEYOND)
def test_moments_to_many_digits(t, mean, variance, entropy, sigma):
    mu, square = as_arrays(-t * sigma, sigma * sigma)
    found, spread = truncated_moments(mu, square)
    assert found[0, 0] == pytest.approx(mean * sigma, rel=1e-11)
    assert spread[0, 0] == pytest.approx(variance * sigma**2, rel=1e-8)
    gained = truncated_entropy(mu, square, found)[0, 0]
    assert gained == pytest.approx(entropy + np.log(sigma), rel=1e-10, abs=1e-10)


@given(st.floats(-30.0, 30.0), st.floats(1e-3, 1e3))
def test_moments_equal_quadrature(mu, variance):
    if -mu / np.sqrt(variance) > 30.0:
        return
    mean, spread, entropy = truncated(mu, variance)
    found, square = truncated_moments(*as_arrays(mu, variance))
    assert found[0, 0] == pytest.approx(mean, rel=1e-8)
    assert square[0, 0] == pytest.approx(spread, rel=1e-6)
    gained = truncated_entropy(*as_arrays(mu, variance), found)
    assert gained[0, 0] == pytest.approx(entropy, rel=1e-7, abs=1e-8)


@given(st.floats(-1e6, 1e6), st.floats(-9.0, 9.0))
def test_moments_are_possible_ones(t, log_scale):
    """Positive; no wider than the Gaussian; a mean above zero and above mu."""
    sigma = 10.0**log_scale
    mu, variance = as_arrays(-t * sigma, sigma * sigma)
    mean, spread = truncated_moments(mu, variance)
    entropy = truncated_entropy(mu, variance, mean)
    assert np.all(mean > 0.0)
    assert np.all(mean >= mu * (1 - 1e-15))
    assert np.all(spread > 0.0)
    assert np.all(spread <= variance * (1 + 1e-15))
    assert np.all(np.isfinite(entropy))
    # A Gaussian has the most entropy of its variance, an exponential of its mean.
    assert np.all(entropy <= 0.5 * np.log(2 * np.pi * np.e * spread) + 1e-7)
    assert np.all(entropy <= 1.0 + np.log(mean) + 1e-9)


def test_moments_do_not_jump_where_the_series_begins():
    t = np.linspace(49.99, 50.01, 201)
    mean, variance = truncated_moments(-t, np.ones_like(t))
    entropy = truncated_entropy(-t, np.ones_like(t), mean)
    np.testing.assert_allclose(np.diff(mean), np.diff(mean).mean(), rtol=1e-3)
    np.testing.assert_allclose(np.diff(variance, 2), 0.0, atol=1e-11)
    np.testing.assert_allclose(np.diff(entropy, 2), 0.0, atol=1e-11)


def test_inactive_features_have_the_moments_of_the_prior():
    """ME-4: a half-normal."""
    mean, variance = truncated_moments(*as_arrays(0.0, 4.0))
    assert mean[0, 0] ** 2 + variance[0, 0] == pytest.approx(4.0, rel=1e-14)
    entropy = truncated_entropy(*as_arrays(0.0, 4.0), mean)
    assert entropy[0, 0] == pytest.approx(0.5 * np.log(np.pi * np.e * 4.0 / 2.0))


def test_no_features_and_shapes():
    mean, variance = truncated_moments(np.zeros((0, 3)), np.ones((0, 3)))
    assert mean.shape == variance.shape == (0, 3)
    assert truncated_entropy(np.zeros((0, 3)), np.ones((0, 3)), mean).shape == (0, 3)


# -------------------------------------------------------------------- the prior


@pytest.mark.parametrize("N", [1, 2, 3, 4])
@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_me_1_classes_add_up_to_a_poisson_distribution(N, alpha):
    """ME-1: those with K features have the probability of K ~ Poisson(αH_N)."""
    mean = alpha * sum(1.0 / i for i in range(1, N + 1))
    assert harmonic(N) * alpha == pytest.approx(mean)
    for K in range(4 if N < 4 else 3):
        total = sum(
            np.exp(log_prior(Z.sum(axis=0).astype(float), N, alpha))
            for Z in all_classes(N, K)
        )
        expected = np.exp(-mean) * mean**K / np.prod(np.arange(1.0, K + 1))
        assert total == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("N", [2, 3])
def test_me_1_left_ordered_classes_hold_the_shifted_ones(N):
    """A left-ordered class has the sum of what orders of its columns have."""
    for K in range(4):
        classes = {}
        for Z in all_classes(N, K):
            key = tuple(sorted(map(tuple, Z.T)))
            counts = Z.sum(axis=0).astype(float)
            classes.setdefault(key, []).append((np.exp(log_prior(counts, N, 1.3)), Z))
        for members in classes.values():
            total = sum(share for share, _ in members)
            found = log_prior_left_ordered(members[0][1], 1.3)
            assert np.exp(found) == pytest.approx(total, rel=1e-10)


@given(st.integers(1, 30), st.integers(0, 5), st.integers(0, 1000))
def test_log_prior_equals_its_factorials(N, K, seed):
    rng = np.random.default_rng(seed)
    Z = (rng.random((N, K)) < 0.5).astype(np.uint8)
    Z[rng.integers(0, N, K), np.arange(K)] = 1
    found = log_prior(Z.sum(axis=0).astype(float), N, 0.7)
    assert found == pytest.approx(obvious_prior(Z, 0.7), rel=1e-10, abs=1e-10)


@given(st.integers(2, 500), st.integers(0, 1000))
def test_the_prior_lies_above_its_tangent(N, seed):
    m, other = np.random.default_rng(seed).integers(1, N + 1, (2, 4)).astype(float)
    tangent = log_prior(m, N, 1.0) + count_slopes(m, N) @ (other - m)
    assert log_prior(other, N, 1.0) >= tangent - 1e-9 * abs(tangent)


def test_slopes_are_derivatives():
    m, N = np.array([1.0, 5.0, 20.0]), 20
    slopes = count_slopes(m, N)
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-5
        found = (log_prior(m + step, N, 1.0) - log_prior(m - step, N, 1.0)) / 2e-5
        assert slopes[k] == pytest.approx(found, rel=1e-5, abs=1e-6)
