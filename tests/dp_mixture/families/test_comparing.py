"""Bounds that compare, against integrals over what is learned."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as st
from scipy.special import logsumexp

from kplus.dp_mixture.families.categorical import Categorical
from kplus.dp_mixture.families.comparing import averaged
from kplus.dp_mixture.families.diag_gaussian import DiagGaussian
from kplus.dp_mixture.families.factor_gaussian import FactorGaussian
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.gaussian import Gaussian
from kplus.dp_mixture.families.learning import worth
from kplus.dp_mixture.families.mixed import Mixed
from kplus.dp_mixture.families.student_t import StudentT


def columns(D):
    return Columns(tuple(f"column {j}" for j in range(D)), (None,) * D)


def groups(D, K=6, n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(K), n)
    turns = rng.normal(size=(K, D, D)) + 2.0 * np.eye(D)
    means = rng.normal(0.0, 6.0, size=(K, D))
    X = means[y] + np.einsum("nd,nde->ne", rng.normal(size=(len(y), D)), turns[y])
    return X, y


def summed(likelihood, gathered, D):
    """A family whose prior suits the components, with these."""
    X, y = groups(D)
    family = likelihood.resolve(X, None, columns(D))
    R = np.eye(y.max() + 1)[y]
    N, S = R.sum(axis=0), family.sums(X, gathered(R))
    for _ in range(30):
        family = family.learned(N, S)
    return family, N, S


def average(families, N, S):
    logs = [family.evidence(N, S).sum() for family in families]
    return logsumexp(logs) - np.log(len(logs))


@pytest.mark.parametrize("D", [1, 2, 3])
def test_a_matrix_is_averaged_over_its_wishart_density(gathered, D):
    kept = {"mean_strength": 0.05, "mean": np.zeros(D), "dof": D + 4.0}
    family, N, S = summed(Gaussian(**kept), gathered, D)
    assert family.learns == ("covariance",)
    prior = st.wishart(D + 2.0, np.diag(family.guess * np.ones(D)) / (D + 2.0))
    near = st.wishart(40, family.scatter / family.dof / 40)  # where the average lies
    draws = near.rvs(2_000, random_state=1).reshape(-1, D, D)
    logs = [
        replace(family, scatter=family.dof * V).evidence(N, S).sum()
        + prior.logpdf(V)
        - near.logpdf(V)
        for V in draws
    ]
    exact = logsumexp(logs) - np.log(len(logs))
    found = worth(family, N, S) + averaged(family, N, S)
    assert found == pytest.approx(exact, abs=0.1 * (1 + D * (D + 1) // 2))


def test_columns_are_averaged_over_gamma_densities(gathered):
    kept = {"mean_strength": 0.05, "mean": np.zeros(2), "dof": 6.0}
    family, N, S = summed(DiagGaussian(**kept), gathered, 2)
    assert family.learns == ("variance",)
    rng = np.random.default_rng(1)
    draws = family.guess * rng.chisquare(3.0, size=(4_000, 2)) / 3.0
    exact = average((replace(family, scatter=6.0 * v) for v in draws), N, S)
    found = worth(family, N, S) + averaged(family, N, S)
    assert found == pytest.approx(exact, abs=0.25)


@pytest.mark.parametrize("likelihood", [Gaussian, DiagGaussian])
def test_degrees_of_freedom_are_averaged(gathered, likelihood):
    """Roughly: what components say of them is counted, not worked out, and the least
    may be the best."""
    D = 2
    given = {"covariance": 4.0 * np.eye(D)} if likelihood is Gaussian else {}
    given = given or {"expected_variance": 4.0}
    kept = {"mean_strength": 0.05, "mean": np.zeros(D), **given}
    family, N, S = summed(likelihood(**kept), gathered, D)
    assert family.learns == ("dof",)
    full = likelihood is Gaussian
    least, less = (D + 2.0, D + 1.0) if full else (family._least_dof, 2.0)
    shape = 1 if full else D
    u = np.random.default_rng(0).random((4_000, shape))
    dofs = least / u  # of density least/ν²
    scale = family.scatter / (family.dof - less)
    logs = [
        replace(
            family,
            dof=float(dof[0]) if full else dof,
            scatter=scale * (dof - less),
        )
        for dof in dofs
    ]
    exact = average(logs, N, S)
    found = worth(family, N, S) + averaged(family, N, S)
    assert found == pytest.approx(exact, abs=1.2 * shape)


def test_tails_are_averaged_over_their_gamma_density(gathered):
    """Their scales as they are, which gives the average a little less room."""
    X, _ = groups(2, K=1, n=80)
    X /= np.sqrt(np.random.default_rng(3).chisquare(4, size=(80, 1)) / 4)
    family = StudentT(learn=False).resolve(X, None, columns(2))
    N, members = np.full(1, 80.0), gathered(np.ones((80, 1)))
    S = family.sums(X, members)
    for _ in range(60):
        S = family.sums(X, members, family.expect(N, S))
    logs = []
    for tau in st.gamma(2, scale=10).rvs(400, random_state=2):
        one = StudentT(learn=False, tail_dof=tau).resolve(X, None, columns(2))
        T = one.sums(X, members)
        for _ in range(20):
            T = one.sums(X, members, one.expect(N, T))
        logs.append(one.evidence(N, T)[0])
    exact = logsumexp(logs) - np.log(len(logs))
    found = worth(family, N, S) + averaged(family, N, S)
    assert exact - 1.0 < found < exact + 0.1


def test_nothing_learned_is_nothing_to_average(gathered):
    for likelihood in (Gaussian(learn=False), DiagGaussian(learn=False)):
        family, N, S = summed(likelihood, gathered, 2)
        assert averaged(family, N, S) == 0.0
    X, y = groups(2)
    family = StudentT(learn=False, tail_dof=4).resolve(X, None, columns(2))
    S = family.sums(X, gathered(np.eye(6)[y]))
    assert averaged(family, np.full(6, 30.0), S) == 0.0


def test_parts_add_up(gathered):
    X, y = groups(3)
    R = np.eye(6)[y]
    N = R.sum(axis=0)
    table = np.column_stack([X, y % 2])
    named = Columns(("a", "b", "c", "d"), (None, None, None, 2))
    whole = Mixed(Gaussian(), Categorical()).resolve(table, None, named)
    own = whole.parts[0]
    S = whole.sums(table, gathered(R))
    alone = averaged(own, N, own.sums(X, gathered(R)))
    assert averaged(whole, N, S) == pytest.approx(alone)
    factors = FactorGaussian(n_factors=2).resolve(X, None, columns(3))
    S = factors.sums(X, gathered(R))
    assert averaged(factors, N, S) == averaged(factors.inner, N, S)
