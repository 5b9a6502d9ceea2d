"""Indices of clusters that need their centroids only: two passes over the rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.validation.space import Space

__all__ = ["Indices", "centroid_indices"]


@dataclass(frozen=True)
class Indices:
    """What `centroid_indices` returns; NaN where there is one cluster only.

    Attributes
    ----------
    silhouette : (n,) array
        Of each row; NaN for noise, 0 for clusters of one row.
    by_cluster : (K,) array
        Its means.
    davies_bouldin, calinski_harabasz : float
    """

    silhouette: Array
    by_cluster: Array
    davies_bouldin: float
    calinski_harabasz: float


def centroid_indices(space: Space, labels: IntArray, K: int) -> Indices:
    """Simplified silhouette, Davies-Bouldin and Calinski-Harabasz.

    The simplified silhouette of a row (Hruschka et al. 2004) is (b − a) / max(a, b),
    with its distance a from its own centroid and b from the nearest other one. Noise
    is left out of all three.
    """
    sizes = np.bincount(labels[labels >= 0], minlength=K)
    none = np.full(len(labels), np.nan), np.full(K, np.nan), np.nan, np.nan
    if np.count_nonzero(sizes) < 2:
        return Indices(*none)
    used = np.flatnonzero(sizes)
    place = np.append(np.cumsum(sizes > 0) - 1, -1)  # clusters without rows are out
    centers = _centroids(space, place[labels], len(used))
    silhouette, near, squares = _distances(space, place[labels], centers)
    single = np.append(sizes == 1, False)[labels]
    silhouette[single] = 0.0
    of_cluster = np.full(K, np.nan)
    known = labels >= 0
    sums = np.bincount(labels[known], silhouette[known], K)
    of_cluster[used] = sums[used] / sizes[used]
    davies = _davies_bouldin(centers, near / sizes[used])
    return Indices(
        silhouette, of_cluster, davies, _calinski(centers, sizes[used], squares.sum())
    )


def _centroids(space: Space, labels: IntArray, K: int) -> Array:
    """Means of clusters, in what is seen; that of all where nothing is."""
    sums, seen = np.zeros((2, K, space.n_dimensions))
    for start, points in space.parts():
        here = labels[start : start + len(points)]
        member = np.equal.outer(np.arange(K), here).astype(np.float64)
        sums += member @ points.values
        there = points.seen
        seen += member.sum(axis=1, keepdims=True) if there is None else member @ there
    overall = sums.sum(axis=0) / np.maximum(seen.sum(axis=0), 1.0)
    return np.where(seen > 0.0, sums / np.maximum(seen, 1.0), overall)


def _distances(
    space: Space, labels: IntArray, centers: Array
) -> tuple[Array, Array, Array]:
    """Silhouettes; summed distances, and their squares, to the own centroid."""
    K, out = len(centers), np.full(len(labels), np.nan)
    near, squares = np.zeros((2, K))
    for start, points in space.parts():
        here = labels[start : start + len(points)]
        known = np.flatnonzero(here >= 0)
        own = here[known]
        distances = np.sqrt(space.squared_distances(points.some(known), centers))
        rows = np.arange(len(known))
        a = distances[rows, own]
        distances[rows, own] = np.inf
        b = distances.min(axis=1)
        larger = np.maximum(a, b)
        score = np.divide(b - a, larger, out=np.zeros_like(a), where=larger > 0.0)
        out[start + known] = score
        near += np.bincount(own, a, K)
        squares += np.bincount(own, a * a, K)
    return out, near, squares


def _davies_bouldin(centers: Array, spread: Array) -> float:
    """Mean over clusters of the worst ratio of spreads to distance; low is good."""
    apart = _apart(centers)
    np.fill_diagonal(apart, np.inf)
    apart[apart == 0.0] = np.inf  # as elsewhere: equal centroids say nothing
    return float(((spread[:, None] + spread) / apart).max(axis=1).mean())


def _apart(centers: Array) -> Array:
    return np.array([np.linalg.norm(centers - c, axis=1) for c in centers])


def _calinski(centers: Array, sizes: Any, within: float) -> float:
    """Variance between clusters against that inside of them; high is good."""
    n, K = int(sizes.sum()), len(sizes)
    if n <= K:
        return float("nan")
    mean = sizes @ centers / n
    between = float(sizes @ np.sum((centers - mean) ** 2, axis=1))
    if within == 0.0:
        return float("inf")
    return between / (K - 1.0) * (n - K) / within
