"""What clusters say of missing values, given those observed in the same row.

A feature that counts in a cluster has the distribution of its rows there, any other
that of the whole table; features are independent inside a cluster. Rows belong to
clusters by their scores, which are log-likelihoods up to a constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from kplus.core.errors import NotFiniteError
from kplus.core.types import Array, IntArray
from kplus.craft.kernels_rows import score_rows
from kplus.craft.layout import Layout
from kplus.craft.model import Clusters, ClusterSums, CraftModel
from kplus.craft.paper.algorithm import PaperFit, row_costs

__all__ = ["CraftFiller"]


@dataclass(frozen=True)
class CraftFiller:
    """See `kplus.base.imputation.Filler`."""

    model: CraftModel
    clusters: Clusters
    sums: ClusterSums
    paper: PaperFit | None = None

    @classmethod
    def of(cls, craft: Any) -> Self:
        """From a fitted estimator."""
        return cls(craft._model, craft._clusters, craft._sums, craft._paper)

    def check(self, X: Array) -> None:
        if not np.all(np.isfinite(self.model.layout.encode(X).numbers)):
            raise NotFiniteError("A row")

    def _shares(self, X: Array) -> Array:
        """Of each cluster in each row; all or nothing where costs are no likelihoods"""
        if self.paper is not None:
            costs = row_costs(np.ascontiguousarray(X, np.float64), self.paper)
            nearest: Array = np.eye(self.sums.K)[np.argmin(costs, axis=1)]
            return nearest
        rows = self.model.layout.encode(X)
        scores = np.empty((len(X), self.sums.K))
        tables, shares = self.clusters.tables, self.clusters.shares
        score_rows(rows.numbers, rows.codes, tables, shares, scores)
        if not np.all(np.isfinite(scores)):
            raise NotFiniteError("A row")
        return np.asarray(softmax(scores, axis=1))

    # ----------------------------------------------------------------- clusters

    @cached_property
    def _weights(self) -> Array:
        """How far each column has a distribution of its own in a cluster, (K, D)."""
        if self.paper is not None:
            return self.paper.chosen.astype(np.float64)
        sharing, chosen = self.model.sharing, self.clusters.chosen.astype(np.float64)
        weights = (1.0 - sharing) * chosen + sharing * chosen.mean(axis=0)
        return self.model.layout.by_column(weights)

    @cached_property
    def _numbers(self) -> tuple[Array, Array]:
        """Means and standard deviations of plain numbers, of clusters and of all rows.

        In the units of the layout, (K + 1, P); those of all rows last.
        """
        P, a = self.model.layout.P, self.model.smoothing
        sums = np.vstack([self.sums.sums, self.sums.sums.sum(axis=0)])
        n, total, squares = sums[:, :P], sums[:, P : 2 * P], sums[:, 2 * P : 3 * P]
        some = np.where(n > 0.0, n, 1.0)
        means = total / some
        spread = np.maximum(squares - means * total, 0.0)
        whole = spread[-1] / some[-1]
        means = np.where(n > 0.0, means, means[-1])
        return means, np.sqrt((spread + a * whole) / (n + a))

    def _probabilities(self, q: int) -> Array:
        """Of the categories of a column in each cluster, (K, L)."""
        layout, a = self.model.layout, self.model.smoothing
        counts = self.sums.sums[:, layout.places(q)]
        whole = counts.sum(axis=0) / max(float(counts.sum()), np.finfo(float).tiny)
        own = (counts + a * whole) / (counts.sum(axis=1, keepdims=True) + a)
        w = self._weights[:, layout.categories[q], None]
        out: Array = w * own + (1.0 - w) * whole
        return out

    # --------------------------------------------------------------------- rows

    def expected(self, X: Array) -> Array:
        """Means of numbers; the likeliest categories, ties to the lower code."""
        layout, shares, out = self.model.layout, self._shares(X), X.astype(np.float64)
        means, _ = self._numbers
        for p in _plain(layout):
            d = layout.numbers[p]
            w, gaps = self._weights[:, d], np.isnan(X[:, d])
            z = shares[gaps] @ (w * means[:-1, p] + (1.0 - w) * means[-1, p])
            out[gaps, d] = layout.origins[p] + layout.scales[p] * z
        for q in _coded(layout):
            d = layout.categories[q]
            gaps = np.isnan(X[:, d])
            out[gaps, d] = np.argmax(shares[gaps] @ self._probabilities(q), axis=1)
        return out

    def draws(self, X: Array, n: int, rng: np.random.Generator) -> Sequence[Array]:
        """A cluster first, then each missing value, a number from a Gaussian."""
        shares = self._shares(X)
        return [self._drawn(X, _pick(shares, rng), rng) for _ in range(n)]

    def _drawn(self, X: Array, cluster: IntArray, rng: np.random.Generator) -> Array:
        layout, out = self.model.layout, X.astype(np.float64)
        means, deviations = self._numbers
        for p in _plain(layout):
            d = layout.numbers[p]
            gaps = np.flatnonzero(np.isnan(X[:, d]))
            own = rng.random(len(gaps)) < self._weights[cluster[gaps], d]
            k = np.where(own, cluster[gaps], len(means) - 1)
            z = means[k, p] + deviations[k, p] * rng.standard_normal(len(gaps))
            out[gaps, d] = layout.origins[p] + layout.scales[p] * z
        for q in _coded(layout):
            d = layout.categories[q]
            gaps = np.flatnonzero(np.isnan(X[:, d]))
            out[gaps, d] = _pick(self._probabilities(q)[cluster[gaps]], rng)
        return out


def _plain(layout: Layout) -> IntArray:
    """Numbers in the units of the data, which come last where others are scored."""
    n_columns = sum(levels is None for levels in layout.levels)
    return np.arange(layout.P - n_columns, layout.P)


def _coded(layout: Layout) -> list[int]:
    """Columns of categories, without numbers that were cut."""
    return [q for q, d in enumerate(layout.categories) if layout.levels[d] is not None]


def _pick(shares: Array, rng: np.random.Generator) -> IntArray:
    """One of each line of shares; the last takes the rest."""
    steps = np.cumsum(shares, axis=1)[:, :-1]
    out: IntArray = (rng.random((len(shares), 1)) >= steps).sum(axis=1)
    return out
