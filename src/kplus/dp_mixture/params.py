"""The components of a mixture, and the sums over rows that they follow from."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from kplus.core.group_sums import GroupSums
from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.family import Expectations, Family

__all__ = [
    "Collected",
    "Components",
    "MixtureStats",
    "Plan",
    "pair_index",
]


@dataclass(frozen=True)
class Plan:
    """What the next pass is to do besides its sums.

    Attributes
    ----------
    everyone : bool
        Compare each row with every component, not with its candidates only.
    frozen : bool
        Keep the parameters as they are through the whole pass.
    targets : int array or None
        Components whose rows are to be noted for births.
    seed : int
        Decides which rows are noted.
    """

    shapes: ClassVar[dict[str, str]] = {"targets": "t <K"}

    everyone: bool = True
    frozen: bool = False
    targets: IntArray | None = None
    seed: int = 0


@dataclass(frozen=True)
class Components:
    """q(v) and q(φ) of K components: the posterior given counts `N` and sums `S`.

    Attributes
    ----------
    family : Family
        The observations with the prior that they have at this moment.
    expected : Expected
        Log-likelihoods under q(φ); see `kplus.observations`.
    log_weights : array of shape (K,)
        E_q[log w_k].
    concentration : float
    mass : float
        Summed weight of the rows that N and S come from; sums over fewer rows do not
        replace them.
    neighbours : int array of shape (K, n_neighbours)
        For each component those that explain its rows next best.
    tried : array of shape (K,)
        Count of each component when a birth was last tried there; 0: never.
    waited : int array of shape (K,)
        Passes since then.
    visits : int
        Passes so far.
    plan : Plan
    noise : float
        Of `mass`, what belongs to noise; what its share follows from.
    """

    shapes: ClassVar[dict[str, str]] = {
        "N": "K",
        "S": "K M",
        "log_weights": "K",
        "neighbours": "K n <K",
        "tried": "K",
        "waited": "K",
    }

    N: Array
    S: Array
    family: Family
    expected: Expectations
    log_weights: Array
    concentration: float
    mass: float
    neighbours: IntArray
    tried: Array
    waited: IntArray
    visits: int = 0
    plan: Plan = field(default=Plan())
    noise: float = 0.0

    @property
    def K(self) -> int:
        return len(self.N)

    def consistent(self) -> bool:
        """Whether the sums are those of the family; see `core.declared`."""
        return bool(self.family.n_stats == self.S.shape[1])


@lru_cache(maxsize=64)
def pair_index(K: int) -> tuple[IntArray, IntArray]:
    """Components a < b of the packed pairs."""
    return np.triu_indices(K, 1)


@dataclass(frozen=True)
class Collected:
    """Rows noted for births: row numbers, their targets, and a random priority.

    Of each target the rows of lowest priority are kept, ties by row number, so that
    the choice does not depend on how the rows are cut into blocks.
    """

    shapes: ClassVar[dict[str, str]] = {
        "rows": "r",
        "targets": "r <K",
        "priority": "r",
    }

    rows: IntArray
    targets: IntArray
    priority: Array

    @classmethod
    def joined(cls, parts: Sequence["Collected"]) -> "Collected":
        if not parts:
            return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.targets for part in parts]),
            np.concatenate([part.priority for part in parts]),
        )

    def renumbered(self, old_to_new: IntArray) -> "Collected":
        return Collected(self.rows, old_to_new[self.targets], self.priority)

    def lowest(self, most: int) -> "Collected":
        """At most so many rows of each target."""
        order = np.lexsort((self.rows, self.priority, self.targets))
        targets = self.targets[order]
        first = np.searchsorted(targets, targets, side="left")
        kept = order[np.arange(len(order)) - first < most]
        return Collected(self.rows[kept], self.targets[kept], self.priority[kept])


@dataclass
class MixtureStats(GroupSums):
    """Sums over rows for K components.

    Attributes
    ----------
    N, S : arrays of shape (K,) and (K, M)
        Σ r and Σ r t(x) (Eq. 7).
    entropy : array of shape (K,)
        -Σ r log r.
    pairs : array of shape (K (K - 1) / 2,)
        What entropy a merge of two components would lose, packed as `pair_index`.
    base : float
        Σ log h(x), the part of the log-likelihood that no component changes. With
        noise, its log-likelihood as well, and the entropy of who belongs to it.
    mass : float
        Summed weight of the rows, those of noise included.
    seen : array of shape (K,)
        Report: counts of the rows visited in this pass; earlier rows have none.
    removal_cost : array of shape (K,)
        Report: what rows would lose if their leading component were taken away.
    collected : list of Collected
        Report: rows noted for births.
    noise : float
        Σ r₀, the summed weight of noise.
    """

    statistics = ("N", "S", "entropy")
    reports = ("seen", "removal_cost")

    shapes: ClassVar[dict[str, str]] = {
        "N": "K",
        "S": "K M",
        "entropy": "K",
        "pairs": "p",
        "seen": "K",
        "removal_cost": "K",
    }

    N: Array
    S: Array
    entropy: Array
    pairs: Array
    base: float
    mass: float
    seen: Array
    removal_cost: Array
    collected: list[Collected] = field(default_factory=list)
    noise: float = 0.0

    @classmethod
    def zeros(cls, K: int, n_stats: int) -> "MixtureStats":
        return cls(
            np.zeros(K), np.zeros((K, n_stats)), np.zeros(K),
            np.zeros(K * (K - 1) // 2), 0.0, 0.0, np.zeros(K), np.zeros(K),
        )  # fmt: skip

    def consistent(self) -> bool:
        """Whether there is an entry for each pair; see `core.declared`."""
        return len(self.pairs) == self.K * (self.K - 1) // 2

    def begin_pass(self) -> None:
        super().begin_pass()
        self.collected = []

    def __iadd__(self, other: Self) -> Self:
        self.pairs = self.pairs + other.pairs
        self.base += other.base
        self.mass += other.mass
        self.noise += other.noise
        self.collected = self.collected + other.collected
        return super().__iadd__(other)

    def __isub__(self, other: Self) -> Self:
        self.pairs = self.pairs - other.pairs
        self.base -= other.base
        self.mass -= other.mass
        self.noise -= other.noise
        return super().__isub__(other)

    def regroup(self, old_to_new: IntArray, K: int) -> Self:
        """Carry over to K components; two that become one lose their pair's entropy.

        Pairs with a merged component are not known until the rows are seen again:
        there is no entropy of three.
        """
        out = super().regroup(old_to_new, K)
        a, b = (old_to_new[side] for side in pair_index(self.K))
        joined = (a == b) & (a >= 0)
        np.subtract.at(out.entropy, a[joined], self.pairs[joined])
        apart = (a != b) & (a >= 0) & (b >= 0)
        low, high = np.minimum(a, b)[apart], np.maximum(a, b)[apart]
        place = low * (2 * K - low - 1) // 2 + high - low - 1
        out.pairs = np.zeros(K * (K - 1) // 2)
        np.add.at(out.pairs, place, self.pairs[apart])
        out.collected = [part.renumbered(old_to_new) for part in self.collected]
        return out
