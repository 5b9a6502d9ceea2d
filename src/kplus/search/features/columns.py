"""Columns added to Z, or replaced: splits of what the others leave."""

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray
from kplus.kernels.collapsed import SINGLE, leftovers, refit
from kplus.search.features.improve import improve
from kplus.search.features.rows import Bits

__all__ = ["add_column", "replace_columns", "seed_columns"]


def add_column(
    X: Array, weights: Array, Z: Bits, draws: Array, n_refine: int
) -> tuple[Bits, float]:
    """Z with one more column, and what it gains."""
    more = _wider(Z, Z.shape[1] + 1)
    gain = seed_columns(X, weights, more, Z.shape[1], draws[None], n_refine)
    return more, gain


def replace_columns(
    X: Array,
    weights: Array,
    squares: Array,
    Z: Bits,
    locked: int,
    chosen: IntArray,
    draws: Array,
    max_sweeps: int,
    target: float,
) -> tuple[Bits, float]:
    """Z with the chosen columns replaced, repaired by single flips; its error."""
    new = _wider(np.delete(Z, chosen, axis=1), Z.shape[1])
    seed_columns(X, weights, new, Z.shape[1] - len(chosen), draws, 0)
    error = improve(X, weights, squares, new, locked, SINGLE, max_sweeps, target)
    return new, error


def seed_columns(
    X: Array, weights: Array, Z: Bits, first: int, draws: Array, n_refine: int
) -> float:
    """Fill the columns of Z from `first` on, each a split of what others leave.

    `draws` has a row for each of them. Returns what the last one gains.
    """
    K, D = Z.shape[1], X.shape[1]
    H, A, G = np.empty((K, K)), np.empty((K, D)), np.empty((K, K))
    R, gain = np.empty_like(X), 0.0
    for k in range(first, K):
        gain = 0.0
        if refit(X, weights, Z, k, H, A, G) == -np.inf:
            continue
        leftovers(X, Z, k, A, R)
        sides, sums = _splits(R, weights, draws[k - first], n_refine)
        gains = _gains(weights, Z[:, :k], H[:k, :k], sides, sums)
        best = int(np.argmax(gains))
        gain = float(gains[best])
        Z[:, k] = sides[best] if gain > 0.0 else 0
    return gain


def _splits(
    R: Array, weights: Array, draws: Array, n_refine: int
) -> tuple[NDArray[np.bool_], Array]:
    """Sign splits of the residuals, one for each row of `draws`, and their summed rows.

    A split goes along the difference of a row drawn by cost and one drawn evenly, and
    is refined: the direction becomes the summed residuals of its side.
    """
    N = len(R)
    costs = np.cumsum(weights * np.einsum("nd,nd->n", R, R))
    i = np.searchsorted(costs, draws[:, 0] * costs[-1], side="right")
    j = (draws[:, 1] * N).astype(np.int64)
    along = R[np.minimum(i, N - 1)] - R[np.minimum(j, N - 1)]
    for _ in range(n_refine + 1):
        sides = along @ R.T > 0.0
        along = (weights * sides) @ R
    return sides, along


def _gains(
    weights: Array, Z: Bits, H: Array, sides: NDArray[np.bool_], sums: Array
) -> Array:
    """How much the error falls with each side as a column.

    ‖sums‖² over what the column has of its own, beside those of Z.
    """
    weighted = weights * sides
    shared, whole = weighted @ Z, weighted.sum(axis=1)
    own = whole - np.einsum("ci,ij,cj->c", shared, H, shared)
    own[own <= 1e-9 * whole] = np.inf
    gains: Array = np.einsum("cd,cd->c", sums, sums) / own
    return gains


def _wider(Z: Bits, K: int) -> Bits:
    """Z with columns of zeros behind its own."""
    wider = np.zeros((len(Z), K), np.uint8)
    wider[:, : Z.shape[1]] = Z
    return wider
