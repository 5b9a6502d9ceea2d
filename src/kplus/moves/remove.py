"""Remove clusters that do not pay."""

from dataclasses import replace

import numpy as np

from kplus.core.types import IntArray, Proposal
from kplus.models.dp_means.fast import ROUNDING, DPMeansModel
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
        empty = np.flatnonzero(total.empty(params.mass))
        if not len(empty) or len(empty) == params.K:
            return None
        into = _without(params, empty)
        kept = updated.regroup(into, updated.centers[:0])
        return Proposal(kept, into, kept.K)


class RemoveCluster:
    """Remove the cluster whose rows are served almost as well by their second choice.

    `ClusterSums.spare` bounds from below what a removal costs. While that exceeds
    the penalty for every cluster nothing need be read; otherwise one more pass costs
    the doubtful clusters exactly.
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
        worst = int(np.argmin(total.spare))
        if total.spare[worst] >= model.penalty * (1.0 - ROUNDING):
            return None
        into = _without(params, np.array([worst]))
        kept = params.regroup(into, params.centers[:0])  # costed at these centres
        return Proposal(kept, into, kept.K)
