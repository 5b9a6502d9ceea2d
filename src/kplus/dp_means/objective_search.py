"""The lowest objective at a given penalty (Eq. 3): splits, merges, removals, swaps.

Splitting a cluster pays when it saves more than the penalty, merging two when it costs
less. Up to `_ALL_ROWS` rows that is decided on all of them. Larger tables are searched
on a sample, and a split counts by what it saves for rows that it was not made from: the
closest rows of a sample are farther from each other than those of the table.
"""

import numpy as np

from kplus.core.job import Job, Sample
from kplus.core.types import Array, IntArray, Move
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.moves import (
    DropEmpty,
    EndOverrelaxation,
    MergeClusters,
    OpenClusters,
    RemoveCluster,
    cheap_pairs,
)
from kplus.dp_means.params import Scaling
from kplus.dp_means.search import Fitted, finish, plus_plus, scaled
from kplus.dp_means.splits import Converged, lloyd, swap
from kplus.dp_means.ward import ward

__all__ = ["by_objective", "lowest"]

_ALL_ROWS = 20_000  # up to so many the search sees all; else half of it and half not
_FEW_ROWS = 600  # up to so many are also merged from single rows on
_ROUGH, _TOL = 1e-2, 1e-4  # of the objective between changes, and at last
_MOST_SWAPPED = 300  # clusters; with more there are enough splits to correct a poor one
_ROUNDS = 6
_LEAST = 1e-12  # what changes must save, as a share of the objective


def by_objective(
    job: Job,
    random_start: bool = False,
    *,
    penalty: float,
    max_clusters: float = np.inf,
    start: Array | None = None,
) -> Fitted:
    """Eq. 3 (Eq. 12 with a cap): as many clusters as lower it, wherever they pay."""
    drawn = job.sample(_ALL_ROWS if job.source.n_rows <= _ALL_ROWS else 2 * _ALL_ROWS)
    scaling = Scaling.fit(drawn.rows)
    model = DPMeansModel(scaling.transform_squared(penalty), max_clusters)
    sample, held_out = scaled(drawn, scaling), None
    if sample.share < 1.0:
        sample, held_out = _half(sample, 0), _half(sample, 1)
    charge = model.penalty * sample.share
    if start is not None:
        starts = [scaling.transform(start)]
    elif random_start:
        most = int(min(max_clusters, sample.n_rows))
        starts = [plus_plus(sample, job.rng, most, model.penalty)]
    else:
        starts = _starts(sample, charge, max_clusters)
    fits = [lowest(sample, each, charge, max_clusters, held_out) for each in starts]
    best = min(fits, key=lambda fit: _objective(fit, charge))
    moves: list[Move] = [
        DropEmpty(),
        OpenClusters(),
        EndOverrelaxation(),
        MergeClusters(),
        RemoveCluster(),
    ]
    return finish(job, model, scaling, best.centers, moves)


def _half(sample: Sample, which: int) -> Sample:
    rows, weights = np.ascontiguousarray(sample.rows[which::2]), sample.weights
    some = None if weights is None else weights[which::2]
    return Sample(rows, some, sample.share * len(rows) / sample.n_rows)


def _starts(sample: Sample, charge: float, most: float) -> list[Array]:
    """One cluster; and, of few rows, those of Ward's tree that the penalty leaves."""
    weights = sample.weight()
    starts: list[Array] = [np.average(sample.rows, axis=0, weights=weights)[None]]
    if 1 < sample.n_rows <= _FEW_ROWS:
        tree = ward(sample.rows, weights)
        K = 1 + int(np.count_nonzero(tree.costs > charge))
        group = tree.cut(int(min(K, most)))
        starts.append(_means(sample.rows, weights, group))
    return starts


def _means(Y: Array, weights: Array, group: IntArray) -> Array:
    out = np.zeros((int(group.max()) + 1, Y.shape[1]))
    np.add.at(out, group, weights[:, None] * Y)
    means: Array = out / np.bincount(group, weights)[:, None]
    return means


def lowest(
    sample: Sample,
    centers: Array,
    charge: float,
    most: float = np.inf,
    held_out: Sample | None = None,
) -> Converged:
    """Descend from some centres until no split, merge, removal or swap pays.

    `charge` is the penalty as far as these rows go.
    """
    fit = lloyd(sample, centers, _ROUGH)
    for _ in range(_ROUNDS):
        while (split := _split(sample, fit, charge, most, held_out)) is not None:
            fit = split
        fit = lloyd(sample, fit.centers, _TOL)
        fit = _merged(sample, fit, charge)
        before = _objective(fit, charge)
        if 1 < len(fit.centers) <= _MOST_SWAPPED:
            fit = lloyd(sample, swap(sample, fit.centers, _TOL), _TOL)
        worth = _splits_that_pay(fit, charge, most, held_out)
        if _objective(fit, charge) >= before * (1.0 - _LEAST) and not len(worth):
            break
    return _merged(sample, fit, charge)


def _objective(fit: Converged, charge: float) -> float:
    return fit.sse + charge * (len(fit.centers) - 1)


def _splits_that_pay(
    fit: Converged, charge: float, most: float, held_out: Sample | None
) -> IntArray:
    """Clusters to split, the best first; as many as the cap leaves room for."""
    gains, least = fit.gains, charge + _LEAST * fit.sse
    wanted = np.flatnonzero(gains > least)
    if held_out is not None and len(wanted):
        gains = _gains_of_others(held_out, fit, wanted)
        wanted = wanted[gains[wanted] > least]
    room = int(min(len(wanted), max(most - len(fit.centers), 0)))
    return wanted[np.argsort(-gains[wanted], kind="stable")[:room]]


def _gains_of_others(held_out: Sample, fit: Converged, wanted: IntArray) -> Array:
    """What splits save for rows that they were not made from."""
    Y, K = held_out.rows, len(fit.centers)
    labels = _nearest(Y, fit.centers)
    own = np.flatnonzero(np.isin(labels, wanted))
    parents, weights = labels[own], held_out.weight()[own]
    apart = Y[own] - fit.centers[parents]
    before = np.einsum("nd,nd->n", apart, apart)
    sides = [Y[own] - fit.pairs[parents, side] for side in (0, 1)]
    after = np.minimum(*(np.einsum("nd,nd->n", side, side) for side in sides))
    out: Array = np.bincount(parents, weights * (before - after), K).astype(np.float64)
    return out


def _nearest(Y: Array, centers: Array) -> IntArray:
    half = 0.5 * np.sum(centers**2, axis=1)
    tiles = range(0, len(Y), 1024)
    parts = [np.argmin(half - Y[at : at + 1024] @ centers.T, axis=1) for at in tiles]
    return np.concatenate(parts)


def _split(
    sample: Sample, fit: Converged, charge: float, most: float, held_out: Sample | None
) -> Converged | None:
    """Split every cluster of which it pays; None if there is none."""
    chosen = _splits_that_pay(fit, charge, most, held_out)
    if not len(chosen):
        return None
    kept = np.delete(fit.centers, chosen, axis=0)
    born = fit.pairs[chosen].reshape(-1, kept.shape[1])
    after = lloyd(sample, np.concatenate([kept, born]), _ROUGH)
    lower = _objective(after, charge) < _objective(fit, charge)
    return after if lower else None


def _merged(sample: Sample, fit: Converged, charge: float) -> Converged:
    """Merge or remove clusters while that pays."""
    while len(fit.centers) > 1:
        centers = _fewer(fit, charge)
        if centers is None:
            return fit
        after = lloyd(sample, centers, _TOL)
        if _objective(after, charge) >= _objective(fit, charge):
            return fit
        fit = after
    return fit


def _fewer(fit: Converged, charge: float) -> Array | None:
    """The centres after all merges that pay, else after the removal that may."""
    pairs = cheap_pairs(fit.centers, fit.counts, charge)
    if len(pairs):
        a, b = pairs.T
        n = fit.counts[pairs] / fit.counts[pairs].sum(axis=1, keepdims=True)
        centers = fit.centers.copy()
        centers[a] = n[:, :1] * fit.centers[a] + n[:, 1:] * fit.centers[b]
        return np.delete(centers, b, axis=0)
    worst = int(np.argmin(fit.removal))
    if fit.removal[worst] >= charge:
        return None
    return np.delete(fit.centers, worst, axis=0)
