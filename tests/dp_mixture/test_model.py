"""The mixture model: the bound, its optima, sparse and memoized passes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as st
from scipy.special import digamma

import mixture_reference as mixture
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture.params import Collected, MixtureStats, Plan
from kplus.dp_mixture.sticks import (
    best_concentration,
    log_prior,
    mean_log_weights,
    mean_weights,
    merge_gains,
    removal_gains,
    stick_evidence,
)
from kplus.engine import SerialEngine
from mixture_reference import CASES, stats_of

N_ROWS = 60


def setting(name="gaussian", K=4, seed=0, weighted=False, **settings):
    """A model, rows, weights, responsibilities and the posterior given them."""
    case = CASES[name]
    X = case.rows(N_ROWS, seed)
    model = case.model(X, **settings)
    weights = np.ones(N_ROWS)
    if weighted:
        weights = np.random.default_rng(seed).uniform(0.2, 3.0, N_ROWS)
    R = mixture.some_shares(N_ROWS, K, seed)
    return model, X, weights, R, mixture.components(model, X, R, weights)


@pytest.fixture(params=CASES)
def name(request):
    return request.param


# --------------------------------------------------------------------- the bound


@pytest.mark.parametrize("weighted", [False, True])
def test_bound_equals_brute_force(name, weighted):
    model, X, w, R, params = setting(name, weighted=weighted)
    total = stats_of(model, X, R, w)
    expected = mixture.bound(model, X, R, w)
    assert model.bound(params, total) == pytest.approx(expected, rel=1e-10)
    assert model.best_bound(total) == pytest.approx(expected, rel=1e-10)
    assert model.objective(params, total) == -model.bound(params, total)


@pytest.mark.parametrize("scale", [1.0, 0.1, 3.0])
def test_bound_for_sums_that_are_not_those_of_the_parameters(name, scale):
    """Parameters from other responsibilities, of more or fewer rows."""
    model, X, w, R, _ = setting(name, weighted=True)
    others = scale * w[:, None] * mixture.some_shares(N_ROWS, 4, seed=9)
    params = model.posterior(
        others.sum(axis=0), others.T @ model.family.features(X), scale * w.sum()
    )
    expected = mixture.bound(model, X, R, w, given=others)
    found = model.bound(params, stats_of(model, X, R, w))
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("K", [1, 2])
def test_bound_of_few_components(name, K):
    model, X, w, R, params = setting(name, K)
    total = stats_of(model, X, R, w)
    expected = mixture.bound(model, X, R, w)
    assert model.bound(params, total) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("concentration", [1e-3, 0.5, 20.0])
def test_bound_with_other_concentrations(concentration):
    model, X, w, R, params = setting(concentration=concentration)
    expected = mixture.bound(model, X, R, w)
    assert model.bound(params, stats_of(model, X, R, w)) == pytest.approx(
        expected, rel=1e-10
    )


def test_the_bound_is_one():
    """One row, one component: the best bound is the evidence, which is a density.

    Where values stand for intervals it is below that; see `resolution`.
    """
    case = CASES["gaussian-fixed"]
    X = case.rows(20)
    model = case.model(X)
    for row in X[:3]:
        total = stats_of(model, row[None], np.ones((1, 1)), np.ones(1))
        predictive = model.family.log_predictive(
            np.zeros(1), np.zeros((1, model.family.n_stats)), row[None]
        )
        stick = np.log(st.beta(1, model.concentration).mean())  # E[v] of the first
        assert model.best_bound(total) == pytest.approx(predictive[0, 0] + stick)


# ------------------------------------------------------------------------- optima


def test_responsibilities_are_those_of_eq_9(name):
    model, X, w, R, params = setting(name, weighted=True)
    logs = mixture.scores(model.family, X, w[:, None] * R, 1.0)
    expected = mixture.responsibilities(logs)
    total, support, r = model.share_out(params, X, w)
    found = mixture.dense(support, r, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(support.labels, np.argmax(expected, axis=1))
    brute = stats_of(model, X, expected, w)
    for field in ("N", "S", "entropy", "pairs"):
        one, other = getattr(total, field), getattr(brute, field)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)
    assert total.base == pytest.approx(brute.base, rel=1e-12)
    assert total.mass == pytest.approx(w.sum(), rel=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_other_responsibilities_lower_the_bound(name, seed):
    model, X, w, _, params = setting(name, seed=seed)
    total, support, r = model.share_out(params, X, w)
    best = model.bound(params, total)
    found = mixture.dense(support, r, 4)
    rng = np.random.default_rng(seed)
    for amount in (1e-3, 0.1, 1.0):
        other = found * np.exp(amount * rng.normal(size=found.shape))
        other /= other.sum(axis=1, keepdims=True)
        assert model.bound(params, stats_of(model, X, other, w)) < best


@pytest.mark.parametrize("seed", range(3))
def test_other_parameters_lower_the_bound(name, seed):
    """q(v) and q(φ) are best where they are the posteriors given the sums."""
    model, X, w, R, params = setting(name, seed=seed)
    total = stats_of(model, X, R, w)
    best = model.bound(params, total)
    rng = np.random.default_rng(seed)
    for amount in (1e-2, 0.3):
        shares = R * np.exp(amount * rng.normal(size=R.shape))
        other = mixture.components(model, X, shares, w)
        assert model.bound(other, total) < best
        sticks = stick_evidence(other.N, 1.0)
        sticks += float((total.N - other.N) @ other.log_weights)
        assert sticks < stick_evidence(params.N, 1.0)


def test_the_order_by_size_is_best():
    rng = np.random.default_rng(0)
    for _ in range(20):
        N = rng.gamma(0.5, 50.0, size=6)
        ordered = stick_evidence(-np.sort(-N), 1.3)
        assert ordered >= stick_evidence(N, 1.3) - 1e-9


# ------------------------------------------------------------------------- sticks


@pytest.mark.parametrize("concentration", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("N", [[5.0], [3.0, 40.0, 0.0], [0.0, 2.5, 0.1, 1000.0]])
def test_sticks_against_the_beta_distribution(N, concentration):
    N = np.array(N)
    log_weights, divergences = mixture.sticks(N, concentration)
    found = mean_log_weights(N, concentration)
    np.testing.assert_allclose(found, log_weights, rtol=1e-10)
    evidence = float(N @ log_weights - divergences.sum())
    assert stick_evidence(N, concentration) == pytest.approx(evidence, rel=1e-10)
    weights, left = [], 1.0
    for k, n in enumerate(N):
        q = st.beta(1.0 + n, concentration + N[k + 1 :].sum())
        stay = digamma(q.args[1]) - digamma(sum(q.args))
        prior = np.log(concentration) + (concentration - 1.0) * stay
        assert divergences[k] == pytest.approx(-q.entropy() - prior, rel=1e-6)
        weights.append(left * q.mean())
        left *= 1.0 - q.mean()
    np.testing.assert_allclose(mean_weights(N, concentration), weights, rtol=1e-12)


def test_merging_sticks():
    rng = np.random.default_rng(1)
    N = rng.gamma(0.7, 30.0, size=6)
    gains = merge_gains(N, 0.8)
    before = stick_evidence(N, 0.8)
    for a in range(6):
        for b in range(a + 1, 6):
            joined = N.copy()
            joined[a] += N[b]
            after = stick_evidence(np.delete(joined, b), 0.8)
            assert gains[a, b] == pytest.approx(after - before, rel=1e-10, abs=1e-10)
    assert np.all(np.tril(gains) == 0.0)


def test_removing_a_stick():
    """All else stays: E[log w] of those behind rises by -E[log(1 - v)]."""
    N, alpha = np.array([4.0, 9.0, 2.0, 5.0]), 1.4
    _, divergences = mixture.sticks(N, alpha)
    for k, gain in enumerate(removal_gains(N, alpha)):
        a, b = 1.0 + N[k], alpha + N[k + 1 :].sum()
        stay = st.beta(b, a).expect(np.log)
        expected = divergences[k] - N[k + 1 :].sum() * stay
        assert gain == pytest.approx(expected, rel=1e-7)


def test_the_best_concentration():
    N = np.array([40.0, 20.0, 5.0, 1.0])
    alpha = best_concentration(N)
    grid = alpha * np.exp(np.linspace(-3.0, 3.0, 400))
    evidence = np.array([stick_evidence(N, a) for a in grid])
    values = evidence + st.gamma(2.0).logpdf(grid)
    best = stick_evidence(N, alpha) + log_prior(alpha)
    assert max(values) <= best + 1e-9
    assert log_prior(alpha) == pytest.approx(st.gamma(2.0).logpdf(alpha))


@pytest.mark.parametrize("name", ["gaussian", "mixed"])
def test_a_learned_concentration(name):
    model, X, w, R, params = setting(name, concentration=None)
    total = stats_of(model, X, R, w)
    alpha = params.concentration
    assert alpha == best_concentration(total.N)
    expected = mixture.bound(model, X, R, w, concentration=alpha)
    assert model.bound(params, total) == pytest.approx(expected, rel=1e-10)
    assert model.best_bound(total) == pytest.approx(expected, rel=1e-10)
    for other in (0.5 * alpha, 2.0 * alpha):
        worse = mixture.bound(model, X, R, w, concentration=other)
        assert worse < expected


# ------------------------------------------------- starts and rows for births


def gaussian_start(n=90, K=4, **settings):
    X = CASES["gaussian"].rows(n)
    model = CASES["gaussian"].model(X, **settings)
    return model, X, mixture.components(model, X, mixture.some_shares(n, K))


@pytest.mark.parametrize("mass", [9.0, 90.0, 9000.0])
def test_components_as_if_seen_in_more_rows(mass):
    """Counts and sums grow with the mass: what components are like does not change."""
    model, _, params = gaussian_start()
    other = model.rescaled(params, mass)
    assert other.mass == mass
    assert other.N.sum() == pytest.approx(mass)
    np.testing.assert_allclose(other.N / mass, params.N / params.mass)
    np.testing.assert_allclose(
        other.S / other.N[:, None], params.S / params.N[:, None], rtol=1e-9
    )


def test_a_fresh_posterior_compares_every_row_with_all_components():
    _, _, params = gaussian_start()
    plan = params.plan
    assert plan == Plan()
    assert plan.everyone
    assert not plan.frozen
    assert plan.targets is None
    assert params.visits == 0
    np.testing.assert_array_equal(params.tried, 0.0)
    np.testing.assert_array_equal(params.waited, 1)


@pytest.mark.parametrize("seed", range(5))
def test_enough_rows_are_noted_where_there_are_enough(seed):
    """A draw by priorities must not fall short of the number asked for."""
    model, X, _ = gaussian_start(2000, n_collect=200)
    params = mixture.components(model, X, np.ones((2000, 1)))
    params = replace(params, plan=Plan(targets=np.array([0]), seed=seed))
    with SerialEngine(ArrayBlocks(X, 300)) as engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
    noted = Collected.joined(total.collected)
    assert len(noted.lowest(200).rows) == 200
    assert len(noted.rows) < 600  # and not by noting all


def test_an_empty_summary_adds_nothing():
    model, X, params = gaussian_start()
    with SerialEngine(ArrayBlocks(X, 90)) as engine:
        total = engine.sweep(model, params, range(1))
    again = MixtureStats.zeros(4, model.family.n_stats)
    again += total
    assert total.mass == 90.0
    for name, value in vars(total).items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)


SPLITMIX64 = {1: 0xE220A8397B1DCDAF, 2: 0x6E789E6AA1B965F4, 3: 0x06C45D188009454F}


@pytest.mark.parametrize(("seed", "expected"), list(SPLITMIX64.items()))
def test_priorities_are_the_published_numbers_of_splitmix64(seed, expected):
    """Its first numbers from state 0: what the seeds 1, 2 and 3 give row 0."""
    model, X, params = gaussian_start(n_collect=1000)
    params = replace(params, plan=Plan(targets=np.arange(4), seed=seed))
    with SerialEngine(ArrayBlocks(X, 30)) as engine:
        noted = Collected.joined(engine.sweep(model, params, range(3)).collected)
    mine = noted.priority[noted.rows == 0]
    assert len(mine) > 0
    np.testing.assert_array_equal(mine, (expected >> 11) * 2.0**-53)
