"""CRAFT as a model of the loop: likelihood ratios, chosen features, ICL."""

from dataclasses import dataclass, replace

import numpy as np

from kplus.core.errors import NotFiniteError
from kplus.core.regroup import relabelled
from kplus.core.types import Array, Block, IntArray
from kplus.craft.kernels import (
    Choice,
    Penalties,
    add_up,
    assign_rows,
    choose_features,
    cost_clusters,
    fit_clusters,
    weigh_tables,
)
from kplus.craft.layout import Layout
from kplus.craft.params import Clusters, ClusterSums

__all__ = ["CraftModel"]


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

    @property
    def choice(self) -> Choice:
        """How clusters are fitted, for the kernels."""
        return Choice(self.smoothing, self.budget, self.sharing)

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
        layout, K = self.layout, len(counts)
        gains, weights = np.empty((K, self.n_features)), np.empty((K, self.n_features))
        tables = np.empty((layout.n_sums, K))
        chosen, cluster_costs = np.empty(gains.shape, np.bool_), np.empty(K)
        fit_clusters(sums, penalties.whole, layout.sums, self.smoothing, gains, tables)
        choose_features(
            gains, penalties.costs, counts > 0.0, self.budget, self.sharing, chosen,
            weights,
        )  # fmt: skip
        weigh_tables(tables, weights, layout.sums)
        cost_clusters(gains, weights, counts, penalties, cluster_costs)
        with np.errstate(divide="ignore"):
            shares = np.log(counts / penalties.total)
        return Clusters(tables, shares, gains, chosen, cluster_costs)

    def join_changes(
        self, sums: Array, counts: Array, cluster_costs: Array, penalties: Penalties
    ) -> tuple[IntArray, Array]:
        """All pairs of clusters, and how the objective changes if they are joined.

        Exact without sharing; with it, other clusters' features may change as well.
        """
        pairs = np.stack(np.triu_indices(len(counts), 1), axis=1)
        changes = [np.empty(0)]
        for k in range(len(counts) - 1):  # not all at once: they may be very many
            joined = self.alone.clusters(
                sums[k + 1 :] + sums[k], counts[k + 1 :] + counts[k], penalties
            )
            changes.append(joined.prices - cluster_costs[k + 1 :] - cluster_costs[k])
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
        found = ClusterSums(
            sums=np.zeros((params.K, self.layout.n_sums)),
            counts=np.zeros(params.K),
            blank=float(rows.weights[_blank_rows(X)].sum()),
            changed=changed,
        )
        add_up(rows.numbers, rows.codes, rows.weights, labels, found.sums, found.counts)
        if not np.all(np.isfinite(found.sums)):
            raise NotFiniteError("A row")
        return found, labels

    def update(self, params: Clusters, total: ClusterSums) -> Clusters:
        return self.of(total)

    def advance(
        self, params: Clusters, total: ClusterSums, latest: ClusterSums
    ) -> Clusters:
        return self.of(total)

    def objective(self, params: Clusters, total: ClusterSums) -> float:
        """J of the partition, its clusters at their best."""
        return float(self.of(total).prices.sum())

    def converged(self, total: ClusterSums) -> bool:
        return total.changed == 0

    def regroup_local(self, local: IntArray, old_to_new: IntArray, K: int) -> IntArray:
        return relabelled(local, old_to_new)


def _blank_rows(X: Array) -> IntArray:
    """Rows without any value."""
    likely = np.flatnonzero(np.isnan(X[:, 0]))
    blank: IntArray = likely[np.isnan(X[likely]).all(axis=1)]
    return blank
