"""Scores and sums of rows given by their statistics t(x)."""

import numpy as np

from kplus.core.kernels import fast_kernel, kernel

__all__ = ["add_features", "score_candidates"]


@fast_kernel
def score_candidates(F, candidates, eta, bias, out):
    """out[n, c] = F[n] · eta[k] + bias[k] with k = candidates[n, c]; -inf for k < 0.

    Memoized Eq. 9: E[log p(x | φ_k)] = E[φ_k]·t(x) − E[a(φ_k)].
    """
    n_rows, n_stats = F.shape
    for n in range(n_rows):
        for c in range(candidates.shape[1]):
            k = candidates[n, c]
            if k < 0:
                out[n, c] = -np.inf
                continue
            total = bias[k]
            for m in range(n_stats):
                total += F[n, m] * eta[k, m]
            out[n, c] = total


@kernel
def add_features(F, starts, rows, weights, out):
    """out[k] += Σ weights · F[rows] over the rows of component k.

    Memoized Eq. 7: s_k.
    """
    n_stats = F.shape[1]
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            n, weight = rows[i], weights[i]
            for m in range(n_stats):
                out[k, m] += weight * F[n, m]
