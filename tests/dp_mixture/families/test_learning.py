"""Priors that are learned: ascent, optima, what stays, and that nothing runs away."""

from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.stats as st

import mixture_reference as mixture
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.learning import (
    best_step,
    log_strength,
    strength_slope,
)
from kplus.observations import (
    Bernoulli,
    Categorical,
    DiagGaussian,
    FactorGaussian,
    Gaussian,
    Mixed,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    ZeroMeanGaussian,
)
from prior_reference import (
    Free,
    best_found,
    converged,
    is_wishart,
    least_dof,
    parts_of,
    worth,
)

LEARNED = [
    name for name in mixture.CASES if not name.endswith(("-set", "-fixed", "-learned"))
]


def some_sums(name, seed=0, K=6, n=150, sharp=True):
    """A family and the sums of components, one of which is empty."""
    case = mixture.CASES[name]
    X = case.rows(n, seed)
    model = case.model(X)
    rng = np.random.default_rng(seed)
    R = rng.dirichlet(np.full(K, 0.05 if sharp else 1.0), size=n)
    R[:, -1] = 0.0
    return model.family, *mixture.statistics(model.family, X, R)[:2]


# -------------------------------------------------------------------------- ascent


@pytest.mark.parametrize("name", mixture.CASES)
@pytest.mark.parametrize("seed", range(4))
def test_learning_never_lowers_the_bound(name, seed):
    family, N, S = some_sums(name, seed, K=2 + 2 * seed, sharp=seed % 2 == 0)
    values = [worth(family, N, S)]
    for _ in range(40):
        family = family.learned(N, S)
        values.append(worth(family, N, S))
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(values) >= -1e-12 * np.abs(values[1:]))
    if name in LEARNED:
        assert values[-1] > values[0]
        assert values[-1] - values[-2] < 0.01 * (values[-1] - values[0]) + 1e-6


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize("seed", range(2))
def test_learning_ends_where_an_optimiser_finds_nothing_better(name, seed):
    family, N, S = some_sums(name, seed)
    for part, own in parts_of(converged(family, N, S), S):
        assert best_found(part, N, own) < worth(part, N, own) + 0.02


@pytest.mark.parametrize("name", LEARNED)
def test_no_parameter_alone_is_better_elsewhere(name):
    family, N, S = some_sums(name, 1)
    for part, own in parts_of(converged(family, N, S), S):
        free, best = Free(part), worth(part, N, own)
        x = free.pack()
        for j in range(len(x)):
            for step in (-1.0, -0.2, 0.2, 1.0):
                other = x.copy()
                other[j] += step
                assert worth(free.unpack(other), N, own) < best + 0.02


def test_the_free_parameters_of_these_tests_lead_back():
    for name in LEARNED:
        family, N, S = some_sums(name)
        for part, own in parts_of(converged(family, N, S, 3), S):
            again = Free(part).unpack(Free(part).pack())
            assert worth(again, N, own) == pytest.approx(worth(part, N, own), rel=1e-9)


@pytest.mark.parametrize("name", LEARNED)
def test_learning_stops(name):
    """Repeated calls end with the very same object, so that a fit can converge."""
    family, N, S = some_sums(name)
    for _ in range(2000):
        new = family.learned(N, S)
        if new is family:
            return
        family = new
    pytest.fail("2000 steps and no end")


@pytest.mark.parametrize("name", LEARNED)
def test_what_is_learned_does_not_depend_on_empty_components(name):
    family, N, S = some_sums(name)
    one = converged(family, N, S, 5)
    other = converged(family, N[:-1], S[:-1], 5)
    assert worth(one, N, S) == pytest.approx(worth(other, N, S), rel=1e-12)
    none = np.zeros(3), np.zeros((3, family.n_stats))
    assert worth(family.learned(*none), *none) == pytest.approx(
        max(worth(family, *none), worth(family.learned(*none), *none))
    )


def alike(apart, K=5, D=400, total=20_000):
    """Sums of components that share a profile, but for a factor in some columns."""
    rng = np.random.default_rng(3)
    usual = rng.lognormal(0.0, 1.0, D)
    kinds = usual * np.where(rng.random((K, D)) < 0.05, apart, 1.0)
    kinds /= kinds.sum(axis=1, keepdims=True)
    S = rng.poisson(total * kinds).astype(float)
    return resolved(Multinomial(), rng.poisson(40 * kinds).astype(float)), S


@pytest.mark.parametrize(("apart", "least", "most"), [(1, 1e5, 1e9), (50, 1, 1e4)])
def test_components_that_are_alike_have_a_strong_prior(apart, least, most):
    family, S = alike(apart)
    end = converged(family, np.full(5, 500.0), S)
    assert least < end.pseudo_counts.sum() < most
    share = end.pseudo_counts / end.pseudo_counts.sum()
    pooled = (S / S.sum(axis=1, keepdims=True)).mean(axis=0)
    if apart == 1:
        np.testing.assert_allclose(share, pooled, rtol=0.1, atol=2e-4)


def test_a_shared_strength_is_half_a_t_of_its_root():
    """The density of log c where 1 / √c is half a t with 2 degrees of freedom."""
    for ratio in (0.01, 1.0, 300.0):
        scale = ratio**-0.5
        density = np.log(scale) + st.t.logpdf(scale, 2)
        usual = st.t.logpdf(1.0, 2) - log_strength(1.0)
        assert log_strength(ratio) == pytest.approx(density - usual)
        step = 1e-5 * ratio
        rise = log_strength(ratio + step) - log_strength(ratio - step)
        assert strength_slope(ratio) == pytest.approx(rise / 2e-5, abs=1e-6)


def test_a_step_uphill_is_never_a_step_down():
    for top in (-30.0, -1.0, 0.1, 2.0, 30.0):
        step = best_step(lambda x, top=top: -((x - top) ** 2), 2.0 * top)
        assert -((step - top) ** 2) > -(top**2) or step == 0.0
        if abs(top) < 4.0:
            assert step == pytest.approx(top)
    assert best_step(lambda x: -abs(x), 1.0) == 0.0


# ---------------------------------------------------------------- what is given


@pytest.mark.parametrize("name", [n for n in mixture.CASES if n.endswith("-set")])
def test_a_prior_that_is_all_given_stays(name):
    family, N, S = some_sums(name)
    assert family.learned(N, S) is family
    assert family.log_hyperprior == 0.0


FIXED = [
    (Gaussian(learn=False), "gaussian"),
    (ZeroMeanGaussian(learn=False), "zero_mean_gaussian"),
    (FactorGaussian(learn=False), "factor_gaussian"),
    (DiagGaussian(learn=False), "diag_gaussian"),
    (SphericalGaussian(learn=False), "spherical_gaussian"),
    (Bernoulli(learn=False), "bernoulli"),
    (Categorical(learn=False), "categorical"),
    (Poisson(learn=False), "poisson"),
    (NegativeBinomial(learn=False), "negative_binomial"),
    (Multinomial(learn=False), "multinomial"),
    (
        Mixed(
            DiagGaussian(learn=False), Categorical(learn=False), (2, 5),
            Poisson(learn=False),
        ),
        "mixed",
    ),
    (Bernoulli(ones=1), "bernoulli"),
    (Bernoulli(zeros=1), "bernoulli"),
    (Categorical(pseudo_counts=1), "categorical"),
    (Multinomial(pseudo_counts=1), "multinomial"),
    (Poisson(shape=1), "poisson"),
    (Poisson(rate=1), "poisson"),
    (NegativeBinomial(mean=2), "negative_binomial"),
    (NegativeBinomial(mean_strength=2), "negative_binomial"),
]  # fmt: skip


@pytest.mark.parametrize(("likelihood", "name"), FIXED)
def test_without_learning_the_prior_is_the_same_object(likelihood, name):
    case = replace(mixture.CASES[name], likelihood=likelihood)
    X = case.rows(60)
    family = case.model(X).family
    N, S, *_ = mixture.statistics(family, X, mixture.some_shares(60, 3))
    assert family.learned(N, S) is family
    assert family.log_hyperprior == 0.0


NEW = {"resolution", "learns", "guess"}  # fields that older model files have not


@pytest.mark.parametrize(("likelihood", "name"), FIXED)
def test_a_family_of_an_older_file_is_a_prior_that_stays(likelihood, name):
    case = replace(mixture.CASES[name], likelihood=likelihood)
    X = case.rows(60)
    family = case.model(X).family
    N, S, *_ = mixture.statistics(family, X, mixture.some_shares(60, 3))
    for part, own in parts_of(family, S):
        new = NEW | ({"mean"} if is_wishart(part) else set())
        old = {f.name: getattr(part, f.name) for f in fields(part) if f.name not in new}
        again = type(part)(**old)
        np.testing.assert_array_equal(again.evidence(N, own), part.evidence(N, own))
        assert again.log_hyperprior == 0.0
        assert again.learned(N, own) is again


SOME = [
    (Gaussian(covariance=0.5), {"covariance"}),
    (Gaussian(variance_share=0.1), {"covariance"}),
    (Gaussian(mean=[1.0, -18.0, 3.0]), {"mean"}),
    (Gaussian(mean_strength=0.1), {"mean_strength"}),
    (Gaussian(dof=9), {"dof"}),
    (Gaussian(dof=9, covariance=1.0), {"dof", "covariance"}),
    (ZeroMeanGaussian(covariance=0.5), {"covariance"}),
    (ZeroMeanGaussian(variance_share=0.5), {"covariance"}),
    (ZeroMeanGaussian(dof=9), {"dof"}),
    (DiagGaussian(mean=[1.0, -18.0, 3.0]), {"mean"}),
    (DiagGaussian(mean_strength=0.1), {"mean_strength"}),
    (DiagGaussian(dof=9), {"dof"}),
    (DiagGaussian(expected_variance=[0.5, 1.0, 2.0]), {"variance"}),
    (DiagGaussian(variance_share=0.2), {"variance"}),
    (SphericalGaussian(mean=-3.0), {"mean"}),
    (SphericalGaussian(mean_strength=0.1), {"mean_strength"}),
    (SphericalGaussian(dof=9), {"dof"}),
    (SphericalGaussian(expected_variance=0.5), {"variance"}),
    (SphericalGaussian(variance_share=0.2), {"variance"}),
]


@pytest.mark.parametrize(("likelihood", "given"), SOME)
def test_what_is_given_stays_and_the_rest_is_learned(likelihood, given):
    case = mixture.Case(likelihood, mixture.CASES["gaussian"].make, missing=False)
    X = case.rows(150)
    family = case.model(X).family
    N, S, *_ = mixture.statistics(family, X, mixture.some_shares(150, 6))
    end = converged(family, N, S, 30)
    assert end is not family
    assert not given & set(end.learns)
    for name in given & {"mean", "mean_strength", "dof"}:
        np.testing.assert_array_equal(getattr(end, name), getattr(family, name))
    if given & {"covariance", "variance"}:
        assert not np.any(family.resolution)
        less = end.n_columns + 1.0 if is_wishart(end) else 2.0
        before = family.scatter / (family.dof - less)
        np.testing.assert_allclose(end.scatter / (end.dof - less), before)
    for name in set(end.learns) - {"covariance", "variance"}:
        if name == "dof" and np.all(end.dof == least_dof(end)):
            continue
        assert np.any(getattr(end, name) != getattr(family, name))
    assert best_found(end, N, S) < worth(end, N, S) + 0.02


# --------------------------------------------------------------- nothing runs away

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(120, 3))
SPIKED = np.where(RNG.random((120, 3)) < 0.7, 0.0, NORMAL)
TABLES = {
    "constant": np.tile([3.0, 0.0, -1e6], (120, 1)),
    "one constant": np.column_stack([NORMAL[:, :2], np.full(120, 7.0)]),
    "bits": (NORMAL > 0.3).astype(float),
    "integers": np.round(3.0 * NORMAL),
    "equal columns": np.column_stack([NORMAL[:, 0]] * 3),
    "equal rows": np.repeat(NORMAL[:4], 30, axis=0),
    "spiked": SPIKED,
    "tiny": 1e-8 * NORMAL,
    "huge": 1e8 * NORMAL,
    "far": NORMAL + 1e8,
    "scales": NORMAL * [1e-8, 1.0, 1e8],
    "heavy tails": RNG.standard_cauchy((120, 3)),
    "one row": NORMAL[:1],
    "two rows": NORMAL[:2],
}
NUMBERS = [
    Gaussian(), ZeroMeanGaussian(), DiagGaussian(), SphericalGaussian(),
    FactorGaussian(2), Gaussian(dof=4), DiagGaussian(dof=2.5), Gaussian(covariance=1.0),
    DiagGaussian(expected_variance=1.0),
]  # fmt: skip


def resolved(likelihood, X, levels=None):
    names = tuple(f"column {j}" for j in range(X.shape[1]))
    levels = (None,) * X.shape[1] if levels is None else levels
    return likelihood.resolve(X, None, Columns(names, levels))


def check_numbers(family):
    """A prior of numbers is positive, and neither nothing nor without limit."""
    family = getattr(family, "inner", family)
    D = family.n_columns
    V = family.scatter / family.dof
    values = np.linalg.eigvalsh(V) if is_wishart(family) else np.ravel(V)
    if "covariance" in family.learns:
        ratio = V / np.sqrt(np.outer(family.guess, family.guess))
        values = np.linalg.eigvalsh(ratio)
    if "variance" in family.learns:
        values = np.ravel(V / family.guess)
    assert np.all(np.isfinite(values))
    assert np.all(values > 0.0)
    if {"covariance", "variance"} & set(family.learns):
        assert values.min() > 0.9e-8
        assert values.max() < 1e4
    assert np.all(np.ravel(family.dof) < 1e6)
    if hasattr(family, "mean"):
        assert np.all(np.isfinite(family.mean))
        assert np.all(np.abs(family.mean * np.ones(D)) < 1e3)
        strength = np.ravel(family.mean_strength)
        assert np.all(np.isfinite(strength))
        assert np.all((strength > 0.0) & (strength < 1e3))


@pytest.mark.parametrize("K", [1, 5])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("likelihood", NUMBERS, ids=repr)
def test_nothing_runs_away_on_unusual_columns(likelihood, table, K):
    X = TABLES[table]
    family = resolved(likelihood, X)
    place = np.argsort(np.argsort(X[:, 0], kind="stable"))
    R = np.eye(K + 1)[place * K // len(X)]  # slices; the last component is empty
    check_after_200(family, X, R)


@pytest.mark.parametrize("likelihood", [DiagGaussian(), SphericalGaussian()], ids=repr)
def test_nothing_runs_away_where_values_are_missing(likelihood):
    X = NORMAL.copy()
    X[::3, 0] = np.nan
    X[:40, 1] = np.nan
    X[:, 2] = np.nan
    check_after_200(resolved(likelihood, X), X, np.eye(3)[np.arange(120) // 40])


@pytest.mark.parametrize("likelihood", NUMBERS, ids=repr)
def test_nothing_runs_away_with_a_component_for_each_row(likelihood):
    X = np.round(NORMAL[:40], 1)
    check_after_200(resolved(likelihood, X), X, np.eye(40))


def check_after_200(family, X, R):
    N, S = R.sum(axis=0), R.T @ family.features(X)
    values = [worth(family, N, S)]
    for _ in range(200):
        last, family = family, family.learned(N, S)
        values.append(worth(family, N, S))
        if family is last:
            break
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(values) >= -1e-12 * np.abs(values[1:]))
    assert family.evidence(N, S)[-1] == 0.0 or N[-1] > 0.0
    check_numbers(family)
    expected = family.expect(N, S)
    assert np.all(np.isfinite(expected.eta))
    assert np.all(np.isfinite(expected.bias))
    assert np.all(np.isfinite(family.log_predictive(N, S, X)))
    for value in family.attributes(N, S).values():
        assert np.all(np.isfinite(value))


COUNTS = RNG.poisson([0.3, 4.0, 3000.0], size=(120, 3)).astype(float)
COUNT_TABLES = {
    "zeros": np.zeros((120, 3)),
    "ones": np.ones((120, 3)),
    "one column": COUNTS * [1.0, 0.0, 0.0],
    "counts": COUNTS,
    "large": 1e6 * COUNTS,
    "equal rows": np.repeat(COUNTS[:4], 30, axis=0),
    "one row": COUNTS[:1],
}


@pytest.mark.parametrize("K", [1, 5, 120])
@pytest.mark.parametrize("table", COUNT_TABLES)
@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(), Multinomial()])
def test_nothing_runs_away_on_unusual_counts(likelihood, table, K):
    X = COUNT_TABLES[table]
    K = min(K, len(X))
    check_counts(resolved(likelihood, X), X, np.eye(K + 1)[np.arange(len(X)) % K])


@pytest.mark.parametrize("K", [1, 5, 120])
@pytest.mark.parametrize("ones", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("likelihood", [Bernoulli(), Categorical()])
def test_nothing_runs_away_on_unusual_categories(likelihood, ones, K):
    X = (np.random.default_rng(1).random((120, 3)) < ones).astype(float)
    levels = (2, 2, 4) if isinstance(likelihood, Categorical) else None
    for order in (np.arange(120), np.argsort(X[:, 0], kind="stable")):
        R = np.eye(K + 1)[order * K // 120]
        check_counts(resolved(likelihood, X, levels), X, R)


def check_counts(family, X, R):
    N, S = R.sum(axis=0), R.T @ family.features(X)
    end = converged(family, N, S)
    assert worth(end, N, S) >= worth(family, N, S)
    x = Free(end).pack()
    assert np.all(np.isfinite(x))
    # a log-normal hyperprior lets two parameters go far only where much is gained
    assert np.all(np.abs(x - Free(family).pack()) < 60.0)
    assert np.all(np.isfinite(end.log_predictive(N, S, X)))
    assert np.all(np.isfinite(end.expect(N, S).eta))
