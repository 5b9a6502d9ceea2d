"""How many clusters: grow, join, swap."""

from dataclasses import dataclass, field

import numpy as np

from kplus.core.regroup import joined
from kplus.core.types import Array, IntArray
from kplus.craft.splits import Split, best_split, spread_seeds
from kplus.craft.table import Partition, Table

__all__ = ["Search"]

_N_STARTS = 2
_N_TRIES = 3  # pairs to join, and clusters to cut, of which a swap tries all
_SURE = 1e-9  # a change of the objective, relative to it, that is not rounding


@dataclass
class Search:
    """The best partition of a table; what was seen on the way is remembered.

    Attributes
    ----------
    path : dict
        The lowest objective seen with each number of clusters.
    """

    table: Table
    rng: np.random.Generator
    most: int
    path: dict[int, float] = field(default_factory=dict)
    _splits: dict[bytes, Split | None] = field(default_factory=dict)

    # ------------------------------------------------------------ number unknown

    def grow(self) -> Partition:
        """From one cluster: cut what pays, join what pays, swap, until nothing does."""
        at = self._at_rest(self._note(self.table.converge(self._everyone(), 1)))
        # Another way to as many clusters: often it ends lower, and may go on.
        other = self._at_rest(self.exactly(min(at.K, self.most))) if at.K > 1 else at
        return other if self._better(other, at) else at

    def _at_rest(self, at: Partition) -> Partition:
        while True:
            at = self._grown(at)
            better = self._swapped(at)
            if better is None:
                return at
            at = better

    def _grown(self, at: Partition) -> Partition:
        while True:
            better = self._cut_all(at) or self._joined(at)
            if better is None:
                return at
            at = better

    def _cut_all(self, at: Partition) -> Partition | None:
        """Cut all clusters that are worth it, or the best alone if that fails."""
        splits = [s for s in self._all_splits(at) if s is not None and s.change < 0.0]
        splits = sorted(splits, key=lambda s: s.change)[: self.most - at.K]
        for chosen in (splits, splits[:1]):
            if not chosen:
                return None
            labels = at.labels.copy()
            for number, split in enumerate(chosen):
                labels[split.rows[split.parts == 1]] = at.K + number
            found = self._note(self.table.converge(labels, at.K + len(chosen)))
            if self._better(found, at):
                return found
        return None

    def _joined(self, at: Partition) -> Partition | None:
        """Join the two clusters that gain most by it."""
        if at.K < 2:
            return None
        pairs, losses = self._joins(at)
        first = int(np.argmin(losses))
        found = self._note(self.table.converge(_join(at, *pairs[first]), at.K - 1))
        return found if self._better(found, at) else None

    # -------------------------------------------------------------- number given

    def exactly(self, K: int) -> Partition:
        """K clusters: the best of several starts, then swaps."""
        starts = [
            self.table.converge(spread_seeds(self.table, K, self.rng), K, warm=True)
            for _ in range(_N_STARTS)
        ]
        starts.append(self.table.converge(self._everyone(), 1))  # cut step by step
        filled = [self._filled(start, K) for start in starts]
        at = min(filled, key=lambda p: (-p.K, p.objective))
        while (better := self._swapped(self._note(at))) is not None:
            at = self._filled(better, K)
        return at

    def _filled(self, at: Partition, K: int) -> Partition:
        """Cut clusters until there are K, as long as any stays cut."""
        while at.K < K:
            more = self._one_more(at)
            if more is None:
                return at
            at = more
        return at

    def _one_more(self, at: Partition) -> Partition | None:
        """One cluster more, at rest: a cluster of which no feature pays is emptied."""
        splits = [s for s in self._all_splits(at) if s is not None]
        for split in sorted(splits, key=lambda s: s.change):
            labels = at.labels.copy()
            labels[split.rows[split.parts == 1]] = at.K
            found = self.table.converge(labels, at.K + 1)
            if found.K > at.K:
                return found
        for _ in range(_N_STARTS):
            seeds = spread_seeds(self.table, at.K + 1, self.rng)
            found = self.table.converge(seeds, at.K + 1, warm=True)
            if found.K > at.K:
                return found
        return None

    # --------------------------------------------------------------------- steps

    def _swapped(self, at: Partition) -> Partition | None:
        """Join two clusters and cut another, if that is better."""
        if at.K < 2:
            return None
        pairs, losses = self._joins(at)
        # Of two clusters, joined, there is no third to cut.
        cuts = self._all_splits(at) if at.K > 2 else []
        splits = [(k, s) for k, s in enumerate(cuts) if s is not None]
        splits = sorted(splits, key=lambda s: s[1].change)[:_N_TRIES]
        for pair in np.argsort(losses, kind="stable")[:_N_TRIES]:
            i, j = pairs[pair]
            for k, split in splits:
                if k in (i, j):
                    continue
                labels = _join(at, i, j)
                labels[split.rows[split.parts == 1]] = at.K - 1
                found = self.table.converge(labels, at.K)
                if self._better(found, at) and found.K == at.K:
                    return self._note(found)
            better = self._recut(at, i, j)
            if better is not None:
                return better
        return None

    def _recut(self, at: Partition, i: int, j: int) -> Partition | None:
        """Cut two clusters, taken together, in another way."""
        rows = np.flatnonzero((at.labels == i) | (at.labels == j))
        part = self.table.part(rows)
        both = part.converge(np.zeros(len(rows), dtype=np.int64), 1, most=0)
        split = best_split(part, both, 0, self.rng)
        if split is None:
            return None
        if both.objective + split.change >= at.cluster_costs[i] + at.cluster_costs[j]:
            return None
        labels = at.labels.copy()
        labels[rows] = np.where(split.parts == 1, j, i)
        found = self.table.converge(labels, at.K)
        return (
            self._note(found) if self._better(found, at) and found.K == at.K else None
        )

    def _all_splits(self, at: Partition) -> list[Split | None]:
        return [self._split(at, k) for k in range(at.K)]

    def _split(self, at: Partition, k: int) -> Split | None:
        """The best cut of a cluster, remembered as long as its rows stay."""
        key = np.packbits(at.labels == k).tobytes()
        if key not in self._splits:
            self._splits[key] = best_split(self.table, at, k, self.rng)
        return self._splits[key]

    def _joins(self, at: Partition) -> tuple[IntArray, Array]:
        model, penalties = self.table.model, self.table.penalties
        return model.join_changes(at.sums, at.counts, at.cluster_costs, penalties)

    def _everyone(self) -> IntArray:
        return np.zeros(len(self.table.rows), dtype=np.int64)

    def _better(self, found: Partition, than: Partition) -> bool:
        sure = _SURE * abs(than.objective)
        return found.objective < than.objective - sure

    def _note(self, found: Partition) -> Partition:
        known = self.path.get(found.K, np.inf)
        self.path[found.K] = min(known, found.objective)
        return found


def _join(at: Partition, i: int, j: int) -> IntArray:
    """Labels with clusters i < j made one; higher numbers than j move down."""
    return joined(at.K, i, j)[at.labels]
