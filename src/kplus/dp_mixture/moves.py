"""Merges, deletes and the final order of components, and a record of all proposals."""

import operator
from dataclasses import dataclass, field, replace

import numpy as np

from kplus.core.regroup import without
from kplus.core.types import Array, IntArray, Position, Proposal
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.params import Components, MixtureStats, Plan, pair_index
from kplus.dp_mixture.sticks import merge_gains, removal_gains

__all__ = [
    "DeleteComponent",
    "MergeComponents",
    "MoveRecord",
    "MoveRecords",
    "OrderComponents",
    "by_size",
    "choose_merges",
    "pair_changes",
    "regrouped_params",
]

_FEW = 40  # up to so many components every pair is considered after every pass
_N_PARTNERS = 8
_CHUNK = 2**20  # numbers in the joined sums that are evaluated together
_ROUNDING = 1e-12  # share of the bound by which a merge may seem to lower it
_SAME = 0.02  # counts this close belong to the component that was tried before
_MIN_COUNT = 0.5  # components of lower count are left out at the end


@dataclass
class MoveRecord:
    """One proposal.

    Attributes
    ----------
    iteration : int
        The pass after which it was made.
    kind : str
        "birth", "merge" or "delete".
    target : tuple of int
        The components it was about, numbered as they were then.
    accepted : bool
    change : float
        Change of the bound: exact for merges; for births and deletes that of the pass
        that followed, with everything else that happened in it.
    """

    iteration: int
    kind: str
    target: tuple[int, ...]
    accepted: bool
    change: float

    def __post_init__(self) -> None:
        """Plain values, also of a record from a file, or an error."""
        self.iteration, self.kind = operator.index(self.iteration), str(self.kind)
        self.target = tuple(map(operator.index, self.target))
        self.accepted, self.change = bool(self.accepted), float(self.change)


@dataclass
class MoveRecords:
    """What the moves of one fit write to."""

    entries: list[MoveRecord] = field(default_factory=list)

    @property
    def state(self) -> list[MoveRecord]:
        return self.entries

    @state.setter
    def state(self, value: list[MoveRecord]) -> None:
        self.entries[:] = value

    def note(
        self,
        visits: int,
        kind: str,
        target: tuple[int, ...],
        accepted: bool,
        change: float,
    ) -> None:
        self.entries.append(MoveRecord(visits, kind, target, accepted, change))


class MergeComponents:
    """Merge disjoint pairs whose union raises the bound, and order components by size.

    The change is exact from cached sums and pair entropies. With many components only
    the likeliest partners of each are considered, until the fit converges.
    """

    def __init__(self, records: MoveRecords) -> None:
        self.records = records

    def propose(
        self, at: Position[DPMixtureModel, Components, MixtureStats]
    ) -> Proposal | None:
        model, total, updated = at.model.at(at.updated), at.total, at.updated
        if total.K < 2:
            return None
        before = model.best_bound(total)
        pairs = _partners(model, updated, all_pairs=at.converged or total.K <= _FEW)
        changes = pair_changes(model, total, updated.concentration, pairs)
        merges = choose_merges(total, pairs, changes, _ROUNDING * abs(before))
        while True:
            old_to_new = by_size(total.N, pairs[merges])
            K = int(old_to_new.max()) + 1
            merged = total.regroup(old_to_new, K)
            gain = model.best_bound(merged) - before
            if gain >= -_ROUNDING * abs(before) or not len(merges):
                break
            merges = merges[: len(merges) // 2]
        for i in merges:
            a, b = pairs[i]
            target = (int(a), int(b))
            self.records.note(
                updated.visits - 1, "merge", target, True, float(changes[i])
            )
        if K == total.K and (gain <= 0.0 or np.array_equal(old_to_new, np.arange(K))):
            return None
        new = regrouped_params(model, updated, merged, old_to_new)
        return Proposal(new, old_to_new, K, exact=True)


def _partners(model: DPMixtureModel, params: Components, all_pairs: bool) -> IntArray:
    """Pairs a < b to consider, (P, 2)."""
    K = params.K
    if all_pairs:
        return np.column_stack(pair_index(K))
    cross = model.crossed(params)
    cross = np.maximum(
        cross - np.diag(cross)[:, None], cross.T - np.diag(cross)[None, :]
    )
    np.fill_diagonal(cross, -np.inf)
    near = np.argpartition(-cross, _N_PARTNERS, axis=1)[:, :_N_PARTNERS]
    chosen = np.zeros((K, K), np.bool_)
    np.put_along_axis(chosen, near, True, axis=1)
    chosen[:, params.N < 1.0] = True
    return np.argwhere(np.triu(chosen | chosen.T, 1))


def pair_changes(
    model: DPMixtureModel, total: MixtureStats, concentration: float, pairs: IntArray
) -> Array:
    """Exact change of the bound for each pair alone, in place of the first."""
    family, N, S = model.family, total.N, total.S
    a, b = pairs.T
    joint = np.empty(len(pairs))
    size = max(1, _CHUNK // S.shape[1])
    for start in range(0, len(pairs), size):
        part = slice(start, start + size)
        joint[part] = family.evidence(N[a[part]] + N[b[part]], S[a[part]] + S[b[part]])
    single = family.evidence(N, S)
    lost = total.pairs[a * (2 * total.K - a - 1) // 2 + b - a - 1]
    sticks = merge_gains(N, concentration)[a, b]
    out: Array = joint - single[a] - single[b] - lost + sticks
    return out


def choose_merges(
    total: MixtureStats, pairs: IntArray, changes: Array, rounding: float
) -> IntArray:
    """Disjoint pairs whose merge raises the bound, best first.

    A component merges at most once. An empty component changes the bound by
    0, and is merged as well.
    """
    empty = np.minimum(total.N[pairs[:, 0]], total.N[pairs[:, 1]]) < 1e-6
    raises = changes > np.where(empty, -rounding, rounding)
    taken = np.zeros(total.K, np.bool_)
    chosen = []
    for i in np.flatnonzero(raises)[np.argsort(-changes[raises], kind="stable")]:
        a, b = pairs[i]
        if not (taken[a] or taken[b]):
            taken[[a, b]] = True
            chosen.append(i)
    return np.array(chosen, dtype=np.int64)


def by_size(N: Array, merges: IntArray) -> IntArray:
    """Renumber by falling count after joining the pairs given."""
    owner = np.arange(len(N))
    owner[merges[:, 1]] = merges[:, 0]
    joined = np.bincount(owner, N, len(N))
    kept = np.unique(owner)
    order = kept[np.argsort(-joined[kept], kind="stable")]
    place = np.empty(len(N), np.int64)
    place[order] = np.arange(len(order))
    return place[owner]


def regrouped_params(
    model: DPMixtureModel, params: Components, total: MixtureStats, old_to_new: IntArray
) -> Components:
    """Parameters for renumbered sums; a union keeps `tried` of its larger part."""
    K = total.K
    order = np.argsort(params.N, kind="stable")
    order = order[old_to_new[order] >= 0]
    tried, waited = np.zeros(K), np.ones(K, np.int64)
    tried[old_to_new[order]], waited[old_to_new[order]] = (
        params.tried[order],
        params.waited[order],
    )
    new = model.at(params).posterior(
        total.N.copy(), total.S.copy(), total.mass, total.noise
    )
    new = replace(new, tried=tried, waited=waited, visits=params.visits - 1)
    return model.ready(replace(new, waited=waited - 1), params.plan.everyone)


class DeleteComponent:
    """After convergence, remove a component on trial where the bound should rise.

    The last pass has summed an upper bound on what its rows would lose under the other
    components as they are; its divergence from the prior and its stick are gained. The
    next pass gives the exact bound, and the loop undoes a removal that lowered it.
    """

    state: list[float]  # sizes of components that were needed

    def __init__(self, records: MoveRecords) -> None:
        self.records = records
        self.state = []

    def propose(
        self, at: Position[DPMixtureModel, Components, MixtureStats]
    ) -> Proposal | None:
        model, total, updated = at.model.at(at.updated), at.total, at.updated
        if not at.converged or total.K < 2:
            return None
        family, N = model.family, updated.N
        own = updated.expected.total(N, updated.S) - family.evidence(N, updated.S)
        gains = own + removal_gains(N, updated.concentration) - total.removal_cost
        # Rows seen earlier, in a stream, cannot find another component.
        gains[total.seen < N * (1.0 - 1e-9)] = -np.inf
        for count in self.state:
            gains[np.abs(N - count) <= _SAME * count] = -np.inf
        target = int(np.argmax(gains))
        if not gains[target] > 0.0:
            return None
        old_to_new = without(total.K, target)
        rest = total.regroup(old_to_new, total.K - 1)
        new = regrouped_params(model, updated, rest, old_to_new)
        note = (updated.visits - 1, target, float(N[target]))
        return Proposal(new, old_to_new, total.K - 1, trial=True, note=note)

    def on_outcome(
        self, note: tuple[int, int, float], change: float, kept: bool
    ) -> None:
        iteration, target, count = note
        self.records.note(iteration, "delete", (target,), kept, -change)
        if not kept:
            self.state.append(count)


class OrderComponents:
    """Number components by falling count; `tidy` leaves out those below half a row.

    `lightest` is the smallest weight of a row.

    In the sweep that follows parameters stay, and each row is compared with all of
    them, as `predict` does.
    """

    def __init__(self, tidy: bool, lightest: float = 1.0) -> None:
        self.tidy, self.lightest = tidy, lightest

    def propose(
        self, at: Position[DPMixtureModel, Components, MixtureStats]
    ) -> Proposal | None:
        total = at.total
        old_to_new = np.argsort(_ranked(total))
        K = total.K
        if self.tidy:
            K = max(1, int(np.count_nonzero(_MIN_COUNT * self.lightest < total.N)))
        old_to_new = np.where(old_to_new < K, old_to_new, -1)
        ordered = regrouped_params(
            at.model, at.params, total.regroup(old_to_new, K), old_to_new
        )
        plan = Plan(everyone=True, frozen=True)
        return Proposal(replace(ordered, plan=plan), old_to_new, K)


def _ranked(total: MixtureStats) -> IntArray:
    """Components by falling count, equals by their mean statistics.

    Both are rounded, so that the order of rows, which rounds sums, does not decide.
    """
    means = total.S / np.maximum(total.N, 1e-12)[:, None]
    keys = np.round(means, 9).T[::-1]
    return np.lexsort((*keys, -np.round(total.N, 9)))
