"""Split the clusters that gain most by it."""

from collections.abc import Callable

import numpy as np

from kplus.core.regroup import without
from kplus.core.types import Array, IntArray, Position, Proposal
from kplus.dp_means.kernels_split import Splits, group_rows, split_clusters
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.params import Centers
from kplus.dp_means.stats import ClusterSums

__all__ = ["SplitClusters", "best_splits"]

_SPLIT_ITER = 12
_ENOUGH_ROWS = 2048  # of a larger cluster every so-manieth row shows how it splits


def best_splits(
    Y: Array, weights: Array, labels: IntArray, centers: Array, wanted: IntArray
) -> tuple[Array, Array]:
    """Gain and the two centres of the best split of each wanted cluster."""
    groups = group_rows(labels, len(centers))
    pairs = np.zeros((len(wanted), 2, centers.shape[1]))
    found = Splits(np.zeros(len(wanted)), pairs)
    split_clusters(
        Y, weights, groups, centers, wanted, _ENOUGH_ROWS, _SPLIT_ITER, found
    )
    return found.gains, found.pairs


class SplitClusters:
    """At rest, split the best clusters, until there are `target` of them.

    Parameters
    ----------
    Y, weights : arrays
        All rows in the units of the lens, in memory.
    labels : callable
        Returns the current label of each row.
    at_once : callable
        How many clusters to split in one go when there are K.
    watch : callable
        Told K, squared error and counts each time the fit is at rest.
    """

    def __init__(
        self,
        Y: Array,
        weights: Array,
        labels: Callable[[], IntArray],
        target: int,
        at_once: Callable[[int], int],
        watch: Callable[[float, Array], None],
    ) -> None:
        self.Y, self.weights, self.labels = Y, weights, labels
        self.target, self.at_once, self.watch = target, at_once, watch
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
        self.watch(float(errors.sum()), total.counts)
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
