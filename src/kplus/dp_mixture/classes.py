"""Clusters where there are categories: a tree of classes.

No order lies between categories, so that there is no place where a valley could be.
What makes a class there is that columns are independent inside of it, as in latent
class analysis. So components are joined by what the description of the rows loses:
the evidence of two classes against that of their union.

The rule for the number is that of an elbow. Fitted components differ beyond doubt, but
by how much: two classes that differ in most columns may each fall into some that differ
in one. Clusters are those where the cost of a further union rises most steeply, by its
ratio to the cost of the union before. But no class spans a valley of the numbers, if
there are some: groups that are apart without the categories are apart with them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.bernoulli import BernoulliFamily
from kplus.dp_mixture.families.categorical import CategoricalFamily
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.families.mixed import MixedFamily
from kplus.dp_mixture.params import Components, pair_index
from kplus.tree.cluster_tree import ClusterTree

__all__ = ["Unions", "elbow", "has_classes", "same_categories", "tree_of_classes"]

_NOTHING = 0.02  # nats per row: a union that costs less costs nothing to speak of
_DOUBT = 3.0  # nats: evidence of 20 to 1 that categories differ
_SMALL_SHARE = 0.05  # of the rows: too few for a valley of numbers to decide
_TINY = 1e-300
_CHUNK = 2**20  # numbers in the joined sums that are evaluated together


def has_classes(family: Family) -> bool:
    """Whether there are columns of categories."""
    if isinstance(family, MixedFamily):
        return "category" in family.groups
    return isinstance(family, (BernoulliFamily, CategoricalFamily))


def same_categories(params: Components, pairs: IntArray) -> NDArray[np.bool_]:
    """Which pairs differ in numbers or counts only, as far as the evidence tells.

    They may be pieces of one shape. None are where all columns are categories.
    """
    family, N = params.family, params.N
    if not isinstance(family, MixedFamily) or family.groups == ("category",):
        return np.zeros(len(pairs), np.bool_)
    at = family.groups.index("category")
    part, S, (a, b) = family.parts[at], family.split(params.S)[at], pairs.T
    single = part.evidence(N, S)
    gain = part.evidence(N[a] + N[b], S[a] + S[b]) - single[a] - single[b]
    out: NDArray[np.bool_] = gain >= -_DOUBT
    return out


def tree_of_classes(
    params: Components,
    joined: ClusterTree | None = None,
    apart: ClusterTree | None = None,
) -> ClusterTree:
    """Join what costs least, to a single class.

    Heights are nats per row, 0 for what is joined before.

    Parameters
    ----------
    joined : ClusterTree, optional
        Its clusters are classes to begin with.
    apart : ClusterTree, optional
        Of numbers alone. Where these have a valley no class spans it, unless there is
        less than a twentieth of the rows on one side.
    """
    K, mass = params.K, max(float(params.N.sum()), _TINY)
    groups: IntArray = np.arange(K)
    steps: list[tuple[int, int]] = []
    if joined is not None:
        groups = joined.cut()
        steps = [(int(a), int(b)) for a, b in joined.children[: K - joined.n_clusters]]
    names, costs = _names(groups, steps), []
    unions = Unions.of(params, groups)
    if apart is not None:
        unions.side = _sides(apart.cut(), groups, params.N)
    n_apart = len(np.unique(unions.side[unions.side >= 0]))
    while unions.K > 1:
        a, b, cost = unions.cheapest()
        first, second = sorted((names[a], names[b]))
        names[a] = K + len(steps)
        del names[b]
        unions.join(a, b)
        steps.append((first, second))
        costs.append(cost / mass)
    n_clusters, clearness = elbow(np.array(costs))
    if apart is not None and n_clusters < n_apart:
        n_clusters, clearness = n_apart, apart.clearness
    heights = np.maximum.accumulate(np.maximum(costs, _TINY))
    return ClusterTree(
        np.array(steps, np.int64).reshape(-1, 2),
        np.concatenate([np.zeros(len(steps) - len(costs)), heights]),
        params.N.copy(),
        n_clusters,
        clearness,
    )


def _names(groups: IntArray, steps: list[tuple[int, int]]) -> list[int]:
    """The numbers that groups have in a tree whose first steps made them."""
    K = len(groups)
    first = list(range(K))  # a leaf of every number
    names = [int(np.argmax(groups == g)) for g in range(int(groups.max()) + 1)]
    for t, (a, _) in enumerate(steps):
        first.append(first[a])
        names[groups[first[a]]] = K + t
    return names


def _sides(cluster: IntArray, groups: IntArray, N: Array) -> IntArray:
    """The cluster that most rows of each group are in; -1 if it is a small one."""
    rows = np.zeros((int(groups.max()) + 1, int(cluster.max()) + 1))
    np.add.at(rows, (groups, cluster), N)
    small = rows.sum(axis=0) < _SMALL_SHARE * rows.sum()
    most: IntArray = np.argmax(rows, axis=1)
    return np.where(small[most], -1, most)


def elbow(costs: Array) -> tuple[int, float]:
    """The number of classes from the costs per row of all unions, and how clear it is.

    Unions come first as long as they raise the evidence of rows and classes together.
    Of the others, that which costs more than any before by the largest factor is not
    made any more. The factor of the second best against it says how clear that is.
    """
    worth = np.concatenate([[0.0], np.cumsum(-costs)])
    free = len(worth) - 1 - int(np.argmax(worth[::-1]))
    if free == len(costs):
        return 1, 1.0
    heights = np.maximum.accumulate(np.maximum(costs[free:], _NOTHING))
    factors = heights / np.concatenate([[_NOTHING], heights[:-1]])
    best = int(np.argmax(factors))
    rest = np.delete(factors, best).max(initial=1.0)
    return len(costs) + 1 - free - best, float(1.0 - rest / factors[best])


@dataclass
class Unions:
    """Groups of components by their sums, and what every union of two would cost.

    The cost is what log p(x, z) falls by, z the groups under the Dirichlet process:
    -log of ev(a ∪ b) / (ev(a) ev(b)) · Γ(N_a + N_b) / (α Γ(N_a) Γ(N_b)).
    """

    family: Family
    N: Array
    S: Array
    own: Array  # log of ev Γ(N) α of each group
    costs: Array  # (K, K)
    log_alpha: float
    side: IntArray  # of valleys of numbers, which are crossed last; -1: of none

    @classmethod
    def of(cls, params: Components, groups: IntArray) -> "Unions":
        K = int(groups.max()) + 1
        N, S = np.zeros(K), np.zeros((K, params.S.shape[1]))
        np.add.at(N, groups, params.N)
        np.add.at(S, groups, params.S)
        log_alpha = float(np.log(params.concentration))
        own = _log_worth(params.family, N, S, log_alpha)
        costs, side = np.full((K, K), np.inf), np.zeros(K, np.int64)
        out = cls(params.family, N, S, own, costs, log_alpha, side)
        out._price(*pair_index(K))
        return out

    @property
    def K(self) -> int:
        return len(self.N)

    def cheapest(self) -> tuple[int, int, float]:
        one, other = self.side[:, None], self.side
        level = (one == other) | (one < 0) | (other < 0)
        costs = np.where(level, self.costs, np.inf)
        if np.isinf(costs).all():
            costs = self.costs
        a, b = np.unravel_index(np.argmin(costs), costs.shape)
        return min(int(a), int(b)), max(int(a), int(b)), float(self.costs[a, b])

    def join(self, a: int, b: int) -> None:
        """Group b to group a < b; the groups after b move up by one."""
        self.N[a] += self.N[b]
        self.S[a] += self.S[b]
        self.own[a] = self._worth(self.N[[a]], self.S[[a]])[0]
        self.N, self.own = np.delete(self.N, b), np.delete(self.own, b)
        self.S = np.delete(self.S, b, axis=0)
        self.side[a] = max(self.side[a], self.side[b])
        self.side = np.delete(self.side, b)
        self.costs = np.delete(np.delete(self.costs, b, axis=0), b, axis=1)
        others = np.delete(np.arange(self.K), a)
        self._price(np.full(len(others), a), others)

    def _price(self, a: IntArray, b: IntArray) -> None:
        size = max(1, _CHUNK // self.S.shape[1])
        for first in range(0, len(a), size):
            i, j = a[first : first + size], b[first : first + size]
            both = self._worth(self.N[i] + self.N[j], self.S[i] + self.S[j])
            self.costs[i, j] = self.costs[j, i] = self.own[i] + self.own[j] - both

    def _worth(self, N: Array, S: Array) -> Array:
        return _log_worth(self.family, N, S, self.log_alpha)


def _log_worth(family: Family, N: Array, S: Array, log_alpha: float) -> Array:
    """A group that hardly has a row counts as one of a row: Γ(0) is infinite."""
    out: Array = family.evidence(N, S) + gammaln(np.maximum(N, 1.0)) + log_alpha
    return out
