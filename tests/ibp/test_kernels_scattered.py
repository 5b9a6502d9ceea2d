"""Scattered gaps by lists: what every pattern with a Q of its own gives."""

import numpy as np
import pytest

from kplus.ibp.kernels_scattered import scattered_local_search
from kplus.ibp.kernels_submodular import rows_local_search
from kplus.linear.gaps import Gaps


def a_block(seed, share, signed=False, n=60, D=20, K=7):
    rng = np.random.default_rng(seed)
    missing = rng.random((n, D)) < share
    A = rng.normal(size=(K, D))
    A = A if signed else np.abs(A)
    X = (rng.random((n, K)) < 0.4) @ A + rng.normal(scale=0.5, size=(n, D))
    return Gaps.of(missing), np.where(missing, 0.0, X), A, rng


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_rows_choose_as_with_a_gram_matrix_of_each_pattern(seed, share, signed):
    gaps, X, A, rng = a_block(seed, share, signed)
    K = len(A)
    grams = np.einsum("kd,jd->dkj", A, A) + 0.1 * np.eye(K)
    n_groups = gaps.known.shape[1]
    grams = np.stack([grams[gaps.group == g].sum(axis=0) for g in range(n_groups)])
    slopes = rng.normal(size=(1, K))
    Q = np.tensordot(gaps.known, grams, axes=1)
    before = (rng.random((len(X), K)) < 0.3).astype(np.uint8)
    one, other = before.copy(), before.copy()
    B = X @ A.T
    linear = np.repeat(slopes, len(Q), axis=0)
    changed = rows_local_search(B, linear, Q, gaps.pattern, one)
    assert scattered_local_search(B, slopes, grams, gaps, other) == changed
    np.testing.assert_array_equal(one, other)
