"""Priors as they are told: in the units of the data, by column."""

import numpy as np
import pandas as pd
import pytest

from kplus import DPMixture
from kplus.dp_mixture.families.priors import prior_of
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

SIGMA = np.array([[4.0, 90.0, 0.0], [90.0, 2500.0, 0.5], [0.0, 0.5, 0.01]])


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([50.0, -3000.0, 0.1], SIGMA, 300)
    return pd.DataFrame(X, columns=["age", "debt", "rate"])


@pytest.fixture(scope="module")
def counts():
    X = np.random.default_rng(0).poisson([2.0, 30.0], (200, 2))
    return pd.DataFrame(X, columns=["few", "many"])


def told(observations, table):
    return prior_of(DPMixture(observations, random_state=0).fit(table))


def test_a_given_prior_is_told_as_it_was_given(numbers):
    mean, dof = [40.0, -2000.0, 0.0], 14.0
    given = Gaussian(covariance=SIGMA, mean=mean, mean_strength=0.2, dof=dof)
    prior = told(given, numbers)
    assert "learned" not in prior
    assert prior["degrees of freedom"] == dof
    assert prior["mean strength"] == 0.2
    assert list(prior["mean"]) == ["age", "debt", "rate"]
    np.testing.assert_allclose(list(prior["mean"].values()), mean, atol=1e-9)
    # B0 = (ν0 - D - 1) E[Σ], and what is told is √(B0/ν0).
    deviations = np.sqrt(np.diag(SIGMA) * (dof - 4.0) / dof)
    np.testing.assert_allclose(list(prior["standard deviation"].values()), deviations)
    pairs = prior["highest correlations"]
    assert list(pairs) == ["age and debt", "debt and rate", "age and rate"]
    np.testing.assert_allclose(list(pairs.values()), [0.9, 0.1, 0.0], atol=1e-12)


def test_columns_of_their_own_and_shared_variances(numbers):
    given = DiagGaussian(
        expected_variance=[4.0, 100.0, 0.01], dof=6.0, mean=0.0, mean_strength=0.5
    )
    prior = told(given, numbers)
    expected = np.sqrt(np.array([4.0, 100.0, 0.01]) * 4.0 / 6.0)
    np.testing.assert_allclose(list(prior["standard deviation"].values()), expected)
    assert prior["degrees of freedom"] == 6.0
    prior = told(SphericalGaussian(expected_variance=9.0, dof=5.0), numbers)
    widths = list(prior["standard deviation"].values())
    np.testing.assert_allclose(widths, np.sqrt(9.0 * 3.0 / 5.0))
    prior = told(ZeroMeanGaussian(), numbers)
    assert "mean" not in prior
    assert prior["learned"] == "covariance, degrees of freedom"


def test_learned_settings_are_named(numbers):
    prior = told("gaussian", numbers)
    assert prior["learned"] == "covariance, degrees of freedom, mean, mean strength"
    prior = told(DiagGaussian(dof=7.0), numbers)
    assert prior["learned"] == "variance, mean, mean strength"
    assert prior["degrees of freedom"] == 7.0
    assert set(prior["mean strength"]) == {"age", "debt", "rate"}


def test_counts_and_categories(counts):
    assert told(Poisson(shape=[1.0, 2.0], rate=0.5), counts) == {
        "shape": {"few": 1.0, "many": 2.0},
        "rate": {"few": 0.5, "many": 0.5},
    }
    prior = told(NegativeBinomial(mean=[2.0, 30.0], mean_strength=0.5), counts)
    assert prior["mean"] == pytest.approx({"few": 2.0, "many": 30.0})
    assert prior["mean strength"] == {"few": 0.5, "many": 0.5}
    prior = told(Multinomial(pseudo_counts=[1.0, 3.0]), counts)
    assert prior == {"pseudo-counts": {"few": 1.0, "many": 3.0}}
    prior = told(Bernoulli(ones=1, zeros=2), counts > [1, 30])
    assert prior["zeros"] == {"few": 2.0, "many": 2.0}
    codes = (counts % 3).astype("category")
    prior = told(Categorical(pseudo_counts=2), codes)
    levels = {name: 2.0 * codes[name].nunique() for name in codes}
    assert prior == {"pseudo-counts in all": levels}
    assert told("poisson", counts)["learned"] == "shape, rate"


def test_groups_of_columns(numbers, counts):
    table = numbers.iloc[:200].join(counts)
    table["kind"] = pd.Categorical(np.where(table["few"] > 1, "a", "b"))
    observations = Mixed(numbers=DiagGaussian(learn=False), counts=["few", "many"])
    prior = told(observations, table)
    assert prior["learned"] == "pseudo-counts in all, shape, rate"
    assert list(prior["mean"]) == ["age", "debt", "rate"]
    assert list(prior["pseudo-counts in all"]) == ["kind"]
    assert list(prior["shape"]) == ["few", "many"]
    both = Mixed(count_family=NegativeBinomial(), counts=["few", "many"])
    prior = told(both, table)
    assert list(prior["mean"]) == ["age", "debt", "rate"]
    assert list(prior["mean, count"]) == ["few", "many"]


def test_columns_without_names():
    prior = told("gaussian", np.random.default_rng(0).normal(size=(50, 2)))
    assert list(prior["mean"]) == ["column 0", "column 1"]
