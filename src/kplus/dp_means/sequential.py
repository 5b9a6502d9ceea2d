"""DP-means that visits the rows in order: the serial and the collapsed algorithm.

Both need blocks in groups of one, visited in order, with an empty group at the end:
then `advance` hands what a block changed to the next one.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import NotFiniteError
from kplus.core.group_sums import GroupSums
from kplus.core.regroup import relabelled, without
from kplus.core.types import Array, Block, IntArray, Position, Proposal
from kplus.dp_means.kernels_sequential import (
    Live,
    collapsed_pass,
    nearest_centers,
    serial_pass,
    tally_rows,
)
from kplus.dp_means.model import errors_after
from kplus.dp_means.params import Scaling

__all__ = [
    "CollapsedModel",
    "DropEmptied",
    "Labels",
    "Means",
    "SerialModel",
    "Tally",
]

_NO_WEIGHTS = np.empty(0)


@dataclass(slots=True)
class Labels:
    """Per-row state of a block."""

    shapes: ClassVar[dict[str, str]] = {"labels": "N <K"}

    labels: IntArray


@dataclass(frozen=True)
class Means:
    """Cluster centres, in scaled units.

    Attributes
    ----------
    centers : array of shape (K, D)
    refs : array of shape (K, D)
        The fixed points that the statistics of each cluster are taken about.
    members, counts : arrays of shape (K,), or None
        Rows of positive weight and summed weight of each cluster, `centers` being
        its mean; None until every row has a cluster. The collapsed pass needs them.
    """

    shapes: ClassVar[dict[str, str]] = {
        "centers": "K D",
        "refs": "K D",
        "members": "K",
        "counts": "K",
    }

    scaling: Scaling
    centers: Array
    refs: Array
    members: IntArray | None = None
    counts: Array | None = None

    @classmethod
    def start(cls, scaling: Scaling, centers: Array) -> "Means":
        return cls(scaling, centers, centers.copy())

    @property
    def K(self) -> int:
        return len(self.centers)

    def grown(self, born: Array) -> "Means":
        """With the clusters that a block opened."""
        return replace(
            self,
            centers=np.concatenate([self.centers, born]),
            refs=np.concatenate([self.refs, born]),
        )

    def regroup(self, old_to_new: IntArray) -> "Means":
        """Without the clusters that `old_to_new` drops; the others keep their order."""
        kept = old_to_new >= 0
        return Means(
            self.scaling,
            self.centers[kept],
            self.refs[kept],
            None if self.members is None else self.members[kept],
            None if self.counts is None else self.counts[kept],
        )


@dataclass
class Tally(GroupSums):
    """Additive statistics of clusters, and the report of one pass.

    Clusters open within a pass, so tallies of different K add: one that knows fewer
    clusters has nothing in the later ones.

    Attributes
    ----------
    members : array of shape (K,)
        Number of rows of positive weight: 0 shows an empty cluster without rounding.
    counts, sums, squares : arrays of shape (K,), (K, D), (K,)
        Weighted sums of 1, ``y - refs[k]`` and its square.
    born : array of shape (n_born, D)
        Report: the rows at which clusters were opened, in order.
    moved : int
        Report: how many rows changed cluster.
    """

    statistics = ("members", "counts", "sums", "squares")

    shapes: ClassVar[dict[str, str]] = {  # of the clusters known to its rows
        "members": "k",
        "counts": "k",
        "sums": "k D",
        "squares": "k",
        "born": "b D",
    }

    members: IntArray
    counts: Array
    sums: Array
    squares: Array
    born: Array
    moved: int = 0

    @classmethod
    def zeros(cls, K: int, D: int) -> Self:
        ints = np.zeros(K, np.int64)
        return cls(ints, np.zeros(K), np.zeros((K, D)), np.zeros(K), np.empty((0, D)))

    def begin_pass(self) -> None:
        self.born, self.moved = self.born[:0], 0

    def __iadd__(self, other: Self) -> Self:
        self._widen(other.K)
        self.born = np.concatenate([self.born, other.born])
        self.moved += other.moved
        return super().__iadd__(other)

    def __isub__(self, other: Self) -> Self:
        self._widen(other.K)
        return super().__isub__(other)

    def _widen(self, K: int) -> None:
        if K > self.K:
            wide = super().regroup(np.arange(self.K), K)
            for name in self.statistics:
                setattr(self, name, getattr(wide, name))

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
        out = super().regroup(old_to_new[: self.K], K)
        out.begin_pass()
        return out


@dataclass(frozen=True)
class _Sequential:
    """What the two algorithms share.

    Parameters
    ----------
    penalty : float
        λ² in scaled units.
    max_clusters : float
        No cluster is opened beyond that many (Eq. 12).
    """

    penalty: float
    max_clusters: float = np.inf
    incremental = False

    def means(self, params: Means, total: Tally) -> Array:
        """Mean of the rows of each cluster; the old centre where there are none."""
        full = total.members > 0
        means = params.centers.copy()
        means[full] = params.refs[full] + total.sums[full] / total.counts[full, None]
        return means

    def objective(self, params: Means, total: Tally) -> float:
        """Eq. 3 of the clusters that have rows, in scaled units."""
        K = np.count_nonzero(total.members)
        return float(self.squared_error(params, total).sum()) + self.penalty * (K - 1)

    def squared_error(self, params: Means, total: Tally) -> Array:
        """Σ w |y - c_k|² of each cluster."""
        return _error_about(params.centers, params.refs, total)

    def converged(self, total: Tally) -> bool:
        return total.moved == 0

    def regroup_local(self, local: Labels, old_to_new: IntArray, K: int) -> Labels:
        return Labels(relabelled(local.labels, old_to_new))


class SerialModel(_Sequential):
    """The pass of Kulis & Jordan (2012): clusters open at once, centres move after it.

    A row of weight w opens a cluster when ``min(w, 1) * d² > penalty``, as in
    `DPMeansModel.reach`.
    """

    def summarize(
        self, params: Means, block: Block, local: Labels | None
    ) -> tuple[Tally, Labels]:
        """Assign the rows of a block in order; return its statistics."""
        Y, weights = _rows(params, block)
        capacity = _capacity(params.K, block, self.max_clusters)
        centers = _with_capacity(params.centers, capacity)
        labels = np.empty(block.n_rows, np.int32)
        K = serial_pass(Y, weights, centers, params.K, self.penalty, labels)
        born = centers[params.K : K]
        refs = np.concatenate([params.refs, born])
        tally = _tally(Y, weights, labels, refs, born)
        tally.moved = block.n_rows
        if local is not None:
            tally.moved = int(np.count_nonzero(labels != local.labels))
        return tally, Labels(labels)

    def advance(self, params: Means, total: Tally, latest: Tally) -> Means:
        """Append the clusters that the last block opened; move nothing."""
        return params.grown(_latest(params, total))

    def update(self, params: Means, total: Tally) -> Means:
        return replace(params, centers=self.means(params, total))


class CollapsedModel(_Sequential):
    """Rows move one at a time by the exact change of Eq. 9 (Algorithm 2 of MAD-Bayes).

    "Closest" is read as the least rise of Eq. 9 with the row taken out of its own
    cluster: by plain distance the objective could rise. Penalty 0 with `max_clusters`
    equal to the present number keeps that number: no cluster opens or is emptied.

    All copies that a weight stands for move together, by the exact change. Whether
    they open a cluster is decided as for one of them alone: together they would do so
    however near they are, if only they are many.

    The first pass assigns rows to the nearest centre.
    """

    def summarize(
        self, params: Means, block: Block, local: Labels | None
    ) -> tuple[Tally, Labels]:
        """Move the rows of a block in order; return its statistics."""
        Y, weights = _rows(params, block)
        if local is None or params.members is None or params.counts is None:
            placed = np.empty(block.n_rows, np.int32)
            nearest_centers(Y, params.centers, placed)
            tally = _tally(Y, weights, placed, params.refs, params.refs[:0])
            tally.moved = block.n_rows
            return tally, Labels(placed)
        K, capacity = params.K, params.K + block.n_rows
        refs = _with_capacity(params.refs, capacity)
        live = Live(
            _with_capacity(params.members, capacity),
            _with_capacity(params.counts, capacity),
            _with_capacity(params.centers, capacity),
            refs,
        )
        labels = local.labels.copy()
        K, moved = collapsed_pass(
            Y, weights, live, K, self.penalty, float(self.max_clusters), labels
        )
        tally = _tally(Y, weights, labels, refs[:K], refs[params.K : K])
        tally.moved = moved
        return tally, Labels(labels)

    def advance(self, params: Means, total: Tally, latest: Tally) -> Means:
        """Where the means are now; while rows are first placed, nothing moves."""
        if params.members is None:
            return params
        return self.update(params.grown(_latest(params, total)), total)

    def update(self, params: Means, total: Tally) -> Means:
        return replace(
            params,
            centers=self.means(params, total),
            members=total.members.copy(),
            counts=total.counts.copy(),
        )

    def squared_error(self, params: Means, total: Tally) -> Array:
        """Σ w |y - mean_k|² of each cluster (Eq. 9)."""
        return _error_about(self.means(params, total), params.refs, total)


def _rows(params: Means, block: Block) -> tuple[Array, Array]:
    """The rows of a block in scaled units, and their weights."""
    Y = np.ascontiguousarray(params.scaling.transform(block.read().astype(np.float64)))
    bad = np.flatnonzero(~np.isfinite(np.einsum("nd,nd->n", Y, Y)))
    if len(bad):
        raise NotFiniteError(f"Row {block.start + bad[0]}")
    return Y, _NO_WEIGHTS if block.weights is None else block.weights


def _tally(
    Y: Array, weights: Array, labels: IntArray, refs: Array, born: Array
) -> Tally:
    out = Tally.zeros(len(refs), Y.shape[1])
    tally_rows(Y, weights, labels, refs, out.members, out.counts, out.sums, out.squares)
    out.born = born
    return out


def _error_about(centers: Array, refs: Array, total: Tally) -> Array:
    return errors_after(centers - refs, total.counts, total.sums, total.squares)


def _latest(params: Means, total: Tally) -> Array:
    """The clusters opened since `params`: the last ones born in this pass."""
    return total.born[len(total.born) - (total.K - params.K) :]


def _capacity(K: int, block: Block, most: float) -> int:
    """Centres there are, and one for each row that may open one."""
    return int(max(K, min(K + block.n_rows, most)))


def _with_capacity(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    out = np.empty((capacity, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


class DropEmptied:
    """Drop the clusters that lost all their rows.

    A pass that opened clusters has not converged.
    """

    def propose(self, at: Position[Any, Means, Tally]) -> Proposal | None:
        params, total = at.params, at.total
        empty = np.flatnonzero(total.members == 0)
        if not len(empty) and not len(total.born):
            return None
        old_to_new = without(params.K, empty)
        return Proposal(
            at.updated.regroup(old_to_new), old_to_new, params.K - len(empty)
        )
