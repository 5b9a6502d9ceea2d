"""Changes of DP-means between passes: open, refill, drop, remove, order, split."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from kplus.core.regroup import without
from kplus.core.types import Array, IntArray, Position, Proposal
from kplus.dp_means.kernels_split import split_clusters
from kplus.dp_means.model import ROUNDING, Candidates, ClusterSums, DPMeansModel
from kplus.dp_means.params import Centers
from kplus.dp_means.ward import merge_costs

__all__ = [
    "DropEmpty",
    "EndOverrelaxation",
    "MergeClusters",
    "OpenClusters",
    "OrderClusters",
    "RefillClusters",
    "RemoveCluster",
    "SplitClusters",
    "best_splits",
    "by_size",
    "cheap_pairs",
    "means_without",
    "spread_out",
]

_AT_ONCE = 16  # clusters measured exactly in one pass
_SPLIT_ITER = 12
_ENOUGH_ROWS = 2048  # larger clusters are thinned to about this many


def spread_out(candidates: Candidates, least: float, most: int) -> Candidates:
    """Choose candidates, costliest first, each more than `least` from those before."""
    nearest = np.full(len(candidates), np.inf)
    chosen: list[int] = []
    while len(chosen) < most:
        fit = np.flatnonzero(nearest * candidates.share > least)
        if not len(fit):
            break
        chosen.append(int(fit[0]))
        away = np.sum((candidates.y - candidates.y[fit[0]]) ** 2, axis=1)
        nearest = np.minimum(nearest, away)
    return candidates.at(np.array(chosen, dtype=np.int64))


def means_without(
    params: Centers, total: ClusterSums, candidates: Candidates, opened: Candidates
) -> Array:
    """Means of the clusters once the candidates nearer to an opened row have left.

    With rows that leave still counted in, the means would not be the best for the
    rows that stay, and the objective could rise. All candidates that will leave count,
    not only the opened ones, so that a row of weight 2 is the same as two rows.
    """
    own = np.sum((candidates.y - params.centers[candidates.label]) ** 2, axis=1)
    new = np.min(cdist(candidates.y, opened.y, "sqeuclidean"), axis=1)
    rows = candidates.at(np.flatnonzero(new < own))
    counts, sums = total.counts + params.mass, total.sums.copy()
    np.subtract.at(counts, rows.label, rows.weight)
    gone = rows.weight[:, None] * (rows.y - params.refs[rows.label])
    np.subtract.at(sums, rows.label, gone)
    means = params.centers.copy()
    full = counts > 1e-9 * (total.counts + params.mass)
    means[full] = params.refs[full] + sums[full] / counts[full, None]
    return means


class OpenClusters:
    """Open up to an eighth of the present number of clusters in one go (at least one).

    Each opened row costs more than the penalty even against the rows opened with
    it, so every opening lowers the objective by itself.
    """

    def propose(
        self, at: Position[DPMeansModel, Centers, ClusterSums]
    ) -> Proposal | None:
        model, params, total = at.model, at.params, at.total
        if not len(total.candidates):
            return None
        most = int(min(max(1, params.K // 8), model.max_clusters - params.K))
        opened = spread_out(total.candidates, model.penalty, most)
        means = means_without(params, total, total.candidates, opened)
        old_to_new = np.arange(params.K)
        born = params.moved_to(means).grown(opened.y)
        return Proposal(born, old_to_new, born.K)


class RefillClusters:
    """Where the number of clusters is fixed: move empty ones to the costliest rows."""

    def propose(
        self, at: Position[DPMeansModel, Centers, ClusterSums]
    ) -> Proposal | None:
        params, total = at.params, at.total
        empty = np.flatnonzero(at.model.empty(params, total))
        if not len(empty):
            return None
        if not params.report_farthest:
            same = np.arange(params.K)
            return Proposal(replace(at.updated, report_farthest=True), same, params.K)
        rows = spread_out(total.candidates, 0.0, len(empty))
        if not len(rows):
            return None
        old_to_new = without(params.K, empty[: len(rows)])
        means = means_without(params, total, total.candidates, rows)
        moved = params.moved_to(means)
        return Proposal(moved.regroup(old_to_new).grown(rows.y), old_to_new, params.K)


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
    """Remove the cluster whose rows cost little more at their second nearest centre.

    `ClusterSums.removal_cost` bounds from below what a removal costs. While it exceeds
    the penalty for every cluster nothing need be read; otherwise further passes
    measure the doubtful clusters exactly, a few at a time.
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
            measured = replace(params, recheck=recheck, exact_removal_cost=costs)
            return Proposal(measured, np.arange(params.K), params.K)
        old_to_new = without(params.K, worst)
        kept = params.regroup(old_to_new)  # measured at these centres
        return Proposal(kept, old_to_new, kept.K)


class MergeClusters:
    """Merge pairs of clusters whose rows would cost less than the penalty together.

    From the sums alone, so exactly; a cluster takes part in one merge at a time.
    """

    def propose(
        self, at: Position[DPMeansModel, Centers, ClusterSums]
    ) -> Proposal | None:
        model, params, total = at.model, at.params, at.total
        if not at.converged or params.K == 1:
            return None
        means, counts = model.means(params, total), total.counts + params.mass
        pairs = cheap_pairs(means, counts, model.penalty)
        if not len(pairs):
            return None
        a, b = pairs.T
        share = counts[b] / np.maximum(counts[a] + counts[b], 1e-300)
        means[a] += share[:, None] * (means[b] - means[a])
        old_to_new = without(params.K, b)
        merged = params.moved_to(means).regroup(old_to_new)
        return Proposal(merged, old_to_new, merged.K)


def cheap_pairs(centers: Array, counts: Array, penalty: float) -> IntArray:
    """Pairs of clusters that cost less than the penalty to merge, cheapest first.

    No cluster is in two of them.
    """
    pairs: list[tuple[float, int, int]] = []
    for a in range(len(centers) - 1):
        costs = merge_costs(
            centers[a : a + 1], counts[a : a + 1], centers[a + 1 :], counts[a + 1 :]
        )[0]
        cheap = np.flatnonzero(costs < penalty * (1.0 - ROUNDING))
        pairs.extend((float(costs[b]), a, a + 1 + int(b)) for b in cheap)
    taken: set[int] = set()
    chosen: list[tuple[int, int]] = []
    for _, a, b in sorted(pairs):
        if a not in taken and b not in taken:
            taken |= {a, b}
            chosen.append((a, b))
    return np.array(chosen, np.int64).reshape(-1, 2)


class EndOverrelaxation:
    """When over-relaxed steps have converged, continue with plain means."""

    def propose(
        self, at: Position[DPMeansModel, Centers, ClusterSums]
    ) -> Proposal | None:
        params = at.params
        if not at.converged or params.relax == 1.0:
            return None
        plain = replace(params.moved_to(at.model.means(params, at.total)), relax=1.0)
        return Proposal(plain, np.arange(params.K), params.K)


class OrderClusters:
    """Number the clusters by falling size, equals by their centres.

    Centres are rounded to what the data's units can hold. Both may decide a row that
    is equally far from two centres, so the sweep that follows makes the labels equal
    to what `predict` will say.
    """

    def __init__(self, keep_order: bool = False) -> None:
        self.keep_order = keep_order

    def propose(
        self, at: Position[DPMeansModel, Centers, ClusterSums]
    ) -> Proposal | None:
        params = at.params
        stored = params.scaling.inverse_transform(params.centers)
        old_to_new: IntArray = np.arange(params.K)
        if not self.keep_order:
            old_to_new = np.argsort(by_size(stored, at.total.counts))
        rounded = params.moved_to(params.scaling.transform(stored))
        ordered = replace(rounded.regroup(old_to_new), relax=1.0)
        return Proposal(ordered, old_to_new, params.K)


def by_size(centers: Array, counts: Array) -> IntArray:
    """Clusters by falling size, equals by their centres."""
    return np.lexsort((*centers.T[::-1], -counts))


def best_splits(
    Y: Array, weights: Array, labels: IntArray, centers: Array, wanted: IntArray
) -> tuple[Array, Array]:
    """Gain and the two centres of the best split of each wanted cluster."""
    labels = labels.astype(np.int32, copy=False)
    gains, pairs = split_clusters(
        Y, weights, labels, centers, wanted, _ENOUGH_ROWS, _SPLIT_ITER
    )
    return gains, pairs


class SplitClusters:
    """At convergence, split the best clusters, until there are `target` of them.

    Parameters
    ----------
    Y, weights : arrays
        All rows in scaled units, in memory.
    labels : callable
        Returns the current label of each row.
    at_once : callable
        How many clusters to split in one go when there are K.
    on_converged : callable
        Called with the squared error and the counts at each convergence.
    """

    def __init__(
        self,
        Y: Array,
        weights: Array,
        labels: Callable[[], IntArray],
        target: int,
        at_once: Callable[[int], int],
        on_converged: Callable[[float, Array], None],
    ) -> None:
        self.Y, self.weights, self.labels = Y, weights, labels
        self.target, self.at_once, self.on_converged = target, at_once, on_converged
        D = Y.shape[1]
        self._gains, self._known = np.zeros(0), np.zeros(0)
        self._pairs = np.zeros((0, 2, D))

    def propose(
        self, at: Position[DPMeansModel, Centers, ClusterSums]
    ) -> Proposal | None:
        params, total = at.params, at.total
        if not at.converged:
            return None
        errors = at.model.squared_error(params, total)
        self.on_converged(float(errors.sum()), total.counts)
        if self.target <= params.K:
            return None
        self._refresh(params, errors)
        most = min(self.at_once(params.K), self.target - params.K)
        chosen = np.argsort(-self._gains, kind="stable")[:most]
        chosen = chosen[self._gains[chosen] > 1e-12 * errors.sum()]
        if not len(chosen):
            return None
        return self._split(at.updated, chosen)

    def _refresh(self, params: Centers, errors: Array) -> None:
        """Split afresh, on trial, the clusters that changed since the last time."""
        new = np.full(params.K - len(self._known), np.inf)
        self._known = np.concatenate([self._known, new])
        self._gains = np.concatenate([self._gains, np.zeros(len(new))])
        blank = np.zeros((len(new), *self._pairs.shape[1:]))
        self._pairs = np.concatenate([self._pairs, blank])
        stale = np.flatnonzero(~(np.abs(errors - self._known) <= 0.05 * errors))
        gains, pairs = best_splits(
            self.Y, self.weights, self.labels(), params.centers, stale
        )
        self._gains[stale], self._pairs[stale] = gains, pairs
        self._known[stale] = errors[stale]

    def _split(self, updated: Centers, chosen: IntArray) -> Proposal:
        kept = np.ones(updated.K, np.bool_)
        kept[chosen] = False
        old_to_new = without(updated.K, chosen)
        born = self._pairs[chosen].reshape(-1, self.Y.shape[1])
        self._gains, self._known = self._gains[kept], self._known[kept]
        self._pairs = self._pairs[kept]
        split = updated.regroup(old_to_new).grown(born)
        return Proposal(split, old_to_new, split.K)
