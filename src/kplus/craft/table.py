"""Rows in memory, partitions of them, and how good these are."""

from dataclasses import dataclass

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.craft.kernels import Penalties, add_up, converge, distances_to
from kplus.craft.layout import Rows
from kplus.craft.model import CraftModel

__all__ = ["Partition", "Table", "canonical"]

_MOST_PASSES = 100
_WARM = 4  # rounds in which every feature counts, after a start at random
_SEED = 20160509  # of the projection by which rows are sorted; any number will do


@dataclass(frozen=True)
class Partition:
    """Clusters of the rows of a table; none is empty."""

    labels: IntArray
    sums: Array
    counts: Array
    cluster_costs: Array

    @property
    def K(self) -> int:
        return len(self.counts)

    @property
    def objective(self) -> float:
        return float(self.cluster_costs.sum())


@dataclass(frozen=True)
class Table:
    """Some rows in memory and the model to fit to them.

    The background and the costs are those of `penalties`, so that parts of a table are
    judged as parts.
    """

    model: CraftModel
    rows: Rows
    penalties: Penalties

    @classmethod
    def of(cls, model: CraftModel, rows: Rows) -> "Table":
        whole, total = np.zeros((1, model.layout.n_sums)), np.zeros(1)
        everyone = np.zeros(len(rows), dtype=np.int64)
        add_up(rows.numbers, rows.codes, rows.weights, everyone, whole, total)
        return cls(model, rows, model.penalties(whole[0], float(total[0])))

    def part(self, rows: IntArray) -> "Table":
        return Table(self.model, self.rows.take(rows), self.penalties)

    def converge(
        self, labels: IntArray, K: int, *, warm: bool = False, most: int = _MOST_PASSES
    ) -> Partition:
        """Go to the nearest optimum; clusters that lose all rows are gone."""
        model, layout = self.model, self.model.layout
        labels = labels.astype(np.int64)
        sums, counts = np.empty((K, layout.n_sums)), np.empty(K)
        cluster_costs = np.empty(K)
        converge(
            self.rows.encoded, layout.sums, self.penalties, model.choice,
            _WARM if warm else 0, most, labels, (sums, counts, cluster_costs),
        )  # fmt: skip
        alive = counts > 0.0
        if not alive.all():
            labels = (np.cumsum(alive) - 1)[labels]
            sums, counts, cluster_costs = (
                sums[alive],
                counts[alive],
                cluster_costs[alive],
            )
        return Partition(labels, sums, counts, cluster_costs)

    def cluster_costs(self, sums: Array, counts: Array) -> Array:
        """What clusters with these sums would cost, each for itself."""
        return self.model.alone.clusters(sums, counts, self.penalties).prices

    def distances(self, row: int) -> Array:
        """How far all rows are from one of them."""
        layout, out = self.model.layout, np.empty(len(self.rows))
        distances_to(self.rows.encoded, layout.sums, row, out)
        return out


def canonical(X: Array, weights: Array) -> tuple[Array, Array]:
    """Rows in an order that does not depend on theirs, equal ones made one.

    They are sorted by a random projection, which is quicker than by their values and
    as good: only equal rows come to lie on the same point, but for a rare chance.
    """
    key = np.where(np.isnan(X), 0.1234567, X)
    scale = np.max(np.abs(key), axis=0, initial=0.0)
    key = key @ (
        np.random.default_rng(_SEED).uniform(1.0, 2.0, X.shape[1])
        / np.where(scale > 0.0, scale, 1.0)
    )
    order = np.argsort(key, kind="stable")
    X, key = X[order], key[order]
    same = np.zeros(len(X), dtype=np.bool_)
    near = np.flatnonzero(key[1:] == key[:-1])
    a, b = X[near], X[near + 1]
    same[near + 1] = np.all((a == b) | (np.isnan(a) & np.isnan(b)), axis=1)
    group = np.cumsum(~same) - 1
    summed = np.bincount(group, weights=weights[order])
    return X[~same], summed.astype(np.float64)
