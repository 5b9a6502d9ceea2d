"""Groups of two fits side by side: Jaccard's index and best matches.

A group is a set of rows. Clusters are groups that share no row, noise (label -1) is no
group; features are groups that may share rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray

__all__ = ["Match", "contingency", "match_features", "match_labels"]

Bits = NDArray[np.bool_]


class Match(NamedTuple):
    """What became of the groups of one fit in another, on the same rows.

    Attributes
    ----------
    jaccard : (K,) array
        Of each group with its best match; NaN where the group has none of the rows.
    by_chance : (K,) array
        What it would be if the match had as many rows, drawn at random.
    best : (K,) array of int
        Which group that is; -1 where there is none.
    agreement : (n,) array
        How far the groups of a row are the same: 0 or 1 for clusters.
    noise : float
        Jaccard's index of the two sets of noise; NaN where the first has none.
    """

    jaccard: Array
    by_chance: Array
    best: IntArray
    agreement: Array
    noise: float


def _jaccard(shared: Array, ours: Array, theirs: Array) -> Array:
    """|A ∩ B| / |A ∪ B| of all pairs, from the weights of the sets; 0 of empty sets."""
    union = ours[:, None] + theirs[None, :] - shared
    return np.where(union > 0.0, shared / np.maximum(union, 1e-300), 0.0)


def _best(index: Array, ours: Array) -> tuple[Array, IntArray]:
    """The best match of each group, the first of equals."""
    K = len(ours)
    if index.shape[1] == 0:
        return np.where(ours > 0.0, 0.0, np.nan), np.full(K, -1)
    best = index.argmax(axis=1)
    found = index[np.arange(K), best]
    best = np.where(found > 0.0, best, -1)
    return np.where(ours > 0.0, found, np.nan), best


def _by_chance(ours: Array, theirs: Array, best: IntArray, total: float) -> Array:
    """Jaccard's index of each group and its match if they had met by chance."""
    match = np.where(best < 0, 0.0, np.append(theirs, 0.0)[best])
    shared = ours * match / total
    union = ours + match - shared
    return np.where(union > 0.0, shared / np.maximum(union, 1e-300), 0.0)


def contingency(
    ours: IntArray, theirs: IntArray, K: int, weights: Array | None = None
) -> Array:
    """Weights of the rows with each pair of labels; noise is the last line and column.

    `K` is the number of our clusters.
    """
    K_theirs = int(theirs.max(initial=-1)) + 1
    place = (ours % (K + 1)) * (K_theirs + 1) + theirs % (K_theirs + 1)
    size = (K + 1) * (K_theirs + 1)
    table = np.bincount(place, weights, size).reshape(K + 1, K_theirs + 1)
    return table.astype(np.float64)


def match_labels(
    ours: IntArray, theirs: IntArray, K: int, weights: Array | None = None
) -> Match:
    """Clusters of the same rows: `K` of ours, those of another fit; -1 is noise."""
    table = contingency(ours, theirs, K, weights)
    own, other = table.sum(axis=1), table.sum(axis=0)
    index = _jaccard(table, own, other)
    jaccard, best = _best(index[:-1, :-1], own[:-1])
    # Noise agrees with noise; a cluster without a match agrees with nothing.
    expected = np.append(np.where(best < 0, -2, best), -1)[ours]
    return Match(
        jaccard=jaccard,
        by_chance=_by_chance(own[:-1], other[:-1], best, float(own.sum())),
        best=best,
        agreement=(expected == theirs).astype(np.float64),
        noise=float(index[-1, -1]) if own[-1] > 0.0 else float("nan"),
    )


def match_features(ours: Bits, theirs: Bits, weights: Array | None = None) -> Match:
    """Features of the same rows: lines of bits, a column for each feature."""
    weight = np.ones(len(ours)) if weights is None else weights
    A, B = ours.astype(np.float64), theirs.astype(np.float64)
    weighted = A * weight[:, None]
    own, other = weighted.sum(axis=0), weight @ B
    jaccard, best = _best(_jaccard(weighted.T @ B, own, other), own)
    matched = np.zeros_like(ours)
    matched[:, best >= 0] = theirs[:, best[best >= 0]]
    both, either = (ours & matched).sum(axis=1), (ours | matched).sum(axis=1)
    agreement = np.where(either > 0, both / np.maximum(either, 1), 1.0)
    by_chance = _by_chance(own, other, best, float(weight.sum()))
    return Match(jaccard, by_chance, best, agreement, float("nan"))
