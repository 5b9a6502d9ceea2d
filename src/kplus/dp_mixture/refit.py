"""Refits of neighbouring components on the rows that they hold, all else fixed.

A delete or a merge with all else frozen is priced too high: others would move to where
rows were freed. A refit lets them, for a few iterations on the rows concerned. Where
these are all rows that the components hold, the change of the bound is exact.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kplus.core.job import draw
from kplus.core.types import Array, Blocks, IntArray, Position, Proposal
from kplus.dp_mixture.birth import BirthSettings, beside
from kplus.dp_mixture.families.factor_gaussian import compared
from kplus.dp_mixture.fresh import create, sampling_overfit, shattered
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.moves import MoveRecords
from kplus.dp_mixture.params import Components, MixtureStats
from kplus.dp_mixture.sticks import mean_log_weights, removal_gains, stick_evidence

__all__ = ["RefitComponents"]

_MOST_ROWS = 10_000  # rows that refits are made on
_FEW_ROWS = 2_000  # where refits take the place of births
_SHARE = 1e-3  # rows take part of which the components have so much
_MOST_TRIALS = 40  # refits of each kind on a sample, after a convergence
_FEW_COMPONENTS = 3
_EARLY = 4  # passes after each of which a single component is split if possible
_N_NEIGHBOURS = 4  # components that take part in a delete
_N_SHATTERED = (2, 2, 5)  # neighbours that are cut in pieces with a component
_N_PIECES = 4  # of each
_FEWEST_SHAKES = 8  # tries without a gain at least
_N_ITER = 10
_LEARN_EVERY = 3  # iterations of a refit after which it learns its prior
_HOPELESS = 15  # a refit ends when so many steps like the last would not be enough
_SAME = 1e-2  # marks this close belong to the component that was tried before
_MIN_GAIN = 1e-3  # nats per row concerned by which the bound must rise
_FEWEST = 30.0  # rows of a sample that a component must have to be refitted
_PATIENCE = 3
_SLOW = 1e-3  # nats per row; where a pass gains less, few rows are refitted already
_WORTH = 1e-2  # nats per row by which shattering must have raised the bound to go on
_FAR = 1.5  # nats by row and column that rows of a component lose if nobody is near
_FARTHEST = 20.0  # nats by row; passes do not tell more than about 27 apart


@dataclass
class _Region:
    """Rows in memory with the shares of components in them, as refits change these.

    `stats` has the sums over these rows; `changed` marks components that are not those
    of the fit any more. Rows count as `rows_each` rows of the table.
    """

    model: DPMixtureModel
    X: Array
    weights: Array
    rows_each: float
    concentration: float
    N: Array
    S: Array
    R: Array
    origin: IntArray  # number in the fit; -1: changed

    @property
    def K(self) -> int:
        return len(self.N)

    def log_weights(self, others: Array, N: Array) -> Array:
        """E[log w] of components of counts N beside others, by falling size."""
        every = np.concatenate([N, others])
        order = np.argsort(-every, kind="stable")
        out = np.empty(len(every))
        out[order] = mean_log_weights(every[order], self.concentration)
        return out[: len(N)]


@dataclass(frozen=True)
class _Refit:
    """Some components with other ones in their place."""

    old: IntArray
    stats: MixtureStats
    rows: IntArray
    R: Array
    gain: float


class _Local:
    """Components `old` of a region, and the rows in which they have a share.

    What these rows have of noise takes part as well.
    """

    def __init__(self, region: _Region, old: IntArray) -> None:
        self.region, self.old = region, old
        share = region.R[:, old].sum(axis=1)
        self.rows = np.flatnonzero(share > _SHARE)
        model = region.model
        if model.noise is not None:
            noise = 1.0 - region.R.sum(axis=1)
            share += noise
            noise[self.rows] = 0.0
            rest = float(
                region.weights.sum() - region.weights[self.rows] @ share[self.rows]
            )
            model = model.beside_noise(float(region.weights @ noise), rest)
        self.X = region.X[self.rows]
        self.weights = region.weights[self.rows] * share[self.rows]
        self.others = np.delete(region.N, old)
        self.model = beside(model, self.others, np.delete(region.S, old, axis=0))
        self.mass = float(self.weights.sum())

    def step(
        self, model: DPMixtureModel, N: Array, S: Array
    ) -> tuple[MixtureStats, Array]:
        """Share the rows out to components of these sums; (rows, K) shares as well."""
        # What no component has is noise; nothing where there is none.
        params = model.posterior(N, S, self.mass, max(self.mass - float(N.sum()), 0.0))
        params = replace(params, log_weights=self.region.log_weights(self.others, N))
        stats, support, r = model.share_out(params, self.X, self.weights)
        R = np.zeros((len(self.X), len(N)))
        counts = np.diff(support.starts)
        R[np.repeat(np.arange(len(self.X)), counts), support.components] = r
        return stats, R

    def bound(self, model: DPMixtureModel, stats: MixtureStats) -> float:
        """The bound of components beside the others, but for a constant."""
        region = self.region
        every = np.sort(np.concatenate([stats.N, self.others]))[::-1]
        sticks = stick_evidence(every, region.concentration)
        parts = model.family.evidence(stats.N, stats.S).sum()
        if model.others is not None:
            parts += model.family.evidence(*model.others).sum()
            parts += model.family.log_hyperprior
        if model.noise is not None:
            parts += stats.base + model.noise.evidence(stats.noise, stats.mass)
        lost = sampling_overfit(model, stats.N, region.rows_each).sum()
        return float(parts + sticks + stats.entropy.sum() - lost)

    def before(self) -> float:
        """The bound of the components as they are, after a step."""
        stats, _ = self.step(
            self.model, self.region.N[self.old], self.region.S[self.old]
        )
        return self.bound(self.model.learning(stats.N, stats.S), stats)

    def refitted(self, N: Array, S: Array) -> _Refit | None:
        """Iterate from these sums; None if the bound does not rise."""
        region, model = self.region, self.model.learning(N, S)
        before, previous = self.before(), -np.inf
        enough = before + _MIN_GAIN * self.mass
        for iteration in range(_N_ITER):
            stats, R = self.step(model, N, S)
            if iteration % _LEARN_EVERY == 0:
                model = self.model.learning(stats.N, stats.S)
            filled = 1e-6 * self.mass < stats.N
            bound = self.bound(model, stats)
            short, rise = enough - bound, bound - previous
            N, S = stats.N[filled], stats.S[filled]
            if rise <= 1e-5 * self.mass or short > _HOPELESS * rise:
                break
            previous = bound
        if not bound > enough or not filled.all():
            return None
        R *= (self.weights / region.weights[self.rows])[:, None]
        return _Refit(self.old, stats, self.rows, R, bound - before)


def _applied(region: _Region, refit: _Refit) -> None:
    """Put the new components behind those that stay."""
    stay = np.delete(np.arange(region.K), refit.old)
    new = np.zeros((len(region.X), refit.stats.K))
    new[refit.rows] = refit.R
    region.R = np.hstack([region.R[:, stay], new])
    region.N = np.concatenate([region.N[stay], refit.stats.N])
    region.S = np.concatenate([region.S[stay], refit.stats.S])
    fresh = np.full(refit.stats.K, -1)
    region.origin = np.concatenate([region.origin[stay], fresh])


@dataclass
class RefitComponents:
    """After convergence, splits, deletes and joins anew, with neighbours refitted.

    All rows if they are few, else a sample, on which the gain is lessened by the
    overfit. What raises the bound there is adopted on trial: the next pass over all
    rows gives the exact bound, and the loop undoes what lowered it.

    Where all rows take part, components are split first, as long as this pays, then
    deleted, and at last shattered: see `fresh.shattered`.
    """

    source: Blocks
    weights: Array | None
    rng: np.random.Generator
    records: MoveRecords
    settings: BirthSettings
    kinds: tuple[str, ...]
    # marks of what was tried, trials that failed, bounds: at the last shattering, now
    state: tuple[list[list[float]], int, float, float] = field(
        default_factory=lambda: ([], 0, -np.inf, -np.inf)
    )

    @classmethod
    def replace_births(cls, source: Blocks) -> bool:
        """Whether rows are so few that refits, which are exact, cost little."""
        return source.n_rows <= _FEW_ROWS

    def propose(
        self, at: Position[DPMixtureModel, Components, MixtureStats]
    ) -> Proposal | None:
        known, n_failed, shaken, last = self.state
        model, total, updated = at.model.at(at.updated), at.total, at.updated
        bound = model.best_bound(total)
        self.state = known, n_failed, shaken, bound
        # One component makes a prior of its own, under which nothing splits it: few
        # rows are split while it is learned, and again when it is.
        alone = total.K == 1 and updated.visits <= _EARLY
        first = alone or bool(np.isneginf(last))
        slow = first or bound - last < _SLOW * total.mass
        slow = slow and self.replace_births(self.source)
        if n_failed >= _PATIENCE or not (at.converged or slow):
            return None
        if np.any(total.seen < updated.N * (1.0 - 1e-9)):
            return None  # rows seen earlier, in a stream, cannot be refitted
        marks = _marks(updated.N, updated.S)
        fresh = ~_known(marks, known)
        worth = self._shakes() and not first and bound > shaken + _WORTH * total.mass
        if not fresh.any() and not worth:
            return None
        known = known if first else [*known, *marks[fresh].tolist()]
        region, price = self._region(model, updated), _removal_prices(at)
        columns = compared(model.family).n_columns + 1
        far = -price > min(_FAR * columns, _FARTHEST) * updated.N
        targets = np.argsort(-price, kind="stable")
        most = None if region.rows_each == 1.0 else _MOST_TRIALS
        done = self._refits(region, targets[fresh[targets]][:most], far)
        if not done and worth:
            shaken, done = bound, list(self._shaken(region, far))
        self.state = known, n_failed, shaken, bound
        return _proposal(model, total, updated, region, done) if done else None

    def on_outcome(
        self, note: tuple[int, tuple[tuple[str, int], ...]], change: float, kept: bool
    ) -> None:
        iteration, done = note
        for kind, target in done:
            self.records.note(iteration, kind, (target,), kept, -change)
        known, n_failed, shaken, last = self.state
        self.state = known, 0 if kept else n_failed + 1, shaken, last

    def _shakes(self) -> bool:
        few = self.source.n_rows <= _MOST_ROWS
        return few and {"birth", "merge"} <= set(self.kinds)

    def _region(self, model: DPMixtureModel, params: Components) -> _Region:
        """Rows with their shares in all components."""
        sample = draw(self.source, self.weights, _MOST_ROWS, self.rng)
        X, mass = model.reduced(sample.rows), sample.weight().sum()
        rows_each = max(1.0, float(params.mass / mass))
        weights = sample.weight() * rows_each
        dense = replace(model, n_active=None)
        stats, support, r = dense.share_out(params, X, weights)
        R = np.zeros((len(X), params.K))
        counts = np.diff(support.starts)
        R[np.repeat(np.arange(len(X)), counts), support.components] = r
        return _Region(
            dense, X, weights, rows_each, params.concentration, stats.N, stats.S, R,
            np.arange(params.K),
        )  # fmt: skip

    def _refits(
        self, region: _Region, targets: IntArray, far: NDArray[np.bool_]
    ) -> list[tuple[str, int]]:
        """Split or delete where it raises the bound; what was done."""
        done: list[tuple[str, int]] = []
        if "birth" in self.kinds and region.rows_each == 1.0:
            done = list(self._each(region, "birth", self._split, targets))
        if "delete" in self.kinds and not done:
            close = targets[~far[targets]]
            done = list(self._each(region, "delete", self._deleted, close))
        return done

    def _each(
        self,
        region: _Region,
        kind: str,
        attempt: Callable[[_Region, int], "_Refit | None"],
        targets: IntArray,
    ) -> Iterator[tuple[str, int]]:
        """Try each target once, unless it has changed meanwhile."""
        for target in map(int, targets):
            place = np.flatnonzero(region.origin == target)
            if not len(place) or region.N[place[0]] < self._fewest(region):
                continue
            refit = attempt(region, int(place[0]))
            if refit is not None:
                _applied(region, refit)
                yield kind, target

    def _shaken(
        self, region: _Region, far: NDArray[np.bool_]
    ) -> Iterator[tuple[str, int]]:
        """Shatter components here and there until it has not paid for long.

        Not where at most one has anybody near: pieces would join as they were.
        """
        n_close = int(np.count_nonzero(~far))
        vain = max(self.settings.shakes * n_close, _FEWEST_SHAKES) if n_close > 1 else 0
        if not self.replace_births(self.source):
            vain = min(vain, _MOST_TRIALS // 2)
        n_failed = n_tries = 0
        while n_failed < vain and n_tries < 2 * vain:
            k = int(self.rng.integers(region.K))
            origin, refit = int(region.origin[k]), self._shattered(region, k)
            n_failed, n_tries = n_failed + 1, n_tries + 1
            if refit is not None:
                _applied(region, refit)
                n_failed = 0
                yield "refit", max(origin, 0)

    def _fewest(self, region: _Region) -> float:
        return 0.0 if region.rows_each == 1.0 else _FEWEST * region.rows_each

    def _deleted(self, region: _Region, k: int) -> _Refit | None:
        """Give the rows of a component to its neighbours."""
        if region.K < 2:
            return None
        near = _neighbours(region, k)[:_N_NEIGHBOURS]
        local = _Local(region, np.append(near, k))
        return local.refitted(region.N[near], region.S[near])

    def _split(self, region: _Region, k: int) -> _Refit | None:
        """Fit the rows of a component afresh.

        Few components leave the prior wide, so that many small ones do not pay: these
        are tried with ever fewer seeds, too.
        """
        n_new = self.settings.n_new
        few = region.K <= _FEW_COMPONENTS
        for n in (n_new, n_new // 2, n_new // 4, 2) if few else (n_new,):
            refit = self._afresh(region, k, max(2, n))
            if refit is not None:
                return refit
        return None

    def _afresh(self, region: _Region, k: int, n_new: int) -> _Refit | None:
        local = _Local(region, np.array([k]))
        if len(local.rows) < 2:
            return None
        weights, rows_each = local.weights / region.rows_each, region.rows_each
        stats = create(
            local.model, local.X, weights, rows_each, n_new, self.settings.n_iter,
            self.rng,
        )  # fmt: skip
        if self.settings.max_components - region.K + 1 < stats.K or stats.K == 1:
            return None
        return local.refitted(stats.N, stats.S)

    def _shattered(self, region: _Region, k: int) -> _Refit | None:
        """Cut a component and its neighbours in pieces, and let these join anew."""
        if region.K < 2:
            return None
        n = int(self.rng.choice(_N_SHATTERED))
        old = np.append(_neighbours(region, k)[:n], k)
        local = _Local(region, old)
        labels = region.R[np.ix_(local.rows, old)].argmax(axis=1)
        stats = shattered(
            local.model, local.X, local.weights, labels, _N_PIECES,
            self.settings.n_iter, self.rng,
        )  # fmt: skip
        if self.settings.max_components - region.K + len(old) < stats.K:
            return None
        return local.refitted(stats.N, stats.S)


def _removal_prices(
    at: Position[DPMixtureModel, Components, MixtureStats],
) -> Array:
    """What the bound gains if a component is removed and the others stay frozen."""
    family, updated = at.updated.family, at.updated
    N, S = updated.N, updated.S
    own = updated.expected.total(N, S) - family.evidence(N, S)
    gains = removal_gains(N, updated.concentration)
    out: Array = own + gains - at.total.removal_cost
    return out


def _marks(N: Array, S: Array) -> Array:
    """By which components are known again: log count, and two products of E[t(x)]."""
    means = S / np.maximum(N, 1e-12)[:, None]
    means /= np.maximum(np.linalg.norm(means, axis=1), 1e-300)[:, None]
    angles = np.arange(1, S.shape[1] + 1)
    logs = np.log(np.maximum(N, 1e-300))
    return np.column_stack([logs, means @ np.cos(angles), means @ np.sin(angles)])


def _known(marks: Array, known: list[list[float]]) -> NDArray[np.bool_]:
    """Which components were tried at about their present sums."""
    if not known:
        return np.zeros(len(marks), np.bool_)
    apart = np.abs(marks[:, None, :] - np.array(known)).max(axis=2)
    out: NDArray[np.bool_] = apart.min(axis=1) <= _SAME
    return out


def _neighbours(region: _Region, k: int) -> IntArray:
    """Other components by how well they suit the rows of k."""
    N, S = region.N, region.S
    expected = region.model.family.expect(N, S)
    scores = expected.eta @ (S[k] / max(N[k], 1e-12)) + expected.bias
    scores += np.log(np.maximum(N, 1e-12))
    order: IntArray = np.argsort(-scores, kind="stable")
    others: IntArray = order[order != k]
    return others


def _proposal(
    model: DPMixtureModel,
    total: MixtureStats,
    params: Components,
    region: _Region,
    done: list[tuple[str, int]],
) -> Proposal:
    """Components that changed are new ones, with their sums until the pass is over.

    All are in order of size, which is best for the sticks.
    """
    K, new = region.K, region.origin < 0
    N, S, tried = region.N.copy(), region.S.copy(), region.N.copy()
    waited = np.ones(K, np.int64)
    old = region.origin[~new]
    N[~new], S[~new] = total.N[old], total.S[old]
    tried[~new], waited[~new] = params.tried[old], params.waited[old]
    order = np.argsort(-N, kind="stable")
    old_to_new = np.full(total.K, -1)
    old_to_new[old] = np.argsort(order)[~new]
    provisional = MixtureStats.zeros(K, S.shape[1])
    provisional.N[:] = np.where(new, N, 0.0)[order]
    provisional.S[:] = np.where(new[:, None], S, 0.0)[order]
    N, S = N[order], S[order]
    noise = max(total.mass - float(N.sum()), 0.0)
    after = replace(
        model.learning(N, S).posterior(N, S, total.mass, noise),
        tried=tried[order],
        waited=waited[order],
        visits=params.visits - 1,
    )
    note = (params.visits - 1, tuple(done))
    return Proposal(
        model.ready(after, everyone=True), old_to_new, K,
        provisional=provisional, trial=True, note=note,
    )  # fmt: skip
