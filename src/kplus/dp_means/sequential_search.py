"""Searches that visit the rows in order: serial and collapsed DP-means."""

from dataclasses import replace

import numpy as np

from kplus.core.errors import NotFiniteError
from kplus.core.job import Job
from kplus.core.runs import in_units, labels_of, one_by_one, run_job
from kplus.core.types import Array, FitResult, IntArray
from kplus.dp_means.moves import by_size
from kplus.dp_means.objective_search import by_objective
from kplus.dp_means.params import Scaling
from kplus.dp_means.search import (
    Fitted,
    assign,
    by_number,
    plus_plus,
    scaled,
)
from kplus.dp_means.sequential import (
    CollapsedModel,
    DropEmptied,
    Means,
    SerialModel,
)

__all__ = ["collapsed", "collapsed_number", "refine", "serial"]

_SAMPLE = 5_000  # rows that decide the scaling and random starts


def serial(
    job: Job,
    random_start: bool = False,
    *,
    penalty: float,
    max_clusters: float = np.inf,
    start: Array | None = None,
) -> Fitted:
    """Kulis & Jordan (2012): a row may open a cluster that the next rows see.

    One cluster at the mean of all rows to begin with. Blocks can only be visited in
    order, so a random start is one from drawn rows, not another order.
    """
    sample = job.sample(_SAMPLE)
    scaling = Scaling.fit(sample.rows)
    model = SerialModel(scaling.transform_squared(penalty), max_clusters)
    if start is not None:
        centers = scaling.transform(start)
    elif random_start:
        most = int(min(max_clusters, sample.n_rows))
        centers = plus_plus(scaled(sample, scaling), job.rng, most, model.penalty)
    else:
        centers = _mean(job, scaling)[None]
    result, labels = _run(job, model, scaling, centers)
    return labelled_as_assigned(
        job, _in_data_units(model, result.params, result, labels)
    )


def collapsed(
    job: Job,
    random_start: bool = False,
    *,
    penalty: float,
    max_clusters: float = np.inf,
    start: Array | None = None,
) -> Fitted:
    """The usual fit, then moves of single rows by the exact change of Eq. 9."""
    fast = by_objective(
        job, random_start, penalty=penalty, max_clusters=max_clusters, start=start
    )
    return _refine_converged(job, fast, penalty, max_clusters)


def collapsed_number(
    job: Job,
    random_start: bool = False,
    *,
    n_clusters: int,
    start: Array | None = None,
) -> Fitted:
    """As `collapsed`, with a given number of clusters that stays."""
    fast = by_number(job, random_start, n_clusters=n_clusters, start=start)
    if np.any(fast.counts == 0.0):
        return fast  # fewer distinct rows than clusters: converged
    return _refine_converged(job, fast, 0.0, n_clusters)


def _refine_converged(
    job: Job, fast: Fitted, penalty: float, max_clusters: float
) -> Fitted:
    """Refine a fit, unless it was stopped before it converged."""
    if not fast.converged or len(fast.history) >= job.max_iter:
        return replace(fast, converged=False)
    return refine(job, fast.centers, penalty, max_clusters, earlier=fast.history)


def refine(
    job: Job,
    centers: Array,
    penalty: float,
    max_clusters: float = np.inf,
    *,
    earlier: Array | None = None,
) -> Fitted:
    """Assign rows to the nearest centre, then move single rows while one gains.

    Parameters
    ----------
    centers : array of shape (K, D)
        Where to start; a single one lets the rows open all others.
    earlier : array, optional
        History of the passes that led to the centres.
    """
    before = np.empty(0) if earlier is None else earlier
    sample = job.sample(_SAMPLE)
    scaling = Scaling.fit(sample.rows)
    model = CollapsedModel(scaling.transform_squared(penalty), max_clusters)
    centers = scaling.transform(centers)
    result, labels = _run(job, model, scaling, centers, len(before))
    means = model.update(result.params, result.total)
    fitted = _in_data_units(model, means, result, labels)
    history = np.concatenate([before, fitted.history])
    return labelled_as_assigned(job, replace(fitted, history=history))


def _run(
    job: Job,
    model: SerialModel | CollapsedModel,
    scaling: Scaling,
    centers: Array,
    earlier: int = 0,
) -> tuple[FitResult, IntArray]:
    """Passes over the blocks in order until convergence; the result and the labels."""
    return run_job(
        job.single_threaded(), model, Means.start(scaling, centers), [DropEmptied()],
        groups=one_by_one(job), earlier=earlier, rows=labels_of,
        reported=in_units(scaling.inverse_transform_squared),
    )  # fmt: skip


def labelled_as_assigned(job: Job, fitted: Fitted) -> Fitted:
    """Number clusters by size, and give every row the label that `assign` gives it.

    Within a pass later rows see more clusters, or other means, than earlier ones;
    unless the fit converged some rows may have a nearer centre in the end, and equal
    distances go to the lower of the new numbers. Neither raises the objective.
    """
    order = by_size(fitted.centers, fitted.counts)
    unreported = job.on_sample(job.source, job.weights)
    assigned = assign(unreported, fitted.scaling, fitted.centers[order])
    kept = assigned.counts > 0.0
    if not np.all(kept):
        return labelled_as_assigned(
            job,
            replace(
                fitted, centers=assigned.centers[kept], counts=assigned.counts[kept]
            ),
        )
    charged = assigned.at_penalty(fitted.penalty)
    objective = min(charged.objective, fitted.objective)
    return replace(
        charged,
        history=np.append(fitted.history[:-1], objective),
        converged=fitted.converged,
    )


def _mean(job: Job, scaling: Scaling) -> Array:
    """The weighted mean of all rows, in scaled units."""
    source, total = job.source, np.zeros(job.source.n_features)
    for start in range(0, source.n_rows, source.block_rows):
        Y = scaling.transform(
            source.read(start // source.block_rows).astype(np.float64)
        )
        if not np.all(np.isfinite(Y)):
            raise NotFiniteError("A row")
        if job.weights is not None:
            Y *= job.weights[start : start + len(Y), None]
        total += Y.sum(axis=0)
    return total / (source.n_rows if job.weights is None else job.weights.sum())


def _in_data_units(
    model: SerialModel | CollapsedModel,
    params: Means,
    result: FitResult,
    labels: IntArray,
) -> Fitted:
    """The result in the units of the data, without clusters that have no row."""
    scaling, used = params.scaling, result.total.members > 0
    return Fitted(
        scaling=scaling,
        centers=scaling.inverse_transform(params.centers[used]),
        means=scaling.inverse_transform(params.centers[used]),
        labels=labels,
        counts=result.total.counts[used],
        errors=scaling.inverse_transform_squared(
            model.squared_error(params, result.total)
        )[used],
        penalty=float(scaling.inverse_transform_squared(model.penalty)),
        history=scaling.inverse_transform_squared(np.array(result.history)),
        converged=result.converged,
    )
