"""Remove clusters that do not pay."""

from dataclasses import replace

import numpy as np

from kplus.core.types import Array, IntArray, Proposal
from kplus.models.dp_means.fast import DPMeansModel
from kplus.models.dp_means.params import Centers
from kplus.models.dp_means.stats import ClusterSums

__all__ = ["DropEmpty", "RemoveCluster"]


def _without(params: Centers, drop: IntArray) -> IntArray:
    into = np.ones(params.K, dtype=np.int64)
    into[drop] = 0
    return np.where(into == 1, np.cumsum(into) - 1, -1)


class DropEmpty:
    """Drop the clusters that lost all their rows."""

    name = "drop"

    def propose(
        self,
        model: DPMeansModel,
        params: Centers,
        total: ClusterSums,
        updated: Centers,
        resting: bool,
    ) -> Proposal | None:
        empty = np.flatnonzero(total.counts + params.mass <= 0.0)
        if not len(empty) or len(empty) == params.K:
            return None
        into = _without(params, empty)
        kept = updated.regroup(into, updated.centers[:0])
        return Proposal(kept, into, kept.K)


class RemoveCluster:
    """Remove the cluster whose rows are served almost as well by their second choice.

    `ClusterSums.spare` bounds from below what a removal costs. While that exceeds
    the penalty for every cluster nothing need be read; otherwise the rows of the
    doubtful clusters find their second nearest centre afresh, which makes it exact.
    """

    name = "remove"

    def propose(
        self,
        model: DPMeansModel,
        params: Centers,
        total: ClusterSums,
        updated: Centers,
        resting: bool,
    ) -> Proposal | None:
        if not resting or params.K == 1:
            return None
        cheap = total.spare < model.penalty
        known = np.zeros_like(cheap) if params.recheck is None else params.recheck
        if np.any(cheap & ~known):
            into: IntArray = np.arange(params.K)
            return Proposal(replace(params, recheck=cheap), into, params.K)
        cost = np.where(cheap, total.spare + self._error(params, total), np.inf)
        worst = int(np.argmin(cost))
        if cost[worst] >= model.penalty:
            return None
        into = _without(params, np.array([worst]))
        kept = updated.regroup(into, updated.centers[:0])
        return Proposal(kept, into, kept.K)

    @staticmethod
    def _error(params: Centers, total: ClusterSums) -> Array:
        """How far float32 may have put `spare` below the truth, for each cluster."""
        widest = float(np.sqrt(np.max(np.sum(params.centers**2, axis=1))))
        D = params.centers.shape[1]
        error: Array = total.counts * ((D + 8) * 2.0**-20 * (widest + 1.0) ** 2)
        return error
