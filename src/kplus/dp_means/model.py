"""DP-means: nearest centres by Hamerly's bounds, clusters opened by costly rows."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kplus.core.errors import NotFiniteError
from kplus.core.group_sums import GroupSums
from kplus.core.regroup import relabelled
from kplus.core.types import Array, Block, IntArray
from kplus.dp_means.kernels_bounds import Bounds, Sums, screen_rows
from kplus.dp_means.kernels_lloyd import meet_rows, visit_rows
from kplus.dp_means.params import Centers

__all__ = [
    "NO_CANDIDATES",
    "ROUNDING",
    "Candidates",
    "ClusterSums",
    "DPMeansModel",
    "RowState",
    "errors_after",
    "shortlist",
]

ROUNDING = 1e-10  # costs closer to the penalty than this share of it are equal to it
_NO_WEIGHTS = np.empty(0)
_FEW = 16384  # up to this many distances per block, measuring is faster than bounding
_MOST_CANDIDATES = 512


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Rows that may open a cluster: the costliest few, ties by row number.

    The order is by cost and row alone, so the rows kept do not depend on how the
    table was cut into blocks. `share` is how much of its distance counts when a row
    opens a cluster: its own weight, up to 1, also where `weight` is that of all copies.
    """

    shapes: ClassVar[dict[str, str]] = {
        "cost": "c",
        "row": "c",
        "label": "c",
        "weight": "c",
        "y": "c d",
        "share": "c",
    }

    cost: Array
    row: IntArray
    label: IntArray
    weight: Array
    y: Array
    share: Array = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.share is None:
            object.__setattr__(self, "share", np.minimum(self.weight, 1.0))

    def __len__(self) -> int:
        return len(self.cost)

    def at(self, index: IntArray | slice) -> "Candidates":
        return Candidates(
            self.cost[index],
            self.row[index],
            self.label[index],
            self.weight[index],
            self.y[index],
            self.share[index],
        )

    def merged(self, other: "Candidates") -> "Candidates":
        if not len(other):
            return self
        if not len(self):
            return other
        both = Candidates(
            np.concatenate([self.cost, other.cost]),
            np.concatenate([self.row, other.row]),
            np.concatenate([self.label, other.label]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.share, other.share]),
        )
        return both.ranked()

    def ranked(self) -> "Candidates":
        """The costliest few, costliest first."""
        some = self.at(shortlist(self.cost, self.row))
        if len(some) > _MOST_CANDIDATES:
            return some._fused().at(slice(_MOST_CANDIDATES))
        return some

    def _fused(self) -> "Candidates":
        """Copies of a row as one, so that they do not crowd out other rows.

        Those of another share stay apart, as they have another cost: which copies meet
        before a cut depends on the blocks, and must not matter.
        """
        keys = np.column_stack([self.share, self.y])
        _, first, copy = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        weight = np.bincount(copy.ravel(), self.weight).astype(np.float64)
        order = np.sort(first)
        return replace(self.at(order), weight=weight[copy.ravel()[order]])


_INTS = np.empty(0, np.int64)
NO_CANDIDATES = Candidates(np.empty(0), _INTS, _INTS, np.empty(0), np.empty((0, 0)))


def shortlist(cost: Array, row: IntArray) -> IntArray:
    """Places by falling cost, ties by row: the first few, all if there may be copies.

    Copies of a row, of equal share, have equal costs: where all differ there are none.
    """
    order = np.lexsort((row, -cost))
    ranked = cost[order]
    if np.all(ranked[1:] != ranked[:-1]):
        return order[:_MOST_CANDIDATES]
    return order


@dataclass
class ClusterSums(GroupSums):
    """Additive statistics of clusters, and the report of one pass.

    Attributes
    ----------
    counts : array of shape (K,)
        Summed weights.
    sums : array of shape (K, D)
        Weighted sums of ``y - refs[k]``.
    squares : array of shape (K,)
        Weighted sums of ``|y - refs[k]|²``.
    removal_cost : array of shape (K,)
        Report: at least this much would the squared distances rise if the cluster
        were removed and its rows went to their second nearest centre.
    moved : int
        Report: how many rows changed cluster.
    candidates : Candidates
        Report: rows that cost more than a cluster.
    """

    statistics: ClassVar[tuple[str, ...]] = ("counts", "sums", "squares")
    reports = ("removal_cost",)

    shapes: ClassVar[dict[str, str]] = {
        "counts": "K",
        "sums": "K D",
        "squares": "K",
        "removal_cost": "K",
    }

    counts: Array
    sums: Array
    squares: Array
    removal_cost: Array
    moved: int = 0
    candidates: Candidates = NO_CANDIDATES

    @classmethod
    def zeros(cls, K: int, D: int) -> Self:
        return cls(np.zeros(K), np.zeros((K, D)), np.zeros(K), np.zeros(K))

    def begin_pass(self) -> None:
        super().begin_pass()
        self.moved, self.candidates = 0, NO_CANDIDATES

    def __iadd__(self, other: Self) -> Self:
        self.moved += other.moved
        self.candidates = self.candidates.merged(other.candidates)
        return super().__iadd__(other)

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
        out = super().regroup(old_to_new, K)
        out.begin_pass()
        return out


def errors_after(step: Array, counts: Array, sums: Array, squares: Array) -> Array:
    """Squared errors of clusters about points a step from where sums are taken."""
    error: Array = (
        squares
        - 2.0 * np.einsum("kd,kd->k", sums, step)
        + counts * np.einsum("kd,kd->k", step, step)
    )
    return np.maximum(error, 0.0)


@dataclass(slots=True)
class RowState:
    """Per-row state of a block: nearest centres, and bounds of the distances.

    See `kernels_bounds.Bounds`; `travel` is that of the centres at the last visit, NaN
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
        """The arrays for the kernels."""
        return Bounds(self.labels, self.seconds, self.upper, self.near, self.lower)


@dataclass(frozen=True)
class DPMeansModel:
    """Squared distances plus `penalty` for each cluster after the first (Eq. 3).

    Parameters
    ----------
    penalty : float
        λ² in scaled units; infinite for a fixed number of clusters.
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
        reach = self.reach(params)
        rows = np.arange(block.n_rows, dtype=np.int32)
        all_rows = new or block.n_rows * params.K <= _FEW
        if all_rows:
            drift, frame = params.unknown_drift, params.frame(reach)
        else:
            drift, frame = (
                params.drift(local.travel),
                params.frame(reach, params.halves),
            )
            n = screen_rows(bounds, weights, drift, frame, out.removal_cost, rows)
            rows = rows[:n]
        if len(rows):
            X, costs = block.read(), np.empty(len(rows))
            if all_rows:
                moved = meet_rows(X, weights, drift, frame, bounds, sums, costs)
            else:
                moved = visit_rows(X, weights, rows, drift, frame, bounds, sums, costs)
            if moved < 0:
                raise NotFiniteError(f"Row {block.start - 1 - moved}")
            out.moved = moved
            if np.isfinite(reach):
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
        Y = params.scaling.transform(block.read()[rows].astype(np.float64))
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
            y=params.scaling.transform(X[at].astype(np.float64)),
        ).ranked()

    def reach(self, params: Centers) -> float:
        """Distance beyond which a row may open a cluster.

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
        counts, empty = total.counts + params.mass, self.empty(params, total)
        if not empty.any():
            every: Array = params.refs + total.sums / counts[:, None]
            return every
        means, full = params.centers.copy(), ~empty
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
        """Eq. 3 (Eq. 12 when capped), from the sums, in scaled units."""
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
