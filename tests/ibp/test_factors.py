"""Nonnegative factors: moments against many digits and quadrature, convergence."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.ibp.factors import (
    GaussianFactors,
    TruncatedFactors,
    truncated_entropy,
    truncated_moments,
)
from kplus.linear.sums import LinearSums
from meibp_reference import BEYOND, truncated

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


# -------------------------------------------------------------------------- convergence


@pytest.mark.parametrize("noise", [0.25, 4.0])
def test_factors_near_a_start_are_surer_than_one_row_could_make_them(noise):
    A = np.array([[1.0, 2.0, 0.5], [3.0, 0.1, 4.0]])
    factors = GaussianFactors.near(A, noise)
    np.testing.assert_array_equal(factors.mean, A)
    np.testing.assert_allclose(factors.covariance, 1e-3 * noise * np.eye(2)[None])


def test_factors_are_precise_once_hardly_any_row_changes():
    """Features that overlap take many rounds; while rows still change, few are made."""
    rng = np.random.default_rng(0)
    Z = (rng.random((300, 3)) < 0.7).astype(float)
    X = Z @ rng.uniform(1.0, 4.0, (3, 5)) + 0.1 * rng.normal(size=(300, 5))
    sums = LinearSums(
        np.zeros((3, 5)), (Z.T @ Z)[None], np.zeros(5, int), Z.T @ X,
        np.sum(X * X), 300.0, Z.sum(axis=0),
    )  # fmt: skip

    def refreshed(factors, changed):
        return factors.refreshed(replace(sums, changed=changed), 0.01, 4.0)

    start = TruncatedFactors.near(np.ones((3, 5)), 1.0)
    rough, precise = refreshed(start, 300), refreshed(start, 0)
    rest = precise
    for _ in range(20):
        rest = refreshed(rest, 0)
    off = [np.abs(one.mean - rest.mean).max() for one in (rough, precise)]
    assert 0.0 < off[1] < 0.1 * off[0]
    # The line is drawn at two rows of a hundred.
    np.testing.assert_array_equal(refreshed(start, 6).mean, precise.mean)
    np.testing.assert_array_equal(refreshed(start, 7).mean, rough.mean)
