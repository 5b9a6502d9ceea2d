"""Births: new components from a fresh fit to the rows of one (section 3.1, Sup. 2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kplus.core.types import Array, Blocks, IntArray, Position, Proposal
from kplus.dp_mixture.directions import (
    as_numbers,
    directional_splits,
    standardised,
)
from kplus.dp_mixture.families.family import ByComponent, Family
from kplus.dp_mixture.families.normal_wishart import NormalWishartFamily
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.moves import MoveRecords, by_size, choose_merges, pair_changes
from kplus.dp_mixture.params import Collected, Components, MixtureStats, pair_index

__all__ = ["BirthSettings", "BornComponents", "beside", "create", "seeded"]

_FEW = 2_000  # rows that are quickly sorted
_AXIS_ROWS = 1_000  # rows that axes are found on, and 10 more for each column
_LOSS = 0.2  # nats that a split may lose for each row of its smaller side
_APART = 1  # iterations of a fresh fit to few rows before its first merges
_LEARN_AT = (0, 1, 3)  # iterations of a fresh fit before which it learns its prior
_N_JUDGED = 3  # splits along axes that are judged with the prior that suits them
_N_SPLITS = 2  # splits along axes that are fitted
_FEW_COMPONENTS = 3
_MANY = 10  # so many other components know the prior better than new ones
_MIN_GAIN = 1e-3  # nats per row by which the bound must rise after a birth


@dataclass(frozen=True)
class BirthSettings:
    """Settings of the births.

    Attributes
    ----------
    max_components : float
        No births beyond so many components.
    n_new : int
        Components that a target's rows are fitted with (K′).
    n_targets : int
        Most targets in a pass.
    n_iter : int
        Most iterations of the fresh fit.
    changed : float
        A component is a target again when its count has changed by this share.
    n_rounds : int
        How often all components are tried, with fewer seeds each time.
    patience : int
        No more births after so many in succession that did not raise the bound.
    """

    max_components: float = np.inf
    n_new: int = 10
    n_targets: int = 25
    n_iter: int = 8
    changed: float = 0.2
    n_rounds: int = 1
    patience: int = 3


class BornComponents:
    """Collect rows of targets in one pass, create components, adopt them in the next.

    Targets are drawn in proportion to N_k L_k², with L_k the passes since the last try
    (Eq. 22), among components that were not tried at about their present count. New
    components start with the sums of their fresh fit, which stay in the total until the
    end of the pass (Eq. 26 to 30).
    """

    def __init__(
        self,
        source: Blocks,
        weights: Array | None,
        rng: np.random.Generator,
        records: MoveRecords,
        settings: BirthSettings,
    ) -> None:
        self.source, self.weights, self.rng = source, weights, rng
        self.records, self.settings = records, settings
        self.state = (-np.inf, 0, 0)

    @property
    def state(self) -> tuple[float, int, int]:
        """The best bound, births since then, and the round."""
        return self._best, self._n_failed, self._round

    @state.setter
    def state(self, value: tuple[float, int, int]) -> None:
        self._best, self._n_failed, self._round = value

    def propose(
        self, at: Position[DPMixtureModel, Components, MixtureStats]
    ) -> Proposal | None:
        model, total, updated = at.model.at(at.updated), at.total, at.updated
        self._judge(model.best_bound(total), total)
        collected = Collected.joined(total.collected).lowest(model.n_collect)
        targets = np.unique(collected.targets[collected.targets >= 0])
        born = [self._create(model, collected, total, k) for k in targets]
        for target, part in zip(targets, born, strict=True):
            if part is None:
                self._refused(updated, int(target))
        if any(part is not None for part in born):
            return self._adopted(model, total, updated, targets, born)
        return self.planned(updated)

    def _refused(self, params: Components, target: int) -> None:
        self.records.note(params.visits - 1, "birth", (target,), False, 0.0)

    def _judge(self, bound: float, total: MixtureStats) -> None:
        """Note whether the bound has risen since the last birth was adopted."""
        if bound > self._best + _MIN_GAIN * total.mass:
            self._best, self._n_failed, self._round = bound, 0, 0

    def planned(self, params: Components) -> Proposal | None:
        """Plan that the next pass collects rows of some components."""
        settings = self.settings
        n_free = settings.max_components - params.K
        if n_free < 1 or self._n_failed >= settings.patience:
            return None
        ready = self._untried(params)
        # A prior that few components have brought about may have changed since then.
        learned = params.family.log_hyperprior != 0.0
        again = learned and params.K <= _FEW_COMPONENTS
        n_rounds = max(settings.n_rounds, 2 if again else 1)
        if not len(ready) and self._round + 1 < n_rounds:
            self._round += 1
            params = replace(params, tried=np.zeros(params.K))
            ready = self._untried(params)
        if not len(ready):
            return None
        odds = params.N[ready] * np.clip(params.waited[ready], 1, 100) ** 2.0
        keys = self.rng.exponential(size=len(ready)) / odds
        targets = np.sort(ready[np.argsort(keys)[: settings.n_targets]])
        seed = int(self.rng.integers(2**31))
        tried, waited = params.tried.copy(), params.waited.copy()
        tried[targets], waited[targets] = params.N[targets], 0
        plan = replace(params.plan, targets=targets, seed=seed)
        planned = replace(params, plan=plan, tried=tried, waited=waited)
        return Proposal(planned, np.arange(params.K), params.K, exact=True)

    def _untried(self, params: Components) -> IntArray:
        """Components that were not tried at about their present count."""
        moved = np.abs(params.N - params.tried) > self.settings.changed * params.N
        return np.flatnonzero(moved & (params.N >= 2.0))

    def _create(
        self,
        model: DPMixtureModel,
        collected: Collected,
        total: MixtureStats,
        target: int,
    ) -> MixtureStats | None:
        """Fit the rows noted for a target; None if they are best left as one."""
        rows = np.unique(collected.rows[collected.targets == target])
        X = self.source.take(rows)
        weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        rows_each = max(1.0, float(total.seen[target] / weights.sum()))
        n_new = max(2, self.settings.n_new >> self._round)
        rest = np.delete(np.arange(total.K), target)
        model = model.beside_noise(total.noise, total.mass - float(total.N[target]))
        model = beside(model, total.N[rest], total.S[rest])
        # Splits along axes are the same in every round, if the prior is.
        first = self._round == 0 or total.K <= _FEW_COMPONENTS
        born = create(
            model, X, weights, rows_each, n_new, self.settings.n_iter, self.rng, first
        )
        if born.K > 1 or _differs_from_earlier(model, total, target, born):
            return born
        return None

    def _adopted(
        self,
        model: DPMixtureModel,
        total: MixtureStats,
        params: Components,
        targets: IntArray,
        born: Sequence[MixtureStats | None],
    ) -> Proposal:
        self._n_failed += 1
        new = [part for part in born if part is not None]
        kept = [int(k) for k, part in zip(targets, born, strict=True) if part]
        n_free = self.settings.max_components - params.K
        N = np.concatenate([part.N for part in new])
        S = np.concatenate([part.S for part in new])
        if len(N) > n_free:
            largest = np.sort(np.argsort(-N, kind="stable")[: int(n_free)])
            N, S = N[largest], S[largest]
        K, J = params.K, len(N)
        provisional = MixtureStats.zeros(K + J, S.shape[1])
        provisional.N[K:], provisional.S[K:] = N, S
        stay = np.delete(np.arange(K), kept)
        model = model.learning(
            np.concatenate([total.N[stay], N]), np.concatenate([total.S[stay], S])
        )
        more = model.posterior(
            np.concatenate([total.N, N]), np.concatenate([total.S, S]),
            total.mass, total.noise,
        )  # fmt: skip
        more = replace(
            more,
            tried=np.concatenate([params.tried, np.zeros(J)]),
            waited=np.concatenate([params.waited, np.ones(J, np.int64)]),
            visits=params.visits - 1,
        )
        # Rows of any component may be better off with a new one.
        more = model.ready(more, everyone=True)
        note = (params.visits - 1, tuple(kept))
        return Proposal(more, np.arange(K), K + J, provisional=provisional, note=note)

    def on_outcome(
        self, note: tuple[int, tuple[int, ...]], change: float, kept: bool
    ) -> None:
        iteration, targets = note
        for target in targets:
            self.records.note(iteration, "birth", (target,), True, -change)


def beside(model: DPMixtureModel, N: Array, S: Array) -> DPMixtureModel:
    """The model for components beside others of these sums.

    Few others leave their prior to be learned together with the new ones. Many know it
    better than these.
    """
    if len(N) < _MANY:
        return replace(model, others=(N, S))
    return replace(model, learns=False)


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
    fresh = replace(model, n_active=None)
    heavy = weights * rows_each
    rows = _Rows(fresh, X, heavy, rows_each, n_iter)
    best = rows.fitted(seeded(fresh, X, heavy, n_new, rng))
    one = best.regroup(np.zeros(best.K, np.int64), 1)
    one.entropy[:] = 0.0
    # No pair may be worth a merge where all components together are.
    if not rows.bound(best) > rows.bound(one):
        best = one
    base = float(heavy @ model.family.log_base(X))
    for start in rows.splits() if along_axes else ():
        start.base = base  # no row of it is noise
        if best.K > 1 and rows.bound(start) <= rows.bound(best):
            break
        stats = rows.fitted(start)
        if rows.bound(stats) > rows.bound(best):
            best = stats
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

    def splits(self) -> list[MixtureStats]:
        """Sums of the sides of a few splits along axes, the highest bound first.

        They are found and judged on some of the rows. Those that lose too much as they
        are would not gain in a fit either.
        """
        model = self.model
        step = -(-len(self.X) // (_AXIS_ROWS + 10 * model.family.n_columns))
        Z = standardised(as_numbers(model.family, self.X), self.weights)
        few, light = Z[::step], self.weights[::step] * step
        rows, each = self.X[::step], self.rows_each * step
        zero = np.zeros(len(rows), np.int64)
        one = _corrected_bound(model, stats_of_parts(model, rows, light, zero), each)
        found = []
        for split in directional_splits(few, light):
            stats = stats_of_parts(model, rows, light, split.side(few))
            found.append((model.best_bound(stats), stats, split))
        found.sort(key=lambda each: -each[0])
        good = []
        for _, stats, split in found[:_N_JUDGED]:
            gain = _corrected_bound(model, stats, each) - one
            if gain > -_LOSS * stats.N.min():
                good.append((gain, split))
        good.sort(key=lambda pair: -pair[0])
        sides = [split.side(Z) for _, split in good[:_N_SPLITS]]
        return [
            stats_of_parts(model, self.X, self.weights, side)
            for side in sides
            if side.any() and not side.all()
        ]

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


def _differs_from_earlier(
    model: DPMixtureModel, total: MixtureStats, target: int, born: MixtureStats
) -> bool:
    """Whether the rows of this pass differ from the earlier ones of their component.

    Only where rows seen earlier, in a stream, make up part of the target.
    """
    rest = total.N[target] - born.N[0]
    if rest <= 0.01 * total.N[target]:
        return False
    parts = MixtureStats.zeros(2, total.S.shape[1])
    parts.N[:] = rest, born.N[0]
    parts.S[:] = total.S[target] - born.S[0], born.S[0]
    pair = np.array([[0, 1]])
    # Rows noted count in full, also those that are shared with other components, so
    # that the difference may not be valid sums; then no difference is assumed.
    try:
        with np.errstate(all="ignore"):
            return bool(pair_changes(model, parts, 1.0, pair)[0] < 0.0)
    except np.linalg.LinAlgError:
        return False


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
    old_to_new = by_size(stats.N, pairs[merges])
    return stats.regroup(old_to_new, int(old_to_new.max()) + 1)


def overfit(family: Family, rows: Array) -> Array:
    """Expected overfit in nats: log-likelihood of the fitted rows less that of others.

    Akaike's correction: one nat for each number in t(x), more where rows are few, as a
    matrix of D columns is known from n rows as if from n - D - 2. A prior that counts
    for many rows leaves fewer numbers of the scatter free.
    """
    few = 2.0 * family.n_stats / family.n_columns
    sure = _prior_rows(family)
    known = sure / np.maximum(rows + sure, 1e-3)
    free = family.n_stats - (family.n_stats - family.n_columns) * known
    out: Array = free * rows / np.maximum(rows + sure - few, 1e-3)
    return out


def _prior_rows(family: Family) -> float:
    """How many more rows the prior scatter counts for than the vaguest would."""
    if isinstance(family, NormalWishartFamily):
        return max(0.0, float(family.dof) - family.n_columns - 2.0)
    return 0.0


def seeded(
    model: DPMixtureModel, X: Array, weights: Array, K: int, rng: np.random.Generator
) -> MixtureStats:
    """Sums of rows put to the nearest of up to K rows drawn by D² sampling."""
    family = model.family
    family.check(X)
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
    return stats_of_parts(model, X, weights, owner)


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


def _in_order(X: Array) -> IntArray:
    """Few rows by their values: draws are then the same in any order of the table, and
    for a row twice as for one of weight 2."""
    if len(X) > _FEW:
        return np.arange(len(X))
    return np.lexsort(X.T[::-1])


def _drawn(weights: Array, order: IntArray, rng: np.random.Generator) -> int:
    """A row drawn in proportion to `weights`."""
    reached = np.cumsum(weights[order])
    place = np.searchsorted(reached, rng.random() * reached[-1], side="right")
    return int(order[min(place, len(order) - 1)])
