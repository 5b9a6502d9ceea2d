"""Fresh fits of rows in memory: from seeds, along axes, and from pieces of groups."""

from dataclasses import dataclass, replace

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture.directions import (
    as_standardised,
    directional_splits,
)
from kplus.dp_mixture.families.factor_gaussian import compared
from kplus.dp_mixture.families.family import ByComponent, Family
from kplus.dp_mixture.families.normal_wishart import NormalWishartFamily
from kplus.dp_mixture.families.transformed import TransformedFamily
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.moves import by_size, choose_merges, pair_changes
from kplus.dp_mixture.params import MixtureStats, pair_index

__all__ = [
    "create",
    "overfit",
    "sampling_overfit",
    "seeded",
    "shattered",
    "stats_of_parts",
]

_FEW = 2_000  # rows that are quickly sorted
_AXIS_ROWS = 1_000  # rows that axes are found on, and 10 more for each column
_LOSS = 0.2  # nats that a split may lose for each row of its smaller side
_APART = 1  # iterations of a fresh fit to few rows before its first merges
_LEARN_AT = (0, 1, 3)  # iterations of a fresh fit before which it learns its prior
_SETTLING = 20  # most iterations until hidden parts suit
_N_JUDGED = 3  # splits along axes that are judged with the prior that suits them
_N_SPLITS = 2  # splits along axes that are fitted
_FEW_TO_CUT = 5  # rows of a group that is left in one piece


def create(
    model: DPMixtureModel,
    X: Array,
    weights: Array,
    rows_each: float,
    n_new: int,
    n_iter: int,
    rng: np.random.Generator,
    along_axes: bool = True,
) -> MixtureStats:
    """Fit rows afresh, each counted as `rows_each` rows of a target.

    The starts are K′ rows drawn far apart, and splits in two along axes; the fit of the
    highest bound is taken. Few rows as they are would not outweigh the prior. But rows
    that count for many also fit noise. Merges and bounds therefore subtract the
    expected overfit from the evidence of a component, as Akaike's criterion does.
    """
    fresh, X = replace(model, n_active=None), model.reduced(X)
    heavy = weights * rows_each
    rows = _Rows(fresh, X, heavy, rows_each, n_iter)
    best = rows.fitted(seeded(fresh, X, heavy, n_new, rng))
    one = best.regroup(np.zeros(best.K, np.int64), 1)
    one.entropy[:] = 0.0
    if model.family.hides(one.S):
        one = rows.settled(one)
    alone = reached = rows.bound(one)
    # No pair may be worth a merge where all components together are.
    if best.K > 1 and (bound := rows.bound(best)) > alone:
        reached = bound
    else:
        best = one
    base = float(heavy @ model.family.log_base(X))
    for start in rows.splits(alone - one.base) if along_axes else ():
        start.base = base  # no row of it is noise
        if best.K > 1 and rows.bound(start) <= reached:
            break
        stats = rows.fitted(start)
        bound = rows.bound(stats) if stats.K > 1 else alone
        if bound > reached:
            best, reached = stats, bound
    return best


@dataclass(frozen=True)
class _Rows:
    """Rows of a target, and how components are fitted to them afresh."""

    model: DPMixtureModel
    X: Array
    weights: Array
    rows_each: float
    n_iter: int

    def bound(self, stats: MixtureStats) -> float:
        """The bound less the overfit of its components to the sample."""
        return _corrected_bound(self.model, stats, self.rows_each)

    def splits(self, alone: float) -> list[MixtureStats]:
        """Sums of the sides of a few splits along axes, the highest bound first.

        They are found and judged on some of the rows. Those that lose too much as they
        are would not gain in a fit either. `alone` is the bound of the rows as one,
        without their base.
        """
        model = self.model
        n_axes = compared(model.family).n_columns
        step = -(-len(self.X) // (_AXIS_ROWS + 10 * n_axes))
        Z = as_standardised(model.family, self.X, self.weights)
        few, light = Z[::step], self.weights[::step] * step
        rows, each = self.X[::step], self.rows_each * step
        if step > 1 or model.noise is not None:
            zero = np.zeros(len(rows), np.int64)
            one = stats_of_parts(model, rows, light, zero)
            alone = _corrected_bound(model, one, each)
        found = []
        for split in directional_splits(few, light):
            stats = stats_of_parts(model, rows, light, split.side(few))
            found.append((model.best_bound(stats), stats, split))
        found.sort(key=lambda each: -each[0])
        good = []
        for _, stats, split in found[:_N_JUDGED]:
            gain = _corrected_bound(model, stats, each) - alone
            if gain > -_LOSS * stats.N.min():
                good.append((gain, split))
        good.sort(key=lambda pair: -pair[0])
        sides = [split.side(Z) for _, split in good[:_N_SPLITS]]
        return [
            stats_of_parts(model, self.X, self.weights, side)
            for side in sides
            if side.any() and not side.all()
        ]

    def settled(self, stats: MixtureStats) -> MixtureStats:
        """The same components when the hidden parts of their rows suit them."""
        model = self.model.learning(stats.N, stats.S)
        reached = -np.inf
        for _ in range(_SETTLING):
            params = model.posterior(stats.N, stats.S, stats.mass, stats.noise)
            stats = model.share_out(params, self.X, self.weights)[0]
            last, reached = reached, model.best_bound(stats)
            if reached - last <= 1e-4 * stats.mass:
                break
        return stats

    def fitted(self, stats: MixtureStats) -> MixtureStats:
        """Iterate, first as they are so that they can come apart, then with merges.

        Iterations continue beyond `n_iter` as long as they merge components.
        """
        model, previous, K0 = self.model, -np.inf, stats.K
        apart = _APART if len(self.X) <= _FEW else 0
        for iteration in range(self.n_iter + K0):
            if iteration in _LEARN_AT:
                model = model.learning(stats.N, stats.S)
            params = model.posterior(stats.N, stats.S, stats.mass, stats.noise)
            stats = model.share_out(params, self.X, self.weights)[0]
            K = stats.K
            if iteration >= apart:
                stats = _merged(model, stats, params.concentration, self.rows_each)
            if stats.K == 1:
                break
            bound = model.best_bound(stats)
            slow = iteration >= self.n_iter or bound - previous <= 1e-4 * stats.mass
            if stats.K == K and slow and iteration >= apart:
                break
            previous = bound
        return stats


def _corrected_bound(
    model: DPMixtureModel, stats: MixtureStats, rows_each: float
) -> float:
    """The bound less the overfit of its components to the sample.

    With the prior that suits these components.
    """
    model = model.learning(stats.N, stats.S)
    lost = sampling_overfit(model, stats.N, rows_each).sum()
    return model.best_bound(stats) - float(lost)


def sampling_overfit(model: DPMixtureModel, N: Array, rows_each: float) -> Array:
    """Overfit of components of these counts because rows are counted several times.

    0 where the rows are all the rows of the target.
    """
    return (rows_each - 1.0) * overfit(model.family, N / rows_each)


def _merged(
    model: DPMixtureModel, stats: MixtureStats, concentration: float, rows_each: float
) -> MixtureStats:
    pairs = np.column_stack(pair_index(stats.K))
    changes = pair_changes(model, stats, concentration, pairs)
    a, b = pairs.T
    overfits = sampling_overfit(model, stats.N, rows_each)
    changes += overfits[a] + overfits[b]
    changes -= sampling_overfit(model, stats.N[a] + stats.N[b], rows_each)
    merges = choose_merges(stats, pairs, changes, 1e-9)
    if not len(merges) and np.all(stats.N[1:] <= stats.N[:-1]):
        return stats
    old_to_new = by_size(stats.N, pairs[merges])
    return stats.regroup(old_to_new, int(old_to_new.max()) + 1)


def overfit(family: Family, rows: Array) -> Array:
    """Expected overfit in nats: log-likelihood of the fitted rows less that of others.

    Akaike's correction: one nat for each number in t(x), more where rows are few, as a
    matrix of D columns is known from n rows as if from n - D - 2. A prior that counts
    for many rows leaves fewer numbers of the scatter free.
    """
    family = compared(family)
    few = 2.0 * family.n_free / family.n_columns
    sure = _prior_rows(family)
    known = sure / np.maximum(rows + sure, 1e-3)
    free = family.n_free - (family.n_free - family.n_columns) * known
    out: Array = free * rows / np.maximum(rows + sure - few, 1e-3)
    return out


def _prior_rows(family: Family) -> float:
    """How many more rows the prior scatter counts for than the vaguest would."""
    if isinstance(family, TransformedFamily):
        return _prior_rows(family.inner)
    if isinstance(family, NormalWishartFamily):
        return max(0.0, float(family.dof) - family.n_columns - 2.0)
    return 0.0


def seeded(
    model: DPMixtureModel, X: Array, weights: Array, K: int, rng: np.random.Generator
) -> MixtureStats:
    """Sums of rows put to the nearest of up to K rows drawn by D² sampling."""
    owner = _nearest_seeds(model, X, weights, K, rng)
    return stats_of_parts(model, X, weights, owner)


def shattered(
    model: DPMixtureModel,
    X: Array,
    weights: Array,
    labels: IntArray,
    n_pieces: int,
    n_iter: int,
    rng: np.random.Generator,
) -> MixtureStats:
    """Cut each group of rows in pieces, by seeds of its own, and let them join anew.

    Most pieces find their group again; some join others, which no split, merge or
    delete alone would have led to. `labels` numbers the groups.
    """
    owner, n = np.zeros(len(X), np.int64), 0
    for k in np.unique(labels):
        rows = np.flatnonzero(labels == k)
        pieces = n_pieces if len(rows) > _FEW_TO_CUT else 1
        own = _nearest_seeds(model, X[rows], weights[rows], pieces, rng)
        owner[rows] = n + np.unique(own, return_inverse=True)[1]
        n = int(owner[rows].max()) + 1
    fresh = _Rows(replace(model, n_active=None), X, weights, 1.0, n_iter)
    return fresh.fitted(stats_of_parts(model, X, weights, owner))


def _nearest_seeds(
    model: DPMixtureModel, X: Array, weights: Array, K: int, rng: np.random.Generator
) -> IntArray:
    """The nearest of up to K rows drawn by D² sampling, for each row."""
    family = model.family
    family.check(X)
    X = model.reduced(X)
    all_rows = ByComponent(np.array([0, len(X)]), np.arange(len(X)), weights)
    N, S = np.array([weights.sum()]), family.sums(X, all_rows)
    owner = np.zeros(len(X), np.int64)
    order = _in_order(X)
    costs = family.dissimilarity(X, X[_drawn(weights, order, rng)], N, S)
    k = 1
    while k < K and np.any(costs * weights > 0.0):
        row = _drawn(costs * weights, order, rng)
        far = family.dissimilarity(X, X[row], N, S)
        owner[far < costs] = k
        costs = np.minimum(costs, far)
        k += 1
    return owner


def stats_of_parts(
    model: DPMixtureModel, X: Array, weights: Array, owner: IntArray
) -> MixtureStats:
    """Sums of rows that belong to one component each; all have rows."""
    family, k = model.family, int(owner.max()) + 1
    order = np.argsort(owner, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=k))])
    members = ByComponent(starts, order, weights[order])
    stats = MixtureStats.zeros(k, family.n_stats)
    stats.N = np.bincount(owner, weights, k).astype(np.float64)
    stats.S = family.sums(X, members)
    stats.mass = float(weights.sum())
    return stats


def _in_order(X: Rows) -> IntArray:
    """Few rows by their values: draws are then the same in any order of the table, and
    for a row twice as for one of weight 2."""
    if len(X) > _FEW:
        return np.arange(len(X))
    return X.order() if isinstance(X, SparseRows) else np.lexsort(X.T[::-1])


def _drawn(weights: Array, order: IntArray, rng: np.random.Generator) -> int:
    """A row drawn in proportion to `weights`."""
    reached = np.cumsum(weights[order])
    place = np.searchsorted(reached, rng.random() * reached[-1], side="right")
    return int(order[min(place, len(order) - 1)])
