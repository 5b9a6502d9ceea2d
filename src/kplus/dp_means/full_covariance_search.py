"""How `DPMeans` with covariance matrices is fitted."""

from dataclasses import replace

import numpy as np

from kplus.core.job import Job
from kplus.core.runs import answers, in_units, run_job, telling
from kplus.core.types import Array, Blocks, FitResult, IntArray, Move
from kplus.dp_means import search as spherical
from kplus.dp_means.full_covariance import (
    Ellipsoids,
    FullCovarianceModel,
    OpenEllipsoids,
    RemoveEllipsoid,
    Scatters,
)
from kplus.dp_means.moves import DropEmpty, by_size
from kplus.dp_means.params import Scaling
from kplus.dp_means.search import Fitted

__all__ = ["assign", "by_penalty", "distances", "refine"]


def by_penalty(
    job: Job,
    random_start: bool = False,
    *,
    penalty: float,
    floor: float,
    max_clusters: float = np.inf,
    start: Ellipsoids | None = None,
) -> Fitted:
    """Begin with the clusters of a spherical fit, all of variance `floor`.

    From one cluster around all rows few others would open: its matrix grows with the
    number of its rows until no row is far by it.
    """
    model = FullCovarianceModel(penalty, floor, max_clusters)
    if start is not None:
        return refine(job, model, start)
    fast = spherical.by_rows(
        replace(
            job, callback=telling(job.callback, in_units(lambda value: value / floor))
        ),
        random_start,
        penalty=penalty * floor,
        max_clusters=max_clusters,
    )
    spheres = Ellipsoids.spheres(fast.centers, floor)
    earlier = fast.history / floor
    if not fast.converged or len(earlier) >= job.max_iter:
        return replace(
            fast,
            errors=fast.errors / floor,
            penalty=penalty,
            history=earlier,
            converged=False,
            covariances=spheres.covariances,
        )
    return refine(job, model, spheres, earlier=earlier)


def refine(
    job: Job,
    model: FullCovarianceModel,
    start: Ellipsoids,
    *,
    earlier: Array | None = None,
) -> Fitted:
    """Pass over all rows until convergence; `earlier` is the history so far."""
    before = np.empty(0) if earlier is None else earlier
    moves: list[Move] = [DropEmpty(), OpenEllipsoids(), RemoveEllipsoid()]
    result, _ = run_job(job, model, start, moves, earlier=len(before))
    return _labelled_as_assigned(job, model, result, before)


def _labelled_as_assigned(
    job: Job, model: FullCovarianceModel, result: FitResult, before: Array
) -> Fitted:
    """Number clusters by size and label rows as `assign` does.

    Equal distances go to the lower of the new numbers. Clusters without rows go.
    """
    params, counts = result.params, result.total.counts
    order = by_size(params.centers, counts)[: np.count_nonzero(counts)]
    ordered = Ellipsoids(params.centers[order], params.covariances[order])
    total, labels = _one_pass(job.on_sample(job.source, job.weights), ordered)
    return Fitted(
        scaling=Scaling.fit(ordered.centers),
        centers=ordered.centers,
        means=ordered.centers,
        labels=labels,
        counts=total.counts,
        errors=total.squares,
        penalty=model.penalty,
        history=np.concatenate([before, result.history]),
        converged=result.converged,
        covariances=ordered.covariances,
    )


def assign(job: Job, centers: Array, covariances: Array) -> tuple[IntArray, float]:
    """Labels of all rows, and the weighted sum of squared Mahalanobis distances."""
    total, labels = _one_pass(job, Ellipsoids(centers, covariances))
    return labels, float(total.squares.sum())


def _one_pass(job: Job, ellipsoids: Ellipsoids) -> tuple[Scatters, IntArray]:
    model = FullCovarianceModel(0.0, 1.0, max_clusters=0)  # opens nothing
    return answers(job, model, ellipsoids, keep="labels")


def distances(source: Blocks, centers: Array, covariances: Array) -> Array:
    """Mahalanobis distance of each row to each centre."""
    ellipsoids = Ellipsoids(centers, covariances)
    out = np.empty((source.n_rows, len(centers)))
    for start in range(0, source.n_rows, source.block_rows):
        X = source.read(start // source.block_rows).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            out[start : start + len(X)] = np.sqrt(ellipsoids.squares(X))
    return out
