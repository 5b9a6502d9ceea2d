"""Clusters of any shape: cells of a fine quantisation, joined where no valley is.

A cell is a cluster of k-means that is small for what is looked for. Two cells touch
where rows of one have the other as their second nearest; whether rows lead from one to
the other without a valley is seen on the line between their centres. What is needed of
the rows are sums, by one more pass.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from kplus.core.job import Job, Sample
from kplus.core.runs import sums_of
from kplus.core.types import Array, Block, IntArray
from kplus.dp_means.kernels_cells import (
    count_between,
    spread_along,
    sum_cells,
    two_nearest,
)
from kplus.dp_means.params import Scaling
from kplus.dp_means.search import Fitted, JoinedCells, by_number, scaled
from kplus.tree.borders import Axes, Borders
from kplus.tree.cluster_tree import Bridges, ClusterTree, grow_tree

__all__ = [
    "Cells",
    "TouchingCells",
    "fit_cells",
    "joined",
    "tree_of_cells",
    "tree_of_rows",
]

_ROWS_EACH = 40  # rows of a cell ...
_MOST_CELLS = 500  # ... where there are no more cells than that
_PER_CLUSTER = 4  # cells for each cluster that is asked for, at least
_SAMPLE_ROWS = 50_000  # that say which cells touch, and how wide they are
_TILE = 1024  # rows whose distances to all cells are in memory at a time
_TOL = 1e-3  # of the quantisation
_DEPTH = 0.4  # nats by which the cells that connect two clusters may be thinner
_FEWEST_ROWS = 5.0  # of a cluster
_LEAST_VARIANCE = 1e-3  # of a cell, as a share of the mean


def number_of_cells(cells: Any, n_clusters: int | None, job: Job) -> int:
    """How many cells a table is cut into, if that is left open."""
    if cells != "auto":
        return int(cells)
    wanted = min(_as_many_rows(job) // _ROWS_EACH, _MOST_CELLS)
    return min(max(wanted, _PER_CLUSTER * (n_clusters or 1)), job.source.n_rows)


def _as_many_rows(job: Job) -> int:
    """A row that counts two is two rows; those that count less than one are one."""
    if job.weights is None:
        return job.source.n_rows
    return int(max(np.sum(job.weights), np.count_nonzero(job.weights)))


@dataclass(frozen=True)
class Cells:
    """Centres in scaled units, counts, and variances by column.

    A cell shares in a row as a spherical Gaussian would.
    """

    scaling: Scaling
    centers: Array
    counts: Array
    variances: Array

    @classmethod
    def of(cls, fitted: Fitted) -> "Cells":
        D, scaling = fitted.centers.shape[1], fitted.scaling
        errors = fitted.errors * scaling.inv * scaling.inv
        variances = errors / np.maximum(fitted.counts * D, 1e-300)
        least = _LEAST_VARIANCE * float(errors.sum() / (D * fitted.counts.sum()))
        return cls(
            scaling,
            scaling.transform(fitted.centers),
            fitted.counts,
            np.maximum(variances, max(least, 1e-300)),
        )

    @classmethod
    def around(
        cls, Y: Array, weights: Array, centers: Array
    ) -> tuple["Cells", IntArray]:
        """Cells of rows in memory, in units that are scaled; and which each is in."""
        D, plain = Y.shape[1], Scaling(np.zeros(Y.shape[1]), 1.0)
        ones = np.ones(len(centers))
        own = cls(plain, centers, ones, ones).nearest_one(Y)
        filled = np.bincount(own, weights, len(centers)) > 0.0
        if not filled.all():
            return cls.around(Y, weights, centers[filled])
        counts, errors, means = ones, np.empty(len(ones)), np.empty_like(centers)
        sum_cells(Y, weights, own, counts, means, errors)
        least = _LEAST_VARIANCE * float(errors.sum() / (D * counts.sum()))
        variances = np.maximum(errors / (counts * D), max(least, 1e-300))
        return cls(plain, means, counts, variances), own

    @property
    def levels(self) -> Array:
        """Log of how densely rows lie in a cell, but for a constant."""
        D = self.centers.shape[1]
        out: Array = np.log(np.maximum(self.counts, 1e-300))
        out -= 0.5 * D * np.log(self.variances)
        return out

    def nearest_one(self, Y: Array) -> IntArray:
        """The nearest cell of each row."""
        half = 0.5 * np.sum(self.centers**2, axis=1)
        out = np.empty(len(Y), np.int64)
        for start in range(0, len(Y), _TILE):
            part = slice(start, start + _TILE)
            out[part] = np.argmin(half - Y[part] @ self.centers.T, axis=1)
        return out

    def nearest(self, Y: Array) -> tuple[IntArray, Array]:
        """The two nearest cells of each row, and their squared distances, (n, 2)."""
        cells, distances = np.empty((len(Y), 2), np.intp), np.empty((len(Y), 2))
        half = 0.5 * np.sum(self.centers**2, axis=1)
        for start in range(0, len(Y), _TILE):
            part = slice(start, start + _TILE)
            two_nearest(half - Y[part] @ self.centers.T, cells[part])
        for which in (0, 1):
            apart = Y - self.centers[cells[:, which]]
            distances[:, which] = np.einsum("ij,ij->i", apart, apart)
        return cells, distances

    def shares_of_second(self, cells: IntArray, distances: Array) -> Array:
        """The share of the second nearest cell in each row."""
        scores = self.levels[cells] - 0.5 * distances / self.variances[cells]
        out: Array = expit(scores[:, 1] - scores[:, 0])
        return out


@dataclass(frozen=True)
class TouchingCells:
    """A model of one pass: what lies between cells that touch.

    `directions` are unit vectors from centre to centre, (n_pairs, D).
    """

    axes: Axes
    directions: Array

    @classmethod
    def of(
        cls,
        cells: Cells,
        Y: Array,
        weights: Array,
        nearest: IntArray | None = None,
    ) -> "TouchingCells":
        """Cells that touch in these rows, with the line between their centres."""
        if nearest is None:
            nearest, _ = cells.nearest(Y)
        K = len(cells.counts)
        low, high = nearest.min(axis=1), nearest.max(axis=1)
        met = np.bincount(low * K + high, minlength=K * K) > 0
        a, b = np.divmod(np.flatnonzero(met), K)
        a, b = a[a < b], b[a < b]
        pairs = np.column_stack([a, b])
        lines = cells.centers[b] - cells.centers[a]
        lines /= np.maximum(np.linalg.norm(lines, axis=1, keepdims=True), 1e-300)
        centers = np.einsum("pij,pj->pi", cells.centers[pairs], lines)
        spreads = np.sqrt(cells.variances)[pairs]
        own = np.ascontiguousarray(nearest[:, 0])
        starts, ends, side = _ends(pairs, K)
        found = np.empty(len(ends))
        spread_along(Y, weights, own, starts, ends, lines, centers[ends, side], found)
        many = np.bincount(own, weights, K)[pairs[ends, side]] >= _FEWEST_ROWS
        found = np.maximum(np.sqrt(found), 1e-300)
        spreads[ends[many], side[many]] = found[many]
        return cls(Axes.spanning(pairs, centers, spreads), lines)

    def summarize(
        self, cells: Cells, block: Block, local: Any
    ) -> tuple[Borders, Array]:
        Y = cells.scaling.transform(block.read().astype(np.float64))
        weights = np.ones(len(Y)) if block.weights is None else block.weights
        return self.borders(cells, Y, weights, *cells.nearest(Y)), np.empty(0)

    def borders(
        self,
        cells: Cells,
        Y: Array,
        weights: Array,
        nearest: IntArray,
        distances: Array,
    ) -> Borders:
        """Sums over rows of which the two nearest cells are known."""
        share, (own, other) = cells.shares_of_second(nearest, distances), nearest.T
        K = len(cells.counts)
        out = Borders.zeros(K, len(self.axes.pairs))
        for cell, part in ((own, 1.0 - share), (other, share)):
            added = np.bincount(cell * K + own, part * weights, K * K)
            out.overlap += added.reshape(K, K)
        starts, ends, _ = _ends(self.axes.pairs, K)
        count_between(
            Y, weights, np.ascontiguousarray(own), starts, ends, self.directions,
            self.axes.low, self.axes.high, out.counts,
        )  # fmt: skip
        return out


def _ends(pairs: IntArray, K: int) -> tuple[IntArray, IntArray, IntArray]:
    """Which ends of pairs each cell is, by cells: where they start, pairs and sides."""
    cells = pairs.T.ravel()
    order = np.argsort(cells, kind="stable")
    side, of = np.divmod(order, max(len(pairs), 1))
    return np.searchsorted(cells[order], np.arange(K + 1)), of, side


def fit_cells(
    job: Job,
    random_start: bool = False,
    *,
    cells: Any,
    n_clusters: int | None,
    start: Array | None = None,
) -> Fitted:
    """A fine quantisation of the rows, and its cells joined into clusters."""
    sample = job.sample(_SAMPLE_ROWS)
    n_cells = number_of_cells(cells, n_clusters, job)
    n_cells = min(n_cells, len(np.unique(sample.rows, axis=0)))
    if start is not None and len(start) != n_cells:
        start = None
    # Where the borders of cells lie exactly does not matter.
    rough = replace(job, tol=max(job.tol, _TOL))
    fitted = by_number(rough, random_start, n_clusters=n_cells, start=start)
    return joined(fitted, tree_of_cells(job, fitted, sample), n_clusters)


def tree_of_cells(job: Job, fitted: Fitted, sample: Sample) -> ClusterTree:
    """The tree of a fit's cells, by another pass over the rows."""
    cells = Cells.of(fitted)
    rows = scaled(sample, cells.scaling).rows
    model = TouchingCells.of(cells, rows, sample.weight())
    borders = sums_of(replace(job, callback=None, journal=None), model, cells)
    return _tree(cells, model, borders)


def tree_of_rows(cells: Cells, Y: Array, weights: Array) -> ClusterTree:
    """The tree of the cells of some rows in memory, in scaled units."""
    nearest, distances = cells.nearest(Y)
    model = TouchingCells.of(cells, Y, weights, nearest)
    return _tree(cells, model, model.borders(cells, Y, weights, nearest, distances))


def _tree(cells: Cells, model: TouchingCells, borders: Borders) -> ClusterTree:
    apart = cells.centers[:, None] - cells.centers
    distances = np.sum(apart**2, axis=2) / np.mean(cells.variances)
    # Cells at the margin are thin wherever they lie: one dense way is enough.
    bridges = Bridges(_evened(cells.levels, model.axes, borders), _DEPTH, 0.0)
    return grow_tree(borders, model.axes, distances, bridges, _FEWEST_ROWS)


def _evened(levels: Array, axes: Axes, borders: Borders) -> Array:
    """Levels in the mean with those of the cells that touch: single ones are unsure."""
    a, b = axes.pairs.T
    shared = np.zeros(borders.overlap.shape)
    shared[a, b] = shared[b, a] = (borders.overlap + borders.overlap.T)[a, b]
    total = shared.sum(axis=1)
    around = np.divide(shared @ levels, total, levels.copy(), where=total > 0.0)
    out: Array = 0.5 * (levels + around)
    return out


def joined(fitted: Fitted, tree: ClusterTree, n_clusters: int | None) -> Fitted:
    """The clusters of a quantisation: sums of their cells, means for centres."""
    if n_clusters is not None and n_clusters > tree.n_leaves:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {tree.n_leaves} cells that the "
            f"rows fill; ask for fewer clusters."
        )
    tree = replace(tree, sizes=fitted.counts)  # not shared: the largest cluster first
    cluster = tree.cut(n_clusters)
    K = int(cluster.max()) + 1
    member = (cluster == np.arange(K)[:, None]).astype(np.float64)
    counts, errors = member @ fitted.counts, member @ fitted.errors
    means = (member * fitted.counts) @ fitted.means / counts[:, None]
    return replace(
        fitted, centers=means, means=means, labels=cluster[fitted.labels],
        counts=counts, errors=errors,
        cells=JoinedCells(fitted.centers, fitted.labels, cluster, tree),
    )  # fmt: skip
