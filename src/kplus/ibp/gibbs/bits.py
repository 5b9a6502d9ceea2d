"""Expected features of rows, given the factors."""

import numpy as np

from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks
from kplus.ibp.kernels_marginals import ascend_rows, exact_marginals, seed_rows

__all__ = ["EXACT_BITS", "expected_bits", "mean_field"]

EXACT_BITS = 12  # up to so many features, all 2^K patterns are summed over


def expected_bits(source: Blocks, A: Array, shares: Array, noise: float) -> Array:
    """E[Z] of all rows: exact for few features, else by mean field.

    Parameters
    ----------
    source : Blocks
        NaN where a value is missing.
    A : (K, D)
    shares : (K,)
        How probable each feature is before a row is seen.
    noise : float
        The variance σx².
    """
    odds = np.log(shares) - np.log1p(-shares)
    found = [_of_block(X, A / noise, A, odds) for _, X in read_blocks(source)]
    return np.concatenate(found)


def _of_block(X: Array, scaled: Array, A: Array, odds: Array) -> Array:
    """Rows with gaps in the same columns share their Gram matrix."""
    missing = np.isnan(X)
    c = np.where(missing, 0.0, X) @ scaled.T + odds
    out = np.empty_like(c)
    masks, group = np.unique(missing, axis=0, return_inverse=True)
    for i, mask in enumerate(masks):
        rows = np.flatnonzero(group.ravel() == i)
        G = scaled[:, ~mask] @ A[:, ~mask].T
        out[rows] = _marginals(c[rows], G)
    return out


def _marginals(c: Array, G: Array) -> Array:
    if len(G) > EXACT_BITS:
        return mean_field(c, G)
    out = np.empty_like(c)
    exact_marginals(c, G, out)
    return out


def mean_field(c: Array, G: Array, most_sweeps: int = 200, tol: float = 1e-9) -> Array:
    """Independent bits that fit best, from the best z that flips of one bit find."""
    nu, rest = np.zeros_like(c), c.copy()
    which, no_odds = np.zeros(len(c), np.int64), np.zeros(len(G))
    seed_rows(rest, G[None], which, no_odds, 1.0, nu)
    ascend_rows(rest, G[None], which, no_odds, 1.0, most_sweeps, tol, nu)
    return nu
