"""Ward's tree of weighted points: which two merge at the least rise of the error."""

from dataclasses import dataclass

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.dp_means.kernels_cells import chain

__all__ = ["WardTree", "merge_costs", "ward"]


@dataclass(frozen=True)
class WardTree:
    """Merges by rising cost.

    Attributes
    ----------
    children : int array of shape (n - 1, 2)
        The two groups of each merge: points 0, ..., n - 1, and n + t for merge t.
    costs : array of shape (n - 1,)
        By how much each raises the squared error.
    """

    children: IntArray
    costs: Array

    def cut(self, n_groups: int) -> IntArray:
        """The group of each point, groups numbered by their first point."""
        n = len(self.costs) + 1
        parent = np.arange(2 * n - 1)
        for t in range(n - n_groups):
            parent[self.children[t]] = n + t
        for node in range(n + n - n_groups - 1, -1, -1):
            parent[node] = parent[parent[node]]
        _, first, group = np.unique(parent[:n], return_index=True, return_inverse=True)
        rank: IntArray = np.argsort(np.argsort(first))
        return rank[group]


def merge_costs(
    centers: Array, counts: Array, others: Array, other_counts: Array
) -> Array:
    """n_a n_b / (n_a + n_b) |c_a - c_b|²: the rise of the error, of each to each."""
    share = np.multiply.outer(counts, other_counts)
    share /= np.maximum(np.add.outer(counts, other_counts), 1e-300)
    apart = centers[:, None] - others
    out: Array = share * np.einsum("abd,abd->ab", apart, apart)
    return out


def ward(centers: Array, counts: Array) -> WardTree:
    """Follow nearest neighbours until two are each other's (the chain algorithm)."""
    n = len(centers)
    pairs, costs = np.empty((n - 1, 2), np.intp), np.empty(n - 1)
    C, size = np.array(centers, np.float64, order="C"), np.array(counts, np.float64)
    chain(C, size, pairs, costs)
    return _sorted(pairs, costs)


def _sorted(pairs: IntArray, costs: Array) -> WardTree:
    """Number merges by rising cost; those of what a merge joined come before it."""
    n = len(costs) + 1
    for t, (a, b) in enumerate(pairs.tolist()):
        # Rounding must not put a merge before its parts.
        inner = [costs[part - n] for part in (a, b) if part >= n]
        costs[t] = max(costs[t], *inner) if inner else costs[t]
    order = np.argsort(costs, kind="stable")
    place = np.concatenate([np.arange(n), n + np.argsort(order)])
    return WardTree(np.sort(place[pairs[order]], axis=1), costs[order])
