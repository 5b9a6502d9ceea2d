"""From the components of a fit to clusters: one more pass over the rows.

Components are what the search finds: inside of them columns are independent. Two that
differ in numbers only, and have no valley between them, are pieces of one cluster.
Between categories there is no order, and no place where a valley could be: components
that differ in these stay apart.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from kplus.base.checks import check_shapes
from kplus.core.job import Job, draw
from kplus.core.runs import sums_of
from kplus.core.types import Array, Block, IntArray
from kplus.craft.axes import PairAxes, least_steps, n_numbers
from kplus.craft.kernels_rows import score_rows
from kplus.craft.layout import Layout, Rows, sample_size
from kplus.craft.model import Clusters, ClusterSums, CraftModel
from kplus.engine.blas import SINGLE_THREAD
from kplus.tree.borders import N_BINS, Borders
from kplus.tree.cluster_tree import Bridges, ClusterTree, grow_tree

__all__ = [
    "Between",
    "BorderModel",
    "borders_of",
    "look_between",
    "same_categories",
    "tree_of",
]

_SAMPLE_ROWS = 20_000  # that say where the axes lie
_LEAST_OVERLAP = 0.004  # of two components that are looked at
_NEIGHBOURS = 3  # that are looked at with less overlap than that
_TRACE = 3e-5  # of overlap that these have: slices of one group have more
_SPREAD = 8  # parts in which a row of rounded values is counted
_NARROW = 0.25  # of a bin: rows that are spread less are counted at one place
_FEWEST_ROWS = 5.0  # of a cluster, where there are no categories
_FEWEST_SHOWN = 20.0  # in which a valley would show, where there are categories
_DEPTH = 0.25  # nats per dimension by which what connects two clusters may be thinner
_SHARE = 0.65  # of a border that must not be thinner


@dataclass(frozen=True)
class BorderModel:
    """Sums, over rows, of what lies between components."""

    model: CraftModel
    along: PairAxes

    def summarize(
        self, params: Clusters, block: Block, local: Any
    ) -> tuple[Borders, Array]:
        along, axes, K = self.along, self.along.axes, params.K
        rows = self.model.layout.encode(block.read(), block.weights)
        labels, shares = _shares(params, rows)
        out = Borders.zeros(K, len(axes.pairs))
        out.overlap += _overlap(labels, shares, rows.weights)
        Y = along.numbers(self.model.layout, rows, labels)
        widths = along.widths
        wide = np.any(widths > _NARROW * (axes.high - axes.low) / N_BINS)
        places = (np.arange(_SPREAD) + 0.5) / _SPREAD - 0.5 if wide else np.zeros(1)
        part = rows.weights / len(places)

        def values(some: IntArray, of: IntArray, shift: float) -> Array:
            on: Array = Y[some] @ along.coefficients[of].T + shift * widths[of]
            return on

        for place in places:
            out.count(axes, labels, part, partial(values, shift=float(place)))
        return out, np.empty(0)


def _shares(params: Clusters, rows: Rows) -> tuple[IntArray, Array]:
    """The component of each row, and the share of each in it: exp(score), normalised.

    The score is the logarithm of share and likelihood, up to the row's own.
    """
    scores = np.empty((len(rows), params.K))
    score_rows(rows.numbers, rows.codes, params.tables, params.shares, scores)
    return np.argmax(scores, axis=1), softmax(scores, axis=1)


def _overlap(labels: IntArray, shares: Array, weights: Array) -> Array:
    """Entry (i, j): the share of i in the rows of j, summed."""
    member = np.equal.outer(labels, np.arange(shares.shape[1])).astype(np.float64)
    out: Array = (shares * weights[:, None]).T @ member
    return out


@dataclass
class Between:
    """What the rows say of pairs of components; sums add as rows come."""

    along: PairAxes
    borders: Borders

    def to_state(self) -> dict[str, Any]:
        """Arrays for model files."""
        sums = {"overlap": self.borders.overlap, "counts": self.borders.counts}
        return {f"between_{k}": v for k, v in (self.along.to_state() | sums).items()}

    @classmethod
    def from_state(cls, kept: dict[str, Any], K: int, S: int) -> "Between":
        kept = {name.removeprefix("between_"): value for name, value in kept.items()}
        along = PairAxes.from_state(kept, K, S)
        shapes = {"overlap": (K, K), "counts": (len(along.axes.pairs), N_BINS)}
        check_shapes({name: (kept[name], shape) for name, shape in shapes.items()})
        return cls(along, Borders(kept["overlap"], kept["counts"]))


def look_between(
    job: Job, model: CraftModel, clusters: Clusters, sums: ClusterSums
) -> Between | None:
    """Axes by a sample, then one pass over all rows; None: there is nothing to see."""
    layout = model.layout
    if sums.K < 2 or not n_numbers(layout):
        return None
    alike = same_categories(model, sums)
    if not alike.any():
        return None
    size = sample_size(_SAMPLE_ROWS, job.source.n_features)
    with SINGLE_THREAD:
        sample = draw(job.source, job.weights, size, job.rng)
        X: Array = np.ascontiguousarray(sample.rows, dtype=np.float64)
        rows = layout.encode(X, sample.weight())
        labels, _ = _shares(clusters, rows)
        blurred = model.of(_with_rounding(layout, sums, rows))
        overlap = _overlap(*_shares(blurred, rows), rows.weights)
        pairs = _neighbours(clusters, sums, alike, overlap)
        along = PairAxes.none(layout, sums.K)
        if len(pairs):
            along = PairAxes.of(layout, sums, rows, labels, pairs)
    return Between(along, borders_of(job, model, clusters, along))


def _with_rounding(layout: Layout, sums: ClusterSums, rows: Rows) -> ClusterSums:
    """Sums of values that stand for intervals: δ²/12 more variance for grades.

    Else components at neighbouring grades would never share a row. Grades are a few
    values at even steps, of which not nearly all rows have the same.
    """
    S, P, out = n_numbers(layout), layout.P, sums.copy()
    steps = least_steps(layout, rows)
    low, first, third, high = np.quantile(
        rows.numbers[:, P : P + S], [0.0, 0.25, 0.75, 1.0], axis=0
    )
    grades = (high - low < N_BINS * steps) & (third - first >= 0.5 * steps)
    rounding = np.where(grades, steps**2 / 12.0, 0.0)
    out.sums[:, 2 * P : 2 * P + S] += sums.sums[:, :S] * rounding
    return out


def borders_of(
    job: Job, model: CraftModel, clusters: Clusters, along: PairAxes
) -> Borders:
    """One pass over the rows of a job."""
    job = replace(job, callback=None, journal=None)
    borders: Borders = sums_of(job, BorderModel(model, along), clusters)
    return borders


def same_categories(model: CraftModel, sums: ClusterSums) -> NDArray[np.bool_]:
    """Which components differ in numbers only, (K, K).

    Two differ in a column of categories if one description for each is worth the cost
    of a further one: G_a + G_b − G_ab > ½ p log N. Where there are categories, a few
    rows may well be of their own kind, though too few to show a valley.
    """
    layout, K = model.layout, sums.K
    real = [layout.levels[column] is not None for column in layout.categories]
    features = layout.scored + np.flatnonzero(real)
    alike: NDArray[np.bool_] = ~np.eye(K, dtype=np.bool_)
    if not len(features):
        return alike
    alike[sums.counts < _FEWEST_SHOWN] = False
    penalties = model.penalties(sums.sums.sum(axis=0), float(sums.counts.sum()))
    costs, alone = penalties.costs[features], model.alone
    own = alone.clusters(sums.sums, sums.counts, penalties).gains[:, features]
    for k in range(K):
        both = alone.clusters(
            sums.sums + sums.sums[k], sums.counts + sums.counts[k], penalties
        )
        lost = own + own[k] - both.gains[:, features]
        alike[k] &= np.all(lost <= costs, axis=1)
    return alike & alike.T


def _neighbours(
    clusters: Clusters, sums: ClusterSums, alike: NDArray[np.bool_], overlap: Array
) -> IntArray:
    """Pairs that may belong together: those that overlap, and the nearest of each.

    Not those without a trace of overlap. In many columns two groups may lie side by
    side on one axis, by which no valley is to be seen, and still share no row: there
    every row is sure of its component. Between slices of one group some are not.
    """
    K, mass = sums.K, np.maximum(overlap.sum(axis=1), 1e-300)
    relative = np.sqrt(overlap * overlap.T / np.multiply.outer(mass, mass))
    far = np.where(alike, _distances(clusters, sums), np.inf)
    nearest = np.argsort(far, axis=1, kind="stable")[:, :_NEIGHBOURS]
    near = np.zeros((K, K), np.bool_)
    np.put_along_axis(near, nearest, True, axis=1)
    near = (near | near.T) & (relative >= _TRACE)
    chosen = alike & (near | (relative >= _LEAST_OVERLAP))
    return np.argwhere(np.triu(chosen, 1))


def _crossed(clusters: Clusters, sums: ClusterSums) -> Array:
    """Mean score of the rows of component i in component j, (K, K)."""
    out: Array = sums.sums @ clusters.tables / sums.counts[:, None] + clusters.shares
    return out


def _distances(clusters: Clusters, sums: ClusterSums) -> Array:
    """Nats by which components describe their rows better than another does, (K, K)."""
    crossed = _crossed(clusters, sums)
    loss = np.diagonal(crossed)[:, None] - crossed
    return np.maximum(loss + loss.T, 0.0)


def tree_of(
    model: CraftModel, clusters: Clusters, sums: ClusterSums, between: Between | None
) -> ClusterTree:
    """The tree of a fit's components.

    Where no two of them may be one, their overlap is that of their mean rows.
    """
    layout = model.layout
    if between is None:
        shares = softmax(_crossed(clusters, sums), axis=1)
        borders = Borders.zeros(sums.K, 0)
        borders.overlap += (shares * sums.counts[:, None]).T
        between = Between(PairAxes.none(layout, sums.K), borders)
    along = between.along
    levels = np.log(np.maximum(sums.counts, 1e-300)) - along.volumes
    # The more dimensions there are, the more levels differ.
    bridges = Bridges(levels, _DEPTH * along.dimensions, _SHARE)
    # Where there are categories, a few rows may well be of their own kind.
    fewest = _FEWEST_ROWS if all(n is None for n in layout.levels) else 0.0
    distances = _distances(clusters, sums)
    return grow_tree(between.borders, along.axes, distances, bridges, fewest)
