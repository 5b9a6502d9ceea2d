"""Open clusters at the rows that cost more than a cluster does."""

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from kplus.core.regroup import without
from kplus.core.types import Array, Position, Proposal
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.params import Centers
from kplus.dp_means.stats import Candidates, ClusterSums

__all__ = ["OpenClusters", "RefillClusters"]


def spread_out(found: Candidates, least: float, most: int) -> Candidates:
    """Choose candidates, costliest first, each more than `least` from those before."""
    nearest = np.full(len(found), np.inf)
    chosen: list[int] = []
    while len(chosen) < most:
        fit = np.flatnonzero(nearest * found.share > least)
        if not len(fit):
            break
        chosen.append(int(fit[0]))
        away = np.sum((found.y - found.y[fit[0]]) ** 2, axis=1)
        nearest = np.minimum(nearest, away)
    return found.at(np.array(chosen, dtype=np.int64))


def means_without(
    params: Centers, total: ClusterSums, found: Candidates, opened: Candidates
) -> Array:
    """Means of the clusters once the candidates nearer to an opened row have left.

    With rows that leave still counted in, the means would not be the best for the
    rows that stay, and the objective could rise. All candidates that will leave count,
    not only the opened ones, so that a row of weight 2 is the same as two rows.
    """
    own = np.sum((found.y - params.centers[found.label]) ** 2, axis=1)
    new = np.min(cdist(found.y, opened.y, "sqeuclidean"), axis=1)
    rows = found.at(np.flatnonzero(new < own))
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
