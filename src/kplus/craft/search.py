"""From a mixed table to clusters: search on rows in memory, then pass over all rows.

`Search` decides how many clusters a sample has: it splits, merges and swaps. `fit` runs
it on a sample, and `fit_from` runs the loop over all rows from clusters that are known.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import NotFiniteError
from kplus.core.job import Job, draw
from kplus.core.reading import read_all, read_blocks
from kplus.core.regroup import joined, without
from kplus.core.runs import gathered, run_job
from kplus.core.types import Array, Blocks, IntArray, Move, PassInfo
from kplus.craft.clusters import Between
from kplus.craft.kernels_rows import add_up, score_rows
from kplus.craft.layout import Layout, sample_size
from kplus.craft.model import (
    Clusters,
    ClusterSums,
    CraftModel,
    DropClusters,
    MergeClusters,
    SortClusters,
    by_size,
)
from kplus.craft.paper.algorithm import PaperFit, PaperSpec, fit_paper, sorted_by_size
from kplus.craft.partition import (
    Partition,
    Split,
    Table,
    best_split,
    canonical,
    spread_seeds,
)
from kplus.engine.blas import SINGLE_THREAD
from kplus.tree.cluster_tree import ClusterTree

__all__ = [
    "CraftFit",
    "CraftSpec",
    "Search",
    "fit",
    "fit_as_published",
    "fit_from",
    "score",
]

_SAMPLE_ROWS = 5_000
_OPEN_SAMPLE_ROWS = 20_000  # where K is open, so that small clusters have rows
_LARGE = 2**22  # numbers in encoded rows: of more, splits and merges must do
_STEP = np.dtype([("n_clusters", np.int64), ("objective", np.float64)])
_N_STARTS = 2
_N_TRIES = 3  # pairs to merge, and clusters to split, of which a swap tries all
_SURE = 1e-9  # a change of the objective, relative to it, that is not rounding


@dataclass(frozen=True)
class CraftSpec:
    """Settings of a fit; see `CRAFT` and `CraftModel`."""

    levels: tuple[int | None, ...]
    numeric: str = "gaussian"
    n_clusters: int | None = None
    max_clusters: int | None = None
    penalty: float | None = None
    fraction: float | None = None
    sharing: float = 0.0
    smoothing: float = 1.0
    n_init: int = 1

    @property
    def most(self) -> int:
        return self.max_clusters or np.iinfo(np.int64).max

    def model(self, layout: Layout) -> CraftModel:
        return CraftModel(
            layout, self.smoothing, self.penalty, self.fraction, self.sharing
        )


@dataclass(frozen=True)
class CraftFit:
    """Clusters, the sums they were fitted to, and how they were found."""

    model: CraftModel
    clusters: Clusters
    sums: ClusterSums
    labels: IntArray
    history: Array
    converged: bool
    path: NDArray[Any] | None
    paper: PaperFit | None = None
    between: Between | None = None
    tree: ClusterTree | None = None


def fit(job: Job, spec: CraftSpec) -> CraftFit:
    """Find clusters on a sample of the rows, then go on with all of them."""
    with SINGLE_THREAD:
        table = _draw_table(job, spec)
        partition, path = _search(table, spec, job.rng)
        start = ClusterSums(partition.sums, partition.counts)
        start = start.regroup(by_size(start), start.K)  # most likely the final order
        steps = np.array(sorted(path.items()), dtype=_STEP)
    return fit_from(job, spec, table.model, start, path=steps)


def fit_as_published(job: Job, spec: PaperSpec, n_init: int) -> CraftFit:
    """Algorithms 1 and 2 on all rows in memory; attributes are those of our model."""
    X: Array = np.ascontiguousarray(read_all(job.source), dtype=np.float64)
    weights = np.ones(len(X)) if job.weights is None else job.weights
    fits = [fit_paper(X, weights, spec, rng) for rng in job.rng.spawn(n_init)]
    best = sorted_by_size(min(fits, key=lambda fit: fit.objective), weights)
    layout = Layout.of(X, weights, spec.levels, "gaussian")
    model = CraftModel(layout, spec.smoothing, best.penalty, spec.fraction)
    rows, K = layout.encode(X, weights), len(best.chosen)
    sums = ClusterSums(np.zeros((K, layout.n_sums)), np.zeros(K))
    add_up(rows.numbers, rows.codes, weights, best.labels, sums.sums, sums.counts)
    return CraftFit(
        model, model.of(sums), sums, best.labels, best.history, best.converged,
        None, best,
    )  # fmt: skip


def _draw_table(job: Job, spec: CraftSpec) -> Table:
    size = _OPEN_SAMPLE_ROWS if spec.n_clusters is None else _SAMPLE_ROWS
    size = sample_size(size, job.source.n_features)
    sample = draw(job.source, job.weights, size, job.rng)
    X: Array = np.ascontiguousarray(sample.rows, dtype=np.float64)
    if np.isinf(X).any():
        raise NotFiniteError("A row of the sample")
    X, weights = canonical(X, sample.weight())
    layout = Layout.of(X, weights, spec.levels, spec.numeric)
    rows = layout.encode(X, weights)
    if not np.all(np.isfinite(rows.numbers)):
        raise NotFiniteError("A row of the sample")
    return Table.of(spec.model(layout), rows)


def _search(
    table: Table, spec: CraftSpec, rng: np.random.Generator
) -> tuple[Partition, dict[int, float]]:
    """The best partition of several searches."""
    partitions, path = [], dict[int, float]()
    for one in rng.spawn(spec.n_init):
        search = Search(table, one, spec.most)
        if spec.n_clusters is None:
            partition = search.grow()
        else:
            partition = search.exactly(spec.n_clusters)
        partitions.append(partition)
        for K, objective in search.path.items():
            path[K] = min(path.get(K, np.inf), objective)
    return min(partitions, key=lambda partition: partition.objective), path


def fit_from(
    job: Job,
    spec: CraftSpec,
    model: CraftModel,
    start: ClusterSums,
    *,
    base: ClusterSums | None = None,
    path: NDArray[Any] | None = None,
    keep: bool = False,
) -> CraftFit:
    """Pass over all rows, from the clusters of `start`, until nothing changes.

    `base` are the sums of earlier rows, which count and are not read again; `keep`:
    clusters keep their numbers, none is merged.
    """
    moves: list[Move] = [DropClusters()]
    if spec.n_clusters is None and not keep:
        moves.append(MergeClusters())
    finish = None if keep else SortClusters()

    def reported(info: PassInfo) -> PassInfo:
        return replace(info, params=PassParams(model, info.params))

    with SINGLE_THREAD:
        result, labels = run_job(
            job, model, model.of(start), moves, base=base, finish=finish,
            reported=reported, rows=gathered,
        )  # fmt: skip
    clusters, sums = result.params, result.total
    alive = sums.counts > 0.0
    if not alive.all():  # the last pass emptied some
        old_to_new = without(sums.K, ~alive)
        sums = sums.regroup(old_to_new, int(alive.sum()))
        clusters, labels = clusters.take(alive), old_to_new[labels]
    return CraftFit(
        model, clusters, sums, labels, np.array(result.history), result.converged, path
    )


@dataclass(frozen=True)
class PassParams:
    """The parameters of a pass, for callbacks."""

    model: CraftModel
    clusters: Clusters

    @property
    def K(self) -> int:
        return self.clusters.K


def score(source: Blocks, model: CraftModel, clusters: Clusters) -> Array:
    """The score of each row in each cluster."""
    parts = []
    with SINGLE_THREAD:
        for _, X in read_blocks(source):
            rows = model.layout.encode(X)
            scores = np.empty((len(rows), clusters.K))
            score_rows(
                rows.numbers, rows.codes, clusters.tables, clusters.shares, scores
            )
            parts.append(scores)
    return np.concatenate(parts)


# -------------------------------------------------------------- number of clusters


@dataclass
class Search:
    """Search for the best partition of a table.

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
        """From one cluster: split, merge and swap as long as the objective falls."""
        one = self._note(self.table.converge(self._one_cluster(), 1))
        if len(self.table.rows) * self.table.model.layout.n_sums > _LARGE:
            return self._grown(one)
        at = self._improved(one)
        if at.K == 1:
            return at
        # Another way to as many clusters: often it ends lower, and may go on.
        other = self._improved(self._best_filled(self._seeded(at.K), at.K))
        return other if self._better(other, at) else at

    def _improved(self, at: Partition) -> Partition:
        """Split, merge and swap until nothing lowers the objective."""
        while True:
            at = self._grown(at)
            better = self._swapped(at)
            if better is None:
                return at
            at = better

    def _grown(self, at: Partition) -> Partition:
        while True:
            better = self._split_all(at) or self._merged(at)
            if better is None:
                return at
            at = better

    def _split_all(self, at: Partition) -> Partition | None:
        """Split all clusters whose split lowers the objective, or the best alone."""
        splits = [s for s in self._all_splits(at) if s is not None and s.change < 0.0]
        splits = sorted(splits, key=lambda s: s.change)[: self.most - at.K]
        for chosen in (splits, splits[:1]):
            if not chosen:
                return None
            labels = at.labels.copy()
            for number, split in enumerate(chosen):
                labels[split.rows[split.parts == 1]] = at.K + number
            new = self._note(self.table.converge(labels, at.K + len(chosen)))
            if self._better(new, at):
                return new
        return None

    def _merged(self, at: Partition) -> Partition | None:
        """Merge the two clusters that gain most by it."""
        if at.K < 2:
            return None
        pairs, losses = self._merges(at)
        first = int(np.argmin(losses))
        new = self._note(self.table.converge(_merge(at, *pairs[first]), at.K - 1))
        return new if self._better(new, at) else None

    # -------------------------------------------------------------- number given

    def exactly(self, K: int) -> Partition:
        """K clusters: the best of several starts, then swaps."""
        one = self.table.converge(self._one_cluster(), 1)  # split step by step
        return self._best_filled([*self._seeded(K), one], K)

    def _seeded(self, K: int) -> list[Partition]:
        """Starts from rows far apart."""
        return [
            self.table.converge(spread_seeds(self.table, K, self.rng), K, warm=True)
            for _ in range(_N_STARTS)
        ]

    def _best_filled(self, starts: list[Partition], K: int) -> Partition:
        """The best of several starts, with K clusters, after swaps."""
        filled = [self._filled(start, K) for start in starts]
        at = min(filled, key=lambda p: (-p.K, p.objective))
        while (better := self._swapped(self._note(at))) is not None:
            at = self._filled(better, K)
        return at

    def _filled(self, at: Partition, K: int) -> Partition:
        """Split clusters until there are K, as long as any stays split."""
        while at.K < K:
            more = self._one_more(at)
            if more is None:
                return at
            at = more
        return at

    def _one_more(self, at: Partition) -> Partition | None:
        """One cluster more that has rows after convergence.

        A cluster in which no feature is worth its cost loses all rows.
        """
        splits = [s for s in self._all_splits(at) if s is not None]
        for split in sorted(splits, key=lambda s: s.change):
            labels = at.labels.copy()
            labels[split.rows[split.parts == 1]] = at.K
            new = self.table.converge(labels, at.K + 1)
            if new.K > at.K:
                return new
        for _ in range(_N_STARTS):
            seeds = spread_seeds(self.table, at.K + 1, self.rng)
            new = self.table.converge(seeds, at.K + 1, warm=True)
            if new.K > at.K:
                return new
        return None

    # --------------------------------------------------------------------- steps

    def _swapped(self, at: Partition) -> Partition | None:
        """Merge two clusters and split another, if that is better."""
        if at.K < 2:
            return None
        pairs, losses = self._merges(at)
        # Of two clusters, merged, there is no third to split.
        found = self._all_splits(at) if at.K > 2 else []
        splits = [(k, s) for k, s in enumerate(found) if s is not None]
        splits = sorted(splits, key=lambda s: s[1].change)[:_N_TRIES]
        for pair in np.argsort(losses, kind="stable")[:_N_TRIES]:
            i, j = pairs[pair]
            for k, split in splits:
                if k in (i, j):
                    continue
                labels = _merge(at, i, j)
                labels[split.rows[split.parts == 1]] = at.K - 1
                new = self.table.converge(labels, at.K)
                if self._better(new, at) and new.K == at.K:
                    return self._note(new)
            better = self._resplit(at, i, j)
            if better is not None:
                return better
        return None

    def _resplit(self, at: Partition, i: int, j: int) -> Partition | None:
        """Split two clusters, taken together, in another way."""
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
        new = self.table.converge(labels, at.K)
        return self._note(new) if self._better(new, at) and new.K == at.K else None

    def _all_splits(self, at: Partition) -> list[Split | None]:
        return [self._split(at, k) for k in range(at.K)]

    def _split(self, at: Partition, k: int) -> Split | None:
        """The best split of a cluster, cached by its rows."""
        key = np.packbits(at.labels == k).tobytes()
        if key not in self._splits:
            self._splits[key] = best_split(self.table, at, k, self.rng)
        return self._splits[key]

    def _merges(self, at: Partition) -> tuple[IntArray, Array]:
        model, penalties = self.table.model, self.table.penalties
        return model.merge_changes(at.sums, at.counts, at.cluster_costs, penalties)

    def _one_cluster(self) -> IntArray:
        """Labels of all rows in one cluster."""
        return np.zeros(len(self.table.rows), dtype=np.int64)

    def _better(self, new: Partition, than: Partition) -> bool:
        sure = _SURE * abs(than.objective)
        return new.objective < than.objective - sure

    def _note(self, partition: Partition) -> Partition:
        """Update `path`."""
        lowest = self.path.get(partition.K, np.inf)
        self.path[partition.K] = min(lowest, partition.objective)
        return partition


def _merge(at: Partition, i: int, j: int) -> IntArray:
    """Labels with clusters i < j made one; higher numbers than j move down."""
    return joined(at.K, i, j)[at.labels]
