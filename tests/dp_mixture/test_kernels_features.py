"""Scores and sums through t(x), against matrix products."""

import numpy as np
import pytest

from kplus.dp_mixture.kernels_features import add_features, score_candidates
from mixture_reference import some_shares

SHAPES = [(1, 1, 1), (1, 4, 3), (25, 1, 2), (30, 5, 6), (0, 2, 2)]


@pytest.mark.parametrize(("n", "M", "K"), SHAPES)
def test_scores_of_candidates(n, M, K):
    rng = np.random.default_rng(n + M)
    F, eta, bias = rng.normal(size=(n, M)), rng.normal(size=(K, M)), rng.normal(size=K)
    candidates = rng.integers(-1, K, size=(n, 4)).astype(np.int32)
    out = np.full((n, 4), np.nan)
    score_candidates(F, candidates, eta, bias, out)
    for i in range(n):
        for c, k in enumerate(candidates[i]):
            expected = -np.inf if k < 0 else F[i] @ eta[k] + bias[k]
            assert out[i, c] == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("n", "M", "K"), SHAPES)
def test_sums_by_component(n, M, K):
    """They are added to what is there; component 0 has no rows where there are more."""
    F = np.random.default_rng(M).normal(size=(n, M))
    shares = some_shares(n, K) if n else np.empty((0, K))
    if K > 1:
        shares[:, 0] = 0.0
    k, rows = np.nonzero(shares.T)
    starts = np.searchsorted(k, np.arange(K + 1)).astype(np.int64)
    out = np.ones((K, M))
    add_features(
        F, starts, rows.astype(np.int64), np.ascontiguousarray(shares[rows, k]), out
    )
    np.testing.assert_allclose(out, 1.0 + shares.T @ F, rtol=1e-12, atol=1e-13)
