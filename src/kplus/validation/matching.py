"""Groups of two fits side by side: Jaccard's index and best matches.

A group is a set of rows. Clusters are groups that share no row, noise (label -1) is no
group; features are groups that may share rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray

__all__ = ["Match", "jaccard_of_labels", "match_features", "match_labels"]

Bits = NDArray[np.bool_]


class Match(NamedTuple):
    """What became of the groups of one fit in another, on the same rows.

    Attributes
    ----------
    jaccard : (K,) array
        Of each group with its best match; NaN where the group has none of the rows.
    best : (K,) array of int
        Which group that is; -1 where there is none.
    agreement : (n,) array
        How far the groups of a row are the same: 0 or 1 for clusters.
    noise : float
        Jaccard's index of the two sets of noise; NaN where the first has none.
    """

    jaccard: Array
    best: IntArray
    agreement: Array
    noise: float


def _jaccard(shared: Array, ours: Array, theirs: Array) -> Array:
    """|A ∩ B| / |A ∪ B| of all pairs, from the weights of the sets; 0 of empty sets."""
    union = ours[:, None] + theirs[None, :] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0.0)


def _best(index: Array, ours: Array) -> tuple[Array, IntArray]:
    """The best match of each group, the first of equals."""
    K = len(ours)
    if index.shape[1] == 0:
        return np.where(ours > 0.0, 0.0, np.nan), np.full(K, -1)
    best = index.argmax(axis=1)
    found = index[np.arange(K), best]
    best = np.where(found > 0.0, best, -1)
    return np.where(ours > 0.0, found, np.nan), best


def jaccard_of_labels(
    ours: IntArray, theirs: IntArray, K: int, weights: Array | None = None
) -> tuple[Array, Array]:
    """Jaccard's index of all pairs of clusters, and the weights of our clusters."""
    K_theirs = int(theirs.max(initial=-1)) + 1
    # Noise is the last line and column, which go.
    place = (ours % (K + 1)) * (K_theirs + 1) + theirs % (K_theirs + 1)
    size = (K + 1) * (K_theirs + 1)
    table = np.bincount(place, weights, size).reshape(K + 1, K_theirs + 1)
    table = table.astype(np.float64)
    own, other = table.sum(axis=1)[:-1], table.sum(axis=0)[:-1]
    return _jaccard(table[:-1, :-1], own, other), own


def match_labels(
    ours: IntArray, theirs: IntArray, K: int, weights: Array | None = None
) -> Match:
    """Clusters of the same rows: `K` of ours, those of another fit; -1 is noise."""
    index, own = jaccard_of_labels(ours, theirs, K, weights)
    jaccard, best = _best(index, own)
    # Noise agrees with noise; a cluster without a match agrees with nothing.
    expected = np.append(np.where(best < 0, -2, best), -1)[ours]
    weight = np.ones(len(ours)) if weights is None else weights
    both, either = (
        weight @ ((ours < 0) & (theirs < 0)),
        weight @ ((ours < 0) | (theirs < 0)),
    )
    noise = float(both / either) if weight @ (ours < 0) > 0.0 else np.nan
    return Match(jaccard, best, (expected == theirs).astype(np.float64), noise)


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
    return Match(jaccard, best, agreement, np.nan)
