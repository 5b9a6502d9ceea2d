"""How `DPMeans` is fitted: by a penalty, to a number of clusters, or on its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.spatial.distance import cdist

from kplus.core.job import Job, Sample, draw
from kplus.core.reading import read_blocks
from kplus.core.regroup import relabelled, without
from kplus.core.runs import answers, in_units, labels_of, run_job
from kplus.core.types import (
    Array,
    Blocks,
    FitResult,
    IntArray,
    Move,
)
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means.model import ClusterSums, DPMeansModel
from kplus.dp_means.moves import (
    DropEmpty,
    EndOverrelaxation,
    OpenClusters,
    OrderClusters,
    RefillClusters,
    RemoveCluster,
)
from kplus.dp_means.params import Centers, Scaling
from kplus.dp_means.penalty_path import PenaltyPath
from kplus.dp_means.splits import grow, swap
from kplus.dp_means.standard import Standard
from kplus.tree.cluster_tree import ClusterTree

__all__ = [
    "Fitted",
    "JoinedCells",
    "assign",
    "by_number",
    "by_rows",
    "distances",
    "finish",
    "plus_plus",
    "scaled",
    "stream",
]

_LEVELS = (1_000, 5_000, 20_000)  # rows of the samples that a fit starts on
_GROWTH_TOL = 1e-2  # convergence between splits on the way to a given number
_SPLIT_TOL = 1e-3  # the same for the path and for swaps
_MOST_SHIFT = 1e4  # squared way of the centres, in units of the squared error
_RELAX = 1.6  # over-relaxation of updates until the fit converges
_LEAST_LEFT = 1.0  # rows of a cluster in a stream that fades
_FIXED_K = DPMeansModel(np.inf)


@dataclass(frozen=True)
class JoinedCells:
    """Cells of a fine quantisation, and the cluster that each belongs to."""

    centers: Array
    labels: IntArray
    cluster: IntArray
    tree: ClusterTree


@dataclass(frozen=True)
class Fitted:
    """A fit in the units of the data.

    `errors` are the squared distances of each cluster to its centre; `means` differ
    from the centres where a fit ended before it converged. `path` is what the
    number was chosen from, if it was. With `covariances`, distances are Mahalanobis
    distances. With `cells`, errors are about the centres of these. With `standard`, all
    is in the units of columns on one scale.
    """

    scaling: Scaling
    centers: Array
    means: Array
    labels: IntArray
    counts: Array
    errors: Array
    penalty: float
    history: Array
    converged: bool
    path: PenaltyPath | None = None
    covariances: Array | None = None
    cells: JoinedCells | None = None
    standard: Standard | None = None

    @property
    def objective(self) -> float:
        return float(self.history[-1])

    def at_penalty(self, penalty: float) -> Self:
        """The same clusters, charged a penalty each after the first."""
        charge = penalty * (len(self.centers) - 1)
        return replace(self, penalty=penalty, history=self.history + charge)

    def with_earlier(self, counts: Array, errors: Array) -> Self:
        """Together with rows seen earlier, of the first so many clusters."""
        after = (0, len(self.counts) - len(counts))
        return replace(
            self,
            counts=self.counts + np.pad(counts, after),
            errors=self.errors + np.pad(errors, after),
            history=self.history + errors.sum(),
        )

    def without_faded(self, seen: Array) -> Self:
        """Without clusters of which less than one row is left, and none was `seen`.

        The largest stays in any case.
        """
        gone = (self.counts < _LEAST_LEFT) & (seen == 0.0)
        gone[np.argmax(self.counts)] = False
        if not gone.any():
            return self
        old_to_new, kept = without(len(gone), gone), ~gone
        saved = self.errors[gone].sum() + self.penalty * np.count_nonzero(gone)
        return replace(
            self,
            centers=self.centers[kept],
            means=self.means[kept],
            labels=relabelled(self.labels, old_to_new),
            counts=self.counts[kept],
            errors=self.errors[kept],
            history=np.append(self.history[:-1], self.history[-1] - saved),
        )


def by_rows(
    job: Job,
    random_start: bool = False,
    *,
    penalty: float,
    max_clusters: float = np.inf,
    start: Array | None = None,
) -> Fitted:
    """Row rule: a row opens a cluster when its squared distance exceeds the penalty.

    Small samples first: most clusters are opened where a pass costs little, and the
    pass over all rows begins near its end.
    """
    sample = job.sample(_LEVELS[0])
    scaling = Scaling.fit(sample.rows)
    model = DPMeansModel(scaling.transform_squared(penalty), max_clusters)
    moves: list[Move] = [
        DropEmpty(),
        OpenClusters(),
        EndOverrelaxation(),
        RemoveCluster(),
    ]
    if start is not None:
        return finish(job, model, scaling, scaling.transform(start), moves)
    scaled_sample = scaled(sample, scaling)
    centers: Array = np.average(
        scaled_sample.rows, axis=0, weights=scaled_sample.weights
    )[None]
    if random_start:
        most = int(min(max_clusters, sample.n_rows))
        centers = plus_plus(scaled_sample, job.rng, most, model.penalty)
    for size in _LEVELS:
        if job.source.n_rows < 2 * size:
            break
        if size > sample.n_rows:
            sample = job.sample(size)
        part = job.on_sample(ArrayBlocks(sample.rows), sample.weights, n_threads=1)
        result = run_job(part, model, _start(scaling, centers), moves)[0]
        centers = model.means(result.params, result.total)
    return finish(job, model, scaling, centers, moves)


def by_number(
    job: Job,
    random_start: bool = False,
    *,
    n_clusters: int,
    start: Array | None = None,
) -> Fitted:
    """A given number of clusters: splits and swaps on a sample, then all rows."""
    sample = job.sample(_LEVELS[-1])
    scaling = Scaling.fit(sample.rows)
    if start is None:
        scaled_sample = scaled(sample, scaling)
        if random_start:
            centers = plus_plus(scaled_sample, job.rng, n_clusters)
        else:
            halve = grow(
                scaled_sample, n_clusters, lambda K: max(1, K // 2), _GROWTH_TOL
            )
            centers = halve.centers
        centers = _add_distinct_rows(job, scaling, centers, n_clusters)
        centers = swap(scaled_sample, centers, _SPLIT_TOL)
    else:
        centers = scaling.transform(start)
    moves: list[Move] = [RefillClusters(), EndOverrelaxation()]
    return finish(job, _FIXED_K, scaling, centers, moves)


def _add_distinct_rows(
    job: Job, scaling: Scaling, centers: Array, n_clusters: int
) -> Array:
    """Where the sample gave fewer centres than needed, add rows that differ."""
    if len(centers) == n_clusters:
        return centers
    everything = draw(job.source, job.weights, job.source.n_rows, job.rng)
    distinct = np.unique(everything.rows, axis=0)
    if len(distinct) < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {len(distinct)} distinct rows "
            f"of X; ask for fewer clusters."
        )
    Y = scaling.transform(distinct.astype(np.float64))
    costs = np.min(cdist(Y, centers), axis=1)
    extra = np.argsort(-costs, kind="stable")[: n_clusters - len(centers)]
    return np.concatenate([centers, Y[extra]])


def assign(job: Job, scaling: Scaling, centers: Array) -> Fitted:
    """Assign all rows to their nearest centre, with fixed centres."""
    start = Centers.start(scaling, scaling.transform(centers))
    total, labels = answers(job, _FIXED_K, start, keep="labels")
    objective = _FIXED_K.objective(start, total)
    return _in_data_units(
        _FIXED_K, FitResult(start, total, [objective], 1, False), labels
    )


def distances(source: Blocks, centers: Array, cluster: IntArray) -> Array:
    """Distance of each row to the nearest centre of each cluster."""
    scaling = Scaling.fit(centers)
    order = np.argsort(cluster, kind="stable")
    firsts = np.searchsorted(cluster[order], np.arange(int(cluster.max()) + 1))
    C = scaling.transform(centers)[order]
    out = np.empty((source.n_rows, len(firsts)))
    for start, rows in read_blocks(source):
        Y = scaling.transform(rows.astype(np.float64))
        nearest = np.minimum.reduceat(cdist(Y, C), firsts, axis=1)
        out[start : start + len(Y)] = nearest / scaling.inv
    return out


def stream(
    job: Job,
    penalty: float,
    max_clusters: float,
    scaling: Scaling,
    centers: Array,
    means: Array,
    mass: Array,
) -> Fitted:
    """One batch of a stream: earlier rows stay, as weight on their means.

    An infinite penalty opens no cluster. The errors are those of this batch and of
    the earlier means.
    """
    job.sample(_LEVELS[0])
    model = DPMeansModel(scaling.transform_squared(penalty), max_clusters)
    start = replace(
        Centers.start(scaling, scaling.transform(centers)),
        refs=scaling.transform(means),
        mass=mass,
    )
    finish = OrderClusters(keep_order=True)
    fitted = run_job(
        job, model, start, [OpenClusters()], finish=finish, rows=labels_of,
        reported=in_units(scaling.inverse_transform_squared),
    )  # fmt: skip
    return _in_data_units(model, *fitted)


def finish(
    job: Job,
    model: DPMeansModel,
    scaling: Scaling,
    centers: Array,
    moves: Sequence[Move],
) -> Fitted:
    """Pass over all rows until convergence.

    Statistics are taken about the first centres; if those turn out to have been so
    far off that digits were lost, start again from where it led.
    """
    for _ in range(3):
        start = _start(scaling, centers)
        result, labels = run_job(
            job, model, start, moves, finish=OrderClusters(), rows=labels_of,
            reported=in_units(scaling.inverse_transform_squared),
        )  # fmt: skip
        params: Centers = result.params
        shifts = np.sum((params.centers - params.refs) ** 2, axis=1)
        error = float(model.squared_error(params, result.total).sum())
        if float(result.total.counts @ shifts) <= _MOST_SHIFT * error:
            break
        centers = params.centers
    return _in_data_units(model, result, labels)


def _start(scaling: Scaling, centers: Array) -> Centers:
    return replace(Centers.start(scaling, centers), relax=_RELAX)


def _in_data_units(model: DPMeansModel, result: FitResult, labels: IntArray) -> Fitted:
    """The result in the units of the data."""
    params: Centers = result.params
    total: ClusterSums = result.total
    scaling = params.scaling
    penalty = scaling.inverse_transform_squared(model.penalty)
    return Fitted(
        scaling=scaling,
        centers=scaling.inverse_transform(params.centers),
        means=scaling.inverse_transform(model.means(params, total)),
        labels=labels,
        counts=total.counts,
        errors=scaling.inverse_transform_squared(model.squared_error(params, total)),
        penalty=float(penalty) if np.isfinite(penalty) else 0.0,
        history=scaling.inverse_transform_squared(np.array(result.history)),
        converged=result.converged,
    )


def scaled(sample: Sample, scaling: Scaling) -> Sample:
    """A sample with its rows in scaled units."""
    return replace(sample, rows=scaling.transform(sample.rows.astype(np.float64)))


def plus_plus(
    sample: Sample, rng: np.random.Generator, most: int, penalty: float = 0.0
) -> Array:
    """Draw up to `most` centres; stop when no row costs more than the penalty.

    Each further centre is a row drawn in proportion to its squared distance to the
    centres before it (Arthur & Vassilvitskii 2007), among the rows that would open
    a cluster of their own.
    """
    Y, weights = sample.rows, sample.weight()
    share = np.minimum(weights, 1.0)
    centers = [Y[rng.choice(len(Y), p=weights / weights.sum())]]
    costs = np.sum((Y - centers[0]) ** 2, axis=1)
    while len(centers) < most:
        chances = np.where(costs * share > penalty, costs * weights, 0.0)
        if chances.sum() <= 0.0:
            break
        centers.append(Y[rng.choice(len(Y), p=chances / chances.sum())])
        costs = np.minimum(costs, np.sum((Y - centers[-1]) ** 2, axis=1))
    return np.array(centers)
