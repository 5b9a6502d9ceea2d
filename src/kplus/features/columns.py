"""Columns added to Z, or replaced: splits of what the others leave."""

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.features.kernels_collapsed import SINGLE, improve
from kplus.features.kernels_columns import seed_columns
from kplus.features.rows import Bits

__all__ = ["add_column", "replace_columns"]


def add_column(
    X: Array, weights: Array, Z: Bits, draws: Array, n_refine: int
) -> tuple[Bits, float]:
    """Z with one more column, and what it gains."""
    more = _wider(Z, Z.shape[1] + 1)
    gain = seed_columns(X, weights, more, Z.shape[1], draws[None], n_refine)
    return more, float(gain)


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
    return new, float(error)


def _wider(Z: Bits, K: int) -> Bits:
    """Z with columns of zeros behind its own."""
    wider = np.zeros((len(Z), K), np.uint8)
    wider[:, : Z.shape[1]] = Z
    return wider
