"""The valley test against brute force, and on rows with and without a valley."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from kplus.tree.borders import N_BINS, Axes
from kplus.tree.valley import (
    gaussian_evidence,
    probability_smooth,
    valley_evidence,
)


def log_likelihood(counts, rates):
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(counts > 0.0, counts * np.log(rates), 0.0)
    return float(np.sum(logs - rates))


def monotone(counts, sign):
    """Isotonic regression by the min-max formula."""
    B = len(counts)
    rates = np.empty(B)
    for t in range(B):
        rates[t] = max(
            min(sign * counts[a : b + 1].mean() for b in range(t, B))
            for a in range(t + 1)
        )
    return log_likelihood(counts, sign * rates) if B else 0.0


def one_mode(counts):
    return max(
        monotone(counts[:m], 1.0) + monotone(counts[m:], -1.0)
        for m in range(len(counts) + 1)
    )


def brute(counts, first, last):
    two = max(
        one_mode(counts[:v]) + one_mode(counts[v:]) for v in range(first, last + 1)
    )
    return max(two - one_mode(counts), 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_evidence_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.uniform(0.0, 6.0, 8), (4, 8)).astype(float)
    ends = np.sort(rng.integers(0, 9, (4, 2)), axis=1)
    expected = [
        brute(row, *end) for row, end in zip(counts, ends.tolist(), strict=True)
    ]
    found = valley_evidence(counts, ends[:, 0], ends[:, 1])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_no_valley_in_every_order_of_one_mode():
    for rows in itertools.permutations([0.0, 1.0, 3.0, 7.0]):
        counts = np.array([rows])
        top = int(np.argmax(counts))
        rises = np.all(np.diff(counts[0, : top + 1]) >= 0.0)
        falls = np.all(np.diff(counts[0, top:]) <= 0.0)
        found = valley_evidence(counts, np.array([0]), np.array([4]))[0]
        assert (found < 1e-9) == (rises and falls)


def test_level_on_even_rates():
    """About one in ten exceeds 5 nats, whatever the number of rows."""
    rng = np.random.default_rng(0)
    for n in (40, 1000):
        counts = rng.multinomial(n, np.full(24, 1 / 24), 200).astype(float)
        ends = np.zeros(200, int), np.full(200, 24)
        assert 0.02 < np.mean(valley_evidence(counts, *ends) > 5.0) < 0.2


def test_two_separate_groups_of_few_rows_have_a_valley():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 20), rng.normal(6, 1, 20)])
    counts = np.histogram(x, 24, (-2, 8))[0][None].astype(float)
    assert valley_evidence(counts, np.array([5]), np.array([19]))[0] > 10.0


def gaussian_axes(n, centers=(0.0, 5.0), spreads=(1.0, 2.0)):
    return Axes.spanning(
        np.zeros((n, 2), int), np.tile(centers, (n, 1)), np.tile(spreads, (n, 1))
    )


def test_evidence_of_gaussians_is_that_of_brute_force():
    rng = np.random.default_rng(0)
    axes, sizes = gaussian_axes(3), np.array([[30.0, 60.0], [1.0, 1.0], [200.0, 5.0]])
    counts = rng.poisson(5.0, (3, N_BINS)).astype(float)
    edges = np.linspace(axes.low[0], axes.high[0], N_BINS + 1)
    first, last = (int(end[0]) for end in axes.between())
    inside = slice(first, last + 1)
    for p, found in enumerate(gaussian_evidence(counts, axes, sizes)):
        rates = sum(
            sizes[p, side] * np.diff(norm(center, spread).cdf(edges))
            for side, (center, spread) in enumerate([(0.0, 1.0), (5.0, 2.0)])
        )[inside]
        some = counts[p, inside]
        two = log_likelihood(some, rates * some.sum() / rates.sum())
        assert found == pytest.approx(two - one_mode(some), abs=1e-9)


def test_gaussians_are_told_from_the_pieces_of_a_curve():
    """Both have a gap of 3.5 standard deviations between their centres."""
    rng = np.random.default_rng(0)
    n = 300
    for x, apart in (
        (np.concatenate([rng.normal(0, 1, n), rng.normal(3.46, 1, n)]), True),
        (rng.uniform(-1.73, 5.19, 2 * n), False),
    ):
        axes = gaussian_axes(1, (0.0, 3.46), (1.0, 1.0))
        edges = np.linspace(axes.low[0], axes.high[0], N_BINS + 1)
        counts = np.histogram(x, edges)[0][None].astype(float)
        evidence = gaussian_evidence(counts, axes, np.full((1, 2), float(n)))[0]
        assert (evidence > 5.0) if apart else (evidence < -5.0)


def test_axes_without_rows_or_width_tell_nothing():
    axes = Axes.spanning(np.zeros((2, 2), int), np.zeros((2, 2)), np.zeros((2, 2)))
    counts = np.stack([np.zeros(N_BINS), np.ones(N_BINS)])
    found = gaussian_evidence(counts, axes, np.ones((2, 2)))
    assert np.all(np.isfinite(found))
    assert found[0] == 0.0


def test_what_other_pairs_have_counts():
    """A doubtful pair is taken for smooth among smooth ones, and not among others."""
    doubtful, overlaps = np.array([3.0]), np.ones(21, bool)
    none, some = np.zeros(20), np.full(20, 30.0)
    curve = probability_smooth(np.append(none, doubtful), np.zeros(21), overlaps)
    groups = probability_smooth(np.append(some, doubtful), np.zeros(21), overlaps)
    assert curve[-1] > 0.8
    assert groups[-1] < 0.5
    assert np.all(curve[:-1] > 0.9)
    assert np.all(groups[:-1] < 0.1)
    # Pairs that hardly overlap do not count.
    alone = probability_smooth(
        np.append(none, doubtful), np.zeros(21), np.arange(21) == 20
    )
    assert alone[-1] == pytest.approx(groups[-1], abs=0.05)
