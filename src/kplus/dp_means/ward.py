"""Ward's tree of weighted points: which two merge at the least rise of the error."""

from dataclasses import dataclass

import numpy as np

from kplus.core.types import Array, IntArray

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
    C, size = centers.astype(np.float64), counts.astype(np.float64)
    alive, name = np.ones(n, np.bool_), np.arange(n)
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(merges) < n - 1:
        if not chain:
            chain.append(int(np.argmax(alive)))
        a = chain[-1]
        costs = _to_all(C, size, a)
        costs[~alive] = np.inf
        costs[a] = np.inf
        b = int(np.argmin(costs))
        if len(chain) > 1 and costs[chain[-2]] <= costs[b]:
            b = chain[-2]
        if len(chain) < 2 or b != chain[-2]:
            chain.append(b)
            continue
        del chain[-2:]
        merges.append((float(costs[b]), int(name[a]), int(name[b])))
        both = size[a] + size[b]
        C[b] = C[b] + (size[a] / max(both, 1e-300)) * (C[a] - C[b])
        size[b], alive[a], name[b] = both, False, n + len(merges) - 1
    return _sorted(merges, n)


def _to_all(C: Array, size: Array, a: int) -> Array:
    apart = C - C[a]
    costs: Array = np.einsum("kd,kd->k", apart, apart)
    costs *= size * size[a] / np.maximum(size + size[a], 1e-300)
    return costs


def _sorted(merges: list[tuple[float, int, int]], n: int) -> WardTree:
    """Number merges by rising cost; those of what a merge joined come before it."""
    costs = np.array([cost for cost, *_ in merges])
    pairs = np.array([pair for _, *pair in merges], np.int64).reshape(-1, 2)
    for t, pair in enumerate(pairs):  # rounding must not put a merge before its parts
        inner = pair[pair >= n] - n
        costs[t] = max(costs[t], costs[inner].max(initial=0.0))
    order = np.argsort(costs, kind="stable")
    place = np.concatenate([np.arange(n), n + np.argsort(order)])
    return WardTree(np.sort(place[pairs[order]], axis=1), costs[order])
