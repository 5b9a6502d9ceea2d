"""Predictive densities add up to 1, match scipy's, and draws have their moments."""

import itertools

import numpy as np
import pytest
from scipy import stats as st
from scipy.integrate import quad

from kplus.dp_mixture.families.family import Columns
from kplus.observations import (
    Bernoulli,
    Categorical,
    DiagGaussian,
    Gaussian,
    Mixed,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    ZeroMeanGaussian,
)


def resolved(likelihood, X, *levels):
    names = tuple(f"column {j}" for j in range(len(levels)))
    family = likelihood.resolve(X, None, Columns(names, levels))
    return family, np.array([float(len(X))]), family.features(X).sum(axis=0)[None]


@pytest.mark.parametrize(
    "likelihood", [Gaussian(), ZeroMeanGaussian(), DiagGaussian(), SphericalGaussian()]
)
def test_gaussian_predictives_integrate_to_one(likelihood):
    X = np.array([[3.0], [5.0], [4.5], [9.0]])
    family, N, S = resolved(likelihood, X, None)

    def density(x):
        return np.exp(family.log_predictive(N, S, np.array([[x]]))[0, 0])

    total = quad(density, -np.inf, 5)[0] + quad(density, 5, np.inf)[0]
    assert total == pytest.approx(1.0, abs=1e-6)


def test_spherical_predictive_integrates_to_one_over_two_columns():
    X = np.random.default_rng(0).normal(size=(6, 2))
    family, N, S = resolved(SphericalGaussian(dof=20), X, None, None)
    grid = np.linspace(-12, 12, 401)
    points = np.array(list(itertools.product(grid, grid)))
    mass = np.exp(family.log_predictive(N, S, points)).sum() * (grid[1] - grid[0]) ** 2
    assert mass == pytest.approx(1.0, abs=1e-4)


def test_a_missing_value_is_integrated_out_of_a_spherical_row():
    X = np.random.default_rng(0).normal(size=(6, 2))
    X[2, 0] = np.nan
    family, N, S = resolved(SphericalGaussian(), X, None, None)
    other = quad(
        lambda x: np.exp(family.log_predictive(N, S, np.array([[0.7, x]]))[0, 0]),
        -np.inf,
        np.inf,
    )[0]
    alone = family.log_predictive(N, S, np.array([[0.7, np.nan]]))[0, 0]
    assert alone == pytest.approx(np.log(other), abs=1e-7)


def test_bernoulli_and_categorical_predictives_add_up_to_one():
    X = np.array([[1, 0], [1, 1], [np.nan, 0], [0, 0.0]])
    for likelihood, levels in ((Bernoulli(), (None, None)), (Categorical(), (2, 2))):
        family, N, S = resolved(likelihood, X, *levels)
        support = np.array(list(itertools.product([0.0, 1], repeat=2)))
        total = np.exp(family.log_predictive(N, S, support)).sum()
        assert total == pytest.approx(1.0, rel=1e-12)


def test_two_categories_are_a_bernoulli():
    rng = np.random.default_rng(0)
    X = (rng.random((20, 2)) < [0.1, 0.6]).astype(float)
    X[3, 0] = np.nan
    bits, N, S = resolved(Bernoulli(), X, None, None)
    codes, _, T = resolved(Categorical(), X, 2, 2)
    for ours, theirs in (
        (bits.evidence(N, S), codes.evidence(N, T)),
        (bits.log_predictive(N, S, X), codes.log_predictive(N, T, X)),
        (bits.dissimilarity(X, X[0], N, S), codes.dissimilarity(X, X[0], N, T)),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_poisson_predictive_is_negative_binomial():
    X = np.array([[3.0], [5.0], [4.0], [9.0]])
    family, N, S = resolved(Poisson(1.0, 0.5), X, None)
    support = np.arange(2000.0)[:, None]
    logs = family.log_predictive(N, S, support)[:, 0]
    np.testing.assert_allclose(
        logs[:50], st.nbinom.logpmf(support[:50, 0], 22, 4.5 / 5.5), rtol=1e-10
    )
    assert np.exp(logs).sum() == pytest.approx(1.0, rel=1e-10)


def test_multinomial_predictive_is_dirichlet_multinomial():
    X = np.array([[3.0, 0, 1], [5, 1, 0], [0, 0, 0]])
    family, N, S = resolved(Multinomial(0.5), X, None, None, None)
    support = [x for x in itertools.product(range(5), repeat=3) if sum(x) == 4]
    logs = family.log_predictive(N, S, np.array(support, dtype=float))[:, 0]
    np.testing.assert_allclose(
        logs, st.dirichlet_multinomial.logpmf(support, [8.5, 1.5, 1.5], 4), rtol=1e-10
    )
    assert np.exp(logs).sum() == pytest.approx(1.0, rel=1e-12)


def test_a_row_of_zeros_suits_every_component():
    X = np.array([[3.0, 0, 1], [5, 1, 0], [0, 0, 0]])
    family, _, _ = resolved(Multinomial(), X, None, None, None)
    N, S = np.ones(2), X[:2]
    zeros = np.zeros((1, 3))
    np.testing.assert_array_equal(family.log_predictive(N, S, zeros), 0.0)
    np.testing.assert_array_equal(family.scores(family.expect(N, S), zeros), 0.0)


@pytest.mark.parametrize(
    ("likelihood", "levels"),
    [
        (DiagGaussian(), (None, None)),
        (SphericalGaussian(), (None, None)),
        (Gaussian(), (None, None)),
        (Poisson(), (None, None)),
        (NegativeBinomial(), (None, None)),
        (Bernoulli(), (None, None)),
        (Categorical(), (2, 2)),
        (Multinomial(), (None, None)),
        (Mixed(counts=[1]), (None, None)),
    ],
)
def test_draws_have_the_moments_of_the_rows(likelihood, levels):
    rng = np.random.default_rng(0)
    X = (rng.random((500, 2)) < [0.2, 0.7]).astype(float)
    family, N, S = resolved(likelihood, X, *levels)
    draws = family.draw(N, S, np.array([20_000]), np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=0), X.mean(axis=0), atol=0.02)
    if not isinstance(
        likelihood, Poisson | NegativeBinomial | Multinomial | Mixed | SphericalGaussian
    ):
        # Numbers 0 and 1 that may have been rounded stand for intervals of length 1.
        rounding = 1 / 12 if isinstance(likelihood, Gaussian | DiagGaussian) else 0.0
        expected = X.var(axis=0) + rounding
        np.testing.assert_allclose(draws.var(axis=0), expected, atol=0.02)


@pytest.mark.parametrize(
    "likelihood", [DiagGaussian(learn=False), Gaussian(learn=False)]
)
def test_draws_of_a_fixed_prior_have_the_variances_of_the_rows(likelihood):
    """Values of columns whose prior is given count as they are."""
    rng = np.random.default_rng(0)
    X = (rng.random((500, 2)) < [0.2, 0.7]).astype(float)
    family, N, S = resolved(likelihood, X, None, None)
    draws = family.draw(N, S, np.array([20_000]), np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=0), X.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(draws.var(axis=0), X.var(axis=0), atol=0.02)


def test_drawn_multinomial_rows_hold_as_much_as_those_of_their_component():
    X = np.array([[3.0, 7], [5, 5], [100, 0]])
    family, _, _ = resolved(Multinomial(), X, None, None)
    N, S = np.array([2.0, 1, 0]), np.array([[8.0, 12], [100, 0], [0, 0]])
    draws = family.draw(N, S, np.array([2, 1, 1]), np.random.default_rng(0))
    np.testing.assert_array_equal(draws.sum(axis=1), [10, 10, 100, 40])
