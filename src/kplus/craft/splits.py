"""Cutting one cluster in two."""

from dataclasses import dataclass

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.craft.kernels import cross_sums
from kplus.craft.table import Partition, Table

__all__ = ["Split", "best_split", "spread_seeds"]

_N_CUTS = 3  # cuts along single features that are tried in full
_N_PAIRS = 3  # and pairs of rows
_MOST_CUTS = 400  # categories that are tried
_LEAST_ROWS = 2


@dataclass(frozen=True)
class Split:
    """Some rows in two parts; `change` of the objective."""

    rows: IntArray
    parts: IntArray
    change: float


def best_split(
    table: Table, partition: Partition, k: int, rng: np.random.Generator
) -> Split | None:
    """The best of several ways to cut a cluster, each converged within its rows."""
    rows = np.flatnonzero(partition.labels == k)
    if len(rows) < _LEAST_ROWS:
        return None
    part = table.part(rows)
    found = [
        part.converge(labels, 2, warm=warm)
        for labels, warm in _beginnings(
            part, partition.sums[k], partition.counts[k], rng
        )
    ]
    found = [halves for halves in found if halves.K == 2]
    if not found:
        return None
    best = min(found, key=lambda halves: halves.objective)
    change = best.objective - float(partition.cluster_costs[k])
    return Split(rows, best.labels, change)


def _beginnings(
    part: Table, sums: Array, count: float, rng: np.random.Generator
) -> list[tuple[IntArray, bool]]:
    cuts = [(labels, False) for labels in _single_cuts(part, sums, count)]
    pairs = [(spread_seeds(part, 2, rng), True) for _ in range(_N_PAIRS)]
    return cuts + pairs


def _single_cuts(part: Table, sums: Array, count: float) -> list[IntArray]:
    """The most promising cuts along a single feature."""
    layout, rows = part.model.layout, part.rows
    P, scored = layout.P, layout.scored
    middles = np.divide(
        sums[P : P + scored], sums[:scored],
        out=np.zeros(scored), where=sums[:scored] > 0.0,
    )  # fmt: skip
    place = _places(part, sums, count)
    n_cuts = scored + int(np.count_nonzero(place >= 0))
    one, n_one = np.zeros((n_cuts, layout.n_sums)), np.zeros(n_cuts)
    cross_sums(rows.encoded, layout.sums, middles, place, one, n_one)
    useful = np.flatnonzero((n_one > 0.0) & (n_one < count * (1.0 - 1e-12)))
    if not len(useful):
        return []
    one, n_one = one[useful], n_one[useful]
    costs = part.cluster_costs(one, n_one)
    costs += part.cluster_costs(sums - one, count - n_one)
    first = useful[np.argsort(costs, kind="stable")[:_N_CUTS]]
    return [_cut(part, int(cut), middles, place) for cut in first]


def _places(part: Table, sums: Array, count: float) -> IntArray:
    """The number of the cut of each category, -1: none; the frequent ones first."""
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
    if len(there) > _MOST_CUTS:
        there = there[np.argsort(-sums[there], kind="stable")[:_MOST_CUTS]]
    place[there - base] = layout.scored + np.arange(len(there))
    return place


def _cut(part: Table, cut: int, middles: Array, place: IntArray) -> IntArray:
    layout, rows = part.model.layout, part.rows
    if cut < layout.scored:
        there = rows.numbers[:, cut] > 0.0
        side = there & (rows.numbers[:, layout.P + cut] > middles[cut])
    else:
        code = int(np.flatnonzero(place == cut)[0])
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
