"""Density-based validity of clusters of any shape, on a sample.

DBCV by Moulavi, Jaskowiak, Campello, Zimek & Sander (2014): a cluster is good if the
thinnest place on the way through it is denser than the densest way to another cluster.
"""

import numpy as np

from kplus.core.types import Array, IntArray

__all__ = ["density_validity"]


def density_validity(
    distances: Array, labels: IntArray, K: int, n_dimensions: int
) -> Array:
    """The index of each of `K` clusters, from -1 to 1.

    Clusters of fewer than two of the rows get NaN, and so do all if only one has more.

    Parameters
    ----------
    distances : (m, m) array
        Between all rows of the sample.
    labels : (m,) array of int
        -1 is noise.
    """
    members = [np.flatnonzero(labels == k) for k in range(K)]
    known = [k for k in range(K) if len(members[k]) > 1]
    out = np.full(K, np.nan)
    if len(known) < 2:
        return out
    core = np.zeros(len(labels))
    inner, sparsest = {}, {}
    for k in known:
        rows = members[k]
        own = distances[np.ix_(rows, rows)]
        core[rows] = _core_distances(own, n_dimensions)
        inside, sparsest[k] = _sparseness(_reachability(own, core[rows], core[rows]))
        inner[k] = rows[inside]
    apart = np.full((K, K), np.inf)
    for i in known:
        for j in known:
            if i < j:
                A, B = inner[i], inner[j]
                reach = _reachability(distances[np.ix_(A, B)], core[A], core[B])
                apart[i, j] = apart[j, i] = reach.min()
    for k in known:
        nearest = apart[k].min()
        larger = max(nearest, sparsest[k])
        out[k] = (nearest - sparsest[k]) / larger if larger > 0.0 else 0.0
    return out


def _core_distances(distances: Array, D: int) -> Array:
    """All-points core distance: (mean of d⁻ᴰ over the others)^(−1/D)."""
    n = len(distances)
    with np.errstate(divide="ignore"):
        logs = -D * np.log(distances)
    np.fill_diagonal(logs, -np.inf)
    highest = logs.max(axis=1)
    copies = np.isposinf(highest)  # of the same row: no distance at all
    logs[copies] = 0.0
    top = np.where(copies, 0.0, highest)
    mean = top + np.log(np.exp(logs - top[:, None]).sum(axis=1) / (n - 1.0))
    return np.where(copies, 0.0, np.exp(-mean / D))


def _reachability(distances: Array, ours: Array, theirs: Array) -> Array:
    return np.maximum(distances, np.maximum.outer(ours, theirs))


def _sparseness(reach: Array) -> tuple[IntArray, float]:
    """Inner nodes of the minimum spanning tree, and its longest inner edge.

    Where there are none, all nodes and edges stand for them.
    """
    edges, lengths = _spanning_tree(reach)
    inner = np.bincount(edges.ravel(), minlength=len(reach)) > 1
    inside = inner[edges].all(axis=1)
    nodes = np.flatnonzero(inner) if inner.any() else np.arange(len(reach))
    return nodes, float(lengths[inside].max() if inside.any() else lengths.max())


def _spanning_tree(distances: Array) -> tuple[IntArray, Array]:
    """Prim's algorithm: the nodes of each edge, and its length.

    Of equal edges, which core distances make frequent, the one to the lower row is
    taken: the inner nodes depend on it.
    """
    n = len(distances)
    nearest, best = np.zeros(n, dtype=np.int64), distances[0].copy()
    best[0] = np.inf
    outside = np.ones(n, dtype=bool)
    outside[0] = False
    edges, lengths = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    for i in range(n - 1):
        new = int(np.argmin(best))
        edges[i], lengths[i] = (nearest[new], new), best[new]
        outside[new] = False
        best[new] = np.inf
        closer = outside & (distances[new] < best)
        best[closer], nearest[closer] = distances[new][closer], new
    return edges, lengths
