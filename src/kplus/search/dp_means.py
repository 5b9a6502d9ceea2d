"""How `DPMeans` is fitted: by a penalty, to a number of clusters, or on its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from kplus.core.types import (
    Array,
    Blocks,
    Callback,
    FitResult,
    IntArray,
    Move,
    PassInfo,
)
from kplus.engine import make_engine
from kplus.loop import run
from kplus.models.dp_means.fast import DPMeansModel, NotFiniteError
from kplus.models.dp_means.params import Centers, Lens
from kplus.models.dp_means.stats import ClusterSums
from kplus.moves.open import OpenClusters, RefillClusters
from kplus.moves.remove import DropEmpty, RemoveCluster
from kplus.moves.settle import SettleOnMeans
from kplus.search.path import PenaltyPath, most_clusters, trace
from kplus.search.sample import Sample, draw
from kplus.search.seeds import plus_plus
from kplus.search.splits import grow, labels_of, swap

__all__ = [
    "Fitted",
    "Job",
    "assign",
    "by_number",
    "by_penalty",
    "distances",
    "farthest_first",
    "find_path",
    "stream",
]

_LEVELS = (1_000, 5_000, 20_000)  # rows of the samples that a fit starts on
_GROWTH_TOL = 1e-2  # how much rest a growth to a wished number waits for
_SPLIT_TOL = 1e-3  # and how much the path and swaps do
_RELAX = 1.6  # how far updates overshoot the means until a fit rests
_SMALL = DPMeansModel(np.inf)


@dataclass(frozen=True)
class Job:
    """The data and how to go about them."""

    source: Blocks
    weights: Array | None
    rng: np.random.Generator
    n_threads: int = 1
    max_iter: int = 300
    tol: float = 1e-5
    callback: Callback | None = None

    def sample(self, size: int) -> Sample:
        sample = draw(self.source, self.weights, size, self.rng)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.vdot(sample.rows, sample.rows)
        if not np.isfinite(squares) and not _squares_fit(sample.rows):
            raise NotFiniteError("A row of the sample")
        return sample


@dataclass(frozen=True)
class Fitted:
    """A fit in the units of the data."""

    centers: Array
    labels: IntArray
    counts: Array
    errors: Array
    penalty: float
    history: Array
    converged: bool

    @property
    def objective(self) -> float:
        return float(self.history[-1])

    def largest_first(self) -> "Fitted":
        """Number the clusters by falling size, equals by their centres."""
        order = np.lexsort((*self.centers.T[::-1], -self.counts))
        number = np.empty(len(order), dtype=np.int32)
        number[order] = np.arange(len(order))
        return replace(
            self,
            centers=self.centers[order],
            labels=number[self.labels],
            counts=self.counts[order],
            errors=self.errors[order],
        )

    def at_penalty(self, penalty: float) -> "Fitted":
        """The same clusters, charged a penalty each after the first."""
        charge = penalty * (len(self.centers) - 1)
        return replace(self, penalty=penalty, history=self.history + charge)


def _squares_fit(rows: Array) -> bool:
    """Whether all values, and the squares of their spread, are finite in float64."""
    wide = rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.max(wide, axis=0) - np.min(wide, axis=0)
        return bool(np.isfinite(np.vdot(spread, spread) * len(rows)))


def by_penalty(
    job: Job,
    penalty: float,
    max_clusters: float = np.inf,
    *,
    start: Array | None = None,
    random_start: bool = False,
) -> Fitted:
    """Row rule: a row opens a cluster when its squared distance exceeds the penalty.

    Small samples first: most clusters are opened where a pass costs little, and the
    pass over all rows begins near its end.
    """
    sample = job.sample(_LEVELS[0])
    lens = Lens.on(sample.rows, sample.weights)
    model = DPMeansModel(penalty * lens.inv**2, max_clusters)
    moves: list[Move] = [DropEmpty(), OpenClusters(), SettleOnMeans(), RemoveCluster()]
    if start is not None:
        return _finish(job, model, lens, lens.view(start), moves)
    centers: Array = np.zeros((1, sample.rows.shape[1]))
    if random_start:
        most = int(min(max_clusters, sample.n_rows))
        centers = plus_plus(sample.seen(lens), job.rng, most, model.penalty)
    for size in _LEVELS:
        if job.source.n_rows < 2 * size:
            break
        if size > sample.n_rows:
            sample = job.sample(size)
        part = replace(
            job, source=sample.blocks(), weights=sample.weights, callback=None,
            n_threads=1,
        )  # fmt: skip
        result = _run(part, model, _start(lens, centers), moves)[0]
        centers = model.means(result.params, result.total)
    return _finish(job, model, lens, centers, moves)


def by_number(
    job: Job,
    n_clusters: int,
    *,
    start: Array | None = None,
    random_start: bool = False,
) -> Fitted:
    """A wished number of clusters: splits and swaps on a sample, then all rows."""
    sample = job.sample(_LEVELS[-1])
    lens = Lens.on(sample.rows, sample.weights)
    if start is None:
        seen = sample.seen(lens)
        if random_start:
            centers = plus_plus(seen, job.rng, n_clusters)
        else:
            halve = grow(seen, n_clusters, lambda K: max(1, K // 2), _GROWTH_TOL)
            centers = halve.centers
        centers = _topped_up(job, lens, centers, n_clusters)
        centers = swap(seen, centers, _SPLIT_TOL)
    else:
        centers = lens.view(start)
    moves: list[Move] = [RefillClusters(), SettleOnMeans()]
    return _finish(job, _SMALL, lens, centers, moves)


def _topped_up(job: Job, lens: Lens, centers: Array, n_clusters: int) -> Array:
    """Where the sample gave fewer centres than wished, add rows that differ."""
    if len(centers) == n_clusters:
        return centers
    everything = draw(job.source, job.weights, job.source.n_rows, job.rng)
    rows = everything.rows[everything.weight() > 0.0]
    distinct = np.unique(rows, axis=0)
    if len(distinct) < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {len(distinct)} distinct rows "
            f"of X; ask for fewer clusters."
        )
    seen = Sample(lens.view(distinct.astype(np.float64)), None, 1.0)
    costs = np.min(cdist(seen.rows, centers), axis=1)
    extra = np.argsort(-costs, kind="stable")[: n_clusters - len(centers)]
    return np.concatenate([centers, seen.rows[extra]])


def find_path(job: Job, max_clusters: float = np.inf) -> PenaltyPath:
    """SSE(K) on a sample by best splits, and what it says of penalties."""
    sample = job.sample(_LEVELS[-1])
    lens = Lens.on(sample.rows, sample.weights)
    weights = sample.weight()
    n = max(float(weights.sum()), float(np.count_nonzero(weights)))
    most = int(min(most_clusters(n), max_clusters))
    growth = grow(sample.seen(lens), most, lambda K: 1, _SPLIT_TOL)
    all_of_it = n / sample.share / n
    return trace(growth, n, job.source.n_features, all_of_it / lens.inv**2)


def assign(
    source: Blocks, weights: Array | None, centers: Array, n_threads: int
) -> tuple[IntArray, float]:
    """Labels of all rows, and the weighted sum of squared distances."""
    lens = Lens.on(centers)
    job = Job(source, weights, np.random.default_rng(0), n_threads, max_iter=1)
    fitted = _finish(job, _SMALL, lens, lens.view(centers), [])
    return fitted.labels, fitted.objective


def distances(source: Blocks, centers: Array) -> Array:
    """Distance of each row to each centre."""
    lens = Lens.on(centers)
    C = lens.view(centers)
    out = np.empty((source.n_rows, len(C)))
    for index in range(-(-source.n_rows // source.block_rows)):
        Y = lens.view(source.read(index).astype(np.float64))
        start = index * source.block_rows
        out[start : start + len(Y)] = cdist(Y, C) / lens.inv
    return out


def farthest_first(source: Blocks, weights: Array | None, n_clusters: int) -> float:
    """Squared distance of the K-th farthest row, taken in turn from the mean on."""
    everything = draw(source, weights, source.n_rows, np.random.default_rng(0))
    lens = Lens.on(everything.rows, everything.weights)
    sample = everything.seen(lens)
    Y = sample.rows[sample.weight() > 0.0]
    costs = np.sum(Y**2, axis=1)
    if not np.isfinite(costs.sum()):
        raise NotFiniteError("A row")
    for _ in range(n_clusters - 1):
        far = Y[np.argmax(costs)]
        costs = np.minimum(costs, np.sum((Y - far) ** 2, axis=1))
    return float(costs.max()) / lens.inv**2


def stream(
    job: Job, penalty: float, max_clusters: float, centers: Array, mass: Array
) -> Fitted:
    """One batch of a stream: earlier rows stay where they are, as weight on centres.

    An infinite penalty opens no cluster. The errors are those of this batch and of
    moving the centres under the earlier rows.
    """
    job.sample(_LEVELS[0])
    lens = Lens.on(centers)
    model = DPMeansModel(penalty * lens.inv**2, max_clusters)
    start = Centers.start(lens, lens.view(centers), mass)
    return _to_data(model, lens, *_run(job, model, start, [OpenClusters()]))


def _run(
    job: Job, model: DPMeansModel, start: Centers, moves: Sequence[Move]
) -> tuple[FitResult, IntArray]:
    callback = None
    if (report := job.callback) is not None:
        unit = start.lens.inv**-2

        def callback(info: PassInfo) -> bool:
            return report(replace(info, objective=info.objective * unit))

    with make_engine(job.source, job.weights, job.n_threads) as engine:
        result = run(
            model, engine, start,
            moves=moves, max_iter=job.max_iter, tol=job.tol, callback=callback,
        )  # fmt: skip
        return result, labels_of(engine)


def _finish(
    job: Job, model: DPMeansModel, lens: Lens, centers: Array, moves: Sequence[Move]
) -> Fitted:
    """Pass over all rows until rest."""
    return _to_data(model, lens, *_run(job, model, _start(lens, centers), moves))


def _start(lens: Lens, centers: Array) -> Centers:
    return replace(Centers.start(lens, centers), relax=_RELAX)


def _to_data(
    model: DPMeansModel, lens: Lens, result: FitResult, labels: IntArray
) -> Fitted:
    """Back to the units of the data."""
    params: Centers = result.params
    total: ClusterSums = result.total
    unit = lens.inv**-2
    return Fitted(
        centers=lens.back(params.centers),
        labels=labels,
        counts=total.counts,
        errors=model.squared_error(params, total) * unit,
        penalty=model.penalty * unit if np.isfinite(model.penalty) else 0.0,
        history=np.array(result.history) * unit,
        converged=result.converged,
    )
