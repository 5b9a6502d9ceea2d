"""How nonnegative factors converge."""

from dataclasses import replace

import numpy as np

from kplus.ibp.factors import TruncatedFactors
from kplus.linear.sums import LinearSums


def test_factors_are_precise_once_hardly_any_row_changes():
    """Features that overlap take many rounds; while rows still change, few are made."""
    rng = np.random.default_rng(0)
    Z = (rng.random((300, 3)) < 0.7).astype(float)
    X = Z @ rng.uniform(1.0, 4.0, (3, 5)) + 0.1 * rng.normal(size=(300, 5))
    sums = LinearSums(
        np.zeros((3, 5)), (Z.T @ Z)[None], np.zeros(5, int), Z.T @ X,
        np.sum(X * X), 300.0, Z.sum(axis=0),
    )  # fmt: skip

    def refreshed(factors, changed):
        return factors.refreshed(replace(sums, changed=changed), 0.01, 4.0)

    start = TruncatedFactors.near(np.ones((3, 5)), 1.0)
    rough, precise = refreshed(start, 300), refreshed(start, 0)
    rest = precise
    for _ in range(20):
        rest = refreshed(rest, 0)
    off = [np.abs(one.mean - rest.mean).max() for one in (rough, precise)]
    assert 0.0 < off[1] < 0.1 * off[0]
    # The line is drawn at two rows of a hundred.
    np.testing.assert_array_equal(refreshed(start, 6).mean, precise.mean)
    np.testing.assert_array_equal(refreshed(start, 7).mean, rough.mean)
