"""Data drawn from a model with a known prior: what is learned comes back to it.

Errors are those of a sample of components, with the parameters of each nearly known.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as st
from scipy.special import polygamma

from kplus.dp_mixture.families.family import Columns
from kplus.observations import (
    Bernoulli,
    Categorical,
    DiagGaussian,
    Gaussian,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    ZeroMeanGaussian,
)
from prior_reference import Free, converged, worth

K, ROWS = 60, 80
SEEDS = range(3)


def learned(likelihood, groups, levels=None):
    """The family learned from groups of rows, and their sums."""
    X = np.concatenate(groups)
    D = X.shape[1]
    columns = Columns(tuple(f"column {j}" for j in range(D)), levels or (None,) * D)
    family = likelihood.resolve(X, None, columns)
    N = np.array([float(len(rows)) for rows in groups])
    S = np.array([family.features(rows).sum(axis=0) for rows in groups])
    return converged(family, N, S, 300), N, S


def check(found, truth, errors, slack=0.0):
    """Within four standard errors, and what a hyperprior may pull by."""
    np.testing.assert_array_less(np.abs(found - truth), 4.0 * errors + slack)


def check_worth(family, truth, N, S, n_free):
    """Learning beats the truth, but by no more than a likelihood ratio may."""
    gain = worth(family, N, S) - worth(truth, N, S)
    assert -0.05 < gain < 0.5 * st.chi2(n_free).ppf(0.9999) + 1.0


# ------------------------------------------------------------------------ Gaussian

V = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, -0.3], [0.0, -0.3, 0.5]])
MEAN, STRENGTH, DOF = np.array([3.0, -20.0, 0.5]), 0.2, 12.0


def drawn_gaussians(rng, dof=DOF, centred=False):
    """Λ ~ Wishart(ν0, (ν0 V)⁻¹), μ ~ Normal(m0, (κ0 Λ)⁻¹); groups of rows."""
    groups = []
    for precision in st.wishart(dof, np.linalg.inv(dof * V)).rvs(K, random_state=rng):
        covariance = np.linalg.inv(precision)
        mean = rng.multivariate_normal(MEAN, covariance / STRENGTH)
        mean = np.zeros(3) if centred else mean
        groups.append(rng.multivariate_normal(mean, covariance, ROWS))
    return groups


def check_wishart(family):
    """V and ν0, from K precisions that are known up to ROWS rows."""
    found = family.scatter / family.dof / np.outer(family.inv, family.inv)
    root = np.linalg.inv(np.linalg.cholesky(V))
    values = np.linalg.eigvalsh(root @ found @ root.T)
    rows = 1.0 / (1.0 / DOF + 1.0 / ROWS)  # degrees of freedom that a group is worth
    check(np.log(values), 0.0, np.sqrt(2.0 / (K * rows)) * np.ones(3), slack=0.2)
    assert 0.6 * DOF < family.dof < 1.7 * DOF


@pytest.mark.parametrize("seed", SEEDS)
def test_gaussian(seed):
    family, N, S = learned(Gaussian(), drawn_gaussians(np.random.default_rng(seed)))
    check_wishart(family)
    error = np.sqrt(2.0 / (3 * K))
    check(np.log(family.mean_strength), np.log(STRENGTH), error, slack=0.1)
    found = family.scaling.inverse_transform(family.mean)
    check(found, MEAN, np.sqrt(np.diag(V) / STRENGTH / K), slack=0.1)
    scale = np.outer(family.inv, family.inv)
    mean = family.scaling.transform(MEAN[None])[0]
    truth = replace(
        family, scatter=DOF * V * scale, dof=DOF, mean=mean, mean_strength=STRENGTH
    )
    check_worth(family, truth, N, S, 6 + 1 + 3 + 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_zero_mean_gaussian(seed):
    groups = drawn_gaussians(np.random.default_rng(seed), centred=True)
    family, N, S = learned(ZeroMeanGaussian(), groups)
    check_wishart(family)
    scale = np.outer(family.inv, family.inv)
    check_worth(family, replace(family, scatter=DOF * V * scale, dof=DOF), N, S, 7)


# ----------------------------------------------------------------- normal-gamma

VARIANCES = np.array([0.3, 2.0, 50.0])
DOFS, STRENGTHS = np.array([8.0, 15.0, 25.0]), np.array([0.05, 0.2, 0.6])


@pytest.mark.parametrize("seed", SEEDS)
def test_diag_gaussian(seed):
    """Columns differ in all that a prior has."""
    rng = np.random.default_rng(seed)
    precisions = rng.gamma(0.5 * DOFS, 2.0 / (DOFS * VARIANCES), size=(K, 3))
    means = rng.normal(MEAN, 1.0 / np.sqrt(STRENGTHS * precisions))
    groups = rng.normal(
        means[:, None], 1.0 / np.sqrt(precisions)[:, None], (K, ROWS, 3)
    )
    family, N, S = learned(DiagGaussian(), list(groups))
    rows = 1.0 / (1.0 / DOFS + 1.0 / ROWS)
    found = family.scatter / family.dof / family.inv**2
    check(np.log(found / VARIANCES), 0.0, np.sqrt(2.0 / (K * rows)), slack=0.05)
    assert np.all((family.dof > 0.4 * DOFS) & (family.dof < 2.5 * DOFS))
    error = np.sqrt(2.0 / K)
    # The hyperprior counts as one component at a squared distance of 100.
    expected = STRENGTHS / (1.0 + 100.0 * STRENGTHS / K)
    check(np.log(family.mean_strength / expected), 0.0, error * np.ones(3), slack=0.05)
    found = family.scaling.inverse_transform(family.mean)
    check(found, MEAN, np.sqrt(VARIANCES / STRENGTHS / K), slack=0.1)
    truth = replace(
        family, dof=DOFS, scatter=DOFS * VARIANCES * family.inv**2,
        mean_strength=STRENGTHS, mean=family.scaling.transform(MEAN[None])[0],
    )  # fmt: skip
    check_worth(family, truth, N, S, 12)


@pytest.mark.parametrize("seed", SEEDS)
def test_spherical_gaussian(seed):
    rng = np.random.default_rng(seed)
    variance = 2.0
    precisions = rng.gamma(0.5 * DOF, 2.0 / (DOF * variance), size=(K, 1))
    means = rng.normal(MEAN, 1.0 / np.sqrt(STRENGTH * precisions), size=(K, 3))
    groups = rng.normal(
        means[:, None], 1.0 / np.sqrt(precisions)[:, None], (K, ROWS, 3)
    )
    family, N, S = learned(SphericalGaussian(), list(groups))
    rows = 1.0 / (1.0 / DOF + 1.0 / (3 * ROWS))
    found = np.log(family.scatter / family.dof / family.inv[0] ** 2 / variance)
    check(found, 0.0, np.sqrt(2.0 / (K * rows)), slack=0.05)
    assert 0.4 * DOF < family.dof[0] < 2.5 * DOF
    error = np.sqrt(2.0 / (3 * K))
    check(np.log(family.mean_strength / STRENGTH), 0.0, error, slack=0.05)
    truth = replace(
        family, dof=DOF, scatter=DOF * variance * family.inv[0] ** 2,
        mean_strength=STRENGTH, mean=family.scaling.transform(MEAN[None])[0],
    )  # fmt: skip
    check_worth(family, truth, N, S, 6)


# ------------------------------------------------------------------------- discrete

PSEUDO = np.array([0.5, 3.0, 1.0, 6.0])


def dirichlet_errors(pseudo, n_groups):
    """Of log pseudo-counts, from the information of that many known proportions."""
    information = np.diag(polygamma(1, pseudo)) - polygamma(1, pseudo.sum())
    information *= np.outer(pseudo, pseudo) * n_groups
    return np.sqrt(np.diag(np.linalg.inv(information)))


@pytest.mark.parametrize("seed", SEEDS)
def test_multinomial(seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(PSEUDO, K)
    groups = [rng.multinomial(20, p, ROWS).astype(float) for p in shares]
    family, N, S = learned(Multinomial(), groups)
    found = np.log(family.pseudo_counts / PSEUDO)
    check(found, 0.0, dirichlet_errors(PSEUDO, K), slack=0.1)
    check_worth(family, replace(family, pseudo_counts=PSEUDO), N, S, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_categorical(seed):
    rng = np.random.default_rng(seed)
    groups = []
    for _ in range(K):
        columns = [rng.choice(4, ROWS, p=rng.dirichlet(PSEUDO)) for _ in range(2)]
        groups.append(np.stack(columns, axis=1).astype(float))
    family, N, S = learned(Categorical(), groups, (4, 4))
    found = np.log(family.pseudo_counts / np.tile(PSEUDO, 2))
    # categories of a few rows in a group say less than known proportions
    check(found, 0.0, np.tile(dirichlet_errors(PSEUDO, K), 2), slack=0.15)
    check_worth(family, replace(family, pseudo_counts=np.tile(PSEUDO, 2)), N, S, 8)


@pytest.mark.parametrize("seed", SEEDS)
def test_bernoulli(seed):
    rng = np.random.default_rng(seed)
    ones, zeros = np.array([0.5, 4.0, 2.0]), np.array([2.0, 4.0, 0.6])
    chances = rng.beta(ones, zeros, size=(K, 3))
    groups = [(rng.random((ROWS, 3)) < p).astype(float) for p in chances]
    family, N, S = learned(Bernoulli(), groups)
    for d in range(3):
        found = np.log([family.ones[d] / ones[d], family.zeros[d] / zeros[d]])
        errors = dirichlet_errors(np.array([ones[d], zeros[d]]), K)
        check(found, 0.0, errors, slack=0.15)
    check_worth(family, replace(family, ones=ones, zeros=zeros), N, S, 6)


SHAPE, RATE = np.array([0.6, 2.0, 8.0]), np.array([2.0, 0.5, 0.1])


@pytest.mark.parametrize("seed", SEEDS)
def test_poisson(seed):
    rng = np.random.default_rng(seed)
    rates = rng.gamma(SHAPE, 1.0 / RATE, size=(K, 3))
    family, N, S = learned(Poisson(), [rng.poisson(r, (ROWS, 3)) * 1.0 for r in rates])
    information = SHAPE * (SHAPE * polygamma(1, SHAPE) - 1.0) * K
    # a log-normal hyperprior of variance 1 counts for as much as 1 of information
    pull = np.abs(np.log(SHAPE / family.guess[0])) / (1.0 + information) + 0.1
    found = np.log(family.shape / SHAPE)
    check(found, 0.0, 1.0 / np.sqrt(information), slack=pull)
    mean = family.shape / family.rate
    check(mean, SHAPE / RATE, np.sqrt(SHAPE / RATE**2 / K), slack=0.05 * mean)
    check_worth(family, replace(family, shape=SHAPE, rate=RATE), N, S, 6)


@pytest.mark.parametrize("seed", SEEDS)
def test_negative_binomial(seed):
    """Given the dispersion: p ~ Beta(1 + r rows, counts)."""
    rng = np.random.default_rng(seed)
    dispersion, rows, counts = 0.5, np.array([1.0, 0.5, 2.0]), np.array([2.0, 4.0, 3.0])
    r = 1.0 / dispersion
    chances = rng.beta(1.0 + r * rows, counts, size=(K, 3))
    groups = [rng.negative_binomial(r, p, (ROWS, 3)) * 1.0 for p in chances]
    family, N, S = learned(NegativeBinomial(dispersion=dispersion), groups)
    truth = replace(family, rows=rows, counts=counts)
    check_worth(family, truth, N, S, 6)
    found = Free(family).pack() - Free(truth).pack()
    check(found, 0.0, np.full(6, 0.2), slack=0.2)
