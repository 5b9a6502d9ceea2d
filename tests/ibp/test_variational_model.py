"""The evidence bound of variational inference against its definition."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import betaln, logsumexp, roots_jacobi

from kplus.core import loop
from kplus.data.blocks import ArrayBlocks
from kplus.engine import SerialEngine, ThreadEngine
from kplus.ibp.factors import GaussianFactors
from kplus.ibp.prior import FiniteIBP, InfiniteIBP
from kplus.ibp.variational_model import MeanField, VariationalModel

KINDS = [FiniteIBP, InfiniteIBP]
both_kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
with_and_without_gaps = pytest.mark.parametrize("gaps", [False, True])


def some_table(rng, n, D, gaps):
    X = rng.normal(size=(n, D)) * 1.5
    if gaps == "a row":
        X[1] = np.nan
    elif gaps:
        X[0, 0] = X[1, 2] = X[0, 2] = np.nan
    return X


def some_posterior(rng, kind, K, D, per_column=False):
    """Any q(A), q(π) and scales: nothing is the best for anything."""
    G = D if per_column else 1
    roots = rng.normal(size=(G, K, K))
    covs = 0.2 * roots @ roots.transpose(0, 2, 1) + 0.05 * np.eye(K)
    group = np.arange(D) if per_column else np.zeros(D, np.int64)
    log_det = float(np.linalg.slogdet(covs)[1][group].sum())
    tau = rng.uniform(0.5, 4.0, (K, 2))
    ibp = FiniteIBP(tau, 1.3)
    if kind is InfiniteIBP:
        ibp = InfiniteIBP(tau, 1.3, rng.permutation(K))
    factors = GaussianFactors(rng.normal(size=(K, D)), covs, group, log_det)
    return MeanField(factors, ibp, 0.7, 1.9)


def some_case(kind, gaps, seed=0, n=3, K=2, D=3):
    rng = np.random.default_rng(seed)
    X = some_table(rng, n, D, gaps)
    params = some_posterior(rng, kind, K, D, gaps is True)
    return X, params, rng.uniform(0.05, 0.95, (n, K))


# ------------------------------------------------------------- the definition


def expect(tau, function):
    """E[function(v)], v ~ Beta(tau), by quadrature."""
    density = stats.beta(*tau).pdf
    return integrate.quad(
        lambda v: density(v) * function(v), 0, 1, epsabs=1e-11, limit=200
    )[0]


def expected_log_z(ibp):
    """E[log π_k] and E[log(1 − π_k)] by feature; the latter by the paper's bound."""
    have = np.array([expect(t, np.log) for t in ibp.tau])
    lack = np.array([expect(t, lambda v: np.log1p(-v)) for t in ibp.tau])
    if isinstance(ibp, FiniteIBP):
        return have, lack
    K = len(have)
    on, off = np.empty(K), np.empty(K)
    for stick, k in enumerate(ibp.order):
        terms = np.array([lack[y] + have[:y].sum() for y in range(stick + 1)])
        q = np.exp(terms - logsumexp(terms))
        on[k] = have[: stick + 1].sum()
        off[k] = q @ terms - q @ np.log(q)
    return on, off


def all_bits(n, K):
    for bits in product([0.0, 1.0], repeat=n * K):
        yield np.array(bits).reshape(n, K)


def log_likelihood(X, Z, params):
    """E[log p(X | Z, A)] over q(A)."""
    f = params.factors
    total = 0.0
    for n, d in zip(*np.nonzero(~np.isnan(X)), strict=True):
        z, cov = Z[n], f.covariance[f.group[d]]
        square = (X[n, d] - z @ f.mean[:, d]) ** 2 + z @ cov @ z
        total -= 0.5 * (np.log(2 * np.pi * params.noise) + square / params.noise)
    return total


def direct_bound(X, params, nu):
    """E[log p(X, Z, A, π)] + entropy of q, term by term, Z enumerated."""
    f, ibp = params.factors, params.ibp
    on, off = expected_log_z(ibp)
    total = 0.0
    for Z in all_bits(*nu.shape):
        q = np.prod(np.where(Z == 1, nu, 1 - nu))
        prior = np.sum(Z * on + (1 - Z) * off)
        total += q * (log_likelihood(X, Z, params) + prior - np.log(q))
    for d, g in enumerate(f.group):
        second = np.trace(f.covariance[g]) + f.mean[:, d] @ f.mean[:, d]
        total -= 0.5 * (
            len(f.mean) * np.log(2 * np.pi * params.factor) + second / params.factor
        )
        total += stats.multivariate_normal(cov=f.covariance[g]).entropy()
    first = ibp.alpha / len(ibp.tau)
    if isinstance(ibp, InfiniteIBP):
        first = ibp.alpha
    for t in ibp.tau:
        total += expect(t, stats.beta(first, 1).logpdf) + stats.beta(*t).entropy()
    return total


@both_kinds
@pytest.mark.parametrize("gaps", [False, True, "a row"])
def test_bound_is_its_definition(kind, gaps):
    X, params, nu = some_case(kind, gaps)
    model = VariationalModel()
    expected = direct_bound(X, params, nu)
    sums = model.sums(params, X, nu)
    assert model.bound(params, sums) == pytest.approx(expected, rel=1e-8)
    other = replace(params, factors=some_case(kind, gaps, seed=5)[1].factors)
    elsewhere = model.sums(other, X, nu)  # about other features
    assert model.bound(params, elsewhere) == pytest.approx(expected, rel=1e-8)
    assert model.objective(params, sums) == -model.bound(params, sums)


# ------------------------------------------------------------------- evidence


def log_prior_of_bits(Z, kind, alpha):
    N, K = Z.shape
    m = Z.sum(axis=0)
    if kind is FiniteIBP:
        a = alpha / K
        return float(np.sum(np.log(a) + betaln(a + m, 1 + N - m)))
    nodes, weights = roots_jacobi(20, 0.0, alpha - 1.0)  # weight v^(α−1)
    nodes, weights = (nodes + 1) / 2, weights / weights.sum()
    grids = np.meshgrid(*[nodes] * K, indexing="ij")
    w = np.prod(np.meshgrid(*[weights] * K, indexing="ij"), axis=0)
    pi = np.cumprod(grids, axis=0)
    shape = (K, *[1] * K)
    terms = pi ** m.reshape(shape) * (1 - pi) ** (N - m).reshape(shape)
    return float(np.log(np.sum(w * np.prod(terms, axis=0))))


def log_evidence(X, kind, K, alpha, noise, factor):
    """log p(X): all Z, features integrated out."""
    parts = []
    for Z in all_bits(len(X), K):
        total = log_prior_of_bits(Z, kind, alpha)
        for x in X.T:
            known = ~np.isnan(x)
            cov = noise * np.eye(known.sum()) + factor * Z[known] @ Z[known].T
            total += stats.multivariate_normal(cov=cov).logpdf(x[known])
        parts.append(total)
    return logsumexp(parts)


@both_kinds
@with_and_without_gaps
@pytest.mark.parametrize("seed", range(3))
def test_bound_is_below_the_evidence(kind, gaps, seed):
    X, params, nu = some_case(kind, gaps, seed)
    model = VariationalModel(False, False, False)
    evidence = log_evidence(X, kind, 2, params.ibp.alpha, params.noise, 1.9)
    bounds = [model.bound(params, model.sums(params, X, nu))]
    engine = SerialEngine(ArrayBlocks(X))
    fitted = loop.run(model, engine, params, max_iter=500, tol=1e-13)
    bounds += [-objective for objective in fitted.history]
    assert max(bounds) < evidence
    assert bounds[-1] > evidence - 5.0  # and not far below


def test_evidence_of_the_bits_sums_to_one():
    for kind in KINDS:
        total = logsumexp([log_prior_of_bits(Z, kind, 1.3) for Z in all_bits(3, 2)])
        assert total == pytest.approx(0.0, abs=1e-10)


def test_the_multinomial_bound_is_one():
    """E[log(1 − v_1 v_2)] = −Σ_j E[v_1^j] E[v_2^j] / j is no less."""
    rng = np.random.default_rng(0)
    j = np.arange(1.0, 1e5)
    for _ in range(5):
        tau = rng.uniform(0.5, 5.0, (2, 2))
        ibp = InfiniteIBP(tau, 1.0, np.arange(2))
        moments = [np.exp(betaln(a + j, b) - betaln(a, b)) for a, b in tau]
        true = -np.sum(moments[0] * moments[1] / j)
        on, off = expected_log_z(ibp)
        assert off[1] <= true
        np.testing.assert_allclose(ibp.log_odds, on - off, rtol=1e-7)


# ------------------------------------------------------------- single updates


def nearby(rng, params):
    """Posteriors that differ a little in one part."""
    f, ibp = params.factors, params.ibp
    for size in (1e-3, 0.1):
        step = size * rng.normal(size=f.mean.shape)
        yield "factors", replace(params, factors=replace(f, mean=f.mean + step))
        scale = np.exp(size * rng.normal())
        turn = np.eye(len(f.mean)) + size * rng.normal(size=f.covariance.shape[1:])
        covs = turn @ f.covariance @ turn.T
        log_det = float(np.linalg.slogdet(covs)[1][f.group].sum())
        yield (
            "factors",
            replace(params, factors=replace(f, covariance=covs, known_log_det=log_det)),
        )
        tau = ibp.tau * np.exp(size * rng.normal(size=ibp.tau.shape))
        yield "ibp", replace(params, ibp=replace(ibp, tau=tau))
        yield "scales", replace(params, noise=params.noise * scale)
        yield "scales", replace(params, factor=params.factor * scale)
        alpha = replace(ibp, alpha=ibp.alpha * scale)
        yield "alpha", replace(params, ibp=alpha)


@both_kinds
@with_and_without_gaps
def test_every_update_finds_the_maximum(kind, gaps):
    rng = np.random.default_rng(3)
    model = VariationalModel()
    for seed in range(5):
        X, params, nu = some_case(kind, gaps, seed, n=8, K=3)
        sums = model.sums(params, X, nu)
        before = model.bound(params, sums)
        updates = {
            "factors": model.with_factors(params, sums),
            "scales": model.with_scales(params, sums),
            "ibp": params,
        }
        for _ in range(200):  # sticks take many small steps
            updates["ibp"] = model.with_ibp(updates["ibp"], sums)
        updates["alpha"] = updates["ibp"]
        for name, best in updates.items():
            bound = model.bound(best, sums)
            assert bound >= before
            others = [other for part, other in nearby(rng, best) if part == name]
            assert max(model.bound(other, sums) for other in others) <= bound + 1e-8
        assert model.bound(model.update(params, sums), sums) >= before


@both_kinds
@with_and_without_gaps
def test_rows_find_a_maximum(kind, gaps):
    X, params, _ = some_case(kind, gaps, n=8, K=3)
    model = VariationalModel(most_sweeps=10_000, tol=1e-14)
    engine = SerialEngine(ArrayBlocks(X))
    sums = engine.sweep(model, params, [0])
    (nu,) = engine.locals()
    best = model.bound(params, sums)
    assert model.bound(params, model.sums(params, X, nu)) == pytest.approx(best)
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, k = rng.integers(8), rng.integers(3)
        for target in (nu[n, k] + 1e-3, nu[n, k] - 1e-3, rng.random()):
            other = nu.copy()
            other[n, k] = np.clip(target, 0.0, 1.0)
            bound = model.bound(params, model.sums(params, X, other))
            assert bound <= best + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_sticks_never_lower_the_bound(seed):
    rng = np.random.default_rng(seed)
    K, N = 5, 40.0
    sticks = InfiniteIBP(rng.uniform(0.5, 9, (K, 2)), 1.0, rng.permutation(K))
    for _ in range(6):
        counts = rng.uniform(0.0, N, K)
        for infer in (False, True):
            better = sticks.updated(counts, N, infer)
            assert better.bound(counts, N) >= sticks.bound(counts, N)
            assert better.alpha == sticks.alpha or infer
            sticks = better
    for step in (sticks.with_sticks(counts, N), sticks.with_alpha()):
        assert step.bound(counts, N) >= sticks.bound(counts, N) - 1e-10


def test_finite_probabilities_have_the_exact_posterior():
    """Then the bound of their part is the evidence of the counts."""
    counts, N, alpha = np.array([3.0, 7.0, 0.0]), 9.0, 2.0
    a = alpha / 3
    expected = np.sum(np.log(a) + betaln(a + counts, 1 + N - counts))
    ibp = FiniteIBP.fitted(counts, N, alpha)
    assert ibp.bound(counts, N) == pytest.approx(expected)
    np.testing.assert_allclose(ibp.probabilities, (a + counts) / (a + N + 1))


# ---------------------------------------------------------------- whole fits


def _start(X, K, kind, seed=0):
    rng = np.random.default_rng(seed)
    factors = GaussianFactors.uncoupled(rng.normal(size=(K, X.shape[1])), 0.1)
    return MeanField(
        factors, kind.fitted(np.full(K, len(X) / 3), len(X), 1.0), 1.0, 1.0
    )


@both_kinds
@with_and_without_gaps
@pytest.mark.parametrize("seed", range(3))
def test_no_pass_lowers_the_bound(kind, gaps, seed):
    rng = np.random.default_rng(seed)
    X = some_table(rng, 60, 5, gaps) + 3.0 * (rng.random((60, 1)) < 0.4)
    model, engine = VariationalModel(), SerialEngine(ArrayBlocks(X, 16))
    params = _start(X, 4, kind, seed)
    for fresh in (False, True):
        fitted = loop.run(
            model, engine, replace(params, fresh=fresh), max_iter=60, tol=0.0
        )
        rounding = 1e-12 * abs(fitted.history[0])
        assert np.all(np.diff(fitted.history) <= rounding)
        params = fitted.params


@both_kinds
@with_and_without_gaps
def test_threads_give_the_same_bits_and_blocks_the_same_result(kind, gaps):
    X = some_table(np.random.default_rng(1), 50, 4, gaps)
    ends = []
    for block_rows, threads in ((8, 1), (8, 2), (8, 3), (50, 1)):
        with ThreadEngine(ArrayBlocks(X, block_rows), n_threads=threads) as engine:
            start = _start(X, 3, kind)
            ends.append(
                loop.run(VariationalModel(), engine, start, max_iter=15, tol=0.0)
            )
    first = ends[0]
    for other in ends[1:3]:
        assert other.history == first.history
        np.testing.assert_array_equal(
            other.params.factors.mean, first.params.factors.mean
        )
    np.testing.assert_allclose(ends[3].history, first.history, rtol=1e-9)


def test_columns_with_the_same_gaps_share_a_covariance():
    X = np.random.default_rng(0).normal(size=(40, 5))
    X[:10, 1] = X[:10, 3] = np.nan
    model, params = VariationalModel(), _start(X, 2, FiniteIBP)
    nu = np.random.default_rng(1).random((40, 2))
    factors = model.with_factors(params, model.sums(params, X, nu)).factors
    assert factors.group.tolist() == [0, 1, 0, 1, 0]
    S = nu[10:].T @ nu[10:]
    np.fill_diagonal(S, nu[10:].sum(axis=0))
    np.testing.assert_allclose(factors.covariance[1], np.linalg.inv(S + np.eye(2)))
    mean = factors.covariance[1] @ nu[10:].T @ X[10:, 3]
    np.testing.assert_allclose(factors.mean[:, 3], mean)


def test_a_huge_base_costs_no_digits():
    """The bound of rows about an offset of a million is that of the rows, nearly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    nu = np.column_stack([np.ones(50), rng.random(50)])
    model, factors = (
        VariationalModel(),
        GaussianFactors.uncoupled(rng.normal(size=(2, 3)), 0.1),
    )
    params = MeanField(factors, FiniteIBP(np.ones((2, 2)), 1.0), 1.0, 1.0)
    far = factors.mean.copy()
    far[0] += 2.0**20
    offset = replace(params, factors=replace(factors, mean=far))
    here = model.sums(params, X, nu)
    there = model.sums(offset, X + 2.0**20, nu)
    np.testing.assert_allclose(there.T, here.T, atol=1e-7)
    assert there.error == pytest.approx(here.error, rel=1e-8)


def test_ME_4_an_inactive_feature_changes_the_infinite_bound():
    """Unlike in MEIBP: q(v) of one more stick, and Z without it, are paid for."""
    X, params, nu = some_case(InfiniteIBP, False, n=6)
    model = VariationalModel(False, False, False)
    bounds = []
    for K in (2, 3, 4):
        more = np.zeros((6, K))
        more[:, :2] = nu
        factors = GaussianFactors.uncoupled(np.zeros((K, 3)), 1.0)
        ibp = InfiniteIBP.fitted(more.sum(axis=0), 6.0, 1.3)
        start = MeanField(factors, ibp, params.noise, params.factor)
        sums = model.sums(start, X, more)
        for _ in range(100):
            start = model.update(start, sums)
        np.testing.assert_allclose(start.factors.mean[2:], 0.0)
        bounds.append(model.bound(start, sums))
    assert bounds[0] - bounds[1] > 0.1
    assert bounds[1] - bounds[2] > 0.01
