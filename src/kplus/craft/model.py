"""CRAFT as a model of the loop: parameters, sums, objective, and moves.

`ClusterSums` are the sums of rows, `Clusters` the parameters fitted to them, and
`CraftModel` the functions of the loop. `DropClusters`, `MergeClusters` and
`SortClusters` change the number and the order of clusters between two passes.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import NotFiniteError
from kplus.core.group_sums import GroupSums
from kplus.core.regroup import joined, relabelled, without
from kplus.core.types import Array, Block, IntArray, Position, Proposal
from kplus.craft.kernels import Fitted, Rules, evaluate_clusters
from kplus.craft.kernels_rows import add_up, assign_rows
from kplus.craft.layout import Layout

__all__ = [
    "ClusterSums",
    "Clusters",
    "CraftModel",
    "DropClusters",
    "MergeClusters",
    "Penalties",
    "SortClusters",
    "by_size",
]


# ------------------------------------------------------------- sums and parameters


@dataclass
class ClusterSums(GroupSums):
    """What the rows of each cluster add up to.

    Attributes
    ----------
    sums : (K, F)
        For each number the rows that have it, their sum and sum of squares; for each
        category its rows; all weighted.
    counts : (K,)
        Weight of the rows.
    blank : float
        Weight of the rows without any value.
    changed : int
        Report of the last pass: rows that changed their cluster.
    """

    statistics = ("sums", "counts")

    shapes: ClassVar[dict[str, str]] = {"sums": "K F", "counts": "K"}

    sums: Array
    counts: Array
    blank: float = 0.0
    changed: int = 0

    def begin_pass(self) -> None:
        self.changed = 0

    def __iadd__(self, other: Self) -> Self:
        self.blank += other.blank
        self.changed += other.changed
        return super().__iadd__(other)

    def __isub__(self, other: Self) -> Self:
        self.blank -= other.blank
        return super().__isub__(other)


class Penalties(NamedTuple):
    """What features and clusters cost, given the sums of all rows."""

    whole: Array  # (F,) sums of all rows, which give the background
    total: float  # their weight
    costs: Array  # (D,) of each feature
    penalty: float  # of each cluster


@dataclass(frozen=True)
class Clusters:
    """Parameters fitted to sums, in the form in which rows are scored.

    Attributes
    ----------
    tables : (F, K)
        Weighted log-likelihood ratios, cluster against background.
    shares : (K,)
        Logarithms of the clusters' shares of the rows.
    gains : (K, D)
        What each feature gains in each cluster, see `kernels.fit_clusters`.
    chosen : (K, D)
        Which features count.
    cluster_costs : (K,)
        What each cluster costs; their sum is the objective.
    """

    shapes: ClassVar[dict[str, str]] = {
        "tables": "W K",
        "shares": "K",
        "gains": "K D",
        "chosen": "K D",
        "cluster_costs": "K",
    }
    renamed_fields: ClassVar[dict[str, str]] = {"prices": "cluster_costs"}

    tables: Array
    shares: Array
    gains: Array
    chosen: NDArray[np.bool_]
    cluster_costs: Array

    @property
    def K(self) -> int:
        return len(self.shares)

    def take(self, kept: NDArray[np.bool_]) -> "Clusters":
        """Some of the clusters."""
        return Clusters(
            np.ascontiguousarray(self.tables[:, kept]),
            self.shares[kept],
            self.gains[kept],
            self.chosen[kept],
            self.cluster_costs[kept],
        )


# ---------------------------------------------------------------------------- model


@dataclass(frozen=True)
class CraftModel:
    """Rows of a cluster are likelier under it than in the whole table, where it counts.

    The objective is a sum over clusters,

        J = Σ_k [ λ − n_k log(n_k/N) − Σ_d w_kd (G_kd − c_d) ],

    with the gain G_kd of feature d (log-likelihood ratio of the rows of cluster k,
    cluster against whole table, and the logarithm of the prior that smooths it), its
    cost c_d = ½ p_d log N, and w_kd = 1 for the features chosen. Assigning a row to its
    best cluster, refitting, and choosing features each lower it.

    Attributes
    ----------
    layout : Layout
    smoothing : float
        Rows' worth of background in every cluster.
    penalty : float or None
        λ, by default ½ log N.
    fraction : float or None
        Share of the features that count in each cluster; None: those worth their cost.
    sharing : float
        0: each cluster its own features, 1: all the same.
    """

    layout: Layout
    smoothing: float = 1.0
    penalty: float | None = None
    fraction: float | None = None
    sharing: float = 0.0
    incremental = False

    @property
    def n_features(self) -> int:
        return len(self.layout.columns)

    @property
    def alone(self) -> "CraftModel":
        """The same without sharing, for candidates that are no partition."""
        return replace(self, sharing=0.0)

    @property
    def budget(self) -> int:
        """Features for each cluster, -1: any number."""
        if self.fraction is None:
            return -1
        return max(1, round(self.fraction * self.n_features))

    def rules(self, penalties: Penalties) -> Rules:
        """How clusters are fitted, for the kernels."""
        return Rules(*penalties, self.smoothing, self.budget, self.sharing)

    def penalties(self, whole: Array, total: float) -> Penalties:
        """Costs for a table with these sums: ½ log N for each parameter."""
        half = 0.5 * np.log(max(total, 1.0))
        layout = self.layout
        used = np.array(
            [
                np.count_nonzero(whole[layout.places(q)] > 1e-9 * total)
                for q in range(len(layout.widths))
            ]
        )
        parameters = np.concatenate(
            [np.full(layout.scored, 2.0), np.maximum(used - 1.0, 1.0)]
        )
        penalty = half if self.penalty is None else self.penalty
        return Penalties(whole, total, half * parameters, penalty)

    def clusters(self, sums: Array, counts: Array, penalties: Penalties) -> Clusters:
        """Fit clusters, each by itself a candidate or part of a partition."""
        layout, K, D = self.layout, len(counts), self.n_features
        gains, weights = np.empty((2, K, D))
        tables, chosen = np.empty((layout.n_sums, K)), np.empty((K, D), np.bool_)
        cluster_costs = np.empty(K)
        fitted = Fitted(
            gains,
            weights,
            chosen.view(np.uint8),
            tables,
            cluster_costs,
            np.empty((3, D)),
        )
        evaluate_clusters(sums, counts, layout.sums, self.rules(penalties), fitted)
        with np.errstate(divide="ignore"):
            shares = np.log(counts / penalties.total)
        return Clusters(tables, shares, gains, chosen, cluster_costs)

    def merge_changes(
        self, sums: Array, counts: Array, cluster_costs: Array, penalties: Penalties
    ) -> tuple[IntArray, Array]:
        """All pairs of clusters, and how the objective changes if they are merged.

        Exact without sharing; with it, other clusters' features may change as well.
        """
        pairs = np.stack(np.triu_indices(len(counts), 1), axis=1)
        changes = [np.empty(0)]
        for k in range(len(counts) - 1):  # not all at once: they may be very many
            union = self.alone.clusters(
                sums[k + 1 :] + sums[k], counts[k + 1 :] + counts[k], penalties
            )
            changes.append(
                union.cluster_costs - cluster_costs[k + 1 :] - cluster_costs[k]
            )
        return pairs, np.concatenate(changes)

    def of(self, total: ClusterSums) -> Clusters:
        """The best clusters for a partition of all rows."""
        penalties = self.penalties(total.sums.sum(axis=0), float(total.counts.sum()))
        return self.clusters(total.sums, total.counts, penalties)

    def summarize(
        self, params: Clusters, block: Block, local: IntArray | None
    ) -> tuple[ClusterSums, IntArray]:
        X = block.read()
        rows = self.layout.encode(X, block.weights)
        labels = np.full(len(rows), -1) if local is None else local.copy()
        changed = assign_rows(
            rows.numbers, rows.codes, params.tables, params.shares, labels
        )
        summary = ClusterSums(
            sums=np.zeros((params.K, self.layout.n_sums)),
            counts=np.zeros(params.K),
            blank=float(rows.weights[_blank_rows(X)].sum()),
            changed=changed,
        )
        add_up(
            rows.numbers, rows.codes, rows.weights, labels, summary.sums, summary.counts
        )
        if not np.all(np.isfinite(summary.sums)):
            raise NotFiniteError("A row")
        return summary, labels

    def update(self, params: Clusters, total: ClusterSums) -> Clusters:
        return self.of(total)

    def advance(
        self, params: Clusters, total: ClusterSums, latest: ClusterSums
    ) -> Clusters:
        return self.of(total)

    def objective(self, params: Clusters, total: ClusterSums) -> float:
        """J of the partition, its clusters at their best."""
        return float(self.of(total).cluster_costs.sum())

    def converged(self, total: ClusterSums) -> bool:
        return total.changed == 0

    def regroup_local(self, local: IntArray, old_to_new: IntArray, K: int) -> IntArray:
        return relabelled(local, old_to_new)


def _blank_rows(X: Array) -> IntArray:
    """Rows without any value."""
    likely = np.flatnonzero(np.isnan(X[:, 0]))
    blank: IntArray = likely[np.isnan(X[likely]).all(axis=1)]
    return blank


# ---------------------------------------------------------------------------- moves


def by_size(total: ClusterSums) -> IntArray:
    """New numbers of the clusters, largest first, equals by their sums."""
    return np.argsort(np.lexsort((*total.sums.T[::-1], -total.counts)))


def _regrouped(
    model: CraftModel, total: ClusterSums, old_to_new: IntArray, K: int
) -> Proposal:
    return Proposal(model.of(total.regroup(old_to_new, K)), old_to_new, K, exact=True)


class DropClusters:
    """Drop clusters without rows."""

    def propose(
        self, at: Position[CraftModel, Clusters, ClusterSums]
    ) -> Proposal | None:
        total = at.total
        empty = np.flatnonzero(total.counts <= 0.0)
        if not len(empty):
            return None
        old_to_new = without(total.K, empty)
        return _regrouped(at.model, total, old_to_new, total.K - len(empty))


class MergeClusters:
    """After convergence, merge the two clusters that gain most by it."""

    def propose(
        self, at: Position[CraftModel, Clusters, ClusterSums]
    ) -> Proposal | None:
        model, total, updated = at.model, at.total, at.updated
        if not at.converged or total.K < 2:
            return None
        now = float(updated.cluster_costs.sum())
        penalties = model.penalties(total.sums.sum(axis=0), float(total.counts.sum()))
        pairs, changes = model.merge_changes(
            total.sums, total.counts, updated.cluster_costs, penalties
        )
        first, second = pairs[np.argmin(changes)]
        old_to_new = joined(total.K, first, second)
        proposal = _regrouped(model, total, old_to_new, total.K - 1)
        if float(proposal.params.cluster_costs.sum()) >= now - 1e-9 * abs(now):
            return None
        return proposal


class SortClusters:
    """Number clusters by size, largest first; a `finish` of the loop."""

    def propose(
        self, at: Position[CraftModel, Clusters, ClusterSums]
    ) -> Proposal | None:
        total = at.total
        old_to_new = by_size(total)
        if np.array_equal(old_to_new, np.arange(total.K)):
            return None
        return _regrouped(at.model, total, old_to_new, total.K)
