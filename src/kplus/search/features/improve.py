"""Local search over allocations of features to rows: sweeps until no row changes."""

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array
from kplus.kernels.collapsed import SINGLE, refit, sweep

__all__ = ["improve"]


def improve(
    X: Array,
    weights: Array,
    squares: Array,
    Z: NDArray[np.uint8],
    locked: int,
    flips: np.int64,
    max_sweeps: int,
    target: float,
) -> float:
    """Sweep until no row changes; return the error, infinite where Z is singular.

    Z is changed in place; `squares` are ‖x‖². Rows at rest under single flips are
    then tried with what `flips` says: PAIRS, or ALL patterns. Everything is fitted
    afresh after each sweep, so that rounding does not build up; a sweep that made
    things worse by rounding is taken back. The search is given up where two more
    sweeps that gain as much as the last would leave the error above `target`.
    """
    K, D = Z.shape[1], X.shape[1]
    H, A, G = np.empty((K, K)), np.empty((K, D)), np.empty((K, K))
    total = float(weights @ squares)
    explained: float = refit(X, weights, Z, K, H, A, G)
    for _ in range(max_sweeps):
        if explained == -np.inf:
            break
        before = Z.copy()
        changed = sweep(X, weights, squares, Z, locked, SINGLE, H, A, G)
        if flips != SINGLE and changed == 0:
            changed = sweep(X, weights, squares, Z, locked, flips, H, A, G)
        if changed == 0:
            break
        after = refit(X, weights, Z, K, H, A, G)
        if not after > explained:
            Z[:] = before
            break
        gain, explained = after - explained, after
        if total - explained - 2.0 * gain > target:
            break
    return total - explained
