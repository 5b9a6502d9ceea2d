"""The sequential sweep of MEIBP against the bound written out plainly."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

import ibp_reference as obvious
from kplus.ibp import kernels_rows as kernel
from kplus.ibp.kernels_factors import (
    Factors,
    Model,
    evidence_of_factors,
    truncated,
    update_factors,
)

PRIORS = pytest.mark.parametrize("nonnegative", [True, False])
GAPS = pytest.mark.parametrize("gaps", [0.0, 0.3])


def problem(seed, N=6, D=4, K=3, gaps=0.0, nonnegative=True):
    """Rows, bits that leave one feature to a single row, sums, factors, a model."""
    X, Z, _ = obvious.planted(N, D, K, seed, gaps=gaps)
    Z[:, 0] = 0
    Z[seed % N, 0] = 1
    Z[0, 1] = Z[1, 1] = 1
    table = obvious.one_by_one(X)
    factors = obvious.some_factors(K, D, seed, nonnegative)
    model = Model(0.3, 0.8, 1.7, nonnegative)
    return X, Z, table, obvious.sums_of(table, Z), factors, model


def plain_bound(X, Z, factors, model):
    return obvious.bound(X, Z, factors.mu, factors.scale, model[:3], model.nonnegative)


# --------------------------------------------------------------------------- moments


def by_quadrature(t):
    """Mean, variance and log of the integral of exp(−tx − x²/2) over x ≥ 0."""
    peak, width = max(-t, 0.0), 1.0 / max(1.0, t)
    log_peak = 0.5 * peak * peak

    def integral(power, about):
        def term(u):
            x = u * width
            density = math.exp(-t * x - 0.5 * x * x - log_peak)
            return (x - about) ** power * density

        # Pieces about the peak, so that none of the mass is missed.
        edges = np.array([0.0, 1.0, 4.0, 10.0, 40.0]) + max(peak - 20.0, 0.0)
        if peak > 0.0:
            edges = np.linspace(max(peak - 12.0, 0.0), peak + 12.0, 13)
        parts = [
            quad(term, a, b, epsrel=1e-13, epsabs=0.0)[0] for a, b in pairwise(edges)
        ]
        return sum(parts) * width

    mass = integral(0, 0.0)
    mean = integral(1, 0.0) / mass
    return mean, integral(2, mean) / mass, math.log(mass) + log_peak


@pytest.mark.parametrize(
    "t", [-30.0, -9.1, -8.9, -3.0, -0.5, 0.0, 0.7, 3.0, 4.99, 5.01, 12.0, 60.0, 1e4]
)
def test_truncated_moments_and_entropy(t):
    mean, variance, log_mass = by_quadrature(t)
    found = truncated(t)
    assert found[0] == pytest.approx(mean, rel=1e-12)
    assert found[1] == pytest.approx(variance, rel=1e-11)
    # −E ln q with ln q = −tx − x²/2 − ln ∫; twice as wide and as far, for the scale.
    entropy = log_mass + t * mean + 0.5 * (variance + mean**2)
    one = [np.array([[value]]) for value in (-2.0 * t, 4.0, 2.0 * mean, 4.0 * variance)]
    model = Model(1.0, 3.0, 1.0, True)
    log_density = 0.5 * math.log(2.0 / (3.0 * math.pi)) - (
        4.0 * (variance + mean**2)
    ) / (2.0 * 3.0)
    expected = log_density + entropy + math.log(2.0)
    evidence = evidence_of_factors(Factors(*one), model)
    assert evidence == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_moments_of_a_far_tail_are_those_of_an_exponential():
    for t in (1e6, 1e12, 1e100):
        mean, variance = truncated(t)
        assert mean * t == pytest.approx(1.0, rel=1e-11)
        assert variance * t * t == pytest.approx(1.0, rel=1e-11)


# --------------------------------------------------------------------------- factors


@PRIORS
@GAPS
@pytest.mark.parametrize("seed", range(4))
def test_each_update_of_factors_raises_the_bound_to_an_optimum(seed, gaps, nonnegative):
    X, Z, table, sums, factors, model = problem(
        seed, gaps=gaps, nonnegative=nonnegative
    )
    bounds = [plain_bound(X, Z, factors, model)]
    for _ in range(60):
        update_factors(sums, table.starts, factors, model)
        bounds.append(plain_bound(X, Z, factors, model))
    assert np.all(np.diff(bounds) >= -1e-10)
    assert bounds[1] > bounds[0]
    rng = np.random.default_rng(seed)
    for _ in range(10):
        moved = factors._replace(
            mu=factors.mu + 0.05 * rng.normal(size=factors.mu.shape),
            scale=factors.scale * np.exp(0.1 * rng.normal(size=factors.mu.shape)),
        )
        assert plain_bound(X, Z, moved, model) < bounds[-1]


@PRIORS
def test_evidence_of_factors_is_prior_and_entropy(nonnegative):
    factors = obvious.some_factors(3, 5, 1, nonnegative)
    model = Model(0.3, 0.8, 1.7, nonnegative)
    mean, variance, entropy = obvious.moments(factors.mu, factors.scale, nonnegative)
    prior = -0.5 * np.log(2.0 * np.pi * 0.8) + (math.log(2.0) if nonnegative else 0.0)
    expected = np.sum(prior - 0.5 * (mean**2 + variance) / 0.8 + entropy)
    assert evidence_of_factors(factors, model) == pytest.approx(expected)


# ------------------------------------------------------------------------------- rows


@PRIORS
@GAPS
@pytest.mark.parametrize("seed", range(4))
def test_row_objective_differs_as_the_bound_does(seed, gaps, nonnegative):
    """All 2^K rows, of each row, also the one that alone holds a feature."""
    X, Z, table, sums, factors, model = problem(
        seed, gaps=gaps, nonnegative=nonnegative
    )
    for n in range(len(X)):
        found, _ = obvious.row_values(table, Z, n, sums, factors, model)
        truth = obvious.bounds_of_rows(
            X, Z, n, factors.mu, factors.scale, model[:3], nonnegative=nonnegative
        )
        np.testing.assert_allclose(found - found[0], truth - truth[0], atol=1e-9)


def test_row_objective_where_nothing_has_rows():
    X, Z, table, _, factors, model = problem(0)
    Z[:] = 0
    sums = obvious.sums_of(table, Z)
    found, _ = obvious.row_values(table, Z, 2, sums, factors, model)
    truth = obvious.bounds_of_rows(X, Z, 2, factors.mu, factors.scale, model[:3])
    np.testing.assert_allclose(found - found[0], truth - truth[0], atol=1e-9)


MAXIMIZERS = pytest.mark.parametrize(
    "maximizer",
    [kernel.LOCAL_SEARCH, kernel.DOUBLE_GREEDY, kernel.RANDOM_DOUBLE_GREEDY],
)


@MAXIMIZERS
@PRIORS
@GAPS
@pytest.mark.parametrize("refresh", [1, 4, 1000])
def test_a_sweep_keeps_its_sums_and_raises_the_bound(
    maximizer, nonnegative, gaps, refresh
):
    X, Z, table, sums, factors, model = problem(
        3, N=30, D=6, K=4, gaps=gaps, nonnegative=nonnegative
    )
    last = plain_bound(X, Z, factors, model)
    rng = np.random.default_rng(0)
    for seed in range(4):
        before = Z.copy()
        order = rng.permutation(len(X))
        schedule = kernel.Schedule(maximizer, refresh, seed)
        bits = kernel.sweep(table, order, Z, sums, factors, model, schedule)
        assert bits == np.count_nonzero(before != Z)
        now = plain_bound(X, Z, factors, model)
        assert now >= last - 1e-9
        last = now
        afresh = obvious.sums_of(table, Z)
        np.testing.assert_array_equal(sums.S, afresh.S)
        np.testing.assert_array_equal(sums.counts, afresh.counts)
        np.testing.assert_allclose(sums.T, afresh.T, atol=1e-12)


def test_a_row_takes_its_best_bits():
    """With one row in the order and q(A) left alone: the best of all 2^K bounds."""
    for seed in range(6):
        X, Z, table, sums, factors, model = problem(seed, N=5, D=6, K=3)
        mu, scale = factors.mu.copy(), factors.scale.copy()
        for n in range(5):
            truth = obvious.bounds_of_rows(X, Z, n, mu, scale, model[:3])
            frozen = Factors(*(part.copy() for part in factors))
            schedule = kernel.Schedule(kernel.LOCAL_SEARCH, 1000, 0)
            kernel.sweep(table, np.array([n]), Z, sums, frozen, model, schedule)
            assert obvious.bound(X, Z, mu, scale, model[:3]) == pytest.approx(
                truth.max(), rel=1e-12
            )


@GAPS
def test_little_room_for_gram_matrices_changes_nothing(gaps):
    """Patterns that share a slot are worked out again; else what changed alone is."""
    found = []
    for room in (1, 10_000):
        _, Z, table, sums, factors, model = problem(1, N=30, D=6, K=4, gaps=gaps)
        schedule = kernel.Schedule(kernel.LOCAL_SEARCH, 2, 0)
        for _ in range(3):
            kernel.sweep(table, np.arange(30), Z, sums, factors, model, schedule, room)
        found.append((Z, *sums, *factors))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
