"""What the groups of a fit look like, column by column, beside the whole table.

A fit keeps the portrait of some thousand of its rows, so that `summary` and `describe`
need no data; `kplus.describe` makes one of any rows, all of them, block by block.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kplus.core.reading import read_all
from kplus.core.types import Array, IntArray
from kplus.data.blocks import ArrayBlocks
from kplus.data.categories import Coding
from kplus.data.wrapped import RowRange, ShiftedBlocks

if TYPE_CHECKING:
    from kplus.base.estimator import Table

__all__ = ["Belonging", "Portrait", "portray", "portray_fit"]

_MOST_ROWS = 10_000  # that a fit looks at
_ENOUGH = 100  # of a cluster; of rarer ones more rows are drawn
_MOST_BYTES = 16 * 2**20
_ODD_CLUSTER = 0.01  # share of the rows: a smaller cluster is odd ...
_MOST_ODD = 0.05  # ... unless there are many such
_DENSE = 2**20  # entries of members that need not be sparse
_PART_ROWS, _PART_BYTES = 2**16, 64 * 2**20  # that are looked at at a time


class Belonging(NamedTuple):
    """Which groups rows belong to.

    Attributes
    ----------
    members : array or sparse array of shape (K, n)
        How much a row counts in a group: 0 or 1.
    sureness : array or sparse array of shape (K, n)
        How clearly a member belongs there, 0 to 1.
    """

    members: Any
    sureness: Any

    @classmethod
    def of_labels(cls, labels: IntArray, K: int, sureness: Array) -> "Belonging":
        """Each row in one group; -1: in none."""
        inside = np.flatnonzero(labels >= 0)
        owners, shape = labels[inside], (K, len(labels))

        def spread(values: Array) -> Any:
            if K * len(labels) > _DENSE:
                return sp.csr_array((values, (owners, inside)), shape)
            out = np.zeros(shape)
            out[owners, inside] = values
            return out

        return cls(spread(np.ones(len(inside))), spread(sureness[inside]))

    def weighted(self, weights: Array) -> "Belonging":
        """The same of rows that count so much."""
        scale = sp.diags_array(weights)
        return Belonging(self.members @ scale, self.sureness @ scale)

    @classmethod
    def of_features(
        cls, Z: Array, X: Array, components: Array, offset: Any, least: float
    ) -> "Belonging":
        """Each row in all groups of which it has more than `least`.

        How surely it has a feature is by how much its squared error would rise without
        it: 1 - with/without, over the values that it has.
        """
        seen = ~np.isnan(X)
        left = np.where(seen, X - Z @ components - offset, 0.0)
        error = np.square(left).sum(axis=1, keepdims=True)
        rise = 2.0 * Z * (left @ components.T)
        rise += np.square(Z) * (seen.astype(float) @ np.square(components).T)
        without = np.maximum(error + rise, np.finfo(float).tiny)
        sureness = np.clip(rise / without, 0.0, 1.0)
        has = np.greater(Z, least)
        return cls(has.T.astype(float), (sureness * has).T)


@dataclass(frozen=True)
class Portrait:
    """Groups of rows, column by column; the last line of each array is the whole table.

    Clusters of a few odd rows do not count there: beside one row of totals all others
    would seem to be narrow, and nothing else.

    Attributes
    ----------
    sizes : (K,)
        Rows of each group, or their summed weights.
    n_rows : float
        The same of all rows, those in no group as well.
    sureness : (K,)
        How clearly the rows of a group belong there, 0 to 1; NaN without rows.
    numbers : (P,)
        Which columns are numbers.
    seen, means, deviations : (K + 1, P)
        Rows that have a value there, and mean and standard deviation of these.
    coded : tuple of int
        Which columns are categories ...
    shares : tuple of (K + 1, n_categories)
        ... and how the rows that have a value fall on these.
    """

    sizes: Array
    n_rows: float
    sureness: Array
    numbers: IntArray
    seen: Array
    means: Array
    deviations: Array
    coded: tuple[int, ...]
    shares: tuple[Array, ...]

    @property
    def K(self) -> int:
        return len(self.sizes)

    def with_groups(self, groups: IntArray, other: "Portrait") -> "Portrait":
        """The same with some groups as another portrait has them."""

        def mixed(mine: Array, its: Array) -> Array:
            out = mine.copy()
            out[groups] = its[groups]
            return out

        return replace(
            self,
            sureness=mixed(self.sureness, other.sureness),
            seen=mixed(self.seen, other.seen),
            means=mixed(self.means, other.means),
            deviations=mixed(self.deviations, other.deviations),
            shares=tuple(map(mixed, self.shares, other.shares)),
        )

    def in_units(self, mean: Array, scale: Array) -> "Portrait":
        """That of columns which lost their `mean` and were divided by `scale`."""
        mean, scale = mean[self.numbers], scale[self.numbers]
        return replace(
            self, means=self.means * scale + mean, deviations=self.deviations * scale
        )


class _Sums:
    """The sums of a portrait, taken about the first row that is whole enough."""

    def __init__(self, K: int, n_columns: int, coding: Coding | None) -> None:
        known = (None,) * n_columns if coding is None else coding.categories
        levels = [None if names is None else len(names) for names in known]
        self.coded = tuple(j for j, n in enumerate(levels) if n is not None)
        self.numbers = np.array([j for j, n in enumerate(levels) if n is None], int)
        self.rows, self.sureness = np.zeros(K + 1), np.zeros(K)
        self.origin: Array | None = None
        self.seen, self.first, self.second = np.zeros((3, K + 1, len(self.numbers)))
        self.counts = tuple(np.zeros((K + 1, levels[j] or 0)) for j in self.coded)

    def add(self, X: Array, belonging: Belonging, weights: Array | None) -> None:
        if weights is None:
            weights = np.ones(len(X))
        else:
            belonging = belonging.weighted(weights)
        members = _Members(belonging.members, weights)
        self.rows += members.sums(np.ones((len(X), 1)))[:, 0]
        self.sureness += np.asarray(belonging.sureness.sum(axis=1))
        self._add_numbers(X[:, self.numbers].astype(np.float64), members)
        for counts, j in zip(self.counts, self.coded, strict=True):
            some = np.flatnonzero(~np.isnan(X[:, j]))
            at = some, X[some, j].astype(np.int64)
            codes = np.zeros((len(X), counts.shape[1]))
            codes[at] = 1.0
            counts += members.sums(codes)

    def _add_numbers(self, Y: Array, members: "_Members") -> None:
        seen = ~np.isnan(Y)
        if self.origin is None:
            n = np.maximum(seen.sum(axis=0), 1)
            self.origin = np.where(seen, Y, 0.0).sum(axis=0) / n
        Y = np.where(seen, Y - self.origin, 0.0)
        some = np.ones((len(Y), 1)) if seen.all() else seen.astype(np.float64)
        self.seen += members.sums(some)
        self.first += members.sums(Y)
        self.second += members.sums(np.square(Y))

    def without_odd_rows(self) -> None:
        """Count clusters of few rows no longer in the whole table."""
        sizes, n = self.rows[:-1], self.rows[-1]
        odd = (sizes > 0.0) & (sizes < _ODD_CLUSTER * n)
        if not odd.any() or sizes[odd].sum() > _MOST_ODD * n:
            return
        for sums in (self.seen, self.first, self.second, *self.counts):
            sums[-1] = sums[:-1][~odd].sum(axis=0)

    def portrait(self) -> Portrait:
        with np.errstate(invalid="ignore", divide="ignore"):
            means = self.first / self.seen
            variances = self.second / self.seen - means**2
            shares = tuple(c / c.sum(axis=1, keepdims=True) for c in self.counts)
            sureness = self.sureness / self.rows[:-1]
        origin = 0.0 if self.origin is None else self.origin
        return Portrait(
            sizes=self.rows[:-1],
            n_rows=float(self.rows[-1]),
            sureness=sureness,
            numbers=self.numbers,
            seen=self.seen,
            means=means + origin,
            deviations=np.sqrt(np.maximum(variances, 0.0)),
            coded=self.coded,
            shares=shares,
        )


class _Members(NamedTuple):
    """How much rows count, in each group and in the whole table."""

    of_groups: Any
    of_all: Array

    def sums(self, values: Array) -> Array:
        """Values added up by group, and of all rows in the last line."""
        return np.vstack([self.of_groups @ values, self.of_all @ values])


def portray(
    model: Any,
    X: Any,
    labels: IntArray | None = None,
    weights: Array | None = None,
) -> Portrait:
    """The portrait of any rows, by the groups that a fitted model puts them in.

    `labels` say which these are, if that is known; `weights` how much rows count.
    """
    table = model._open(X, reset=False)
    source: Any = table.source
    if table.offset is not None:  # back in the units of the table
        source = ShiftedBlocks(source, -table.offset)
    sums = _Sums(model._n_groups, source.n_features, table.coding)
    for start, part in _parts(source, table.coding):
        here = slice(start, start + part.n_rows)
        known = None if labels is None else labels[here]
        counted = None if weights is None else weights[here]
        sums.add(read_all(part), model._belonging(part, known), counted)
    if model._group_noun == "cluster":
        sums.without_odd_rows()
    return sums.portrait()


def portray_fit(model: Any, table: "Table", weights: Array | None) -> Portrait:
    """That of a fit: by some of its rows, but for the sizes, which are known.

    Of a cluster that few of these rows are in, more of its own are looked at.
    """
    source: Any = table.source
    most = max(1, min(_MOST_ROWS, _MOST_BYTES // (8 * source.n_features)))
    rows: IntArray = np.arange(source.n_rows)
    own, rng = rows[:0], np.random.default_rng(0)
    labels = getattr(model, "labels_", None)
    if len(rows) > most:
        rows = np.sort(rng.choice(source.n_rows, most, replace=False))
        if labels is not None:
            own = _of_rare_clusters(labels, rows, model._n_groups, most, rng)
    read = np.union1d(rows, own)
    taken = source.take(read)
    if table.offset is not None:
        taken = taken + table.offset

    def portrait(some: IntArray) -> Portrait:
        blocks: Any = ArrayBlocks(np.ascontiguousarray(taken[np.isin(read, some)]))
        blocks.coding = table.coding
        names = getattr(source, "feature_names", None)
        if names is not None:
            blocks.feature_names = names
        return portray(
            model,
            blocks,
            None if labels is None else labels[some],
            None if weights is None else weights[some],
        )

    found = portrait(rows)
    if labels is not None and len(own):
        found = found.with_groups(np.unique(labels[own]), portrait(own))
    sizes, n_rows = model._group_sizes(weights)
    return replace(found, sizes=sizes, n_rows=float(n_rows))


def _of_rare_clusters(
    labels: IntArray, rows: IntArray, K: int, most: int, rng: np.random.Generator
) -> IntArray:
    """Up to `_ENOUGH` rows of each cluster of which fewer are in `rows`."""
    here = np.bincount(labels[rows][labels[rows] >= 0], minlength=K)
    size = np.bincount(labels[labels >= 0], minlength=K)
    rare = np.flatnonzero(here < np.minimum(_ENOUGH, size))
    if not len(rare):
        return rare
    each = max(1, min(_ENOUGH, most // len(rare)))
    candidates = rng.permutation(np.flatnonzero(np.isin(labels, rare)))
    owners = labels[candidates]
    order = np.argsort(owners, kind="stable")
    first = np.searchsorted(owners[order], owners[order])
    return np.sort(candidates[order[np.arange(len(order)) - first < each]])


def _parts(source: Any, coding: Coding | None) -> Iterator[tuple[int, RowRange]]:
    """Whole blocks, as many as memory may hold of a table that is wide."""
    most = min(_PART_ROWS, _PART_BYTES // (8 * source.n_features))
    step = max(1, most // source.block_rows) * source.block_rows
    for start in range(0, source.n_rows, step):
        stop = min(start + step, source.n_rows)
        yield start, RowRange(source, start, stop, coding)
