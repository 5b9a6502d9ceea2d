"""The clusters of a mixed table: what they are like, and what features are worth."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.group_sums import GroupSums
from kplus.core.types import Array

__all__ = ["ClusterSums", "Clusters"]


@dataclass
class ClusterSums(GroupSums):
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

    statistics = ("sums", "counts")

    shapes: ClassVar[dict[str, str]] = {"sums": "K F", "counts": "K"}

    sums: Array
    counts: Array
    blank: float = 0.0
    changed: int = 0

    def begin_pass(self) -> None:
        self.changed = 0

    def __iadd__(self, other: Self) -> Self:
        self.blank += other.blank
        self.changed += other.changed
        return super().__iadd__(other)

    def __isub__(self, other: Self) -> Self:
        self.blank -= other.blank
        return super().__isub__(other)


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
        What each cluster costs; their sum is the objective. Model files have this
        name.
    """

    shapes: ClassVar[dict[str, str]] = {
        "tables": "W K",
        "shares": "K",
        "gains": "K D",
        "chosen": "K D",
        "prices": "K",
    }

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
