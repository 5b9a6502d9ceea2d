"""Matches against Jaccard's index of Python's sets."""

import numpy as np
import pytest

from kplus.validation.matching import match_features, match_labels


def jaccard(A, B):
    return len(A & B) / len(A | B) if A | B else 0.0


def rows_of(labels):
    return [set(np.flatnonzero(labels == k)) for k in range(labels.max() + 1)]


@pytest.mark.parametrize("seed", range(5))
def test_labels_against_sets(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.integers(-1, 4, 60), rng.integers(-1, 6, 60)
    match = match_labels(ours, theirs, 4)
    for k, A in enumerate(rows_of(ours)):
        index = [jaccard(A, B) for B in rows_of(theirs)]
        assert match.jaccard[k] == pytest.approx(max(index))
        assert match.best[k] == np.argmax(index)
        p, q = len(A) / 60, len(rows_of(theirs)[match.best[k]]) / 60
        assert match.by_chance[k] == pytest.approx(p * q / (p + q - p * q))
    noise = [set(np.flatnonzero(labels < 0)) for labels in (ours, theirs)]
    assert match.noise == pytest.approx(jaccard(*noise))
    same = np.where(ours < 0, theirs < 0, theirs == match.best[ours])
    np.testing.assert_array_equal(match.agreement, same)


@pytest.mark.parametrize("seed", range(5))
def test_features_against_sets(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.random((40, 3)) < 0.4, rng.random((40, 5)) < 0.4
    match = match_features(ours, theirs)
    sets = [[set(np.flatnonzero(bits)) for bits in Z.T] for Z in (ours, theirs)]
    for k, A in enumerate(sets[0]):
        index = [jaccard(A, B) for B in sets[1]]
        assert match.jaccard[k] == pytest.approx(max(index))
    for n in range(40):
        A = set(np.flatnonzero(ours[n]))
        B = {k for k in range(3) if theirs[n, match.best[k]]}
        assert match.agreement[n] == pytest.approx(jaccard(A, B) if A | B else 1.0)


def test_weight_two_is_the_row_twice():
    rng = np.random.default_rng(0)
    ours, theirs = rng.integers(-1, 3, 30), rng.integers(-1, 3, 30)
    weights = rng.integers(1, 4, 30)
    one = match_labels(ours, theirs, 3, weights.astype(float))
    other = match_labels(np.repeat(ours, weights), np.repeat(theirs, weights), 3)
    np.testing.assert_allclose(one.jaccard, other.jaccard)
    np.testing.assert_allclose(one.by_chance, other.by_chance)
    assert one.noise == pytest.approx(other.noise)
    bits = ours[:, None] == np.arange(3), theirs[:, None] == np.arange(3)
    by_bits = match_features(*bits, weights.astype(float))
    np.testing.assert_allclose(by_bits.jaccard, one.jaccard)


def test_groups_without_rows_or_matches():
    none = match_labels(np.zeros(4, int), np.full(4, -1), 2)
    np.testing.assert_array_equal(none.jaccard, [0.0, np.nan])
    np.testing.assert_array_equal(none.agreement, np.zeros(4))
    nothing = match_features(np.ones((4, 1), bool), np.zeros((4, 0), bool))
    np.testing.assert_array_equal(nothing.jaccard, [0.0])
    np.testing.assert_array_equal(nothing.agreement, np.zeros(4))
