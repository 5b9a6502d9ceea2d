"""Open clusters at the rows that cost more than a cluster does."""

from dataclasses import replace

import numpy as np

from kplus.core.types import Array, Proposal
from kplus.models.dp_means.fast import DPMeansModel
from kplus.models.dp_means.params import Centers
from kplus.models.dp_means.stats import Candidates, ClusterSums

__all__ = ["OpenClusters", "RefillClusters"]


def spread_out(found: Candidates, least: float, most: int) -> Candidates:
    """Choose candidates, costliest first, each more than `least` from those before."""
    share = np.minimum(found.weight, 1.0)
    nearest = np.full(len(found), np.inf)
    chosen: list[int] = []
    while len(chosen) < most:
        fit = np.flatnonzero(nearest * share > least)
        if not len(fit):
            break
        chosen.append(int(fit[0]))
        away = np.sum((found.y - found.y[fit[0]]) ** 2, axis=1)
        nearest = np.minimum(nearest, away)
    return found.at(np.array(chosen, dtype=np.int64))


def means_without(params: Centers, total: ClusterSums, rows: Candidates) -> Array:
    """Means of the clusters once some of their rows have left.

    With the rows that open clusters still counted in, the means would not be the
    best for the rows that stay, and the objective could rise.
    """
    counts, sums = total.counts + params.mass, total.sums.copy()
    np.subtract.at(counts, rows.label, rows.weight)
    gone = rows.weight[:, None] * (rows.y - params.refs[rows.label])
    np.subtract.at(sums, rows.label, gone)
    means = params.centers.copy()
    full = counts > 1e-12 * (total.counts + params.mass)
    means[full] = params.refs[full] + sums[full] / counts[full, None]
    return means


class OpenClusters:
    """Open up to an eighth of the present number of clusters in one go (at least one).

    Each opened row costs more than the penalty even against the rows opened with
    it, so every opening lowers the objective by itself.
    """

    name = "open"

    def propose(
        self,
        model: DPMeansModel,
        params: Centers,
        total: ClusterSums,
        updated: Centers,
        resting: bool,
    ) -> Proposal | None:
        if not len(total.candidates):
            return None
        most = int(min(max(1, params.K // 8), model.max_clusters - params.K))
        opened = spread_out(total.candidates, model.penalty, most)
        means = means_without(params, total, opened)
        into = np.arange(params.K)
        born = params.moved_to(means).regroup(into, opened.y)
        return Proposal(born, into, born.K)


class RefillClusters:
    """Where the number of clusters is fixed: move empty ones to the costliest rows."""

    name = "refill"

    def propose(
        self,
        model: DPMeansModel,
        params: Centers,
        total: ClusterSums,
        updated: Centers,
        resting: bool,
    ) -> Proposal | None:
        empty = np.flatnonzero(total.counts + params.mass <= 0.0)
        if not len(empty):
            return None
        into = np.arange(params.K)
        if not params.scout:
            return Proposal(replace(updated, scout=True), into, params.K)
        rows = spread_out(total.candidates, 0.0, len(empty))
        if not len(rows):
            return None
        gone = empty[: len(rows)]
        into[gone] = -1
        into[into >= 0] = np.arange(params.K - len(gone))
        moved = params.moved_to(means_without(params, total, rows))
        return Proposal(moved.regroup(into, rows.y), into, params.K)
