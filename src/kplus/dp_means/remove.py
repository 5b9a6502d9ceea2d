"""Remove clusters that do not pay."""

from dataclasses import replace
from typing import Any

import numpy as np

from kplus.core.regroup import without
from kplus.core.types import Position, Proposal
from kplus.dp_means.model import ROUNDING, DPMeansModel
from kplus.dp_means.params import Centers
from kplus.dp_means.stats import ClusterSums

__all__ = ["DropEmpty", "RemoveCluster"]

_AT_ONCE = 16  # clusters measured exactly in one pass


class DropEmpty:
    """Drop the clusters that lost all their rows; of spheres or of ellipsoids."""

    def propose(self, at: Position[Any, Any, Any]) -> Proposal | None:
        empty = at.model.empty(at.params, at.total)
        if not empty.any() or empty.all():
            return None
        old_to_new = without(len(empty), empty)
        kept = at.updated.regroup(old_to_new)
        return Proposal(kept, old_to_new, kept.K)


class RemoveCluster:
    """Remove the cluster whose rows are served almost as well by their second choice.

    `ClusterSums.removal_cost` bounds from below what a removal costs. While it exceeds
    the penalty for every cluster nothing need be read; otherwise further passes cost
    the doubtful clusters exactly, a few at a time.
    """

    def propose(
        self, at: Position[DPMeansModel, Centers, ClusterSums]
    ) -> Proposal | None:
        model, params, total = at.model, at.params, at.total
        if not at.converged or params.K == 1:
            return None
        costs = (
            np.full(params.K, np.nan)
            if params.exact_removal_cost is None
            else params.exact_removal_cost
        )
        if params.recheck is not None:
            costs = np.where(params.recheck, total.removal_cost, costs)
        known = np.isfinite(costs)
        worst = int(np.nanargmin(costs)) if known.any() else 0
        if not (known[worst] and costs[worst] < model.penalty * (1.0 - ROUNDING)):
            doubtful = np.flatnonzero((total.removal_cost < model.penalty) & ~known)
            if not len(doubtful):
                return None
            recheck = np.zeros(params.K, np.bool_)
            recheck[doubtful[np.argsort(total.removal_cost[doubtful])[:_AT_ONCE]]] = (
                True
            )
            asked = replace(params, recheck=recheck, exact_removal_cost=costs)
            return Proposal(asked, np.arange(params.K), params.K)
        old_to_new = without(params.K, worst)
        kept = params.regroup(old_to_new)  # measured at these centres
        return Proposal(kept, old_to_new, kept.K)
