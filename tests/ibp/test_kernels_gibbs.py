"""Kernels of the Gibbs samplers against brute force over all Z of small tables."""

from collections import Counter

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, kstest, norm, poisson, truncnorm

from gibbs_reference import allocations, class_of, log_prior, posterior, surprise
from kplus.core.kernels_random import Draws
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


def law(
    N, width, most, enumerate_new, noise=NOISE, factor=FACTOR, alpha=ALPHA, singles=30
):
    m = np.arange(1, N)
    odds = np.concatenate(([0.0], np.log(m / (N - m))))
    limit = 2**62 if most is None else most
    most_singles = min(limit, singles)
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


def code(Z):
    """A number for the class of Z; up to three features of four rows."""
    columns = [0, 0, 0]
    columns[: Z.shape[1]] = (1 << np.arange(len(Z))) @ Z
    first, second, third = sorted(map(int, columns[:3]))
    return first + 16 * second + 256 * third


def visit_collapsed(sweep, table, post, law, rng, codes, between):
    K, Z = 0, np.asarray(post.Z)
    for i in range(len(codes)):
        for _ in range(between):
            _, K = sweep(table, post, law, 0, K, rng)
        codes[i] = code(Z[:, :K])


class Given:
    """What the law of A is made of given Z: computed once for each Z."""

    def __init__(self, Z, X, ratio):
        bits = Z.astype(float)
        self.gram, self.T = bits.T @ bits, bits.T @ X
        root = np.linalg.cholesky(self.gram + ratio * np.eye(Z.shape[1]))
        self.inverse = np.linalg.inv(root)
        self.half = self.inverse @ self.T
        self.code = code(Z)

    def draw(self, noise, rng):
        """Gaussian factors."""
        part = np.sqrt(noise) * rng.standard_normal(self.half.shape)
        return self.inverse.T @ (self.half + part)


def visit_uncollapsed(nonnegative, table, state, law, rng, codes, between):
    """Sweeps over Z, and over A in between; there are no gaps."""
    X, bits, A = np.asarray(table.X), np.asarray(state.Z), np.asarray(state.A)
    norms, pattern, K, known = np.asarray(state.norms), np.zeros(len(X.T), int), 0, {}
    sweep = sweep_nonnegative if nonnegative else sweep_gaussian
    for i in range(len(codes) * between):
        _, K = sweep(table, state, law, 0, K, rng)
        Z = bits[:, :K]
        key = K, Z.tobytes()
        if key not in known:
            known[key] = Given(Z, X, law.ratio)
        given = known[key]
        if nonnegative:
            At, T, gram = A[:K].T.copy(), given.T.T.copy(), given.gram[None]
            draw_factors(At, T, gram, pattern, law.noise, law.ratio, rng)
            A[:K] = At.T
        else:
            A[:K] = given.draw(law.noise, rng)
        norms[:K] = (A[:K] ** 2).sum(axis=1)
        if i % between == between - 1:
            codes[i // between] = given.code


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
    numbers = np.array([code(Z) for Z in found])
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


def numbers_visited(sweep, table, post, law, rng, out, between):
    K = 0
    for i in range(len(out)):
        for _ in range(between):
            _, K = sweep(table, post, law, 0, K, rng)
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
    found = {
        name: np.asarray(getattr(post, name)) for name in ("Z", "counts", "T", "H", "Q")
    }
    X, counts = np.asarray(table.X), found["counts"][:number]
    bits = found["Z"][:, :number].astype(float)
    np.testing.assert_array_equal(counts, bits.sum(axis=0))
    assert counts.min() > 0
    assert not found["Z"][:, number:].any()
    T = bits.T @ X
    H = np.linalg.inv(bits.T @ bits + rules.ratio * np.eye(number))
    A = H @ T
    Q = A @ A.T if sweep is sweep_accelerated else T @ T.T
    tolerance = {"rtol": 1e-6, "atol": 1e-6 * np.abs(H).max()}
    np.testing.assert_allclose(found["T"][:number], T, atol=1e-9)
    np.testing.assert_allclose(found["H"][:number, :number], H, **tolerance)
    np.testing.assert_allclose(
        found["Q"][:number, :number], Q, rtol=1e-6, atol=1e-6 * np.abs(Q).max()
    )
    np.testing.assert_allclose(table.squares, (X**2).sum(axis=1))


def test_observed_values_are_never_touched():
    X = rows(4, 3, True)
    data = observe(X)
    table, K, rng = data.table(data.X.copy()), 0, np.random.default_rng(0)
    post = empty_posterior(4, 3)
    for _ in range(20):
        _, K = sweep_accelerated(table, post, law(4, 3, 3, True), 0, K, rng)
    seen = ~np.isnan(X)
    filled = np.asarray(table.X)
    np.testing.assert_array_equal(filled[seen], X[seen])
    assert np.all(filled[~seen] != 0.0)


# -------------------------------------------------------------------- the small parts


@pytest.mark.parametrize("mean", [5.0, 0.5, 0.0, -0.5, -0.7, -3.0, -50.0, -1e4])
def test_draws_of_cut_gaussians(mean):
    draws = Draws(np.random.default_rng(6))
    out = np.array([positive_normal(mean, 2.0, draws) for _ in range(20_000)])
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


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
def test_evidence_of_many_columns_is_the_sum_of_theirs(scale):
    """Where products of them would be beyond a float64, too."""
    e = scale * np.random.default_rng(0).normal(size=3000)
    one, all_of_them = (observe(np.ones((1, D))) for D in (1, len(e)))
    parts = [
        evidence_of_feature(e[d : d + 1], 0.7, 1.9, one.table(one.X), 0)
        for d in range(len(e))
    ]
    table = all_of_them.table(all_of_them.X)
    found = evidence_of_feature(e, 0.7, 1.9, table, 0)
    assert found == pytest.approx(sum(parts), rel=1e-10)


def many_numbers(now, others, error, spread, law, width, out, rng):
    draws = Draws(rng)
    for i in range(len(out)):
        now = draw_number(now, others, error, spread, law, width, draws)
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


def share_of_ones(log_odds, n, rng):
    draws = Draws(rng)
    return sum(bit_is_on(log_odds, draws) for _ in range(n)) / n


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


def prior_of_singles(rate):
    """Where the noise hides everything, a draw by Metropolis is one from the prior."""
    return law(
        2, 3, None, False, noise=1e150, factor=1e-150, alpha=2.0 * rate, singles=100
    )


@pytest.mark.parametrize("rate", [1e-3, 0.7, 3.0, 9.9])
def test_draws_from_the_prior_are_those_of_numpy(rate):
    found, rng = np.empty(200, np.int64), np.random.default_rng(0)
    many_numbers(
        0, 0, 0.0, 1.0, prior_of_singles(rate), 3, found, np.random.default_rng(0)
    )
    now = 0
    for number in found:
        tried = rng.poisson(rate)
        if tried != now:
            now = tried
            rng.standard_exponential()  # to accept it
        assert number == now


@pytest.mark.parametrize("rate", [10.0, 27.5])
def test_numbers_of_large_rates_have_the_law(rate):
    """χ² of the counts against the law, tails put together."""
    found, rules = np.empty(20_000, np.int64), prior_of_singles(rate)
    many_numbers(0, 0, 0.0, 1.0, rules, 3, found, np.random.default_rng(1))
    low, high = poisson(rate).ppf([0.01, 0.99]).astype(int)
    counts = np.bincount(np.clip(found, low, high))[low:]
    expected = poisson(rate).pmf(np.arange(low, high + 1))
    expected[0], expected[-1] = poisson(rate).cdf(low), poisson(rate).sf(high - 1)
    assert chisquare(counts, 20_000 * expected).pvalue > 1e-4
