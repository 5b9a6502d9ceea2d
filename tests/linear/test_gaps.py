"""Columns with the same gaps share ZᵀZ; scattered gaps take the shorter lists."""

import numpy as np
import pytest

from kplus.linear.gaps import Gaps, whole


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("binary", [True, False])
def test_gram_of_scattered_gaps(share, binary):
    rng = np.random.default_rng(0)
    missing = rng.random((80, 12)) < share
    Z = (rng.random((80, 5)) < 0.4) * (1.0 if binary else rng.gamma(1.0, size=(80, 5)))
    gaps = Gaps.of(missing)
    assert gaps.scattered
    S = gaps.gram(Z)
    for d in range(12):
        seen = Z[~missing[:, d]]
        np.testing.assert_allclose(S[gaps.group[d]], seen.T @ seen, atol=1e-12)
    assert gaps.observed == np.count_nonzero(~missing)


def test_few_patterns_are_not_scattered():
    missing = np.zeros((80, 12), bool)
    missing[40:, :6] = True
    assert not Gaps.of(missing).scattered
    assert not whole(80, 12).scattered
    missing[3, 11] = True
    assert not Gaps.of(missing).scattered


def test_lists_hold_the_shorter_side():
    missing = np.array([[0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 0, 0]], bool)
    missing = np.column_stack([missing, [0, 1, 0]]).astype(bool)
    gaps = Gaps.of(missing)
    starts, groups, signs = gaps.shorter
    for p, known in enumerate(gaps.known):
        listed = np.zeros(len(known))
        listed[groups[starts[p] : starts[p + 1]]] = 1.0
        np.testing.assert_array_equal(listed if signs[p] > 0 else 1.0 - listed, known)
        assert 2 * listed.sum() <= len(known)
