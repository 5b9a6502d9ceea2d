"""Open and remove clusters that have covariance matrices of their own."""

import numpy as np

from kplus.core.regroup import without
from kplus.core.types import Position, Proposal
from kplus.dp_means.full_covariance import (
    Ellipsoids,
    FullCovarianceModel,
    Scatters,
)
from kplus.dp_means.open import spread_out
from kplus.dp_means.stats import Candidates

__all__ = ["OpenEllipsoids", "RemoveEllipsoid"]


class OpenEllipsoids:
    """Open clusters at the costliest rows, up to an eighth of those there are.

    Each opened row costs more than the penalty even against the spheres opened with
    it, so every opening lowers the objective by itself.
    """

    def propose(
        self, at: Position[FullCovarianceModel, Ellipsoids, Scatters]
    ) -> Proposal | None:
        model, params, total = at.model, at.params, at.total
        found = total.candidates
        if not len(found):
            return None
        most = int(min(max(1, params.K // 8), model.max_clusters - params.K))
        opened = spread_out(found, model.penalty * model.floor, most)
        stayed = self._without(model, params, total, _with_copies(found, opened))
        born = stayed.grown(opened.y, model.floor)
        return Proposal(born, np.arange(params.K), born.K)

    @staticmethod
    def _without(
        model: FullCovarianceModel,
        params: Ellipsoids,
        total: Scatters,
        gone: Candidates,
    ) -> Ellipsoids:
        """The best parameters once some rows have left.

        With them still counted in, the objective could rise.
        """
        counts, sums, outers = (
            total.counts.copy(),
            total.sums.copy(),
            total.outers.copy(),
        )
        diff = gone.y - params.centers[gone.label]
        w = gone.weight
        np.subtract.at(counts, gone.label, w)
        np.subtract.at(sums, gone.label, w[:, None] * diff)
        outer = diff[:, :, None] * diff[:, None, :]
        np.subtract.at(outers, gone.label, w[:, None, None] * outer)
        full = counts > 1e-12 * total.counts
        return model.best(params, full, counts, sums, outers)


def _with_copies(found: Candidates, opened: Candidates) -> Candidates:
    """Opened rows and those equal to them: a weight then acts as so many copies."""
    same = np.any(np.all(found.y[:, None] == opened.y[None], axis=2), axis=1)
    return found.at(np.flatnonzero(same))


class RemoveEllipsoid:
    """At rest, remove the cluster whose rows are served almost as well elsewhere.

    Its rows go to their second nearest cluster as that one is now, which the pass has
    measured: the objective falls by what the removal is worth at least.
    """

    def propose(
        self, at: Position[FullCovarianceModel, Ellipsoids, Scatters]
    ) -> Proposal | None:
        model, params = at.model, at.params
        if not at.converged or params.K == 1:
            return None
        saved = model.penalty * (1.0 + params.stein(model.floor))
        gain = saved - at.total.removal_cost
        worst = int(np.argmax(gain))
        if gain[worst] <= 1e-12 * saved[worst]:
            return None
        old_to_new = without(params.K, worst)
        kept = params.regroup(old_to_new)
        return Proposal(kept, old_to_new, kept.K)
