"""Chains over features: parts against dense formulas, the whole against its prior.

Tests marked slow are Geweke's, which compares what the chain makes of data drawn from
its own state with draws from the prior, and simulation-based calibration.
"""

import numpy as np
import pytest
from scipy.stats import gamma, halfnorm, invgamma, norm

from gibbs_reference import class_of, log_evidence, log_prior, posterior, surprise
from kplus.ibp.gibbs.chain import Settings, Start, run_chain
from kplus.ibp.gibbs.conditionals import (
    Posteriors,
    draw_nonnegative,
    expected_bits,
    observe,
)
from kplus.ibp.gibbs.samplers import make_chain
from kplus.ibp.gibbs.scales import (
    Hyperprior,
    Scales,
    Spectrum,
    draw_alpha,
    draw_collapsed_scales,
    draw_variance,
)
from kplus.ibp.gibbs.start import draw_ibp, tidy
from kplus.ibp.prior import harmonic

KINDS = {
    "accelerated": ("accelerated", False),
    "collapsed": ("collapsed", False),
    "uncollapsed": ("uncollapsed", False),
    "nonnegative": ("uncollapsed", True),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_way = pytest.mark.parametrize("enumerate_new", [True, False])
GIVEN = Hyperprior(None, None, None)
WEAK = Hyperprior((2.0, 2.0), (5.0, 4.0), (5.0, 4.0))
SCALES = Scales(1.5, 0.5, 2.0)


def settings(kind, enumerate_new=True, most=None, hyper=GIVEN):
    sampler, nonnegative = KINDS[kind]
    return Settings(sampler, nonnegative, enumerate_new, most, hyper)


def table(N, D, share=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) + 1.0
    X[rng.random((N, D)) < share] = np.nan
    return X


def some_bits(N, K, seed=0):
    Z = (np.random.default_rng(seed).random((N, K)) < 0.5).astype(np.uint8)
    Z[:K] |= np.eye(N, K, dtype=np.uint8)[:K]
    return Z


# ------------------------------------------------------------------- factors given Z


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_gaussian_factors(share):
    X, Z = table(7, 4, share), some_bits(7, 3)
    factors = Posteriors(Z.astype(float), observe(X), 0.5, 2.0)
    expected = log_evidence(X, Z, 0.5, 2.0)
    assert factors.log_evidence() == pytest.approx(expected, rel=1e-10)
    rng = np.random.default_rng(0)
    draws = np.array([factors.draw(rng) for _ in range(4000)])
    for d, x in enumerate(X.T):
        seen = ~np.isnan(x)
        z = Z[seen].astype(float)
        cov = np.linalg.inv(z.T @ z / 0.5 + np.eye(3) / 2.0)
        mean = cov @ z.T @ x[seen] / 0.5
        np.testing.assert_allclose(factors.mean()[:, d], mean, rtol=1e-9)
        np.testing.assert_allclose(draws[:, :, d].mean(axis=0), mean, atol=0.08)
        np.testing.assert_allclose(np.cov(draws[:, :, d].T), cov, atol=0.06)


def test_nonnegative_factors():
    """Means of draws are those of Gaussian draws that happen to be positive."""
    X, Z = table(6, 2, 0.2), some_bits(6, 2).astype(float)
    data, rng = observe(X), np.random.default_rng(1)
    A, mean = draw_nonnegative(np.ones((2, 2)), Z, data, 0.5, 2.0, rng, 6000)
    assert A.min() >= 0.0
    gaussian = Posteriors(Z, data, 0.5, 2.0)
    draws = np.array([gaussian.draw(rng) for _ in range(40_000)])
    for d in range(2):
        inside = draws[(draws[:, :, d] >= 0.0).all(axis=1)][:, :, d]
        np.testing.assert_allclose(mean[:, d], inside.mean(axis=0), atol=0.04)


def test_no_features():
    data = observe(table(5, 3, 0.3))
    factors = Posteriors(np.zeros((5, 0)), data, 0.5, 2.0)
    assert factors.mean().shape == (0, 3)
    expected = norm(0, np.sqrt(0.5)).logpdf(data.X[~np.isnan(table(5, 3, 0.3))]).sum()
    assert factors.log_evidence() == pytest.approx(expected)


# --------------------------------------------------------------------------- scales


def test_the_evidence_from_a_spectrum():
    X, Z = table(8, 5), some_bits(8, 3)
    Zf = Z.astype(float)
    spectrum = Spectrum.of(Zf, Zf.T @ X, float((X**2).sum()), 5)
    for noise, factor in ((0.5, 2.0), (3.0, 0.1), (1e-3, 1.0)):
        expected = log_evidence(X, Z, noise, factor)
        assert spectrum.log_evidence(noise, factor) == pytest.approx(expected, rel=1e-9)


def test_collapsed_scales_are_drawn_from_their_posterior():
    X, Z = table(6, 2), some_bits(6, 2)
    Zf = Z.astype(float)
    spectrum = Spectrum.of(Zf, Zf.T @ X, float((X**2).sum()), 2)
    t = np.linspace(-4, 4, 161)
    grid = np.array(
        [
            [
                spectrum.log_evidence(np.exp(a), np.exp(b))
                + WEAK.log_density(Scales(1.0, np.exp(a), np.exp(b)))
                + a
                + b
                for b in t
            ]
            for a in t
        ]
    )
    p = np.exp(grid - grid.max())
    p /= p.sum()
    rng, scales, draws = np.random.default_rng(2), Scales(1.0, 1.0, 1.0), []
    for _ in range(4000):
        scales = draw_collapsed_scales(spectrum, scales, WEAK, rng)
        draws.append((np.log(scales.noise), np.log(scales.factor)))
    expected = (p.sum(axis=1) @ t, p.sum(axis=0) @ t)
    np.testing.assert_allclose(np.mean(draws, axis=0), expected, atol=0.05)
    spread = np.sqrt((p.sum(axis=1) @ t**2, p.sum(axis=0) @ t**2) - np.square(expected))
    np.testing.assert_allclose(np.std(draws, axis=0), spread, atol=0.05)


@pytest.mark.parametrize("kind", ["accelerated", "uncollapsed"])
def test_noise_is_not_inferred_to_nothing(kind):
    """Rows without noise: the scales stay within what a float64 can tell apart."""
    Z = some_bits(12, 2)
    X = Z @ np.array([[1.0, 2, 0], [0, 1, 3]])
    hyper = Hyperprior(None, (1.0, 1e-20), (1.0, 1.0))
    start = Start(np.hstack([Z, Z]), Scales(1.0, 1.0, 1.0))
    rng = np.random.default_rng(0)
    chain = make_chain(observe(X), settings(kind, hyper=hyper), start, rng)
    for _ in range(50):
        chain.sweep()
        assert chain.scales.noise >= 1e-8 * chain.scales.factor
        assert np.isfinite(chain.log_joint)


def test_scales_that_are_given_stay():
    X, Z = table(6, 2), some_bits(6, 2).astype(float)
    spectrum = Spectrum.of(Z, Z.T @ X, float((X**2).sum()), 2)
    rng = np.random.default_rng(0)
    assert draw_collapsed_scales(spectrum, SCALES, GIVEN, rng) == SCALES
    assert draw_alpha(3, 6, SCALES, GIVEN, None, rng) == SCALES
    only = Hyperprior(None, (1.0, 1.0), None)
    found = draw_collapsed_scales(spectrum, SCALES, only, rng)
    assert found.noise != SCALES.noise
    assert (found.alpha, found.factor) == (SCALES.alpha, SCALES.factor)


@pytest.mark.parametrize("most", [None, 3])
def test_alpha_given_the_number_of_features(most):
    K, N, rng = 3, 10, np.random.default_rng(3)
    t = np.linspace(1e-3, 25, 20_000)
    H = harmonic(N)
    log_p = gamma(2.0, scale=0.5).logpdf(t) + K * np.log(t) - t * H
    if most is not None:
        j = np.arange(most + 1)[:, None]
        terms = (t * H) ** j / np.cumprod(np.maximum(j, 1), axis=0)
        log_p -= np.log(terms.sum(axis=0)) - t * H
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    scales, draws = SCALES, []
    for _ in range(8000):
        scales = draw_alpha(K, N, scales, WEAK, most, rng)
        draws.append(scales.alpha)
    mean = p @ t
    assert np.mean(draws) == pytest.approx(mean, rel=0.04)
    assert np.std(draws) == pytest.approx(np.sqrt(p @ t**2 - mean**2), rel=0.08)


def test_a_limit_far_below_the_mean():
    """Probabilities too small for a float64 have logarithms, and prefer small α."""
    rng, scales = np.random.default_rng(0), Scales(5000.0, 1.0, 1.0)
    for _ in range(30):
        scales = draw_alpha(2, 10, scales, WEAK, 2, rng)
    assert scales.alpha < 100.0


def test_variances_are_inverse_gamma():
    rng = np.random.default_rng(4)
    draws = [draw_variance((3.0, 2.0), 8, 6.0, rng) for _ in range(5000)]
    expected = invgamma(7.0, scale=5.0)
    assert np.mean(draws) == pytest.approx(expected.mean(), rel=0.03)
    assert np.std(draws) == pytest.approx(expected.std(), rel=0.1)


# ---------------------------------------------------------------------- the log-joint


def hyper_density(scales):
    return (
        gamma(2.0, scale=0.5).logpdf(scales.alpha)
        + invgamma(5.0, scale=4.0).logpdf(scales.noise)
        + invgamma(5.0, scale=4.0).logpdf(scales.factor)
    )


@every_kind
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("most", [None, 2])
def test_the_log_joint(kind, share, most):
    """Against the probability of a left-ordered class: it has that many orders."""
    X = table(5, 3, share)
    start = Start(some_bits(5, 2), SCALES)
    rng = np.random.default_rng(5)
    chain = make_chain(observe(X), settings(kind, most=most, hyper=WEAK), start, rng)
    for _ in range(3):
        chain.sweep()
    Z, s = chain.bits(), chain.scales
    orders = np.arange(1, chain.K + 1).prod()
    for repeats in np.unique(Z, axis=1, return_counts=True)[1]:
        orders //= np.arange(1, repeats + 1).prod()
    expected = log_prior(Z, s.alpha) - np.log(orders) + hyper_density(s)
    if most is not None:
        mean = s.alpha * harmonic(5)
        expected -= np.log(np.exp(-mean) * (1 + mean + mean**2 / 2))
    if KINDS[kind][0] == "uncollapsed":
        law = halfnorm if KINDS[kind][1] else norm
        expected += law(scale=np.sqrt(s.factor)).logpdf(chain.A).sum()
        fit = norm(Z @ chain.A, np.sqrt(s.noise)).logpdf(X)
        expected += np.nansum(fit)
    else:
        expected += log_evidence(X, Z, s.noise, s.factor)
    assert chain.log_joint == pytest.approx(expected, rel=1e-9)


# ------------------------------------------------------------------------- whole chains


@pytest.mark.slow
@every_kind
@every_way
def test_a_sweep_keeps_the_posterior(kind, enumerate_new):
    """From draws of the posterior of a table with gaps, one sweep leads to such."""
    rng, nonnegative = np.random.default_rng(6), KINDS[kind][1]
    X = table(3, 2)
    X[0, 0] = np.nan
    found, p = posterior(X, *vars_of(SCALES), 2, nonnegative)
    index = {class_of(Z): i for i, Z in enumerate(found)}
    counts, size = np.zeros(len(p)), 4000
    # Stratified: as many from each as belong to it.
    starts = np.searchsorted(np.cumsum(p), (np.arange(size) + rng.random()) / size)
    data, how = observe(X), settings(kind, enumerate_new, 2)
    for i in np.minimum(starts, len(p) - 1):
        chain = make_chain(data, how, Start(found[i], SCALES), rng)
        for _ in range(15 if nonnegative else 0):
            chain.A = chain._draw_factors(chain.A)
        chain.sweep()
        counts[index[class_of(chain.bits())]] += 1
    assert surprise(counts, p * size) > 1e-3


def vars_of(scales):
    return scales.alpha, scales.noise, scales.factor


def test_collapsed_and_accelerated_are_the_same_chain():
    """They differ in arithmetic only: the same random numbers, the same Z."""
    X = table(20, 4, 0.1)
    chains = [
        make_chain(
            observe(X),
            settings(kind, hyper=WEAK),
            Start(some_bits(20, 3), SCALES),
            np.random.default_rng(7),
        )
        for kind in ("collapsed", "accelerated")
    ]
    for _ in range(30):
        for chain in chains:
            chain.sweep()
        np.testing.assert_array_equal(chains[0].bits(), chains[1].bits())
    assert chains[0].log_joint == pytest.approx(chains[1].log_joint, rel=1e-8)


def test_wide_tables_are_turned():
    """Only inner products of rows count, and the number of columns."""
    X = table(6, 40)
    how, start = settings("accelerated", hyper=WEAK), Start(some_bits(6, 2), SCALES)
    wide = make_chain(observe(X), how, start, np.random.default_rng(8))
    assert wide._table.X.shape == (6, 6)
    for _ in range(5):
        wide.sweep()
    Z, s = wide.bits(), wide.scales
    evidence = log_evidence(X, Z, s.noise, s.factor)
    assert wide.log_joint - wide._log_prior() == pytest.approx(evidence, rel=1e-9)
    expected = Posteriors(Z.astype(float), observe(X), s.noise, s.factor).mean()
    np.testing.assert_allclose(wide.mean_factors(wide.keep()), expected)


@every_kind
def test_arrays_grow_with_the_features(kind):
    """Arrays grow as features come, and no feature is without rows."""
    rng = np.random.default_rng(9)
    X = np.abs(rng.normal(size=(30, 3))) * 5.0
    start = Start(np.zeros((30, 0), np.uint8), Scales(60.0, 1e-2, 1.0))
    chain = make_chain(observe(X), settings(kind), start, rng)
    for _ in range(10):
        chain.sweep()
    assert chain.K > 15
    counts = chain.bits().sum(axis=0)
    assert counts.min() > 0
    np.testing.assert_array_equal(counts, chain.counts[: chain.K])


@every_kind
@every_way
def test_the_limit_holds(kind, enumerate_new):
    X = np.abs(table(12, 3)) * 4.0
    start = Start(some_bits(12, 2), Scales(20.0, 0.01, 1.0))
    rng = np.random.default_rng(10)
    chain = make_chain(observe(X), settings(kind, enumerate_new, 4), start, rng)
    numbers = []
    for _ in range(40):
        chain.sweep()
        numbers.append(chain.K)
    assert max(numbers) == 4


@every_kind
def test_one_row(kind):
    chain = make_chain(
        observe(np.array([[3.0, 4.0]])),
        settings(kind, hyper=WEAK),
        Start(np.ones((1, 1), np.uint8), SCALES),
        np.random.default_rng(0),
    )
    for _ in range(20):
        chain.sweep()
        assert np.isfinite(chain.log_joint)


# ---------------------------------------------------------------------------- runs


def a_chain(kind="accelerated", seed=0):
    X = table(15, 3)
    start = Start(some_bits(15, 2), SCALES)
    rng = np.random.default_rng(seed)
    return make_chain(observe(X), settings(kind, hyper=WEAK), start, rng)


@every_kind
def test_what_a_run_notes(kind):
    found = run_chain(a_chain(kind), n_samples=4, burn_in=3, thin=2, store=True)
    assert len(found.history) == 3 + 4 * 2
    kept = slice(4, None, 2)  # sweeps 5, 7, 9 and 11
    np.testing.assert_array_equal(found.sizes, found.numbers[kept])
    assert found.log_joint == found.history[kept].max()
    assert found.samples.shape == (2, found.sizes.sum())
    best = int(np.argmax(found.history[kept]))
    ends = np.cumsum(found.sizes)
    packed = found.samples[:, ends[best] - found.sizes[best] : ends[best]]
    np.testing.assert_array_equal(np.unpackbits(packed, axis=0, count=15), found.Z)
    assert found.components.shape == (found.Z.shape[1], 3)
    assert found.scales.alpha in found.alphas[kept]


def test_a_callback_ends_a_run():
    seen = []

    def callback(info):
        seen.append((info.iteration, info.objective, info.params.K))
        return info.iteration == 3

    found = run_chain(a_chain(), 10, 10, 1, store=True, callback=callback)
    assert len(seen) == len(found.history) == 3
    assert found.log_joint == found.history[-1]
    assert found.samples is None
    assert len(found.sizes) == 0


def test_MB_15_the_prior_has_alpha_harmonic_features():
    rng = np.random.default_rng(11)
    draws = [draw_ibp(5, 1.5, None, rng) for _ in range(3000)]
    assert np.mean([Z.shape[1] for Z in draws]) == pytest.approx(
        1.5 * harmonic(5), rel=0.05
    )
    rows = np.array([Z.sum(axis=1) for Z in draws])
    np.testing.assert_allclose(rows.mean(axis=0), 1.5, rtol=0.08)
    assert all(Z.sum(axis=0).min(initial=1) > 0 for Z in draws)
    assert draw_ibp(50, 9.0, 4, rng).shape == (50, 4)


def test_tidy():
    Z = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0]], np.uint8)
    A = np.arange(8.0).reshape(4, 2)
    kept, factors = tidy(Z, A, None)
    np.testing.assert_array_equal(kept, Z[:, [0, 2, 3]])
    np.testing.assert_array_equal(factors, A[[0, 2, 3]])
    kept, factors = tidy(Z, None, 2)
    np.testing.assert_array_equal(kept, Z[:, [0, 2]])
    assert factors is None


class Blocks:
    n_rows, n_features, block_rows = 5, 3, 2

    def __init__(self, X):
        self.X = X

    def read(self, i):
        return self.X[2 * i : 2 * i + 2]


@pytest.mark.parametrize("K", [0, 2, 13])
def test_expected_bits_of_rows_with_gaps(K):
    """As if the columns without a value did not exist."""
    rng = np.random.default_rng(12)
    X, A, shares = table(5, 3, 0.4, seed=3), rng.normal(size=(K, 3)), rng.random(K)
    found = expected_bits(Blocks(X), A, shares, 0.5)
    assert found.shape == (5, K)
    for x, row in zip(X, found, strict=True):
        seen = ~np.isnan(x)

        class One(Blocks):
            n_rows, n_features = 1, int(seen.sum())

        alone = expected_bits(One(x[None, seen]), A[:, seen], shares, 0.5)
        np.testing.assert_allclose(row, alone[0], atol=1e-9)


# ------------------------------------------------------------ Geweke and calibration


def draw_state(N, D, nonnegative, rng):
    """Scales, Z and A from the prior."""
    alpha = rng.gamma(2.0) / 2.0
    Z = draw_ibp(N, alpha, None, rng)
    s = Scales(alpha, 4.0 / rng.gamma(5.0), 4.0 / rng.gamma(5.0))
    A = np.sqrt(s.factor) * rng.normal(size=(Z.shape[1], D))
    return Start(Z, s, np.abs(A) if nonnegative else A)


def draw_rows(start, mask, rng):
    X = start.Z @ start.A + np.sqrt(start.scales.noise) * rng.normal(size=mask.shape)
    X[mask] = np.nan
    return X


def statistics(start, X):
    counts = start.Z.sum(axis=0)
    s = start.scales
    return (
        len(counts),
        counts.sum(),
        (counts**2).sum(),
        np.log(s.alpha),
        np.log(s.noise),
        np.log(s.factor),
        np.log(np.nanmean(X**2)),
    )


@pytest.mark.slow
@every_kind
@every_way
@pytest.mark.parametrize("gaps", [False, True])
def test_geweke(kind, enumerate_new, gaps):
    N, D, size = 4, 2, 5000
    rng, nonnegative = np.random.default_rng(13), KINDS[kind][1]
    mask = np.zeros((N, D), bool)
    if gaps:
        mask[0, 0] = mask[1, 1] = mask[2, 1] = True
    prior = []
    for _ in range(4 * size):
        state = draw_state(N, D, nonnegative, rng)
        prior.append(statistics(state, draw_rows(state, mask, rng)))
    how, chain_values = settings(kind, enumerate_new, hyper=WEAK), []
    state = draw_state(N, D, nonnegative, rng)
    for _ in range(size):
        X = draw_rows(state, mask, rng)
        start = Start(state.Z, state.scales, state.A if nonnegative else None)
        chain = make_chain(observe(X), how, start, rng)
        chain.sweep()
        Z, s = chain.bits(), chain.scales
        A = getattr(chain, "A", None)
        if A is None:
            A = np.sqrt(s.factor) * rng.normal(size=(chain.K, D))
        state = Start(Z, s, A)
        chain_values.append(statistics(state, X))
    prior, chain_values = np.array(prior), np.array(chain_values)
    batches = chain_values.reshape(50, -1, prior.shape[1]).mean(axis=1)
    error = np.sqrt(
        batches.var(axis=0, ddof=1) / 50 + prior.var(axis=0, ddof=1) / len(prior)
    )
    z = (chain_values.mean(axis=0) - prior.mean(axis=0)) / error
    assert np.abs(z).max() < 4.0, z


@pytest.mark.slow
@every_kind
@every_way
def test_simulation_based_calibration(kind, enumerate_new):
    """The truth ranks anywhere among draws of the posterior, equally often."""
    N, D, kept, runs = 5, 3, 9, 250
    rng, nonnegative = np.random.default_rng(14), KINDS[kind][1]
    how, ranks = settings(kind, enumerate_new, hyper=WEAK), []
    mask = np.zeros((N, D), bool)
    mask[0, 0] = True
    for _ in range(runs):
        truth = draw_state(N, D, nonnegative, rng)
        X = draw_rows(truth, mask, rng)
        other = draw_state(N, D, nonnegative, rng)
        start = Start(other.Z, other.scales, other.A if nonnegative else None)
        chain = make_chain(observe(X), how, start, rng)
        draws = []
        for sweep in range(15 + 10 * kept):
            chain.sweep()
            if sweep >= 15 and sweep % 10 == 4:
                s = chain.scales
                draws.append((chain.K, s.alpha, s.noise, s.factor))
        t = truth.scales
        real = np.array((truth.Z.shape[1], t.alpha, t.noise, t.factor))
        draws = np.array(draws[:kept])
        ties = (draws == real).sum(axis=0)
        ranks.append((draws < real).sum(axis=0) + rng.integers(0, ties + 1))
    for values in np.array(ranks).T:
        counts = np.bincount(values, minlength=kept + 1)
        assert surprise(counts, np.full(kept + 1, runs / (kept + 1))) > 1e-3
