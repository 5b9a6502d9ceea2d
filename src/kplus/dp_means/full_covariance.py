"""DP-means with a covariance matrix of each cluster's own (Sup. Mat. E of MAD-Bayes).

The objective, with Σ0 = `floor` · I and the penalty λ²:

    Σ_n w_n (x_n - μ_z)ᵀ Σ_z⁻¹ (x_n - μ_z)
    + λ² Σ_k [log|Σ_k| - log|Σ0| + tr(Σ0 Σ_k⁻¹) - D] + λ² (K - 1)

The bracket is Stein's loss of Σ_k against Σ0: 0 where they are equal, else positive.
It is the paper's log|Σ_k| with the two terms of the inverse Wishart prior that the
paper drops. Its scale Φ is taken as λ²Σ0/σ², so that tr(ΦΣ_k⁻¹) survives the limit;
and log|Φ| is constant only while K is. Without them the objective has no lower bound:
the matrix of a cluster of at most D rows may shrink to nothing. The best matrix is
Σ_k = Σ0 + S_k/λ² with S_k the scatter of the rows about their mean, and as λ² grows
the objective tends to Eq. 3 in units of Σ0.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import NotFiniteError
from kplus.core.regroup import relabelled, without
from kplus.core.types import Array, Block, IntArray, Position, Proposal
from kplus.dp_means.model import NO_CANDIDATES, Candidates, ClusterSums, shortlist
from kplus.dp_means.moves import spread_out
from kplus.dp_means.sequential import Labels

__all__ = [
    "Ellipsoids",
    "FullCovarianceModel",
    "OpenEllipsoids",
    "RemoveEllipsoid",
    "Scatters",
]

_TILE = 4096  # rows scored at a time


@dataclass(frozen=True)
class Ellipsoids:
    """Centres (K, D) and covariance matrices (K, D, D) of clusters."""

    shapes: ClassVar[dict[str, str]] = {"centers": "K D", "covariances": "K D D"}

    centers: Array
    covariances: Array

    @classmethod
    def spheres(cls, centers: Array, variance: float) -> "Ellipsoids":
        """Clusters of one variance in every direction."""
        D = centers.shape[1]
        return cls(centers, np.tile(variance * np.eye(D), (len(centers), 1, 1)))

    @property
    def K(self) -> int:
        return len(self.centers)

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        """Variances along the axes of each ellipsoid, and the axes as columns.

        A variance that rounding hides behind the largest is raised to what is visible.
        """
        variances, axes = np.linalg.eigh(self.covariances)
        return np.maximum(variances, 2.0**-50 * variances[:, -1:]), axes

    @cached_property
    def whiten(self) -> Array:
        """Matrices W with |(x - μ) W|² = (x - μ)ᵀ Σ⁻¹ (x - μ)."""
        variances, axes = self._axes
        return axes / np.sqrt(variances)[:, None, :]

    def stein(self, floor: float) -> Array:
        """log|Σ_k| - log|Σ0| + tr(Σ0 Σ_k⁻¹) - D, for Σ0 = `floor` · I."""
        ratios = self._axes[0] / floor
        loss: Array = np.sum(np.log(ratios) + 1.0 / ratios - 1.0, axis=1)
        return np.maximum(loss, 0.0)

    def squares(self, X: Array) -> Array:
        """Squared Mahalanobis distance of each row to each centre."""
        out = np.empty((len(X), self.K))
        for k in range(self.K):
            Z = (X - self.centers[k]) @ self.whiten[k]
            np.einsum("nd,nd->n", Z, Z, out=out[:, k])
        return out

    def regroup(self, old_to_new: IntArray) -> "Ellipsoids":
        """Without the clusters that `old_to_new` drops; the others keep their order."""
        return Ellipsoids(
            self.centers[old_to_new >= 0], self.covariances[old_to_new >= 0]
        )

    def grown(self, born: Array, variance: float) -> "Ellipsoids":
        """With more clusters, which begin as spheres at the points given."""
        new = Ellipsoids.spheres(born, variance)
        return Ellipsoids(
            np.concatenate([self.centers, new.centers]),
            np.concatenate([self.covariances, new.covariances]),
        )


@dataclass
class Scatters(ClusterSums):
    """Sums over the rows of clusters about their centres, and the report of a pass.

    Attributes
    ----------
    squares : array of shape (K,)
        Weighted sums of squared Mahalanobis distances.
    outers : array of shape (K, D, D)
        Weighted sums of ``(x - μ_k)(x - μ_k)ᵀ``.
    """

    statistics = (*ClusterSums.statistics, "outers")

    shapes: ClassVar[dict[str, str]] = ClusterSums.shapes | {"outers": "K D D"}

    outers: Array = field(kw_only=True)

    @classmethod
    def zeros(cls, K: int, D: int) -> Self:
        sums, outers = np.zeros((K, D)), np.zeros((K, D, D))
        return cls(np.zeros(K), sums, np.zeros(K), np.zeros(K), outers=outers)


@dataclass(frozen=True)
class FullCovarianceModel:
    """Mahalanobis distances, Stein's loss and a penalty per cluster; see the module.

    Parameters
    ----------
    penalty : float
        λ², which has no unit here: it is compared with Mahalanobis distances.
    floor : float
        Σ0 = floor · I, in squared units of the data.
    max_clusters : float
        No cluster is opened beyond that many.
    """

    penalty: float
    floor: float
    max_clusters: float = np.inf
    incremental = False

    def summarize(
        self, params: Ellipsoids, block: Block, local: Labels | None
    ) -> tuple[Scatters, Labels]:
        """Assign the rows of a block and sum what they say of their clusters."""
        K, D = params.centers.shape
        out = Scatters.zeros(K, D)
        labels = np.empty(block.n_rows, np.int32)
        for start, X, weights in _tiles(block):
            with np.errstate(over="ignore", invalid="ignore"):
                squares = params.squares(X)
            rows = np.arange(len(X))
            own = np.argmin(squares, axis=1)
            first = squares[rows, own]
            if not np.all(np.isfinite(first)):
                raise NotFiniteError(f"A row from {block.start + start} on")
            squares[rows, own] = np.inf
            second = np.min(squares, axis=1)
            out.squares += np.bincount(own, weights * first, K)
            if K > 1:
                out.removal_cost += np.bincount(own, weights * (second - first), K)
            _add_scatter(out, params, X, weights, own)
            if self.max_clusters > K:
                out.candidates = out.candidates.merged(
                    self._candidates(block.start + start, X, weights, own, first)
                )
            labels[start : start + len(X)] = own
        out.moved = block.n_rows
        if local is not None:
            out.moved = int(np.count_nonzero(labels != local.labels))
        return out, Labels(labels)

    def _candidates(
        self, start: int, X: Array, weights: Array, own: IntArray, first: Array
    ) -> Candidates:
        """Rows whose cost exceeds the penalty; see `DPMeansModel.reach` for weights."""
        costs = first * np.minimum(weights, 1.0)
        far = np.flatnonzero(costs > self.penalty)
        if not len(far):
            return NO_CANDIDATES
        far = far[shortlist(costs[far], far)]
        rows = Candidates(costs[far], far + start, own[far], weights[far], X[far])
        return rows.ranked()

    def update(self, params: Ellipsoids, total: Scatters) -> Ellipsoids:
        """Means, and Σ_k = Σ0 + S_k/λ²; an empty cluster stays."""
        full = ~self.empty(params, total)
        return self.best(params, full, total.counts, total.sums, total.outers)

    def best(
        self,
        params: Ellipsoids,
        full: NDArray[np.bool_],
        counts: Array,
        sums: Array,
        outers: Array,
    ) -> Ellipsoids:
        """The best parameters of the clusters that are `full`; the others stay."""
        centers, covariances = params.centers.copy(), params.covariances.copy()
        n, D = counts[full, None], centers.shape[1]
        step = sums[full] / n
        centers[full] += step
        scatter = outers[full] - (n * step)[:, :, None] * step[:, None, :]
        scatter = 0.5 * (scatter + np.swapaxes(scatter, 1, 2))
        covariances[full] = self.floor * np.eye(D) + scatter / self.penalty
        return Ellipsoids(centers, covariances)

    def empty(self, params: Ellipsoids, total: Scatters) -> NDArray[np.bool_]:
        """Clusters without rows."""
        empty: NDArray[np.bool_] = total.counts <= 0.0
        return empty

    def advance(
        self, params: Ellipsoids, total: Scatters, latest: Scatters
    ) -> Ellipsoids:
        return self.update(params, total)

    def objective(self, params: Ellipsoids, total: Scatters) -> float:
        """See the module; only clusters that have rows count."""
        full = ~self.empty(params, total)
        shape = float(params.stein(self.floor)[full].sum()) + np.count_nonzero(full) - 1
        return float(total.squares.sum()) + self.penalty * shape

    def converged(self, total: Scatters) -> bool:
        return total.moved == 0

    def regroup_local(self, local: Labels, old_to_new: IntArray, K: int) -> Labels:
        return Labels(relabelled(local.labels, old_to_new))


def _tiles(block: Block) -> Iterator[tuple[int, Array, Array]]:
    """Rows of a block in float64 with their weights, some at a time."""
    rows = block.read()
    for start in range(0, block.n_rows, _TILE):
        X = rows[start : start + _TILE].astype(np.float64)
        if not np.all(np.isfinite(X)):
            raise NotFiniteError(f"A row from {block.start + start} on")
        if block.weights is None:
            yield start, X, np.ones(len(X))
        else:
            yield start, X, block.weights[start : start + _TILE]


def _add_scatter(
    out: Scatters, params: Ellipsoids, X: Array, weights: Array, own: IntArray
) -> None:
    """Add rows to the sums about the centre of their own cluster."""
    order = np.argsort(own, kind="stable")
    ends = np.cumsum(np.bincount(own, minlength=params.K))
    for k, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            diff, w = X[rows] - params.centers[k], weights[rows]
            out.counts[k] += w.sum()
            out.sums[k] += w @ diff
            half = np.sqrt(w)[:, None] * diff
            out.outers[k] += half.T @ half


class OpenEllipsoids:
    """Open clusters at the costliest rows, up to an eighth of those there are.

    Each opened row costs more than the penalty even against the spheres opened with
    it, so every opening lowers the objective by itself.
    """

    def propose(
        self, at: Position[FullCovarianceModel, Ellipsoids, Scatters]
    ) -> Proposal | None:
        model, params, total = at.model, at.params, at.total
        candidates = total.candidates
        if not len(candidates):
            return None
        most = int(min(max(1, params.K // 8), model.max_clusters - params.K))
        opened = spread_out(candidates, model.penalty * model.floor, most)
        leaving = _with_copies(candidates, opened)
        stayed = self._without(model, params, total, leaving)
        born = stayed.grown(opened.y, model.floor)
        return Proposal(born, np.arange(params.K), born.K)

    @staticmethod
    def _without(
        model: FullCovarianceModel,
        params: Ellipsoids,
        total: Scatters,
        leaving: Candidates,
    ) -> Ellipsoids:
        """The best parameters once some rows have left.

        With them still counted in, the objective could rise.
        """
        counts, sums, outers = (
            total.counts.copy(),
            total.sums.copy(),
            total.outers.copy(),
        )
        diff = leaving.y - params.centers[leaving.label]
        w = leaving.weight
        np.subtract.at(counts, leaving.label, w)
        np.subtract.at(sums, leaving.label, w[:, None] * diff)
        outer = diff[:, :, None] * diff[:, None, :]
        np.subtract.at(outers, leaving.label, w[:, None, None] * outer)
        full = counts > 1e-12 * total.counts
        return model.best(params, full, counts, sums, outers)


def _with_copies(candidates: Candidates, opened: Candidates) -> Candidates:
    """Opened rows and those equal to them: a weight then acts as so many copies."""
    same = np.any(np.all(candidates.y[:, None] == opened.y[None], axis=2), axis=1)
    return candidates.at(np.flatnonzero(same))


class RemoveEllipsoid:
    """At convergence, remove the cluster whose rows cost little more elsewhere.

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
