"""DP-means: nearest centres by Hamerly's bounds, clusters opened by costly rows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kplus.core.errors import NotFiniteError
from kplus.core.regroup import relabelled
from kplus.core.types import Array, Block, IntArray
from kplus.dp_means.kernels_lloyd import (
    Bounds,
    Sums,
    meet_rows,
    screen_rows,
    visit_rows,
)
from kplus.dp_means.params import Centers
from kplus.dp_means.stats import (
    NO_CANDIDATES,
    Candidates,
    ClusterSums,
    errors_after,
    shortlist,
)

__all__ = ["DPMeansModel", "RowState"]

ROUNDING = 1e-10  # costs closer to the penalty than this share of it are equal to it
_NO_WEIGHTS = np.empty(0)
_FEW = 16384  # so many distances in a block are sooner measured than bounded


@dataclass(slots=True)
class RowState:
    """Per-row state of a block: nearest centres, and bounds of the distances.

    See `kernels_lloyd.Bounds`; `travel` is that of the centres at the last visit, NaN
    for those born since.
    """

    shapes: ClassVar[dict[str, str]] = {
        "labels": "N <K",
        "seconds": "N <K",
        "upper": "N",
        "near": "N",
        "lower": "N",
        "travel": "K",
    }

    labels: IntArray
    seconds: IntArray
    upper: Array
    near: Array
    lower: Array
    travel: Array | None

    @classmethod
    def fresh(cls, n_rows: int) -> "RowState":
        return cls(
            np.full(n_rows, -1, np.int32),
            np.full(n_rows, -1, np.int32),
            np.empty(n_rows, np.float32),
            np.empty(n_rows, np.float32),
            np.empty(n_rows, np.float32),
            None,
        )

    def bounds(self) -> Bounds:
        """As the kernels want it."""
        return Bounds(self.labels, self.seconds, self.upper, self.near, self.lower)


@dataclass(frozen=True)
class DPMeansModel:
    """Squared distances plus `penalty` for each cluster after the first (Eq. 3).

    Parameters
    ----------
    penalty : float
        λ² in the units of the lens; infinite for a fixed number of clusters.
    max_clusters : float
        No cluster is opened beyond that many (Eq. 12).
    """

    penalty: float
    max_clusters: float = np.inf
    incremental = True

    def summarize(
        self, params: Centers, block: Block, local: RowState | None
    ) -> tuple[ClusterSums, RowState]:
        """Assign the rows of a block; return the change of its statistics."""
        out = ClusterSums.zeros(params.K, params.centers.shape[1])
        new = local is None
        if local is None:
            local = RowState.fresh(block.n_rows)
        weights = _NO_WEIGHTS if block.weights is None else block.weights
        bounds = local.bounds()
        sums = Sums(out.counts, out.sums, out.squares, out.removal_cost)
        rows = np.arange(block.n_rows, dtype=np.int32)
        few = block.n_rows * params.K <= _FEW
        if few or new:
            drift = params.unknown_drift
            frame = params.frame(self.reach(params), drift.own)
        else:
            drift = params.drift(local.travel)
            frame = params.frame(self.reach(params), params.halves)
            rows = rows[
                : screen_rows(bounds, weights, drift, frame, out.removal_cost, rows)
            ]
        if len(rows):
            X = block.read().view()
            X.flags.writeable = False  # one compiled kernel serves read-only data too
            costs = np.empty(len(rows))
            if new and not few:
                moved = meet_rows(X, weights, drift, frame, bounds, sums, costs)
            else:
                moved = visit_rows(X, weights, rows, drift, frame, bounds, sums, costs)
            if moved < 0:
                raise NotFiniteError(f"Row {block.start - 1 - moved}")
            out.moved = moved
            if np.isfinite(frame.reach):
                far = np.flatnonzero(costs)
                if len(far):
                    out.candidates = self._candidates(
                        params, block, local, X, rows[far], costs[far]
                    )
        local.travel = params.travel
        if params.recheck is not None:
            self._cost_removals(params, block, local, out.removal_cost)
        return out, local

    def _cost_removals(
        self, params: Centers, block: Block, local: RowState, removal_cost: Array
    ) -> None:
        """Put the exact cost of removal in place of the bound for some clusters."""
        assert params.recheck is not None
        removal_cost[params.recheck] = 0.0
        rows = np.flatnonzero(params.recheck[local.labels])
        if not len(rows):
            return
        Y = params.lens.view(block.read()[rows].astype(np.float64))
        two = np.partition(cdist(Y, params.centers, "sqeuclidean"), 1, axis=1)
        rise = two[:, 1] - two[:, 0]
        if block.weights is not None:
            rise *= block.weights[rows]
        np.add.at(removal_cost, local.labels[rows], rise)

    def _candidates(
        self,
        params: Centers,
        block: Block,
        local: RowState,
        X: Array,
        rows: IntArray,
        costs: Array,
    ) -> Candidates:
        """Rows whose weighted cost exceeds the penalty; see `reach` for weights."""
        if block.weights is not None:
            costs = costs * np.minimum(block.weights[rows], 1.0)
        least = 0.0 if params.report_farthest else self.penalty * (1.0 + ROUNDING)
        far = np.flatnonzero(costs > least)
        if not len(far):
            return NO_CANDIDATES
        far = far[shortlist(costs[far], rows[far])]
        at = rows[far]
        return Candidates(
            cost=costs[far],
            row=at.astype(np.int64) + block.start,
            label=local.labels[at].astype(np.int64),
            weight=np.ones(len(at)) if block.weights is None else block.weights[at],
            y=params.lens.view(X[at].astype(np.float64)),
        ).ranked()

    def reach(self, params: Centers) -> float:
        """Distance beyond which a row wants a cluster of its own.

        A row of weight w opens a cluster when ``min(w, 1) * d² > penalty``: a whole
        weight then means as many copies of the row, each of which would do so alone,
        and a fraction never raises the objective.
        """
        if params.report_farthest:
            return 0.0
        if self.max_clusters <= params.K:
            return np.inf
        return float(np.sqrt(self.penalty))

    def update(self, params: Centers, total: ClusterSums) -> Centers:
        """Move each centre to, or beyond, the mean of its rows; an empty one stays."""
        step = self.means(params, total) - params.centers
        return params.moved_to(params.centers + params.relax * step)

    def means(self, params: Centers, total: ClusterSums) -> Array:
        """Mean of the rows of each cluster; the old centre where there are none."""
        counts, full = total.counts + params.mass, ~self.empty(params, total)
        means = params.centers.copy()
        means[full] = params.refs[full] + total.sums[full] / counts[full, None]
        return means

    def empty(self, params: Centers, total: ClusterSums) -> NDArray[np.bool_]:
        """Clusters without rows; weights need not cancel to the last bit."""
        counts = total.counts + params.mass
        empty: NDArray[np.bool_] = counts <= 1e-12 * counts.max()
        return empty

    def advance(
        self, params: Centers, total: ClusterSums, latest: ClusterSums
    ) -> Centers:
        return self.update(params, total)

    def objective(self, params: Centers, total: ClusterSums) -> float:
        """Eq. 3 (Eq. 12 when capped), from the sums, in the units of the lens."""
        penalty = self.penalty * (params.K - 1) if np.isfinite(self.penalty) else 0.0
        return float(self.squared_error(params, total).sum()) + penalty

    def squared_error(self, params: Centers, total: ClusterSums) -> Array:
        """Σ w |y - c_k|² of each cluster, earlier rows of a stream counted at refs."""
        step, counts = params.centers - params.refs, total.counts + params.mass
        return errors_after(step, counts, total.sums, total.squares)

    def converged(self, total: ClusterSums) -> bool:
        return total.moved == 0

    def regroup_local(self, local: RowState, old_to_new: IntArray, K: int) -> RowState:
        """Renumber labels; rows of a dropped cluster have none until their visit."""
        kept = np.flatnonzero(old_to_new >= 0)
        travel = np.full(K, np.nan)
        if local.travel is not None:
            travel[old_to_new[kept]] = local.travel[kept]
        seconds = relabelled(local.seconds, old_to_new)
        return RowState(
            relabelled(local.labels, old_to_new),
            seconds,
            local.upper,
            np.where(seconds < 0, local.lower, local.near),
            local.lower,
            travel,
        )
