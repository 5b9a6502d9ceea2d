"""From a mixed table to clusters: search on rows in memory, then all rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import NotFiniteError
from kplus.core.job import Job, draw
from kplus.core.reading import read_all, read_blocks
from kplus.core.regroup import without
from kplus.core.runs import gathered, run_job
from kplus.core.types import Array, Blocks, IntArray, Move, PassInfo
from kplus.craft.kernels import add_up, score_rows
from kplus.craft.layout import Layout
from kplus.craft.model import CraftModel
from kplus.craft.moves import DropClusters, JoinClusters, SortClusters, by_size
from kplus.craft.number import Search
from kplus.craft.paper.algorithm import PaperFit, PaperSpec, fit_paper, sorted_by_size
from kplus.craft.params import Clusters, ClusterSums
from kplus.craft.table import Partition, Table, canonical
from kplus.engine.blas import SINGLE_THREAD

__all__ = [
    "CraftFit",
    "CraftSpec",
    "fit",
    "fit_as_published",
    "refit",
    "score",
    "stream",
]

_SAMPLE_ROWS = 5_000
_OPEN_SAMPLE_ROWS = 20_000  # where small clusters are to be found as well
_STEP = np.dtype([("n_clusters", np.int64), ("objective", np.float64)])


@dataclass(frozen=True)
class CraftSpec:
    """What is asked of a fit; see `CRAFT` and `CraftModel`."""

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


def fit(job: Job, spec: CraftSpec) -> CraftFit:
    """Find clusters on a sample of the rows, then go on with all of them."""
    with SINGLE_THREAD:
        table = _drawn(job, spec)
        partition, path = _search(table, spec, job.rng)
        start = ClusterSums(partition.sums, partition.counts)
        start = start.regroup(by_size(start), start.K)  # most likely as in the end
        steps = np.array(sorted(path.items()), dtype=_STEP)
        return _over_all_rows(job, spec, table.model, start, None, steps)


def fit_as_published(job: Job, spec: PaperSpec, n_init: int) -> CraftFit:
    """Algorithms 1 and 2 on all rows in memory; what is said of clusters is ours."""
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


def refit(job: Job, spec: CraftSpec, layout: Layout, start: ClusterSums) -> CraftFit:
    """Go on from the clusters of an earlier fit."""
    with SINGLE_THREAD:
        return _over_all_rows(job, spec, spec.model(layout), start, None, None)


def stream(
    job: Job, spec: CraftSpec, model: CraftModel, earlier: ClusterSums
) -> CraftFit:
    """Add rows to a fit of which only the sums are known."""
    with SINGLE_THREAD:
        return _over_all_rows(job, spec, model, earlier, earlier, None)


def _drawn(job: Job, spec: CraftSpec) -> Table:
    size = _OPEN_SAMPLE_ROWS if spec.n_clusters is None else _SAMPLE_ROWS
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
    found, path = [], dict[int, float]()
    for one in rng.spawn(spec.n_init):
        search = Search(table, one, spec.most)
        if spec.n_clusters is None:
            partition = search.grow()
        else:
            partition = search.exactly(spec.n_clusters)
        found.append(partition)
        for K, objective in search.path.items():
            path[K] = min(path.get(K, np.inf), objective)
    return min(found, key=lambda partition: partition.objective), path


def _over_all_rows(
    job: Job,
    spec: CraftSpec,
    model: CraftModel,
    start: ClusterSums,
    earlier: ClusterSums | None,
    path: NDArray[Any] | None,
) -> CraftFit:
    """Pass over all rows until nothing changes."""
    moves: list[Move] = [DropClusters()]
    if spec.n_clusters is None:
        moves.append(JoinClusters())

    def reported(info: PassInfo) -> PassInfo:
        return replace(info, params=Seen(model, info.params))

    result, labels = run_job(
        job, model, model.of(start), moves, base=earlier, finish=SortClusters(),
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
class Seen:
    """What a callback learns of a pass."""

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
