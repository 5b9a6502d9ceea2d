"""Whether chains have mixed, and what their draws say of the number of features."""

import numpy as np

from kplus.core.types import Array, IntArray

__all__ = ["MIXED", "TOO_FEW", "interval", "posterior_of_number", "split_r_hat"]

MIXED = 1.2  # split R-hat up to which draws pass for those of one distribution
TOO_FEW = 20  # draws of a chain: of fewer nothing can be said


def split_r_hat(draws: Array) -> float:
    """Potential scale reduction of chains that are cut in halves.

    `draws` is (chains, n). With the variance of the halves W within and B/n between,
    that is √((n − 1)/n + B/(nW)): near 1 if all halves are draws of one distribution. 1
    where nothing ever changes, infinity where each half stays at a value of its own.
    """
    n = draws.shape[1] // 2
    if n < 2:
        return float("nan")
    halves = np.concatenate([draws[:, :n], draws[:, -n:]]).astype(np.float64)
    size = float(np.max(np.abs(halves))) or 1.0
    halves = halves / size
    within = float(np.mean(np.var(halves, axis=1, ddof=1)))
    between = float(np.var(halves.mean(axis=1), ddof=1))
    if within + between <= 1e-24:
        return 1.0
    if within <= 1e-24:
        return float("inf")
    return float(np.sqrt((n - 1.0) / n + between / within))


def posterior_of_number(numbers: IntArray) -> Array:
    """The share of draws with 0, 1, 2, ... features."""
    return np.bincount(numbers) / max(len(numbers), 1)


def interval(numbers: IntArray, share: float = 0.95) -> IntArray:
    """The central interval that holds a share of the draws, both ends included."""
    tail = 0.5 * (1.0 - share)
    ends = np.quantile(numbers, [tail, 1.0 - tail], method="inverted_cdf")
    return np.asarray(ends, dtype=np.int64)
