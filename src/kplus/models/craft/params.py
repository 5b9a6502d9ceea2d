"""The clusters of a mixed table: what they are like, and what features are worth."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray

__all__ = ["ClusterSums", "Clusters"]


@dataclass
class ClusterSums:
    """What the rows of each cluster add up to.

    Attributes
    ----------
    sums : (K, F)
        For each number the rows that have it, their sum and sum of squares; for each
        category its rows; all weighted.
    counts : (K,)
        Weight of the rows.
    blank : float
        Weight of the rows without any value.
    changed : int
        Report of the last pass: rows that changed their cluster.
    """

    sums: Array
    counts: Array
    blank: float = 0.0
    changed: int = 0

    @property
    def K(self) -> int:
        return len(self.counts)

    def begin_pass(self) -> None:
        self.changed = 0

    def __iadd__(self, other: "ClusterSums") -> "ClusterSums":
        self.sums += other.sums
        self.counts += other.counts
        self.blank += other.blank
        self.changed += other.changed
        return self

    def __isub__(self, other: "ClusterSums") -> "ClusterSums":
        self.sums -= other.sums
        self.counts -= other.counts
        self.blank -= other.blank
        self.changed += other.changed
        return self

    def copy(self) -> "ClusterSums":
        return replace(self, sums=self.sums.copy(), counts=self.counts.copy())

    def regroup(self, into: IntArray, K: int) -> "ClusterSums":
        """Carry over to K clusters; those with the same new number are joined."""
        kept = into >= 0
        sums = np.zeros((K, self.sums.shape[1]))
        new = replace(self, sums=sums, counts=np.zeros(K))
        np.add.at(new.sums, into[kept], self.sums[kept])
        np.add.at(new.counts, into[kept], self.counts[kept])
        return new


@dataclass(frozen=True)
class Clusters:
    """Parameters fitted to sums, in the form in which rows are scored.

    Attributes
    ----------
    tables : (F, K)
        Weighted log-likelihood ratios, cluster against background.
    shares : (K,)
        Logarithms of the clusters' shares of the rows.
    gains : (K, D)
        What each feature gains in each cluster, see `kernels.craft.fit_clusters`.
    chosen : (K, D)
        Which features count.
    prices : (K,)
        What each cluster costs; their sum is the objective.
    """

    tables: Array
    shares: Array
    gains: Array
    chosen: NDArray[np.bool_]
    prices: Array

    @property
    def K(self) -> int:
        return len(self.shares)

    def take(self, kept: NDArray[np.bool_]) -> "Clusters":
        """Some of the clusters."""
        return Clusters(
            np.ascontiguousarray(self.tables[:, kept]),
            self.shares[kept],
            self.gains[kept],
            self.chosen[kept],
            self.prices[kept],
        )
