"""What rows say of pairs of components: overlaps, and histograms between them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from kplus.core.group_sums import GroupSums
from kplus.core.types import Array, IntArray

__all__ = ["N_BINS", "Axes", "Borders"]

N_BINS = 24


@dataclass(frozen=True)
class Axes:
    """An axis for each pair of components that may belong together.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
        Components a < b.
    low, high : arrays of shape (n_pairs,)
        Where the histogram of a pair begins and ends.
    centers, spreads : arrays of shape (n_pairs, 2)
        Where the two components lie on the axis, and their standard deviations: a
        valley lies between the centres.
    """

    pairs: IntArray
    low: Array
    high: Array
    centers: Array
    spreads: Array

    @classmethod
    def spanning(cls, pairs: IntArray, centers: Array, spreads: Array) -> "Axes":
        """Two spreads beyond the centres, (n_pairs, 2) both."""
        return cls(
            pairs,
            np.min(centers - 2.0 * spreads, axis=1, initial=np.inf),
            np.max(centers + 2.0 * spreads, axis=1, initial=-np.inf),
            centers,
            spreads,
        )

    @cached_property
    def of_component(self) -> dict[int, IntArray]:
        """Which axes each component has a part in."""
        parts = np.unique(self.pairs)
        return {int(k): np.flatnonzero((self.pairs == k).any(axis=1)) for k in parts}

    def bins(self, of: IntArray, values: Array) -> IntArray:
        """The bin of each value, (n, len(of)), on the axes `of`; -1: on none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            place = (values - self.low[of]) / (self.high[of] - self.low[of])
            inside = (place >= 0.0) & (place < 1.0)
        return np.where(inside, np.where(inside, place, 0.0) * N_BINS, -1).astype(int)

    def between(self) -> tuple[IntArray, IntArray]:
        """First and last bin between the two centres."""
        with np.errstate(divide="ignore", invalid="ignore"):
            place = (self.centers - self.low[:, None]) / (self.high - self.low)[:, None]
        place = np.clip(np.nan_to_num(place), 0.0, 1.0) * N_BINS
        ends = np.sort(place, axis=1).astype(int)
        return ends[:, 0], ends[:, 1]


@dataclass
class Borders(GroupSums):
    """Sums over rows.

    Attributes
    ----------
    overlap : array of shape (K, K)
        Entry (i, j): the share of i in the rows that are likeliest in j, summed.
    counts : array of shape (n_pairs, N_BINS)
        Rows likeliest in one of a pair, by their place on its axis.
    """

    statistics = ("overlap", "counts")
    shapes: ClassVar[dict[str, str]] = {"overlap": "K K", "counts": "p b"}

    overlap: Array
    counts: Array

    @classmethod
    def zeros(cls, K: int, n_pairs: int) -> "Borders":
        return cls(np.zeros((K, K)), np.zeros((n_pairs, N_BINS)))

    def count(
        self,
        axes: Axes,
        labels: IntArray,
        weights: Array,
        values: Callable[[IntArray, IntArray], Array],
    ) -> None:
        """Add rows, each to the histograms of its likeliest component.

        ``values(rows, of)`` are the places of some rows on the axes `of`.
        """
        order = np.argsort(labels, kind="stable")
        ends = np.searchsorted(labels[order], np.arange(len(self.overlap) + 1))
        places: list[IntArray] = [np.empty(0, np.int64)]
        shares: list[Array] = [np.empty(0)]
        for k, of in axes.of_component.items():
            rows = order[ends[k] : ends[k + 1]]
            if len(rows):
                bins = axes.bins(of, values(rows, of))
                inside = bins >= 0
                places.append((of * N_BINS + bins)[inside])
                share = np.broadcast_to(weights[rows][:, None], bins.shape)
                shares.append(share[inside])
        added = np.bincount(
            np.concatenate(places), np.concatenate(shares), self.counts.size
        )
        self.counts += added.reshape(self.counts.shape)
