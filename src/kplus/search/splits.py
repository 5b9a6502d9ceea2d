"""Grow clusters by splitting the best one, and swap poor clusters for good splits.

The squared error SSE(K) along the growth is what the choice of a penalty needs; at
a wished K, swaps mend what greedy splitting got wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.engine import BlockEngine, SerialEngine
from kplus.engine.blocks import ArrayBlocks
from kplus.loop import run
from kplus.models.dp_means.fast import DPMeansModel
from kplus.models.dp_means.params import Centers, Lens
from kplus.models.dp_means.stats import ClusterSums
from kplus.moves.open import RefillClusters
from kplus.moves.split import SplitClusters, best_splits
from kplus.search.sample import Sample

__all__ = ["Growth", "grow", "swap"]

_LEAST_SWAP = 1e-4  # a round of swaps that gains less than this share is the last


@dataclass(frozen=True)
class Growth:
    """Squared error and label entropy for each number of clusters passed through."""

    K: IntArray
    sse: Array
    entropy: Array  # -Σ W_k log(W_k / W)
    centers: Array


def labels_of(engine: BlockEngine) -> IntArray:
    """The label of every row."""
    return np.concatenate([local.labels for local in engine.locals()])


def grow(
    sample: Sample, target: int, at_once: Callable[[int], int], tol: float
) -> Growth:
    """Split until there are `target` clusters or none can be split.

    The sample is in the units of the lens, so that its mean is near 0.
    """
    weights, D = sample.weight(), sample.rows.shape[1]
    seen: list[tuple[int, float, float]] = []

    def watch(sse: float, counts: Array) -> None:
        shares = counts[counts > 0.0] / counts.sum()
        entropy = -counts.sum() * float(np.sum(shares * np.log(shares)))
        seen.append((len(counts), sse, entropy))

    lens = Lens(np.zeros(D), 1.0)
    start = Centers.start(lens, np.zeros((1, D)))
    with SerialEngine(ArrayBlocks(sample.rows), sample.weights) as engine:
        split = SplitClusters(
            sample.rows, weights, lambda: labels_of(engine), target, at_once, watch
        )
        moves = [RefillClusters(), split]
        model = DPMeansModel(np.inf)
        result = run(model, engine, start, moves=moves, max_iter=10_000, tol=tol)
    K, sse, entropy = (np.array(column) for column in zip(*seen, strict=True))
    return Growth(K, sse, entropy, result.params.centers)


def swap(sample: Sample, centers: Array, tol: float, max_rounds: int = 20) -> Array:
    """Trade the clusters that cost least to remove for the splits that gain most.

    Many trades are tried at once, fewer after a round that does not lower the
    squared error; the best centres seen are returned.
    """
    if len(centers) < 3:
        return centers
    best = _lloyd(sample, centers, tol)
    most = max(1, len(centers) // 8)
    for _ in range(max_rounds):
        trial = _traded(sample, best, most)
        if trial is None:
            break
        after = _lloyd(sample, trial, tol)
        gained = best.sse - after.sse
        if gained > 0.0:
            best = after
        if gained < _LEAST_SWAP * best.sse:
            if most == 1:
                break
            most = max(1, most // 4)
    return best.centers


@dataclass(frozen=True)
class _Rest:
    """A fixed number of clusters at rest, with what it costs to do without each."""

    centers: Array
    sse: float
    labels: IntArray
    removal: Array


def _lloyd(sample: Sample, centers: Array, tol: float) -> _Rest:
    """Move centres to rest, then let every row find its second nearest centre."""
    model = DPMeansModel(np.inf)
    start = Centers.start(Lens(np.zeros(sample.rows.shape[1]), 1.0), centers)
    blocks = ArrayBlocks(sample.rows)
    with SerialEngine(blocks, sample.weights) as engine:
        moves = [RefillClusters()]
        result = run(model, engine, start, moves=moves, max_iter=100, tol=tol)
    after = Centers.start(start.lens, model.update(result.params, result.total).centers)
    with SerialEngine(blocks, sample.weights) as engine:
        total: ClusterSums = run(model, engine, after, max_iter=1, tol=0.0).total
        labels = labels_of(engine)
    return _Rest(
        after.centers, model.objective(after, total), labels, total.spare
    )


def _traded(sample: Sample, rest: _Rest, most: int) -> Array | None:
    """Centres after up to `most` trades that promise to pay, or None."""
    K = len(rest.centers)
    gains, pairs = best_splits(
        sample.rows, sample.weight(), rest.labels, rest.centers, np.arange(K)
    )
    split_order = np.argsort(-gains, kind="stable")
    drop_order = np.argsort(rest.removal, kind="stable")
    dropped: list[int] = []
    split: list[int] = []
    for k, j in zip(drop_order, split_order, strict=True):
        if len(dropped) == most or gains[j] <= rest.removal[k]:
            break
        if k != j and k not in split and j not in dropped:
            dropped.append(int(k))
            split.append(int(j))
    if not dropped:
        return None
    kept = np.delete(rest.centers, dropped + split, axis=0)
    return np.concatenate([kept, pairs[split].reshape(-1, rest.centers.shape[1])])
