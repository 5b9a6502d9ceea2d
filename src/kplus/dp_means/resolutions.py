"""How many clusters: what holds at most resolutions, and over most penalties.

A sample is cut into cells, few and large at first, then more and smaller. At each of
these resolutions the cells are joined where no valley is between. Clusters that are
there come out again and again, whatever the cells; what a single resolution says is
chance. So each partition counts by how far all finer resolutions agree with it, and a
round one also by its plateau on the penalty path.
"""

from dataclasses import dataclass, replace

import numpy as np

from kplus.core.job import Job, Sample
from kplus.core.types import Array, IntArray
from kplus.dp_means.cells import Cells, tree_of_rows
from kplus.dp_means.params import Scaling
from kplus.dp_means.penalty_path import PenaltyPath, most_clusters, trace
from kplus.dp_means.search import scaled
from kplus.dp_means.splits import Growth, grow
from kplus.dp_means.ward import WardTree, ward

__all__ = ["Choice", "choose"]

_SAMPLE = 5_000
_SPARE = 1.5  # cells for each of the most clusters, from which the path begins
_STEPS = 4  # of Lloyd's, which make cells of Ward's groups
_TOL = 1e-2  # of the quantisation
_COARSEST, _FINEST = 2, 128  # cells of a resolution ...
_PER_CELL = 20.0  # ... which have so many rows, at least
_CORNERS = 5  # numbers with the longest plateaus, which are resolutions, too
_LENGTH = 0.4  # of a resolution in log K, at most
_POWER = 4.0  # of the agreement: little of it says nothing
_NOTHING_SEEN = 0.3  # weight of no agreement
_FINER = 2.0  # times as many cells as clusters, to judge them
_PER_PLATEAU = 0.1  # support by a log λ² of plateau
_BY_BIC = 0.2  # and where the information criterion has the same number
_LONG = 1.2  # plateau of a number that holds although there is no valley ...
_SURELY_ONE = 0.8  # ... unless resolutions support a single cluster that much
_DIFFER = 0.8  # adjusted Rand index below which partitions are not the same
_CLEAR, _AHEAD = 0.5, 0.2  # support of a clear answer, and before the next one
_RUNNERS_UP = 3  # that are named
_OBVIOUS = 1.5  # plateau of round clusters that few resolutions need confirm:
_FACTORS = (1, 2, 4)  # so many times as many cells ...
_SAME = 0.95  # ... with that adjusted Rand index
_VERY_LONG = 2.3  # plateau, penalties ten times as high, that two of them do for
_COMPARED = 1_500  # rows on which partitions are compared


@dataclass(frozen=True)
class Choice:
    """The answer: so many round clusters, or what is joined from some cells.

    `cells` are centres in the units of the data, None for round clusters. So are
    `centers`, of clusters so obvious that a search need not begin anew.
    """

    path: PenaltyPath
    n_clusters: int
    cells: Array | None = None
    centers: Array | None = None


@dataclass(frozen=True)
class _Partition:
    """Clusters of the sample, joined from so many cells."""

    labels: IntArray
    n_clusters: int
    n_cells: int
    centers: Array
    round: bool


def choose(job: Job, most: float = np.inf, any_shape: bool = True) -> Choice:
    """Decide by a sample; without `any_shape` for round clusters only."""
    drawn = job.sample(_SAMPLE)
    scaling = Scaling.fit(drawn.rows)
    sample = scaled(drawn, scaling)
    weights = sample.weight()
    n = max(float(weights.sum()), float(np.count_nonzero(weights)))
    furthest = int(min(most_clusters(n), most))
    start, tree, growth = _merged_cells(sample, furthest)
    path = trace(growth, n, job.source.n_features, scaling, 1.0 / sample.share)
    if len(path.n_clusters) < 3:
        return Choice(path, int(path.n_clusters[path.chosen]))
    obvious = _obvious(sample, start, tree, path, n)
    if obvious is not None:
        centers = scaling.inverse_transform(obvious.centers)
        return Choice(_with_lengths(path), obvious.n_clusters, centers=centers)
    found = [
        _resolved(sample, _centers_at(start, tree, K))
        for K in _resolutions(path, n, furthest)
    ]
    plateau = int(path.n_clusters[path.chosen])
    if plateau > 1:
        found.append(_rounded(sample, _centers_at(start, tree, plateau)))
    agreement = _agreement(found, _as_rows(sample, n))
    return _choice(path, found, agreement, most, any_shape, scaling)


def _obvious(
    sample: Sample, cells: Cells, tree: WardTree, path: PenaltyPath, n: float
) -> _Partition | None:
    """Round clusters on a long plateau, if they come again from more cells."""
    K, length = int(path.n_clusters[path.chosen]), path.log_length[path.chosen]
    factors = _FACTORS[:2] if length >= _VERY_LONG else _FACTORS
    if K == 1 or length < _OBVIOUS or factors[-1] * K > n / _PER_CELL:
        return None
    found: list[_Partition] = []
    for factor in factors:
        found.append(_resolved(sample, _centers_at(cells, tree, factor * K)))
        if found[-1].n_clusters != K:
            return None
        if _alike(found[0], found[-1], _as_rows(sample, n)) < _SAME:
            return None
    return found[0] if found[0].round else None


def _with_lengths(path: PenaltyPath) -> PenaltyPath:
    """The path with the next longest plateaus as what else it might have been."""
    length = np.where(np.isfinite(path.log_length), path.log_length, 0.0)
    length[path.chosen] = 0.0
    others = np.argsort(-length, kind="stable")[:_RUNNERS_UP]
    return replace(path, runners_up=path.n_clusters[others[length[others] > 0.0]])


def _merged_cells(sample: Sample, furthest: int) -> tuple[Cells, WardTree, Growth]:
    """A fine quantisation, Ward's tree of it, and SSE(K) along the merges."""
    target = int(max(1, min(_SPARE * furthest, sample.n_rows)))
    centers = grow(sample, target, lambda K: max(1, K // 2), _TOL).centers
    Y, weights = sample.rows, sample.weight()
    cells, own = Cells.around(Y, weights, centers)
    tree = ward(cells.centers, cells.counts)
    inside = float(weights @ np.sum((Y - cells.centers[own]) ** 2, axis=1))
    sse = inside + np.concatenate([[0.0], np.cumsum(tree.costs)])
    K = np.arange(len(cells.counts), 0, -1)
    kept = slice(max(len(K) - furthest, 0), None)
    entropy = _entropies(tree, cells.counts)
    growth = Growth(K[kept][::-1], sse[kept][::-1], entropy[kept][::-1], cells.centers)
    return cells, tree, growth


def _entropies(tree: WardTree, counts: Array) -> Array:
    """-Σ W_k log(W_k / W) before each merge and after the last."""
    total, K = counts.sum(), len(counts)
    sizes = np.concatenate([counts, np.zeros(K - 1)])
    terms = [_term(counts, total).sum()]
    for t, (a, b) in enumerate(tree.children):
        sizes[K + t] = sizes[a] + sizes[b]
        a, b, c = _term(sizes[[a, b, K + t]], total)
        terms.append(terms[-1] - a - b + c)
    return np.array(terms)


def _term(sizes: Array, total: float) -> Array:
    some = np.maximum(sizes, 1e-300)
    out: Array = -sizes * np.log(some / total)
    return out


def _centers_at(cells: Cells, tree: WardTree, K: int) -> Array:
    """The means of Ward's groups."""
    group = tree.cut(min(K, len(cells.counts)))
    member = (group == np.arange(int(group.max()) + 1)[:, None]) * cells.counts
    out: Array = member @ cells.centers / member.sum(axis=1, keepdims=True)
    return out


def _resolutions(path: PenaltyPath, n: float, furthest: int) -> list[int]:
    """Numbers of cells: evenly in log K, and those of the longest plateaus."""
    finest = int(max(4, min(_FINEST, n / _PER_CELL, furthest)))
    steps = np.arange(2.0 * np.log2(_COARSEST), 2.0 * np.log2(finest) + 1e-9)
    even = {round(2.0 ** (step / 2.0)) for step in steps}
    length = np.where(np.isfinite(path.log_length), path.log_length, 0.0)
    longest = np.argsort(-length, kind="stable")[:_CORNERS]
    return sorted({*even, *path.n_clusters[longest].tolist()} - {1})


def _resolved(sample: Sample, centers: Array) -> _Partition:
    """Cells about some centres, joined where no valley is between."""
    Y, weights = sample.rows, sample.weight()
    cells, own = _settled(Y, weights, centers)
    tree = tree_of_rows(cells, Y, weights)
    labels = tree.cut()[own]
    K = len(cells.counts)
    return _Partition(labels, tree.n_clusters, K, cells.centers, tree.n_clusters == K)


def _settled(Y: Array, weights: Array, centers: Array) -> tuple[Cells, IntArray]:
    """Cells after a few of Lloyd's steps."""
    for _ in range(_STEPS):
        cells, own = Cells.around(Y, weights, centers)
        centers = cells.centers
    return cells, own


def _rounded(sample: Sample, centers: Array) -> _Partition:
    """Round clusters about some centres, joined or not."""
    Y, weights = sample.rows, sample.weight()
    cells, own = _settled(Y, weights, centers)
    K = len(cells.counts)
    return _Partition(own, K, K, cells.centers, True)


def _as_rows(sample: Sample, n: float) -> Array:
    """How many of the n rows each row of the sample counts as."""
    weights = sample.weight()
    out: Array = weights * (n / weights.sum())
    return out


def _agreement(found: list[_Partition], counts: Array) -> Array:
    out = np.eye(len(found))
    for i, j in zip(*np.tril_indices(len(found), -1), strict=True):
        out[i, j] = out[j, i] = max(_alike(found[i], found[j], counts), 0.0)
    return out


def _alike(one: _Partition, other: _Partition, counts: Array) -> float:
    """The adjusted Rand index of two partitions, on some of the rows."""
    n = len(counts)
    some = np.unique(np.linspace(0, n - 1, min(n, _COMPARED)).astype(int))
    return _rand(one.labels[some], other.labels[some], counts[some])


def _rand(a: IntArray, b: IntArray, counts: Array) -> float:
    """The adjusted Rand index of two partitions; 1 where both are a single cluster.

    A row that counts two is two equal rows.
    """
    K = int(b.max()) + 1
    sums = (np.bincount(labels, counts) for labels in (a * K + b, a, b))
    pairs, first, second = (float(c @ np.maximum(c - 1.0, 0.0)) for c in sums)
    n = float(counts.sum())
    expected = first * second / max(n * (n - 1.0), 1.0)
    most = 0.5 * (first + second)
    return 1.0 if most == expected else (pairs - expected) / (most - expected)


def _support(found: list[_Partition], agreement: Array, path: PenaltyPath) -> Array:
    """How far the resolutions that can tell agree with each partition."""
    cells = np.array([each.n_cells for each in found])
    clusters = np.array([each.n_clusters for each in found])
    n_resolutions = len(found) - (int(path.n_clusters[path.chosen]) > 1)
    log_K = np.log(cells[:n_resolutions])
    ends = np.concatenate([[log_K[0] - 0.35], log_K, [log_K[-1] + 0.35]])
    lengths = np.zeros(len(found))
    lengths[:n_resolutions] = np.minimum((ends[2:] - ends[:-2]) / 2.0, _LENGTH)
    out = np.zeros(len(found))
    for i, each in enumerate(found):
        judges = cells >= _FINER * each.n_clusters
        judges[i] = True
        agreed = lengths * agreement[i] ** _POWER
        out[i] = agreed[judges].sum() / (lengths[judges].sum() + _NOTHING_SEEN)
    at = np.searchsorted(path.n_clusters, clusters)
    at = np.minimum(at, len(path.n_clusters) - 1)
    is_round = np.array([each.round for each in found]) & (clusters > 1)
    is_round &= path.n_clusters[at] == clusters
    plateau = np.where(is_round, path.log_length[at], 0.0)
    out += _PER_PLATEAU * np.where(np.isfinite(plateau), plateau, 0.0)
    out += _BY_BIC * (is_round & (clusters == path.by_bic))
    return out


def _choice(
    path: PenaltyPath,
    found: list[_Partition],
    agreement: Array,
    most: float,
    any_shape: bool,
    scaling: Scaling,
) -> Choice:
    support = _support(found, agreement, path)
    clusters = np.array([each.n_clusters for each in found])
    allowed = np.array(
        [any_shape or each.round or each.n_clusters == 1 for each in found]
    )
    allowed &= clusters <= most
    ranked = np.where(allowed, support, -1.0)
    best = int(np.argmax(ranked))
    plateau = len(found) - 1  # that of the path, where it has more than one cluster
    doubted = False
    if clusters[best] == 1 and path.n_clusters[path.chosen] > 1:
        long = path.log_length[path.chosen] >= _LONG
        doubted = True
        if long and support[best] < _SURELY_ONE and allowed[plateau]:
            best = plateau
    rivals = np.flatnonzero(allowed & (agreement[best] < _DIFFER))
    rivals = rivals[np.argsort(-support[rivals], kind="stable")]
    ahead = support[best] - max(support[rivals], default=0.0)
    clear = not doubted and support[best] >= _CLEAR and ahead >= _AHEAD
    others = list(dict.fromkeys(clusters[rivals].tolist()))
    path = path.at(int(clusters[best]))
    path = replace(
        path, runners_up=np.array(others[:3], np.int64), is_clear=bool(clear)
    )
    chosen = found[best]
    cells = None if chosen.round else scaling.inverse_transform(chosen.centers)
    if chosen.n_clusters == 1:
        cells = None
    return Choice(path, chosen.n_clusters, cells)
