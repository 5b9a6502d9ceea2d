"""The IBP prior: against sums over all matrices, factorials and tangents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.ibp.prior import (
    count_slopes,
    harmonic,
    log_prior,
    log_prior_left_ordered,
)
from meibp_reference import all_classes
from meibp_reference import log_prior as obvious_prior


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
