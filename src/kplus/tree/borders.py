"""What rows say of pairs of components: overlaps, and histograms between them."""

from dataclasses import dataclass
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

    def count(self, axes: Axes, of: IntArray, values: Array, weights: Array) -> None:
        """Add rows of one component with their values on the axes `of`."""
        bins = axes.bins(of, values)
        inside = bins >= 0
        place = (of * N_BINS + bins)[inside]
        weight = np.broadcast_to(weights[:, None], bins.shape)[inside]
        added = np.bincount(place, weight, self.counts.size)
        self.counts += added.reshape(self.counts.shape)
