"""A tree of clusters: which components are joined first, and where to stop."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.tree.borders import Axes, Borders
from kplus.tree.valley import (
    gaussian_evidence,
    probability_smooth,
    valley_evidence,
)

__all__ = ["Bridges", "ClusterTree", "check_clusters", "grow_tree"]

_OVERLAPS = 0.002  # as a share of the rows of two components: enough to notice
_VOTE = 0.65  # probability of no valley, over their border, with which two are one
_MOST_ROWS = 500.0  # more would make valleys of what is shallow
_SMALL_SHARE = 0.05
_FEW_ROWS = 10.0  # too few to tell a valley: such components connect no others
_NO_OVERLAP = 1e-12
_CLEAR = 0.65  # clearness below which the cut might as well be another


@dataclass(frozen=True)
class ClusterTree:
    """A tree from the components of a mixture, or cells, to a single cluster.

    Attributes
    ----------
    children : int array of shape (n_leaves - 1, 2)
        The two groups that each step joins: leaves 0, 1, ..., n_leaves - 1, and
        n_leaves + t for what step t joined, as in `scipy.cluster.hierarchy.linkage`.
    heights : array of shape (n_leaves - 1,)
        Negative log of the overlap of the two groups, or that of an earlier step if
        it is larger; in a tree of classes, the nats per row that joining them costs.
    sizes : array of shape (n_leaves,)
        Rows, or summed weights, of the leaves.
    n_clusters : int
        Where the rows say to cut: no valley lies inside of a cluster.
    clearness : float
        From 0 to 1: the least probability with which the rows along a border agree
        with that cut. Below 0.65 more or fewer clusters are nearly as good.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import DPMixture
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 1500)
    >>> ring = 5 * np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.concatenate([ring, np.zeros((500, 2))]) + rng.normal(0, 0.3, (2000, 2))
    >>> tree = DPMixture(random_state=0).fit(X).cluster_tree_
    >>> tree.n_clusters
    2
    >>> sorted(set(tree.cut(3).tolist()))
    [0, 1, 2]
    """

    shapes: ClassVar[dict[str, str]] = {
        "children": "m c",
        "heights": "m",
        "sizes": "n",
    }

    children: IntArray
    heights: Array
    sizes: Array
    n_clusters: int
    clearness: float

    @property
    def n_leaves(self) -> int:
        return len(self.sizes)

    @property
    def is_clear(self) -> bool:
        """Whether the cut stands out: no other number is nearly as good."""
        return self.clearness >= _CLEAR

    def consistent(self) -> bool:
        """Whether every step joins two groups that exist, each once."""
        n, joined = self.n_leaves, self.children.ravel()
        return bool(
            n >= 1
            and self.children.shape == (n - 1, 2)
            and 1 <= self.n_clusters <= n
            and len(np.unique(joined)) == len(joined)
            and np.all(self.children >= 0)
            and np.all(self.children < np.arange(n, 2 * n - 1)[:, None])
        )

    def cut(self, n_clusters: int | None = None) -> IntArray:
        """The cluster of each leaf; clusters are numbered by falling size.

        Parameters
        ----------
        n_clusters : int, optional
            From 1 to `n_leaves`, met exactly; by default the number that the rows say.
        """
        n = self.n_leaves
        wanted = self.n_clusters if n_clusters is None else n_clusters
        if not 1 <= wanted <= n:
            raise ValueError(f"n_clusters must be from 1 to {n}, not {wanted}.")
        group = np.arange(n)
        for t in range(n - wanted):
            group[np.isin(group, self.children[t])] = n + t
        _, group = np.unique(group, return_inverse=True)
        size = np.bincount(group, self.sizes)
        first = np.array([np.argmax(group == g) for g in range(wanted)])
        rank = np.empty(wanted, np.int32)
        rank[np.lexsort((first, -size))] = np.arange(wanted)
        return rank[group]


@dataclass(frozen=True)
class Bridges:
    """What may connect two groups.

    Attributes
    ----------
    levels : array of shape (K,)
        Log of how densely the rows of each component lie.
    depth : float
        By how much a bridge may be thinner than the densest place of either group.
    share : float
        The share of a border that must be no thinner than that; 0: any of it.
    """

    levels: Array
    depth: float
    share: float


def check_clusters(
    name: str, cluster: IntArray, n_clusters: int, tree: ClusterTree | None
) -> None:
    """Refuse what a model file has of clusters if it does not fit together."""
    if not np.array_equal(np.unique(cluster), np.arange(n_clusters)):
        raise ValueError(f"{name} does not number n_clusters_ clusters.")
    if tree is not None and not (tree.n_leaves == len(cluster) and tree.consistent()):
        raise ValueError(f"cluster_tree_ is not a tree of what {name} is about.")


def grow_tree(
    borders: Borders,
    axes: Axes,
    distances: Array,
    bridges: Bridges,
    fewest: float = 0.0,
) -> ClusterTree:
    """Join components, as long as no valley is between, and then all the rest.

    Components of few rows come first: each goes to the one it overlaps most, and
    connects no others. Then groups by falling overlap, if most of their border is
    without a valley: there the number of clusters is right. From there on steps are
    those that cost least: the rows of the smaller group times the log of how little the
    two overlap.

    A border has a valley between two components if their histogram says so, or if it is
    much thinner than what lies on both sides: a wide component of scattered rows has no
    valley towards any dense one, but leads from the one down and up again to the other.

    Parameters
    ----------
    distances : (K, K)
        How far components are from each other; decides where steps cost the same, as
        for a group that overlaps with no other.
    bridges : Bridges
        How dense components are, and what is too thin to connect others.
    fewest : float
        A component of fewer rows, and of less than a twentieth of all, is no cluster:
        it goes to the nearest.
    """
    overlap = borders.overlap
    smooth = _smoothness(borders, axes)
    growing = _Growing(overlap, smooth, distances, bridges, fewest)
    growing.join_small()
    growing.join_smooth()
    n_clusters, clearness = len(growing.alive), growing.clearness()
    growing.join_rest()
    return ClusterTree(
        np.array(growing.children, np.int64).reshape(-1, 2),
        np.maximum.accumulate(np.array(growing.heights, np.float64)),
        growing.sizes,
        n_clusters,
        clearness,
    )


def _smoothness(borders: Borders, axes: Axes) -> Array:
    """Probability that two components have no valley between, (K, K).

    NaN where nothing is known.
    """
    overlap, sizes = borders.overlap, borders.overlap.sum(axis=1)
    K, (a, b) = len(overlap), axes.pairs.T
    total = np.maximum(borders.counts.sum(axis=1), 1.0)
    counts = borders.counts * np.minimum(1.0, _MOST_ROWS / total)[:, None]
    out = np.full((K, K), np.nan)
    out[a, b] = out[b, a] = probability_smooth(
        valley_evidence(counts, *axes.between()),
        gaussian_evidence(counts, axes, sizes[axes.pairs]),
        _relative(overlap, sizes)[a, b] >= _OVERLAPS,
    )
    return out


def _relative(overlap: Array, mass: Array) -> Array:
    """√(P_ij P_ji), P_ij the share of group i in the rows of group j; 0 with itself."""
    share = overlap / np.maximum(mass, 1e-300)[:, None]
    out: Array = np.sqrt(share * share.T)
    np.fill_diagonal(out, 0.0)
    return out


class _Growing:
    """Groups of components, of which two are joined at a time."""

    def __init__(
        self,
        overlap: Array,
        smooth: Array,
        distances: Array,
        bridges: Bridges,
        fewest: float,
    ) -> None:
        K = len(overlap)
        self.sizes = overlap.sum(axis=1)
        self.least = min(fewest, _SMALL_SHARE * float(self.sizes.sum()))
        self.mass = self.sizes.copy()
        self.overlap = overlap.copy()
        self.smooth = np.nan_to_num(smooth)
        # Between overlap and size: tiny overlaps count, too, where curves are thin.
        size = np.sqrt(np.multiply.outer(self.mass, self.mass))
        self.border = np.sqrt(_relative(overlap, self.mass)) * size
        self.border[np.isnan(smooth)] = 0.0
        self.distances = distances
        self.apart = distances * np.multiply.outer(self.mass, self.mass)
        self.lower = np.minimum.outer(bridges.levels, bridges.levels)
        self.peaks = np.array(bridges.levels, np.float64)
        self.bridges = bridges
        self.alive = np.arange(K)
        self.home = np.arange(K)
        self.names = np.arange(K)
        self.votes = np.zeros((K, K))
        self.children: list[tuple[int, int]] = []
        self.heights: list[float] = []
        self.least_vote = 1.0

    def join_small(self) -> None:
        """Let components of few rows go to a neighbour, and forget their overlaps.

        Those without any, or too few to be a cluster, go to where they have shares,
        else to the nearest.
        """
        start = _relative(self.overlap, self.mass)
        allowed = (self.smooth >= 0.5) & (start >= _OVERLAPS)
        empty = np.logical_not(self.overlap.any(axis=0))  # likeliest in no row
        empty |= self.sizes < self.least
        if empty.all():
            return
        for small in np.lexsort((self.sizes, ~empty)):
            if self.sizes[small] >= _FEW_ROWS and not empty[small]:
                break
            fits = allowed[small] & (self.sizes >= self.sizes[small])
            rank = start[small]
            if empty[small]:
                fits = ~empty
                rank = self.overlap[small] + 1.0 / (1.0 + self.distances[small])
            fits = fits & (self.home != small)
            if not fits.any():
                continue
            best = int(np.argmax(np.where(fits, rank, -1.0)))
            for table in (self.overlap, self.border):
                table[small] = table[:, small] = 0.0
            self._join(int(self.home[best]), int(small), float(start[small, best]))

    def join_smooth(self) -> None:
        """Join groups that overlap most and have no valley between."""
        for i in self.alive:
            self._count_votes(int(i))
        while len(self.alive) > 1:
            at = np.ix_(self.alive, self.alive)
            overlap, votes = (
                _relative(self.overlap[at], self.mass[self.alive]),
                self.votes[at],
            )
            fits = votes >= _VOTE
            if not fits.any():
                break
            i, j = np.unravel_index(
                np.argmax(np.where(fits, overlap, -1.0)), overlap.shape
            )
            self.least_vote = min(self.least_vote, float(votes[i, j]))
            first, second = int(self.alive[i]), int(self.alive[j])
            self.peaks[first] = max(self.peaks[first], self.peaks[second])
            self._join(first, second, float(overlap[i, j]))
            self._count_votes(first)

    def clearness(self) -> float:
        """The least probability, along a border, of the groups as they are."""
        against = self.votes[np.ix_(self.alive, self.alive)].max(initial=0.0)
        return float(min(self.least_vote, 1.0 - against))

    def join_rest(self) -> None:
        """Join what is cheapest until one group is left."""
        while len(self.alive) > 1:
            mass, at = self.mass[self.alive], np.ix_(self.alive, self.alive)
            overlap = _relative(self.overlap[at], mass)
            smaller = np.minimum.outer(mass, mass)
            far = self.apart[at] / np.maximum(np.multiply.outer(mass, mass), 1e-300)
            nats = -np.log(np.maximum(overlap, _NO_OVERLAP))
            cost = smaller * nats
            np.fill_diagonal(cost, np.inf)
            ties = cost <= cost.min() * (1.0 + 1e-12)
            i, j = np.unravel_index(np.argmin(np.where(ties, far, np.inf)), cost.shape)
            self._join(int(self.alive[i]), int(self.alive[j]), float(overlap[i, j]))

    def _count_votes(self, i: int) -> None:
        """The probability of no valley along group i's border with each other group.

        Where too little of a border is dense enough, only that counts.
        """
        inside, K = self.home == i, len(self.home)
        border, smooth = self.border[inside], self.smooth[inside]
        floor = np.minimum(self.peaks[i], self.peaks[self.home]) - self.bridges.depth
        dense = border * smooth * (self.lower[inside] >= floor)
        whole, for_one, solid = (
            np.bincount(self.home, part.sum(axis=0), K)
            for part in (border, border * smooth, dense)
        )
        enough = (solid > 0.0) & (solid >= self.bridges.share * whole)
        votes = np.where(enough, for_one, solid) / np.maximum(whole, 1e-300)
        votes[i] = 0.0
        self.votes[i] = self.votes[:, i] = votes

    def _join(self, i: int, j: int, overlap: float) -> None:
        """Join group j to group i."""
        for table in (self.overlap, self.apart):
            table[i] += table[j]
            table[:, i] += table[:, j]
            table[j] = table[:, j] = 0.0
        self.mass[i] += self.mass[j]
        first, second = sorted((int(self.names[i]), int(self.names[j])))
        self.children.append((first, second))
        self.heights.append(-float(np.log(max(overlap, _NO_OVERLAP))))
        self.names[i] = len(self.sizes) + len(self.children) - 1
        self.home[self.home == j] = i
        self.alive = self.alive[self.alive != j]
