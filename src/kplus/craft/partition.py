"""Partitions of rows in memory: how good they are, and how to split a cluster."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray
from kplus.craft.kernels import Fitted, converge
from kplus.craft.kernels_rows import add_up, assign_rows, cross_sums, distances_to
from kplus.craft.layout import Rows
from kplus.craft.model import CraftModel, Penalties

__all__ = [
    "Partition",
    "Split",
    "Table",
    "best_split",
    "canonical",
    "spread_seeds",
]

_MOST_PASSES = 100
_WARM = 4  # rounds in which every feature counts, after a start at random
_SEED = 20160509  # of the projection by which rows are sorted; any number will do
_N_SPLITS = 3  # splits along single features that are tried in full
_N_PAIRS = 3  # and pairs of rows
_MOST_SPLITS = 400  # categories that are tried
_MOST_SUMS = 2**20  # numbers in the sums of the splits that are compared at a time
_MOST_ADDED = 2**29  # numbers that are added up to rank splits; by fewer rows beyond
_FEWEST_RANKED = 100  # rows that do so at least
_MOST_COLUMNS = 64  # of numbers along which splits are ranked; of more the promising
_MOST_TRIED = 2**21  # numbers in the rows that splits are tried on; then all rows
_LEAST_ROWS = 2


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
        return cls(model, rows, model.penalties(*_whole(model, rows)))

    def whole(self) -> tuple[Array, float]:
        """Sums and weight of all rows."""
        return _whole(self.model, self.rows)

    def part(self, rows: IntArray) -> "Table":
        return Table(self.model, self.rows.take(rows), self.penalties)

    def thinned(self, n_rows: int) -> "Table":
        """So many rows, at even steps, which count for all."""
        step = -(-len(self.rows) // n_rows)
        if step == 1:
            return self
        kept = self.rows.take(np.arange(0, len(self.rows), step))
        weights = kept.weights * (self.rows.weights.sum() / kept.weights.sum())
        return Table(self.model, replace(kept, weights=weights), self.penalties)

    def assigned(self, clusters: Partition) -> IntArray:
        """The best of these clusters, which may be of other rows, for each row."""
        fitted = self.model.alone.clusters(
            clusters.sums, clusters.counts, self.penalties
        )
        labels, rows = np.zeros(len(self.rows), dtype=np.int64), self.rows
        assign_rows(rows.numbers, rows.codes, fitted.tables, fitted.shares, labels)
        return labels

    def converge(
        self, labels: IntArray, K: int, *, warm: bool = False, most: int = _MOST_PASSES
    ) -> Partition:
        """Go to the nearest optimum; clusters that lose all rows are gone."""
        layout, D = self.model.layout, self.model.n_features
        labels = labels.astype(np.int64)
        sums, counts = np.empty((K, layout.n_sums)), np.empty(K)
        cluster_costs = np.empty(K)
        fitted = Fitted(
            np.empty((K, D)), np.empty((K, D)), np.empty((K, D), np.uint8),
            np.empty((layout.n_sums, K)), cluster_costs, np.empty((3, D)),
        )  # fmt: skip
        converge(
            self.rows.encoded, layout.sums, self.model.rules(self.penalties),
            _WARM if warm else 0, most, labels, sums, counts, fitted,
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
        return self.model.alone.clusters(sums, counts, self.penalties).cluster_costs

    def distances(self, row: int) -> Array:
        """How far all rows are from one of them."""
        rows, layout, out = self.rows, self.model.layout, np.empty(len(self.rows))
        missing = layout.starts + layout.widths
        distances_to(row, rows.numbers, rows.codes, layout.scored, missing, out)
        return out


def _whole(model: CraftModel, rows: Rows) -> tuple[Array, float]:
    whole, total = np.zeros((1, model.layout.n_sums)), np.zeros(1)
    one_cluster = np.zeros(len(rows), dtype=np.int64)
    add_up(rows.numbers, rows.codes, rows.weights, one_cluster, whole, total)
    return whole[0], float(total[0])


def canonical(X: Array, weights: Array) -> tuple[Array, Array]:
    """Rows in an order that does not depend on theirs, equal ones made one.

    They are sorted by a random projection, which is quicker than by their values and
    as good: rows that differ are projected to the same point only by a rare chance.
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


# --------------------------------------------------------------------------- splits


@dataclass(frozen=True)
class Split:
    """Some rows in two parts; `change` of the objective."""

    rows: IntArray
    parts: IntArray
    change: float


def best_split(
    table: Table, partition: Partition, k: int, rng: np.random.Generator
) -> Split | None:
    """The best of several ways to split a cluster, each converged within its rows."""
    rows = np.flatnonzero(partition.labels == k)
    if len(rows) < _LEAST_ROWS:
        return None
    part = table.part(rows)
    some = part.thinned(max(_FEWEST_RANKED, _MOST_TRIED // table.model.layout.n_sums))
    sums, count = partition.sums[k], float(partition.counts[k])
    if some is not part:
        sums, count = some.whole()
    halves = [
        some.converge(labels, 2, warm=warm)
        for labels, warm in _beginnings(some, sums, count, rng)
    ]
    halves = [pair for pair in halves if pair.K == 2]
    if not halves:
        return None
    best = min(halves, key=lambda pair: pair.objective)
    if some is not part:
        best = part.converge(part.assigned(best), 2)
        if best.K < 2:
            return None
    change = best.objective - float(partition.cluster_costs[k])
    return Split(rows, best.labels, change)


def _beginnings(
    part: Table, sums: Array, count: float, rng: np.random.Generator
) -> list[tuple[IntArray, bool]]:
    splits = [(labels, False) for labels in _single_splits(part, sums, count)]
    pairs = [(spread_seeds(part, 2, rng), True) for _ in range(_N_PAIRS)]
    return splits + pairs


def _single_splits(part: Table, sums: Array, count: float) -> list[IntArray]:
    """The most promising splits along a single feature.

    Of many rows and columns, some of the rows say which these are.
    """
    layout = part.model.layout
    P, scored = layout.P, layout.scored
    middles = np.divide(
        sums[P : P + scored], sums[:scored],
        out=np.zeros(scored), where=sums[:scored] > 0.0,
    )  # fmt: skip
    place = _places(part, sums, count)
    n_splits = scored + int(np.count_nonzero(place >= 0))
    some = part.thinned(
        max(_FEWEST_RANKED, _MOST_ADDED // (n_splits * layout.n_sums + 1))
    )
    if some is not part:
        sums, count = some.whole()
    if scored > 2 * _MOST_COLUMNS:
        middles = np.where(_promising(some, middles), middles, np.inf)
    rows, size = some.rows, max(1, _MOST_SUMS // layout.n_sums)
    tried, costs = [np.empty(0, np.int64)], [np.empty(0)]
    for first in range(0, n_splits, size):
        n_one = np.zeros(min(size, n_splits - first))
        one = np.zeros((len(n_one), layout.n_sums))
        cross_sums(
            rows.numbers, rows.codes, rows.weights, middles, place, first, one, n_one
        )
        useful = np.flatnonzero((n_one > 0.0) & (n_one < count * (1.0 - 1e-12)))
        one, n_one = one[useful], n_one[useful]
        others = part.cluster_costs(sums - one, count - n_one)
        tried.append(first + useful)
        costs.append(part.cluster_costs(one, n_one) + others)
    best = np.argsort(np.concatenate(costs), kind="stable")[:_N_SPLITS]
    return [
        _parts(part, int(split), middles, place)
        for split in np.concatenate(tried)[best]
    ]


def _promising(part: Table, middles: Array) -> NDArray[np.bool_]:
    """Numbers in which a split at the mean may pay.

    One half are those in which the parts are farthest from each other for the variance
    of the column, the other those that are most correlated with all columns.
    """
    rows, P = part.rows, part.model.layout.P
    there, w = rows.numbers[:, : len(middles)] > 0.0, rows.weights / rows.weights.sum()
    z = np.where(there, rows.numbers[:, P : P + len(middles)] - middles, 0.0)
    variances = w @ (z * z)
    z = z / np.sqrt(np.where(variances > 0.0, variances, 1.0))
    above = w @ (z > 0.0)
    apart = (w @ np.maximum(z, 0.0)) ** 2 / np.maximum(above * (1.0 - above), 1e-300)
    y = z * np.sqrt(w)[:, None]
    correlated = np.einsum("nd,nd->d", y, (y @ y.T) @ y)  # Σ_e ρ_de²
    out = np.zeros(len(middles), np.bool_)
    for worth in (apart, correlated):
        out[np.argsort(-worth, kind="stable")[: _MOST_COLUMNS // 2]] = True
    return out


def _places(part: Table, sums: Array, count: float) -> IntArray:
    """The number of the split of each category, -1: none; the frequent ones first."""
    layout = part.model.layout
    base = 3 * layout.P
    place = np.full(layout.n_sums - base, -1)
    codes = np.concatenate(
        [
            np.arange(layout.places(q).start, layout.places(q).stop)
            for q in range(len(layout.widths))
        ]
        or [np.empty(0, np.int64)]
    ).astype(np.int64)
    there = codes[(sums[codes] > 0.0) & (sums[codes] < count * (1.0 - 1e-12))]
    if len(there) > _MOST_SPLITS:
        there = there[np.argsort(-sums[there], kind="stable")[:_MOST_SPLITS]]
    place[there - base] = layout.scored + np.arange(len(there))
    return place


def _parts(part: Table, split: int, middles: Array, place: IntArray) -> IntArray:
    layout, rows = part.model.layout, part.rows
    if split < layout.scored:
        there = rows.numbers[:, split] > 0.0
        side = there & (rows.numbers[:, layout.P + split] > middles[split])
    else:
        code = int(np.flatnonzero(place == split)[0])
        side = np.any(rows.codes == code, axis=1)
    labels: IntArray = side.astype(np.int64)
    return labels


def spread_seeds(table: Table, K: int, rng: np.random.Generator) -> IntArray:
    """Labels by the nearest of K rows, drawn far from each other (k-means++)."""
    weights = table.rows.weights
    nearest = table.distances(_draw(weights, rng))
    labels = np.zeros(len(weights), dtype=np.int64)
    for k in range(1, K):
        chances = nearest * weights
        if not chances.sum() > 0.0:
            break
        to_it = table.distances(_draw(chances, rng))
        closer = to_it < nearest
        labels[closer], nearest[closer] = k, to_it[closer]
    return labels


def _draw(chances: Array, rng: np.random.Generator) -> int:
    """A row, drawn in proportion to its chances."""
    below = np.cumsum(chances)
    row = np.searchsorted(below, rng.uniform(0.0, below[-1]), side="right")
    return int(min(row, len(chances) - 1))
