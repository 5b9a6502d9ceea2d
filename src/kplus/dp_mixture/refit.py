"""Refits of neighbouring components on the rows that they hold, all else fixed.

A delete or a merge with all else frozen is priced too high: others would move to where
rows were freed. A refit lets them, for a few iterations on the rows concerned. Where
these are all rows that the components hold, the change of the bound is exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from kplus.core.job import draw
from kplus.core.types import Array, Blocks, IntArray, Position, Proposal
from kplus.dp_mixture.birth import (
    BirthSettings,
    beside,
    create,
    sampling_overfit,
)
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.moves import MoveRecords
from kplus.dp_mixture.params import Components, MixtureStats
from kplus.dp_mixture.sticks import mean_log_weights, removal_gains, stick_evidence

__all__ = ["RefitComponents"]

_MOST_ROWS = 10_000  # rows that refits are made on
_SHARE = 1e-3  # rows take part of which the components have so much
_MOST_TRIALS = 40  # refits of each kind after a convergence
_N_NEIGHBOURS = 4  # components that take part in a delete
_N_ITER = 10
_HOPELESS = 15  # a refit ends when so many steps like the last would not be enough
_SAME = 1e-3  # counts this close belong to the component that was tried before
_MIN_GAIN = 1e-6  # nats per row by which the bound must rise
_FEWEST = 30.0  # rows of a sample that a component must have to be refitted
_PATIENCE = 3
_FAR = 1.5  # nats by row and column that rows of a component lose if nobody is near
_FARTHEST = 20.0  # nats by row; passes do not tell more than about 27 apart
_SMALL = 500.0  # births lose splits of small components, so that these are tried again


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

    def step(self, N: Array, S: Array) -> tuple[MixtureStats, Array]:
        """Share the rows out to components of these sums; (rows, K) shares as well."""
        model = self.model.learning(N, S)
        # What no component has is noise; nothing where there is none.
        params = model.posterior(N, S, self.mass, max(self.mass - float(N.sum()), 0.0))
        params = replace(params, log_weights=self.region.log_weights(self.others, N))
        stats, support, r = model.share_out(params, self.X, self.weights)
        R = np.zeros((len(self.X), len(N)))
        counts = np.diff(support.starts)
        R[np.repeat(np.arange(len(self.X)), counts), support.components] = r
        return stats, R

    def bound(self, stats: MixtureStats) -> float:
        """The bound of components beside the others, but for a constant."""
        model, region = self.model.learning(stats.N, stats.S), self.region
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
        region = self.region
        stats, _ = self.step(region.N[self.old], region.S[self.old])
        return self.bound(stats)

    def refitted(self, N: Array, S: Array) -> _Refit | None:
        """Iterate from these sums; None if the bound does not rise."""
        region = self.region
        before, previous = self.before(), -np.inf
        enough = before + _MIN_GAIN * region.weights.sum()
        for _ in range(_N_ITER):
            stats, R = self.step(N, S)
            filled = 1e-6 * self.mass < stats.N
            bound = self.bound(stats)
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
    """After convergence, deletes, splits and fresh fits of pairs, with others refitted.

    All rows if they are few, else a sample, on which the gain is lessened by the
    overfit. What raises the bound there is adopted on trial: the next pass over all
    rows gives the exact bound, and the loop undoes what lowered it.
    """

    source: Blocks
    weights: Array | None
    rng: np.random.Generator
    records: MoveRecords
    settings: BirthSettings
    kinds: tuple[str, ...]
    state: tuple[list[float], int] = field(default_factory=lambda: ([], 0))

    def propose(
        self, at: Position[DPMixtureModel, Components, MixtureStats]
    ) -> Proposal | None:
        known, n_failed = self.state
        model, total, updated = at.model.at(at.updated), at.total, at.updated
        if not at.converged or n_failed >= _PATIENCE:
            return None
        if np.any(total.seen < updated.N * (1.0 - 1e-9)):
            return None  # rows seen earlier, in a stream, cannot be refitted
        counts = np.array(known)[:, None]
        fresh = ~np.any(np.abs(updated.N - counts) <= _SAME * counts, axis=0)
        if not fresh.any():
            return None
        self.state = ([*known, *updated.N[fresh].tolist()], n_failed)
        region = self._region(model, updated)
        done = list(self._refits(region, at, np.flatnonzero(fresh)))
        if not done:
            return None
        return _proposal(model, total, updated, region, done)

    def on_outcome(
        self, note: tuple[int, tuple[tuple[str, int], ...]], change: float, kept: bool
    ) -> None:
        iteration, done = note
        for kind, target in done:
            self.records.note(iteration, kind, (target,), kept, -change)
        known, n_failed = self.state
        self.state = (known, 0 if kept else n_failed + 1)

    def _region(self, model: DPMixtureModel, params: Components) -> _Region:
        """Rows with their shares in all components."""
        sample = draw(self.source, self.weights, _MOST_ROWS, self.rng)
        X, mass = sample.rows, sample.weight().sum()
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
        self,
        region: _Region,
        at: Position[DPMixtureModel, Components, MixtureStats],
        targets: IntArray,
    ) -> Iterator[tuple[str, int]]:
        """Refit where it raises the bound; yield what was done."""
        price = _removal_prices(at)
        targets = targets[np.argsort(-price[targets], kind="stable")][:_MOST_TRIALS]
        columns = at.model.family.n_columns + 1
        far = -price > min(_FAR * columns, _FARTHEST) * at.updated.N
        attempts = []
        if "delete" in self.kinds:
            attempts.append(("delete", self._deleted))
        if "birth" in self.kinds:
            attempts.append(("birth", self._split))
            if "merge" in self.kinds:
                attempts.append(("refit", self._pair))
        for kind, attempt in attempts:
            if kind != "delete" and region.rows_each > 1.0:
                break
            for target in targets:
                place = np.flatnonzero(region.origin == target)
                if not len(place) or region.N[place[0]] < self._fewest(region):
                    continue
                if far[target] if kind != "birth" else at.updated.N[target] > _SMALL:
                    continue
                refit = attempt(region, int(place[0]))
                if refit is not None:
                    _applied(region, refit)
                    yield kind, int(target)

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
        return self._afresh(region, np.array([k]))

    def _pair(self, region: _Region, k: int) -> _Refit | None:
        if region.K < 2:
            return None
        return self._afresh(region, np.append(_neighbours(region, k)[:1], k))

    def _afresh(self, region: _Region, old: IntArray) -> _Refit | None:
        """Fit the rows of components afresh."""
        local = _Local(region, old)
        if len(local.rows) < 2:
            return None
        n_free = self.settings.max_components - region.K + len(old)
        n_new, n_iter = self.settings.n_new, self.settings.n_iter
        weights = local.weights / region.rows_each
        stats = create(
            local.model, local.X, weights, region.rows_each, n_new, n_iter, self.rng
        )
        if n_free < stats.K or stats.K == 1 == len(old):
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
