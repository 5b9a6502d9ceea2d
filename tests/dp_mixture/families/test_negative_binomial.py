"""Negative binomials against numerical integration, and on counts of every kind."""

import numpy as np
import pytest
from scipy import stats as st
from scipy.special import expit, gammaln, log_expit

from kplus.dp_mixture.families.family import Columns
from kplus.observations import NegativeBinomial, Poisson

ONE = Columns(("column 0",), (None,))
ROWS = np.array([[3.0], [0], [14], [np.nan], [2]])


def resolved(likelihood, X=ROWS):
    family = likelihood.resolve(X, None, ONE)
    return family, np.array([float(len(X))]), family.features(X).sum(axis=0)[None]


def by_integration(family, X):
    """log p(X) for each r, and all of them, with p integrated out numerically.

    By the trapezoidal rule over the logit of p, where everything is smooth.
    """
    logit, x = np.linspace(-50, 50, 5001), X[~np.isnan(X), None]
    p, jacobian = expit(logit), log_expit(logit) + log_expit(-logit)
    logs = []
    for r in 1.0 / family.dispersions[0]:
        inside = jacobian + st.beta.logpdf(p, 1 + r * family.rows[0], family.counts[0])
        inside += r * len(x) * log_expit(logit) + x.sum() * log_expit(-logit)
        inside += (gammaln(x + r) - gammaln(r) - gammaln(x + 1)).sum()
        inside = inside[np.isfinite(inside)]  # p may round to 1
        logs.append(np.log(np.exp(inside).sum() * (logit[1] - logit[0])))
    return np.array(logs), np.log(np.mean(np.exp(logs)))


SETTINGS = {
    "default": NegativeBinomial(),
    "fixed": NegativeBinomial(0.7),
    "prior": NegativeBinomial(0.2, mean=9.0, mean_strength=2.0),
}


@pytest.fixture(params=SETTINGS)
def likelihood(request):
    return SETTINGS[request.param]


def test_evidence_is_an_integral(likelihood):
    family, N, S = resolved(likelihood)
    _, total = by_integration(family, ROWS)
    ours = family.evidence(N, S)[0] + family.log_base(ROWS).sum()
    assert ours == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("value", [0.0, 5.0, 40.0])
def test_predictive_is_a_ratio_of_integrals(likelihood, value):
    family, N, S = resolved(likelihood)
    more = np.vstack([ROWS, [[value]]])
    ratio = by_integration(family, more)[1] - by_integration(family, ROWS)[1]
    ours = family.log_predictive(N, S, np.array([[value]]))[0, 0]
    assert ours == pytest.approx(ratio, rel=1e-6)


def test_predictive_adds_up_to_one():
    family, N, S = resolved(NegativeBinomial(0.2, mean_strength=5.0))
    support = np.arange(20_000.0)[:, None]
    total = np.exp(family.log_predictive(N, S, support)).sum()
    assert total == pytest.approx(1.0, abs=1e-6)


def test_predictive_is_beta_negative_binomial():
    family, N, S = resolved(NegativeBinomial(0.5, mean=4.0, mean_strength=1.0))
    support = np.arange(60.0)
    # r = 2; four rows that hold 19 counts; the prior is Beta(1 + 2, 4).
    theirs = st.betanbinom.logpmf(support, 2, 3 + 4 * 2, 4 + 19)
    ours = family.log_predictive(N, S, support[:, None])[:, 0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_dispersions_are_averages_over_their_posterior():
    family, N, S = resolved(NegativeBinomial())
    logs, _ = by_integration(family, ROWS)
    q = np.exp(logs) / np.exp(logs).sum()
    found = family.attributes(N, S)
    assert found["dispersions_"][0, 0] == pytest.approx(q @ family.dispersions[0])
    mean = (family.counts[0] + 19) / (family.rows[0] + 4)
    assert found["means_"][0, 0] == pytest.approx(mean)


def test_a_small_dispersion_is_a_poisson():
    near, N, S = resolved(NegativeBinomial(1e-6))
    far, _, T = resolved(Poisson())
    X = np.arange(30.0)[:, None]
    np.testing.assert_allclose(
        near.log_predictive(N, S, X), far.log_predictive(N, T, X), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(
        near.dissimilarity(X, X[3], N, S), far.dissimilarity(X, X[3], N, T), rtol=1e-4
    )


@pytest.mark.parametrize(("mean", "dispersion"), [(3, 1.0), (40, 0.3), (1e5, 0.02)])
def test_dispersions_are_found(mean, dispersion):
    rng = np.random.default_rng(0)
    rates = rng.gamma(1.0 / dispersion, dispersion * mean, size=(5000, 1))
    family, N, S = resolved(NegativeBinomial(), rng.poisson(rates).astype(float))
    found = family.attributes(N, S)
    assert found["means_"][0, 0] == pytest.approx(mean, rel=0.1)
    assert found["dispersions_"][0, 0] == pytest.approx(dispersion, rel=0.6)


@pytest.mark.parametrize(
    "column",
    [
        np.zeros(30),
        np.full(30, 7.0),
        np.full(30, 1e15),
        np.arange(30) % 2 + 1000.0,  # much less spread than a Poisson's
        np.r_[np.zeros(29), 1e15],
        np.full(30, np.nan),
        np.array([0.0]),
    ],
    ids=["zeros", "constant", "huge", "even", "outlier", "missing", "one_row"],
)
def test_unusual_columns(column):
    X = column[:, None]
    family, N, S = resolved(NegativeBinomial(), X)
    expected = family.expect(N, S)
    for part in (
        family.evidence(N, S),
        expected.eta,
        family.scores(expected, X),
        family.dissimilarity(X, X[0], N, S),
        family.log_predictive(N, S, X),
        family.draw(N, S, np.array([50]), np.random.default_rng(0)),
        *family.attributes(N, S).values(),
    ):
        assert np.isfinite(part).all()
    family.check(family.draw(N, S, np.array([50]), np.random.default_rng(0)))


def test_a_column_that_varies_less_than_a_poisson_gets_the_least_dispersion():
    X = np.arange(300)[:, None] % 2 + 1000.0
    family, N, S = resolved(NegativeBinomial(), X)
    found = family.attributes(N, S)["dispersions_"][0, 0]
    assert found == pytest.approx(family.dispersions.min(), rel=0.05)
    assert found * 1000.0 == pytest.approx(0.05, rel=0.1)  # of a Poisson's variance
