"""Growth by best splits, and swaps."""

import numpy as np
import pytest

import reference
from kplus.core.job import Sample
from kplus.dp_means.params import Scaling
from kplus.dp_means.search import plus_plus
from kplus.dp_means.splits import grow, swap


def rows(seed=0, n=150, D=2):
    return np.random.default_rng(seed).normal(scale=3.0, size=(n, D))


def scaled_sample(X, weights=None):
    """All rows as a sample in scaled units."""
    return Sample(Scaling.fit(X).transform(X), weights, 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_growth_passes_through_every_number(weighted):
    X = rows(n=90)
    weights = np.random.default_rng(0).uniform(0.1, 2.0, 90) if weighted else None
    sample = scaled_sample(X, weights)
    path = grow(sample, 12, lambda K: 1, 1e-6)
    np.testing.assert_array_equal(path.K, np.arange(1, 13))
    assert np.all(np.diff(path.sse) < 0.0)
    labels, d2 = reference.nearest(sample.rows, path.centers)
    w = sample.weight()
    assert path.sse[-1] == pytest.approx(np.sum(w * d2), rel=1e-9)
    shares = np.bincount(labels, weights=w) / w.sum()
    entropy = -w.sum() * np.sum(shares * np.log(shares))
    assert path.entropy[-1] == pytest.approx(entropy, rel=1e-9)
    whole = reference.squared_error(
        sample.rows, 0 * labels, reference.means(sample.rows, 0 * labels, 1, w), w
    )
    assert path.sse[0] == pytest.approx(whole, rel=1e-9)


def test_growth_stops_at_distinct_rows():
    path = grow(scaled_sample(np.repeat(rows(n=3), 7, axis=0)), 10, lambda K: 1, 1e-6)
    assert path.K[-1] == 3
    assert path.sse[-1] <= 1e-25


@pytest.mark.parametrize("seed", range(4))
def test_swaps_never_make_it_worse(seed):
    sample = scaled_sample(rows(seed, 200))
    C = plus_plus(sample, np.random.default_rng(seed), 12)
    after = swap(sample, C, 1e-6)
    assert after.shape == C.shape
    before = reference.nearest(sample.rows, C)[1].sum()
    assert reference.nearest(sample.rows, after)[1].sum() <= before


def test_swaps_correct_a_bad_start():
    """Three groups, two centres in one of them and one between the others."""
    rng = np.random.default_rng(0)
    groups = np.repeat([[0.0, 0.0], [20.0, 0.0], [20.0, 20.0]], 30, axis=0)
    sample = scaled_sample(groups + rng.normal(size=(90, 2)))
    bad = np.array([sample.rows[0], sample.rows[1], sample.rows[30:].mean(axis=0)])
    after = swap(sample, bad, 1e-6)
    labels = reference.nearest(sample.rows, after)[0].reshape(3, 30)
    assert [len(set(part)) for part in labels] == [1, 1, 1]
    assert len(set(labels[:, 0])) == 3
