"""The bound of each family against divergences and expectations found independently."""

import numpy as np
import pytest
from scipy import stats as st
from scipy.special import digamma, gammaln

from kplus.dp_mixture.families.family import Columns
from kplus.observations import (
    Bernoulli,
    Categorical,
    DiagGaussian,
    Multinomial,
    Poisson,
    SphericalGaussian,
)

DRAWS = 40_000


def columns(*levels):
    return Columns(tuple(f"column {j}" for j in range(len(levels))), levels)


def divergence_gamma(a, b, a0, b0):
    """KL of Gamma(a, rate b) from Gamma(a0, rate b0)."""
    return (
        (a - a0) * digamma(a) - gammaln(a) + gammaln(a0)
        + a0 * (np.log(b) - np.log(b0)) + a * (b0 - b) / b
    )  # fmt: skip


def divergence_dirichlet(a, a0):
    out = gammaln(a.sum()) - gammaln(a0.sum()) - (gammaln(a) - gammaln(a0)).sum()
    return out + ((a - a0) * (digamma(a) - digamma(a.sum()))).sum()


def divergence_means(m, k, m0, k0, precision):
    """KL of N(m, 1/(k λ)) from N(m0, 1/(k0 λ)), averaged over λ of that mean."""
    return 0.5 * (k0 / k - 1 - np.log(k0 / k) + k0 * precision * (m - m0) ** 2)


def check(family, X, divergence, log_likelihood):
    """Bound = evidence, and scores = averages of log-likelihoods over draws."""
    N, S = np.array([float(len(X))]), family.features(X).sum(axis=0)[None]
    expected = family.expect(N, S)
    bound = expected.total(N, S)[0] - divergence
    assert bound == pytest.approx(family.evidence(N, S)[0], rel=1e-10, abs=1e-9)
    scores = family.scores(expected, X)[:, 0] + family.log_base(X)
    error = log_likelihood.std(axis=0) / np.sqrt(DRAWS)
    assert (abs(log_likelihood.mean(axis=0) - scores) <= 6 * error + 1e-12).all()


def normal_gamma(x, m0, k0, nu0, beta0):
    """Posterior of one column by the textbook."""
    n, mean = len(x), x.mean()
    k, nu = k0 + n, nu0 + n
    m = (k0 * m0 + x.sum()) / k
    beta = beta0 + ((x - mean) ** 2).sum() + k0 * n / k * (mean - m0) ** 2
    return m, k, nu, beta


def test_diag_gaussian():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2)) * [1, 30] + [5, -100]
    X[1, 0] = X[4, 1] = np.nan
    likelihood = DiagGaussian([4, -90], 0.3, 5.0, [2, 500])
    family = likelihood.resolve(X, None, columns(None, None))
    divergence, log_likelihood = 0.0, 0.0
    for d, (m0, variance) in enumerate([(4, 2), (-90, 500)]):
        beta0 = 3 * variance
        x = X[:, d]
        m, k, nu, beta = normal_gamma(x[~np.isnan(x)], m0, 0.3, 5.0, beta0)
        divergence += divergence_gamma(nu / 2, beta / 2, 5 / 2, beta0 / 2)
        divergence += divergence_means(m, k, m0, 0.3, nu / beta)
        precision = rng.gamma(nu / 2, 2 / beta, size=(DRAWS, 1))
        mu = rng.normal(m, 1 / np.sqrt(k * precision))
        logs = st.norm.logpdf(x, mu, 1 / np.sqrt(precision))
        log_likelihood = log_likelihood + np.where(np.isnan(x), 0, logs)
    check(family, X, divergence, log_likelihood)
    q = family.attributes(np.array([6.0]), family.features(X).sum(axis=0)[None])
    assert q["means_"][0, 1] == pytest.approx(m)
    assert q["covariances_"][0, 1] == pytest.approx(beta / (nu - 2))
    assert q["precisions_cholesky_"][0, 1] == pytest.approx(((nu - 2) / beta) ** 0.5)


def test_spherical_gaussian():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 2)) * 3 + [5, -100]
    X[1, 0] = X[4, 1] = X[2, 1] = np.nan
    likelihood = SphericalGaussian([4, -90], 0.3, 5.0, 2.0)
    family = likelihood.resolve(X, None, columns(None, None))
    nu, beta, posteriors = 5.0, 6.0, []
    for d, m0 in enumerate([4, -90]):
        x = X[~np.isnan(X[:, d]), d]
        m, k, nu, beta = normal_gamma(x, m0, 0.3, nu, beta)
        posteriors.append((m, k, m0))
    divergence = divergence_gamma(nu / 2, beta / 2, 5 / 2, 6 / 2)
    precision = rng.gamma(nu / 2, 2 / beta, size=(DRAWS, 1))
    log_likelihood = 0.0
    for d, (m, k, m0) in enumerate(posteriors):
        divergence += divergence_means(m, k, m0, 0.3, nu / beta)
        mu = rng.normal(m, 1 / np.sqrt(k * precision))
        logs = st.norm.logpdf(X[:, d], mu, 1 / np.sqrt(precision))
        log_likelihood = log_likelihood + np.where(np.isnan(X[:, d]), 0, logs)
    check(family, X, divergence, log_likelihood)
    q = family.attributes(np.array([6.0]), family.features(X).sum(axis=0)[None])
    np.testing.assert_allclose(q["means_"][0], [m for m, _, _ in posteriors])
    np.testing.assert_allclose(q["covariances_"], [beta / (nu - 2)])
    np.testing.assert_allclose(q["precisions_cholesky_"], [((nu - 2) / beta) ** 0.5])


def test_bernoulli():
    rng = np.random.default_rng(2)
    X = np.array([[1, 0], [1, 1], [np.nan, 0], [0, 0.0]])
    family = Bernoulli([0.5, 2], [1.5, 3]).resolve(X, None, columns(None, None))
    divergence, log_likelihood = 0.0, 0.0
    ab = [([2.5, 2.5], [0.5, 1.5]), ([3, 6], [2, 3])]
    for d, (a, a0) in enumerate(ab):
        divergence += divergence_dirichlet(np.array(a), np.array(a0))
        p = rng.beta(*a, size=(DRAWS, 1))
        x = X[:, d]
        logs = np.where(x == 1, np.log(p), np.log1p(-p))
        log_likelihood = log_likelihood + np.where(np.isnan(x), 0, logs)
    check(family, X, divergence, log_likelihood)
    q = family.attributes(np.array([4.0]), family.features(X).sum(axis=0)[None])
    np.testing.assert_allclose(q["probabilities_"], [[2.5 / 5, 3 / 9]])


def test_categorical():
    rng = np.random.default_rng(3)
    X = np.array([[2, 0], [2, 1], [np.nan, 0], [0, 0.0]])
    family = Categorical([0.5, [1, 2]]).resolve(X, None, columns(3, 2))
    divergence, log_likelihood = 0.0, 0.0
    posteriors = [np.array([1.5, 0.5, 2.5]), np.array([4.0, 3])]
    for d, (a, a0) in enumerate(zip(posteriors, ([0.5] * 3, [1, 2]), strict=True)):
        divergence += divergence_dirichlet(a, np.array(a0))
        p = rng.dirichlet(a, size=DRAWS)
        x = X[:, d]
        logs = np.log(p[:, np.nan_to_num(x).astype(int)])
        log_likelihood = log_likelihood + np.where(np.isnan(x), 0, logs)
    check(family, X, divergence, log_likelihood)
    q = family.attributes(np.array([4.0]), family.features(X).sum(axis=0)[None])
    assert isinstance(q["probabilities_"], tuple)
    for ours, a in zip(q["probabilities_"], posteriors, strict=True):
        np.testing.assert_allclose(ours, [a / a.sum()])


def test_poisson():
    rng = np.random.default_rng(4)
    X = np.array([[1, 30], [0, 21], [np.nan, 25], [2, 40.0]])
    family = Poisson([0.5, 2], [1.5, 0.1]).resolve(X, None, columns(None, None))
    divergence, log_likelihood = 0.0, 0.0
    rates = [(3.5, 4.5, 0.5, 1.5), (118, 4.1, 2, 0.1)]
    for d, (a, b, a0, b0) in enumerate(rates):
        divergence += divergence_gamma(a, b, a0, b0)
        x = X[:, d]
        logs = st.poisson.logpmf(x, rng.gamma(a, 1 / b, size=(DRAWS, 1)))
        log_likelihood = log_likelihood + np.where(np.isnan(x), 0, logs)
    check(family, X, divergence, log_likelihood)
    q = family.attributes(np.array([4.0]), family.features(X).sum(axis=0)[None])
    np.testing.assert_allclose(q["rates_"], [[3.5 / 4.5, 118 / 4.1]])


def test_multinomial():
    rng = np.random.default_rng(5)
    X = np.array([[1, 3, 0], [0, 21, 4], [0, 0, 0], [2, 4, 0.0]])
    a0 = np.array([0.5, 2, 1])
    family = Multinomial(a0).resolve(X, None, columns(None, None, None))
    a = a0 + X.sum(axis=0)
    p = rng.dirichlet(a, size=(DRAWS, 1))
    log_likelihood = st.multinomial.logpmf(X, X.sum(axis=1).astype(int), p)
    check(family, X, divergence_dirichlet(a, a0), log_likelihood)
    q = family.attributes(np.array([4.0]), family.features(X).sum(axis=0)[None])
    np.testing.assert_allclose(q["probabilities_"], [a / a.sum()])
