"""Gamma and beta functions of counts, against scipy's."""

import numpy as np
import pytest
from scipy.special import betaln, digamma, gammaln

from kplus.dp_mixture import kernels_counts as kernels

SMALL_TO_LARGE = [1e-9, 0.02, 0.7, 1.0, 3.5, 9.9, 10.0, 47.0, 1e4, 3e6]


@pytest.mark.parametrize("a", SMALL_TO_LARGE)
@pytest.mark.parametrize("b", SMALL_TO_LARGE)
def test_differences_are_those_of_scipy(a, b):
    near = {"rel": 1e-9, "abs": 1e-8}
    rise = gammaln(a + b) - gammaln(a)
    assert kernels.log_gain(a, b) == pytest.approx(rise, **near)
    assert kernels.log_beta(a, b) == pytest.approx(betaln(a, b), **near)
    assert kernels.psi(a) == pytest.approx(digamma(a), rel=1e-11)


def test_large_arguments_cost_no_digits():
    """B(a, 1) = 1 / a and B(a, 2) = 1 / a (a + 1); Γ(a + 1) / Γ(a) = a."""
    for a in (0.5, 12.0, 1e6, 1e12):
        for first, second in ((a, 1.0), (1.0, a)):
            found = kernels.log_beta(first, second)
            assert found == pytest.approx(-np.log(a), rel=1e-12, abs=1e-12)
        found = kernels.log_beta(a, 2.0)
        assert found == pytest.approx(-np.log(a) - np.log(a + 1), rel=1e-12)
        assert kernels.log_gain(a, 1.0) == pytest.approx(np.log(a), rel=1e-12)
    assert kernels.log_gain(3.0, 0.0) == 0.0


def test_gains_of_a_table():
    rng = np.random.default_rng(0)
    a, n = rng.gamma(1.0, 3.0, 6), rng.poisson(2.0, (3, 6)) * 1.0
    np.testing.assert_allclose(
        kernels.log_gains(a, n), gammaln(a + n) - gammaln(a), atol=1e-12
    )


def test_ways_by_steps_and_at_once():
    x = np.array([0.0, 1.0, 4.0, 4.0, 300.0, 302.0, 0.0, 7.0, 2.0])
    columns = np.array([0, 0, 0, 0, 0, 0, 1, 1, 2])
    sizes = np.array([[0.3, 2.0], [1e6, 5.0], [1e30, 1.0]])
    r = sizes[columns]
    plain = gammaln(x[:, None] + r) - gammaln(r) - gammaln(x[:, None] + 1.0)
    found = kernels.log_ways(x, columns, sizes)
    np.testing.assert_allclose(found[:-1], plain[:-1], rtol=1e-9, atol=1e-8)
    assert found[-1, 0] == pytest.approx(2.0 * np.log(1e30) - np.log(2.0))


def some_sums(K=3, D=4, G=5):
    rng = np.random.default_rng(1)
    n, total = rng.uniform(0.0, 40.0, (2, K, D))
    ways, sizes = rng.normal(size=(K, D, G)), rng.gamma(1.0, 5.0, (D, G))
    rows, counts = rng.gamma(1.0, 1.0, (2, D))
    a = 1.0 + sizes * (rows + n)[..., None]
    b = (counts + total)[..., None]
    prior = betaln(1.0 + sizes * rows[:, None], counts[:, None])
    logs = ways + betaln(a, b) - prior
    return (n, total, ways, sizes, rows, counts), a, b, logs


def test_evidence_is_the_mean_over_dispersions():
    known, _, _, logs = some_sums()
    plain = np.log(np.exp(logs).mean(axis=-1))
    np.testing.assert_allclose(kernels.dispersion_evidence(*known), plain, rtol=1e-9)


def test_expectations_are_the_means_over_dispersions():
    known, a, b, logs = some_sums()
    shares = np.exp(logs) / np.exp(logs).sum(axis=-1, keepdims=True)
    stop, more, found = kernels.dispersion_expectations(*known)
    np.testing.assert_allclose(found, shares, rtol=1e-8)
    plain = (shares * known[3] * (digamma(a) - digamma(a + b))).sum(axis=-1)
    np.testing.assert_allclose(stop, plain, rtol=1e-8)
    plain = (shares * (digamma(b) - digamma(a + b))).sum(axis=-1)
    np.testing.assert_allclose(more, plain, rtol=1e-8)
