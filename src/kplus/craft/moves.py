"""Changes to the clusters of a mixed table between two passes."""

import numpy as np

from kplus.core.regroup import joined, without
from kplus.core.types import IntArray, Position, Proposal
from kplus.craft.model import CraftModel
from kplus.craft.params import Clusters, ClusterSums

__all__ = ["DropClusters", "JoinClusters", "SortClusters", "by_size"]


def by_size(total: ClusterSums) -> IntArray:
    """New numbers of the clusters, largest first, equals by their sums."""
    return np.argsort(np.lexsort((*total.sums.T[::-1], -total.counts)))


def _regrouped(
    model: CraftModel, total: ClusterSums, old_to_new: IntArray, K: int
) -> Proposal:
    return Proposal(model.of(total.regroup(old_to_new, K)), old_to_new, K, exact=True)


class DropClusters:
    """Drop clusters without rows."""

    def propose(
        self, at: Position[CraftModel, Clusters, ClusterSums]
    ) -> Proposal | None:
        total = at.total
        empty = np.flatnonzero(total.counts <= 0.0)
        if not len(empty):
            return None
        old_to_new = without(total.K, empty)
        return _regrouped(at.model, total, old_to_new, total.K - len(empty))


class JoinClusters:
    """At rest, join the two clusters that gain most by it."""

    def propose(
        self, at: Position[CraftModel, Clusters, ClusterSums]
    ) -> Proposal | None:
        model, total, updated = at.model, at.total, at.updated
        if not at.converged or total.K < 2:
            return None
        now = float(updated.prices.sum())
        penalties = model.penalties(total.sums.sum(axis=0), float(total.counts.sum()))
        pairs, changes = model.join_changes(
            total.sums, total.counts, updated.prices, penalties
        )
        first, second = pairs[np.argmin(changes)]
        old_to_new = joined(total.K, first, second)
        proposal = _regrouped(model, total, old_to_new, total.K - 1)
        if float(proposal.params.prices.sum()) >= now - 1e-9 * abs(now):
            return None
        return proposal


class SortClusters:
    """Number clusters by size, largest first; a `finish` of the loop."""

    def propose(
        self, at: Position[CraftModel, Clusters, ClusterSums]
    ) -> Proposal | None:
        total = at.total
        old_to_new = by_size(total)
        if np.array_equal(old_to_new, np.arange(total.K)):
            return None
        return _regrouped(at.model, total, old_to_new, total.K)
