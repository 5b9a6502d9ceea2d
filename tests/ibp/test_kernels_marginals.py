"""The kernels of variational inference against the obvious."""

import numpy as np
import pytest
from scipy.special import expit

from kplus.ibp.kernels_marginals import ascend_rows, seed_rows


@pytest.fixture
def problem():
    """Twelve rows, four features, two patterns of observed columns."""
    rng = np.random.default_rng(0)
    n, K = 12, 4
    roots = rng.normal(size=(2, K, 6))
    G = roots @ roots.transpose(0, 2, 1)
    return rng.normal(size=(n, K)), G, np.arange(n) % 2, rng.normal(size=K)


def plain_sweep(b, G, odds, precision, nu):
    """ν_k = σ(odds_k + p(b_k − G_kk/2 − Σ_{j≠k} G_kj ν_j)), one after the other."""
    for k in range(len(nu)):
        others = G[k] @ nu - G[k, k] * nu[k]
        nu[k] = expit(odds[k] + precision * (b[k] - G[k, k] / 2 - others))


@pytest.mark.parametrize("sweeps", [1, 2, 7])
def test_ascent_is_the_plain_one(problem, sweeps):
    b, G, which, odds = problem
    nu = np.full(b.shape, 0.4)
    rest = b - np.einsum("nij,nj->ni", G[which], nu)
    expected = nu.copy()
    for n, row in enumerate(expected):
        for _ in range(sweeps):
            plain_sweep(b[n], G[which[n]], odds, 1.7, row)
    ascend_rows(rest, G, which, odds, 1.7, sweeps, 0.0, nu)
    np.testing.assert_allclose(nu, expected, rtol=1e-10)
    np.testing.assert_allclose(
        rest, b - np.einsum("nij,nj->ni", G[which], nu), atol=1e-12
    )


def test_ascent_ends_at_a_fixed_point(problem):
    b, G, which, odds = problem
    nu = np.zeros(b.shape)
    ascend_rows(b.copy(), G, which, odds, 1.7, 10_000, 1e-13, nu)
    again = nu.copy()
    for n, row in enumerate(again):
        plain_sweep(b[n], G[which[n]], odds, 1.7, row)
    np.testing.assert_allclose(again, nu, atol=1e-11)


def test_ascent_survives_certainty():
    """Fields far beyond what exp can hold give probabilities 0 and 1."""
    G, which, odds = np.eye(2)[None], np.zeros(1, np.int64), np.zeros(2)
    nu = np.full((1, 2), 0.5)
    rest = np.array([[10.0, -10.0]]) - nu
    ascend_rows(rest, G, which, odds, 1e6, 5, 0.0, nu)
    assert nu.tolist() == [[1.0, 0.0]]


def value(z, b, G, odds, precision):
    return z @ odds + precision * (z @ b - z @ G @ z / 2)


def test_seeds_are_local_optima(problem):
    b, G, which, odds = problem
    nu = np.zeros(b.shape)
    seed_rows(b.copy(), G, which, odds, 1.7, nu)
    assert set(np.unique(nu)) <= {0.0, 1.0}
    for n, z in enumerate(nu):
        best = value(z, b[n], G[which[n]], odds, 1.7)
        for k in range(len(z)):
            other = z.copy()
            other[k] = 1 - z[k]
            assert value(other, b[n], G[which[n]], odds, 1.7) <= best + 1e-9


def test_seeds_of_ties_are_the_first():
    """Two equal features: the first is taken, in spite of rounding."""
    G = np.array([[[2.0, 2.0], [2.0, 2.0]]])
    b = np.array([[3.0, 3.0], [3.0, 3.0 + 1e-13]])
    nu = np.zeros((2, 2))
    seed_rows(b, G, np.zeros(2, np.int64), np.zeros(2), 1.0, nu)
    assert nu.tolist() == [[1.0, 0.0], [1.0, 0.0]]
