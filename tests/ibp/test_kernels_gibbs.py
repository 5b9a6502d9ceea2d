"""Kernels of the Gibbs samplers against brute force over all Z of small tables."""

from collections import Counter

import numba as nb
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, kstest, norm, poisson, truncnorm

from gibbs_reference import allocations, class_of, log_prior, posterior, surprise
from kplus.ibp.gibbs import kernels_draws as gibbs_draws
from kplus.ibp.gibbs.conditionals import mean_field, observe
from kplus.ibp.gibbs.kernels_accelerated import sweep_accelerated
from kplus.ibp.gibbs.kernels_collapsed import sweep_collapsed
from kplus.ibp.gibbs.kernels_draws import (
    Law,
    bit_is_on,
    draw_factors,
    draw_number,
    evidence_of_feature,
    positive_normal,
    shuffle,
)
from kplus.ibp.gibbs.kernels_posterior import Posterior
from kplus.ibp.gibbs.kernels_uncollapsed import (
    Factors,
    sweep_gaussian,
    sweep_nonnegative,
)
from kplus.ibp.kernels_marginals import exact_marginals

ALPHA, NOISE, FACTOR = 1.5, 0.5, 2.0
MAX_K = 80
ZERO = np.int64(0)  # for a plain 0 numba compiles the samplers anew


def law(N, width, most, enumerate_new, noise=NOISE, factor=FACTOR, alpha=ALPHA):
    m = np.arange(1, N)
    odds = np.concatenate(([0.0], np.log(m / (N - m))))
    limit = 2**62 if most is None else most
    most_singles = min(limit, 30)
    return Law(
        noise,
        noise / factor,
        alpha / N,
        width,
        limit,
        most_singles,
        odds,
        enumerate_new,
    )


@nb.njit
def code(Z, K):
    """A number for the class of Z; up to three features of four rows."""
    columns = np.zeros(3, np.int64)
    for k in range(K):
        for n in range(len(Z)):
            columns[k] += Z[n, k] << n
    columns = np.sort(columns)
    return columns[0] + 16 * columns[1] + 256 * columns[2]


@nb.njit
def visit_collapsed(sweep, table, post, law, rng, codes, between):
    K = ZERO
    for i in range(len(codes)):
        for _ in range(between):
            _, K = sweep(table, post, law, ZERO, K, rng)
        codes[i] = code(post.Z, K)
    return K


@nb.njit
def draw_gaussian(A, T, gram, noise, ratio, order, rng):
    """Factors one after the other, in random order."""
    for d in range(len(A)):
        for k in order:
            rest = T[d, k]
            for j in range(len(order)):
                if j != k:
                    rest -= gram[k, j] * A[d, j]
            precision = gram[k, k] + ratio
            A[d, k] = rest / precision + np.sqrt(noise / precision) * rng.normal()


@nb.njit
def visit_uncollapsed(nonnegative, table, state, law, rng, codes, between):
    """Sweeps over Z, and over A in between; there are no gaps."""
    N, D = table.X.shape
    pattern, K = np.zeros(D, np.int64), ZERO
    for i in range(len(codes) * between):
        if nonnegative:
            _, K = sweep_nonnegative(table, state, law, ZERO, K, rng)
        else:
            _, K = sweep_gaussian(table, state, law, ZERO, K, rng)
        Z = state.Z[:, :K].astype(np.float64)
        gram, T = np.zeros((1, K, K)), np.zeros((D, K))
        for k in range(K):
            for n in range(N):
                for j in range(K):
                    gram[0, k, j] += Z[n, k] * Z[n, j]
                for d in range(D):
                    T[d, k] += Z[n, k] * table.X[n, d]
        A = state.A[:K].T.copy()
        if nonnegative:
            draw_factors(A, T, gram, pattern, law.noise, law.ratio, rng)
        else:
            order = np.zeros(K, np.int64)
            shuffle(order, K, rng)
            draw_gaussian(A, T, gram[0], law.noise, law.ratio, order, rng)
        for k in range(K):
            state.A[k] = A[:, k]
            state.norms[k] = np.sum(A[:, k] ** 2)
        if i % between == between - 1:
            codes[i // between] = code(state.Z, K)


def empty_posterior(N, width):
    return Posterior(
        np.zeros((N, MAX_K), np.uint8), np.zeros(MAX_K, np.int64),
        np.zeros((MAX_K, width)), np.zeros((MAX_K, MAX_K)), np.zeros((MAX_K, MAX_K)),
    )  # fmt: skip


def empty_factors(N, width):
    return Factors(
        np.zeros((N, MAX_K), np.uint8), np.zeros(MAX_K, np.int64),
        np.zeros((MAX_K, width)), np.zeros(MAX_K),
    )  # fmt: skip


def fit_of(codes, found, probabilities):
    numbers = np.array([code(Z, Z.shape[1]) for Z in found])
    seen = Counter(codes.tolist())
    assert set(seen) <= set(numbers.tolist())
    counts = [seen[c] for c in numbers.tolist()]
    return surprise(counts, probabilities * len(codes))


def rows(N, D, gaps, level=0.0):
    X = np.random.default_rng(N + D).normal(size=(N, D)) * 1.5 + level
    if gaps:
        X[0, 0] = X[1, 0] = X[1, 1] = np.nan
    return X


@pytest.mark.parametrize("enumerate_new", [True, False])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("sweep", [sweep_accelerated, sweep_collapsed])
@pytest.mark.parametrize(("N", "D", "most"), [(3, 3, 2), (2, 3, 3), (4, 3, 2)])
def test_collapsed_chains_visit_z_by_its_posterior(
    N, D, most, sweep, gaps, enumerate_new
):
    X = rows(N, D, gaps)
    data = observe(X)
    codes = np.empty(10_000, np.int64)
    rng = np.random.default_rng(1)
    visit_collapsed(
        sweep, data.table(data.X.copy()), empty_posterior(N, D),
        law(N, D, most, enumerate_new), rng, codes, 8,
    )  # fmt: skip
    assert fit_of(codes, *posterior(X, ALPHA, NOISE, FACTOR, most)) > 1e-3


@pytest.mark.parametrize("enumerate_new", [True, False])
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize(("N", "D", "most"), [(3, 2, 2), (2, 1, 3), (4, 2, 2)])
def test_uncollapsed_chains_visit_z_by_its_posterior(
    N, D, most, nonnegative, enumerate_new
):
    X = rows(N, D, False, level=1.0)
    codes = np.empty(10_000, np.int64)
    visit_uncollapsed(
        nonnegative, observe(X).table(X), empty_factors(N, D),
        law(N, D, most, enumerate_new), np.random.default_rng(2), codes, 12,
    )  # fmt: skip
    assert fit_of(codes, *posterior(X, ALPHA, NOISE, FACTOR, most, nonnegative)) > 1e-3


@pytest.mark.parametrize("enumerate_new", [True, False])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_rows_without_a_value_follow_the_prior(nonnegative, enumerate_new):
    """Gaps are left out of everything: of a table of gaps the prior is left."""
    N, most = 3, 2
    X = np.full((N, 2), np.nan)
    data = observe(X)
    codes = np.empty(10_000, np.int64)
    visit_uncollapsed(
        nonnegative, data.table(data.X), empty_factors(N, 2),
        law(N, 2, most, enumerate_new), np.random.default_rng(3), codes, 5,
    )  # fmt: skip
    found = allocations(N, most)
    p = np.exp([log_prior(Z, ALPHA) for Z in found])
    assert fit_of(codes, found, p / p.sum()) > 1e-3


@nb.njit
def numbers_visited(sweep, table, post, law, rng, out, between):
    K = ZERO
    for i in range(len(out)):
        for _ in range(between):
            _, K = sweep(table, post, law, ZERO, K, rng)
        out[i] = K


@pytest.mark.parametrize("enumerate_new", [True, False])
@pytest.mark.parametrize("sweep", [sweep_accelerated, sweep_collapsed])
def test_the_prior_gives_a_poisson_number_of_features(sweep, enumerate_new):
    """K ~ Poisson(α H_N) where the noise hides everything."""
    N = 6
    X = np.zeros((N, 1))
    numbers = np.empty(10_000, np.int64)
    numbers_visited(
        sweep, observe(X).table(X), empty_posterior(N, 1),
        law(N, 1, None, enumerate_new, noise=1e12), np.random.default_rng(4), numbers,
        12,
    )  # fmt: skip
    mean = ALPHA * sum(1.0 / n for n in range(1, N + 1))
    counts = np.bincount(numbers, minlength=25)
    expected = poisson(mean).pmf(np.arange(len(counts))) * len(numbers)
    assert surprise(counts, expected) > 1e-3


@pytest.mark.parametrize("noise", [1.0, 1e-6])
@pytest.mark.parametrize("sweep", [sweep_accelerated, sweep_collapsed])
@pytest.mark.parametrize("gaps", [False, True])
def test_what_is_updated_by_steps_stays_true(sweep, gaps, noise):
    """T, H and the Gram matrix after many sweeps are those of Z and X."""
    rng = np.random.default_rng(5)
    N, D, K = 30, 6, 3
    Z = (rng.random((N, K)) < 0.5).astype(np.uint8)
    X = Z @ rng.normal(size=(K, D)) + np.sqrt(noise) * rng.normal(size=(N, D))
    if gaps:
        X[rng.random((N, D)) < 0.2] = np.nan
    data = observe(X)
    table, post = data.table(data.X.copy()), empty_posterior(N, D)
    rules, number = law(N, D, 9, True, noise=noise, factor=1.0), 0
    for _ in range(60):
        _, number = sweep(table, post, rules, 0, number, rng)
    assert number > 0
    bits = post.Z[:, :number].astype(float)
    np.testing.assert_array_equal(post.counts[:number], bits.sum(axis=0))
    assert post.counts[:number].min() > 0
    T = bits.T @ table.X
    H = np.linalg.inv(bits.T @ bits + rules.ratio * np.eye(number))
    A = H @ T
    Q = A @ A.T if sweep is sweep_accelerated else T @ T.T
    tolerance = {"rtol": 1e-6, "atol": 1e-6 * np.abs(H).max()}
    np.testing.assert_allclose(post.T[:number], T, atol=1e-9)
    np.testing.assert_allclose(post.H[:number, :number], H, **tolerance)
    np.testing.assert_allclose(
        post.Q[:number, :number], Q, rtol=1e-6, atol=1e-6 * np.abs(Q).max()
    )
    np.testing.assert_allclose(table.squares, (table.X**2).sum(axis=1))


def test_observed_values_are_never_touched():
    X = rows(4, 3, True)
    data = observe(X)
    table, K, rng = data.table(data.X.copy()), 0, np.random.default_rng(0)
    post = empty_posterior(4, 3)
    for _ in range(20):
        _, K = sweep_accelerated(table, post, law(4, 3, 3, True), 0, K, rng)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(table.X[seen], X[seen])
    assert np.all(table.X[~seen] != 0.0)


# -------------------------------------------------------------------- the small parts


@nb.njit
def many_positive(mean, variance, out, rng):
    for i in range(len(out)):
        out[i] = positive_normal(mean, variance, rng)


@pytest.mark.parametrize("mean", [5.0, 0.5, 0.0, -0.5, -0.7, -3.0, -50.0, -1e4])
def test_draws_of_cut_gaussians(mean):
    out = np.empty(20_000)
    many_positive(mean, 2.0, out, np.random.default_rng(6))
    sigma = np.sqrt(2.0)
    assert out.min() >= 0.0
    if mean > -100:
        law = truncnorm(-mean / sigma, np.inf, mean, sigma)
        assert kstest(out, law.cdf).pvalue > 1e-3
    else:  # an exponential distribution
        assert out.mean() == pytest.approx(2.0 / -mean, rel=0.03)


@pytest.mark.parametrize("e", [-60.0, -30.0, -24.0, -3.0, 0.0, 0.4, 9.0])
def test_evidence_of_a_feature(e):
    noise, variance = 0.7, 1.9

    def integrand(a):
        fit = norm.logpdf(e, a, np.sqrt(noise)) - norm.logpdf(e, 0.0, np.sqrt(noise))
        return np.exp(fit) * 2.0 * norm.pdf(a, 0.0, np.sqrt(variance))

    top = max(e, 0.0) + 1.0
    value = quad(integrand, 0.0, top)[0] + quad(integrand, top, top + 12.0)[0]
    table = observe(np.array([[1.0, np.nan]])).table(np.zeros((1, 2)))
    found = evidence_of_feature(np.array([e, 0.0]), noise, variance, table, 0)
    assert found == pytest.approx(np.log(value), rel=1e-6)


@nb.njit
def many_numbers(now, others, error, spread, law, width, out, rng):
    for i in range(len(out)):
        now = draw_number(now, others, error, spread, law, width, rng)
        out[i] = now


@pytest.mark.parametrize("enumerate_new", [True, False])
def test_the_number_of_singles_given_a_row(enumerate_new):
    rules = law(2, 3, 7, enumerate_new, noise=0.4, factor=0.9, alpha=3.0)
    out = np.empty(60_000, np.int64)
    many_numbers(0, 2, 8.0, 1.3, rules, 3, out, np.random.default_rng(7))
    j = np.arange(6)  # no more than seven features, of which two are shared
    variance = 0.4 * 1.3 + 0.9 * j
    weights = poisson(1.5).pmf(j) * variance**-1.5 * np.exp(-4.0 / variance)
    counts = np.bincount(out[::4], minlength=6)
    assert len(counts) == 6
    assert surprise(counts, weights / weights.sum() * counts.sum()) > 1e-3


@nb.njit
def share_of_ones(log_odds, n, rng):
    total = 0
    for _ in range(n):
        total += bit_is_on(log_odds, rng)
    return total / n


def test_bits_by_their_log_odds():
    rng = np.random.default_rng(8)
    assert share_of_ones(np.log(3.0), 100_000, rng) == pytest.approx(0.75, abs=0.006)
    assert share_of_ones(800.0, 10, rng) == 1.0
    assert share_of_ones(-800.0, 10, rng) == 0.0


@pytest.mark.parametrize("K", [1, 4, 7])
def test_marginals_are_those_of_all_patterns(K):
    rng = np.random.default_rng(K)
    A = rng.normal(size=(K, 5))
    G, c = A @ A.T, rng.normal(size=(6, K)) * 3.0
    patterns = np.array(list(np.ndindex(*(2,) * K)))
    scores = c @ patterns.T - 0.5 * np.einsum("pi,ij,pj->p", patterns, G, patterns)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights @ patterns / weights.sum(axis=1, keepdims=True)
    out = np.empty_like(c)
    exact_marginals(c, G, out)
    np.testing.assert_allclose(out, expected, atol=1e-12)


def test_mean_field_converges_and_is_exact_for_features_apart():
    rng = np.random.default_rng(9)
    c = rng.normal(size=(5, 15)) * 4.0
    G = np.diag(rng.random(15))
    out = mean_field(c, G, 100, 1e-12)
    np.testing.assert_allclose(out, 1 / (1 + np.exp(0.5 * np.diag(G) - c)), rtol=1e-9)
    A = rng.normal(size=(15, 30))
    G = A @ A.T
    out = mean_field(c, G, 2000, 1e-13)
    odds = c - out @ G + (out - 0.5) * np.diag(G)
    np.testing.assert_allclose(out, 1 / (1 + np.exp(-odds)), atol=1e-8)


def test_no_features_at_all():
    out = np.empty((3, 0))
    exact_marginals(np.empty((3, 0)), np.empty((0, 0)), out)
    assert class_of(np.zeros((3, 0))) == ()


@pytest.mark.parametrize("rate", [0.0, 1e-3, 0.7, 3.0, 9.9])
def test_draws_of_small_rates_are_those_of_numpy(rate):
    ours, numpys = np.random.default_rng(0), np.random.default_rng(0)
    found = [gibbs_draws.poisson(rate, ours) for _ in range(200)]
    np.testing.assert_array_equal(found, numpys.poisson(rate, 200))


@pytest.mark.parametrize("rate", [10.0, 27.5])
def test_draws_of_large_rates_have_the_law(rate):
    """By pieces; χ² of the counts against the law, tails put together."""
    rng = np.random.default_rng(1)
    found = np.array([gibbs_draws.poisson(rate, rng) for _ in range(20_000)])
    low, high = poisson(rate).ppf([0.01, 0.99]).astype(int)
    counts = np.bincount(np.clip(found, low, high))[low:]
    expected = poisson(rate).pmf(np.arange(low, high + 1))
    expected[0], expected[-1] = poisson(rate).cdf(low), poisson(rate).sf(high - 1)
    assert chisquare(counts, 20_000 * expected).pvalue > 1e-4
