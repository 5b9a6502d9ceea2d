"""Starts: samples in the units of a lens, and centres drawn from them."""

from dataclasses import replace

import numpy as np

from kplus.core.job import Sample
from kplus.core.types import Array
from kplus.dp_means.params import Lens

__all__ = ["plus_plus", "scaled"]


def scaled(sample: Sample, lens: Lens) -> Sample:
    """The rows of a sample in the units of a lens."""
    return replace(sample, rows=lens.view(sample.rows.astype(np.float64)))


def plus_plus(
    sample: Sample, rng: np.random.Generator, most: int, penalty: float = 0.0
) -> Array:
    """Draw up to `most` centres; stop when no row costs more than the penalty.

    Each further centre is a row drawn in proportion to its squared distance to the
    centres before it (Arthur & Vassilvitskii 2007), among the rows that would open
    a cluster of their own.
    """
    Y, weights = sample.rows, sample.weight()
    share = np.minimum(weights, 1.0)
    centers = [Y[rng.choice(len(Y), p=weights / weights.sum())]]
    costs = np.sum((Y - centers[0]) ** 2, axis=1)
    while len(centers) < most:
        chances = np.where(costs * share > penalty, costs * weights, 0.0)
        if chances.sum() <= 0.0:
            break
        centers.append(Y[rng.choice(len(Y), p=chances / chances.sum())])
        costs = np.minimum(costs, np.sum((Y - centers[-1]) ** 2, axis=1))
    return np.array(centers)
