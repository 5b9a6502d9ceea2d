"""The valley test against brute force, and on rows with and without a valley."""

import itertools

import numpy as np
import pytest

from kplus.tree.valley import valley_evidence


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
