"""Kernels of nonnegative factors: tails of Gaussians, and updates by the equations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy.special import log_ndtr

from kplus.ibp.kernels_factors import erfcx, excess, refresh
from meibp_reference import BEYOND

GRID = np.concatenate([[0.0], np.logspace(-300, 0, 50), np.linspace(0, 40, 4001),
                       np.logspace(1, 150, 200)])  # fmt: skip


def test_erfcx_on_a_grid():
    found = np.array([erfcx(x) for x in GRID])
    np.testing.assert_allclose(found, special.erfcx(GRID), rtol=3e-15)


@given(st.floats(0.0, 1e10))
def test_erfcx_anywhere(x):
    assert erfcx(x) == pytest.approx(special.erfcx(x), rel=3e-15)


def test_erfcx_at_its_ends():
    assert erfcx(0.0) == pytest.approx(1.0, rel=1e-15)
    assert erfcx(1e300) == pytest.approx(1.0 / (np.sqrt(np.pi) * 1e300), rel=1e-14)


@pytest.mark.parametrize(("t", "mean"), [row[:2] for row in BEYOND])
def test_excess_to_many_digits(t, mean):
    """The difference of hazard and t loses up to t² of the digits."""
    assert excess(t) == pytest.approx(mean, rel=1e-15 * max(t * t if t < 50 else 1, 4))


@given(st.floats(-1e6, 40.0))
def test_excess_anywhere(t):
    hazard = np.sqrt(2.0 / np.pi) / special.erfcx(t / np.sqrt(2.0))
    assert excess(t) == pytest.approx(hazard - t, rel=1e-12)


@given(st.floats(0.0, 1e8))
def test_excess_keeps_its_bounds(t):
    """Those of Birnbaum and Sampford on the hazard, less t."""
    lower, upper = (2.0 / (np.hypot(t, root) + t) for root in (np.sqrt(8.0), 2.0))
    assert lower * (1 - 1e-12) <= excess(t) <= upper * (1 + 1e-12)
    assert excess(-t) >= t


def test_excess_falls_and_does_not_jump_where_the_series_begins():
    t = np.linspace(49.9, 50.1, 401)
    found = np.array([excess(x) for x in t])
    assert np.all(np.diff(found) < 0.0)
    np.testing.assert_allclose(np.diff(found, 2), 0.0, atol=1e-11)


def test_excess_at_extremes():
    assert excess(-1e300) == 1e300
    assert excess(1e300) == pytest.approx(1e-300)
    assert excess(-40.0) == 40.0


# ------------------------------------------------------------------------------ updates


def a_problem(seed, N=15, D=4, K=3, gaps=0.0):
    rng = np.random.default_rng(seed)
    Z = (rng.random((N, K)) < 0.5).astype(float)
    X = Z @ np.abs(rng.normal(size=(K, D))) + 0.3 * rng.normal(size=(N, D))
    known = (rng.random((N, D)) >= gaps).astype(float)
    return X, Z, known, np.abs(rng.normal(size=(K, D)))


def sums(X, Z, known, mean):
    """A group a column, or one group where nothing is missing."""
    T = Z.T @ (known * (X - Z @ mean))
    if known.all():
        return (Z.T @ Z)[None], np.array([0, X.shape[1]]), T
    S = np.einsum("nk,nj,nd->dkj", Z, Z, known)
    return S, np.arange(X.shape[1] + 1), T


def hazard(t):
    return np.exp(-0.5 * t * t - 0.5 * np.log(2.0 * np.pi) - log_ndtr(-t))


def one_round(X, Z, known, noise, prior, mean):
    """Eqs. 14 to 16: each factor given the means of the others."""
    mean = mean.copy()
    mu, variance = np.empty_like(mean), np.empty_like(mean)
    most = 0.0
    for k in range(len(mean)):
        for d in range(X.shape[1]):
            rows = (known[:, d] > 0) & (Z[:, k] > 0)
            rest = X[rows, d] - Z[rows] @ mean[:, d] + mean[k, d]
            variance[k, d] = 1.0 / (rows.sum() / noise + 1.0 / prior)
            mu[k, d] = variance[k, d] * rest.sum() / noise
            sigma = np.sqrt(variance[k, d])
            new = mu[k, d] + sigma * hazard(-mu[k, d] / sigma)
            most = max(most, abs(new - mean[k, d]))
            mean[k, d] = new
    return mean, mu, variance, most / np.sqrt(noise)


def refreshed(X, Z, known, noise, prior, mean):
    S, starts, T = sums(X, Z, known, mean)
    mean = mean.copy()
    mu, variance = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    moved = refresh(S, starts, T, noise, prior, mu, variance, mean)
    return mean, mu, variance, moved, T


@pytest.mark.parametrize("gaps", [0.0, 0.4, 1.0])
@given(st.integers(0, 2**20), st.floats(0.01, 10.0), st.floats(0.01, 10.0))
def test_equals_the_equations(gaps, seed, noise, prior):
    X, Z, known, start = a_problem(seed, gaps=gaps)
    mean, mu, variance, moved, T = refreshed(X, Z, known, noise, prior, start)
    expected = one_round(X, Z, known, noise, prior, start)
    np.testing.assert_allclose(mu, expected[1], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(variance, expected[2], rtol=1e-12)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-7, atol=1e-9)
    assert moved == pytest.approx(expected[3], rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(T, sums(X, Z, known, mean)[2], atol=1e-9)


@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_rounds_converge(gaps):
    X, Z, known, mean = a_problem(0, N=60, gaps=gaps)
    for _ in range(200):
        mean, _, _, moved, _ = refreshed(X, Z, known, 0.1, 1.0, mean)
    assert moved < 1e-10


def test_a_feature_no_row_has_is_the_prior():
    X, Z, known, mean = a_problem(0)
    Z[:, 1] = 0.0
    mean, mu, variance, _, _ = refreshed(X, Z, known, 0.1, 4.0, mean)
    np.testing.assert_allclose(mu[1], 0.0, atol=1e-15)
    np.testing.assert_allclose(variance[1], 4.0)
    np.testing.assert_allclose(mean[1], 2.0 * np.sqrt(2.0 / np.pi))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_extreme_data(sign):
    """Far in either tail: finite, positive, and near what the data say."""
    X = np.full((5, 3), sign * 1e6)
    Z, known = np.ones((5, 1)), np.ones((5, 3))
    mean, _, _, _, _ = refreshed(X, Z, known, 1e-4, 1e12, np.ones((1, 3)))
    assert np.all(np.isfinite(mean))
    assert np.all(mean > 0.0)
    np.testing.assert_allclose(mean, 1e6 if sign > 0 else 0.0, rtol=1e-6, atol=1e-9)


def test_no_features_and_one_column():
    S, starts = np.zeros((1, 0, 0)), np.array([0, 4])
    empty = np.zeros((0, 4))
    assert refresh(S, starts, empty, 1.0, 1.0, empty, empty, empty) == 0.0
    X, Z, known, mean = a_problem(0, D=1, K=1)
    found = refreshed(X, Z, known, 0.1, 1.0, mean)[0]
    np.testing.assert_allclose(found, one_round(X, Z, known, 0.1, 1.0, mean)[0])
