"""What DP-means needs to know of some rows."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from kplus.core.group_sums import GroupSums
from kplus.core.types import Array, IntArray

__all__ = ["NO_CANDIDATES", "Candidates", "ClusterSums", "errors_after", "shortlist"]

_MOST_CANDIDATES = 512


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Rows that would rather open a cluster: the costliest few, ties by row number.

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
        Report: rows that want a cluster of their own.
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
