"""Remove clusters that do not pay."""

from dataclasses import replace

import numpy as np

from kplus.core.regroup import without
from kplus.core.types import IntArray, Proposal
from kplus.models.dp_means.fast import ROUNDING, DPMeansModel
from kplus.models.dp_means.params import Centers
from kplus.models.dp_means.stats import ClusterSums

__all__ = ["DropEmpty", "RemoveCluster"]


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
        into = without(params.K, empty)
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
        into = without(params.K, np.array([worst]))
        kept = params.regroup(into, params.centers[:0])  # costed at these centres
        return Proposal(kept, into, kept.K)
