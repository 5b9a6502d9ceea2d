"""The steps by which normal-Wishart priors are learned, against the whole evidence."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import multigammaln

import mixture_reference as mixture
from kplus.dp_mixture.families import wishart_learning
from kplus.dp_mixture.families.wishart_learning import RowSums, log_gammas
from prior_reference import worth


@pytest.mark.parametrize("D", range(1, 7))
def test_gamma_functions_of_matrices(D):
    dof = D + np.array([0.3, 1.0, 40.5])
    expected = [multigammaln(0.5 * each, D) for each in dof]
    constant = 0.25 * D * (D - 1) * np.log(np.pi)
    np.testing.assert_allclose(log_gammas(dof, D) + constant, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "zero_mean_gaussian"])
def test_the_value_of_a_prior_is_its_worth(name, monkeypatch):
    """Up to a constant, along all steps and the last, of the degrees of freedom."""
    case = mixture.CASES[name]
    X = case.rows(120)
    family = case.model(X).family
    N, S = mixture.statistics(family, X, mixture.some_shares(120, 4))[:2]
    values, real = [], wishart_learning._Learner

    class Noted(real):
        def judged(self, prior):
            at = super().judged(prior)
            values.append((prior, at.value))
            return at

        def with_best_dof(self, at):
            values.append(super().with_best_dof(at))
            return values[-1]

    monkeypatch.setattr(wishart_learning, "_Learner", Noted)
    family.learned(N, S)
    known = []
    for prior, _ in values:
        V = prior.root @ prior.root.T
        changes = {"dof": prior.dof, "scatter": prior.dof * V}
        if name == "gaussian":
            changes |= {"mean": prior.mean, "mean_strength": prior.strength}
        known.append(worth(replace(family, **changes), N, S))
    found = np.array([value for _, value in values])
    assert len(found) > 3
    np.testing.assert_allclose(found - found[0], np.array(known) - known[0], atol=1e-7)


def test_no_variance_falls_below_the_floor():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(50, 3)) * [1.0, 1.0, 0.0]
    means = flat.mean(axis=0)[None]
    n, scatter = np.array([50.0]), ((flat - means).T @ (flat - means))[None]
    sums = RowSums(n, n, means, scatter)
    settings = wishart_learning.WishartSettings(("covariance",), np.ones(3), 0.01)
    scatter = np.diag([1.0, 1.0, 1e-7])
    for _ in range(30):
        found = wishart_learning.learn_wishart(
            sums, settings, means[0], 0.01, 5.0, scatter
        )
        if found is None:
            break
        scatter = found["scatter"]
    assert np.linalg.eigvalsh(scatter / 5.0)[0] >= 1e-8 * (1.0 - 1e-6)
