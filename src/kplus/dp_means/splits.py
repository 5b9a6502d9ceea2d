"""Grow clusters by splitting the best one, and swap poor clusters for good splits.

The squared error SSE(K) along the growth is what the choice of a penalty needs; at
a given K, swaps correct what greedy splitting got wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from kplus.core.job import Sample
from kplus.core.loop import run
from kplus.core.runs import labels_of
from kplus.core.types import Array, IntArray, Move
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means.model import ClusterSums, DPMeansModel
from kplus.dp_means.moves import RefillClusters, SplitClusters, best_splits
from kplus.dp_means.params import Centers, Scaling
from kplus.engine import SerialEngine

__all__ = ["Converged", "Growth", "grow", "lloyd", "swap"]

_LEAST_GAIN = 1e-5  # a swap must lower the squared error by this share
_LEAST_GAIN_OF_MANY = 3e-4  # and many swaps at once by this
_PATIENCE = 10  # swaps that may fail before the search ends
_LEAST_ROUNDS = 12  # of swaps, where there are many clusters
_MORE_ROUNDS = 400  # shared by the clusters, where there are few
_LEAST_RATIO = 0.5  # of gain to removal cost, for a single swap to be tried


@dataclass(frozen=True)
class Growth:
    """Squared error and label entropy for each number of clusters passed through."""

    K: IntArray
    sse: Array
    entropy: Array  # -Σ W_k log(W_k / W)
    centers: Array


def grow(
    sample: Sample, target: int, at_once: Callable[[int], int], tol: float
) -> Growth:
    """Split until there are `target` clusters or none can be split.

    The sample is in scaled units, so that its mean is near 0.
    """
    weights, D = sample.weight(), sample.rows.shape[1]
    steps: list[tuple[int, float, float]] = []

    def record(sse: float, counts: Array) -> None:
        shares = counts[counts > 0.0] / counts.sum()
        entropy = -counts.sum() * float(np.sum(shares * np.log(shares)))
        steps.append((len(counts), sse, entropy))

    scaling = Scaling(np.zeros(D), 1.0)
    start = Centers.start(scaling, np.zeros((1, D)))
    with SerialEngine(_one_block(sample), sample.weights) as engine:
        split = SplitClusters(
            sample.rows, weights, partial(labels_of, engine), target, at_once, record
        )
        moves: list[Move] = [RefillClusters(), split]
        model = DPMeansModel(np.inf)
        result = run(model, engine, start, moves=moves, max_iter=10_000, tol=tol)
    K, sse, entropy = (np.array(column) for column in zip(*steps, strict=True))
    return Growth(K, sse, entropy, result.params.centers)


def _one_block(sample: Sample) -> ArrayBlocks:
    """The hundreds of passes over a sample cost little beyond what a block costs."""
    return ArrayBlocks(sample.rows, sample.n_rows)


def swap(sample: Sample, centers: Array, tol: float) -> Array:
    """Remove the clusters that cost least and split those that gain most, in pairs.

    Many swaps at once at first; after a round that does not lower the squared error
    fewer, then one at a time, the most promising first, until `_PATIENCE` of them
    have failed. The best centres seen are returned.
    """
    best = lloyd(sample, centers, tol)
    if len(centers) < 2:
        return best.centers
    most, failed = max(1, len(centers) // 8), 0
    for _ in range(_LEAST_ROUNDS + _MORE_ROUNDS // len(centers)):
        if failed == _PATIENCE:
            break
        chosen = _many_swaps(best, most) if most > 1 else _one_swap(best, failed)
        if chosen is not None:
            after = lloyd(sample, _swapped(best, *chosen), tol)
            least = _LEAST_GAIN_OF_MANY if most > 1 else _LEAST_GAIN
            if after.sse < best.sse * (1.0 - least):
                best, failed = after, 0
                continue
        if most > 1:
            most = max(1, most // 4)
        else:
            failed += 1
    return best.centers


@dataclass(frozen=True)
class Converged:
    """Clusters after Lloyd's steps: what each costs to remove and gains by a split."""

    centers: Array
    counts: Array
    sse: float
    removal: Array
    gains: Array
    pairs: Array


def lloyd(sample: Sample, centers: Array, tol: float) -> Converged:
    """Lloyd's steps until convergence; then measure every removal and every split."""
    model = DPMeansModel(np.inf)
    start = Centers.start(Scaling(np.zeros(sample.rows.shape[1]), 1.0), centers)
    blocks = _one_block(sample)
    with SerialEngine(blocks, sample.weights) as engine:
        moves = [RefillClusters()]
        result = run(model, engine, start, moves=moves, max_iter=100, tol=tol)
    after = Centers.start(start.scaling, model.means(result.params, result.total))
    with SerialEngine(blocks, sample.weights) as engine:
        total: ClusterSums = run(model, engine, after, max_iter=1, tol=0.0).total
        labels = labels_of(engine)
    gains, pairs = best_splits(
        sample.rows, sample.weight(), labels, after.centers, np.arange(after.K)
    )
    return Converged(
        after.centers,
        total.counts,
        model.objective(after, total),
        total.removal_cost,
        gains,
        pairs,
    )


def _many_swaps(fit: Converged, most: int) -> tuple[list[int], list[int]] | None:
    """Up to `most` clusters to drop and as many to split, each pair worth it."""
    dropped: list[int] = []
    split: list[int] = []
    drops = np.argsort(fit.removal, kind="stable")
    splits = np.argsort(-fit.gains, kind="stable")
    for k, j in zip(drops, splits, strict=True):
        if len(dropped) == most or fit.gains[j] <= fit.removal[k]:
            break
        if k != j and k not in split and j not in dropped:
            dropped.append(int(k))
            split.append(int(j))
    return (dropped, split) if dropped else None


def _one_swap(fit: Converged, place: int) -> tuple[list[int], list[int]] | None:
    """The swap at a place in the ranking; Lloyd's steps may yet make a loss a gain."""
    worth = fit.gains[None, :] - _LEAST_RATIO * fit.removal[:, None]
    np.fill_diagonal(worth, -np.inf)
    at = np.argsort(-worth, axis=None, kind="stable")[place : place + 1]
    if not len(at) or worth.flat[at[0]] <= 0.0:
        return None
    k, j = divmod(int(at[0]), len(worth))
    return [k], [j]


def _swapped(fit: Converged, dropped: list[int], split: list[int]) -> Array:
    """Centres after a swap."""
    kept = np.delete(fit.centers, dropped + split, axis=0)
    return np.concatenate([kept, fit.pairs[split].reshape(-1, kept.shape[1])])
