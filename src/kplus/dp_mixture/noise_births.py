"""Births from noise: rows that belong nowhere may belong together.

A group that was taken for noise before it had a component would stay noise, as births
are tried on the rows of components.
"""

from dataclasses import dataclass, replace

import numpy as np

from kplus.core.job import draw
from kplus.core.regroup import without
from kplus.core.types import Array, Blocks, Position, Proposal
from kplus.dp_mixture.birth import BirthSettings, beside, create, sampling_overfit
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.moves import MoveRecords
from kplus.dp_mixture.params import Components, MixtureStats
from kplus.dp_mixture.sticks import removal_gains, stick_evidence

__all__ = ["BornFromNoise"]

_MOST_ROWS = 10_000  # rows among which those of noise are looked for
_SAME = 0.02  # so little more or less noise is what was tried before
_PATIENCE = 3
_FEWEST = 2.0  # rows of a group
_MIN_GAIN = 1e-6  # nats per row by which the bound must rise


@dataclass
class BornFromNoise:
    """After convergence, fit the rows of noise afresh, on trial.

    The new components have the noise beside them, so that they need not take all of
    these rows. The next pass gives the exact bound, and the loop undoes what lowered
    it.
    """

    source: Blocks
    weights: Array | None
    rng: np.random.Generator
    records: MoveRecords
    settings: BirthSettings
    state: tuple[float, int] = (0.0, 0)  # noise at the last try; failures in succession

    def propose(
        self, at: Position[DPMixtureModel, Components, MixtureStats]
    ) -> Proposal | None:
        tried, n_failed = self.state
        model, total, updated = at.model.at(at.updated), at.total, at.updated
        if model.noise is None or not at.converged or n_failed >= _PATIENCE:
            return None
        if total.noise < _FEWEST or abs(total.noise - tried) <= _SAME * total.noise:
            return None
        if self.settings.max_components <= total.K:
            return None
        self.state = (total.noise, n_failed)
        born = self._create(model, total, updated)
        if born is None or self.settings.max_components < total.K + born.K:
            return None
        return _adopted(model, total, updated, born)

    def _create(
        self, model: DPMixtureModel, total: MixtureStats, params: Components
    ) -> MixtureStats | None:
        """Components of the rows of noise; None if these are best left as they are."""
        sample = draw(self.source, self.weights, _MOST_ROWS, self.rng)
        X, weights = sample.rows, sample.weight()
        everything = self.source.n_rows if self.weights is None else self.weights.sum()
        rows_each = max(1.0, float(everything / weights.sum()))
        model = replace(model, n_active=None)
        _, support, _ = model.share_out(params, X, weights)
        assert support.noise is not None
        X, weights = X[support.noise], weights[support.noise]
        if len(X) < 2:
            return None
        heavy = weights * rows_each
        mass = float(heavy.sum())
        model = model.beside_noise(total.noise - mass, total.mass - mass)
        model = beside(model, total.N, total.S)
        n_new, n_iter = self.settings.n_new, self.settings.n_iter
        born = create(model, X, weights, rows_each, n_new, n_iter, self.rng)
        born = _needed(model, X, heavy, born)
        gain = _gain(model, total, params.concentration, X, heavy, born)
        gain -= sampling_overfit(model, born.N, rows_each).sum()
        return born if gain > _MIN_GAIN * total.mass else None

    def on_outcome(self, note: int, change: float, kept: bool) -> None:
        tried, n_failed = self.state
        self.records.note(note, "birth", (-1,), kept, -change)
        self.state = (tried, 0 if kept else n_failed + 1)


def _needed(
    model: DPMixtureModel, X: Array, weights: Array, stats: MixtureStats
) -> MixtureStats:
    """Without components whose rows noise, or the others, describe as well.

    A fresh fit merges pairs only, and rows far out begin as components of their own;
    a row alone is noise.
    """
    while True:
        params = model.posterior(stats.N, stats.S, stats.mass, stats.noise)
        stats = model.share_out(params, X, weights)[0]
        N, S = params.N, params.S
        gains = params.expected.total(N, S) - model.family.evidence(N, S)
        gains += removal_gains(N, params.concentration) - stats.removal_cost
        gains[stats.N < _FEWEST] = np.inf
        worst = int(np.argmax(gains))
        if stats.K == 1 or not gains[worst] > 0.0:
            return stats
        stats = stats.regroup(without(stats.K, worst), stats.K - 1)


def _gain(
    model: DPMixtureModel,
    total: MixtureStats,
    concentration: float,
    X: Array,
    weights: Array,
    born: MixtureStats,
) -> float:
    """What the bound gains when rows of noise get components beside those of a fit."""
    assert model.noise is not None
    before = float(weights @ model.noise.log_density(X))
    before += model.noise.evidence(born.mass, born.mass)
    before += stick_evidence(np.sort(total.N)[::-1], concentration)
    after = born.entropy.sum() + born.base
    after += model.noise.evidence(born.noise, born.mass)
    every = np.sort(np.concatenate([total.N, born.N]))[::-1]
    after += stick_evidence(every, concentration)
    learned = model.learning(born.N, born.S)
    after += learned.family.evidence(born.N, born.S).sum()
    if learned.others is not None:
        for family, sign in ((learned.family, 1.0), (model.family, -1.0)):
            worth = family.evidence(*learned.others).sum() + family.log_hyperprior
            after += sign * worth
    return float(after - before)


def _adopted(
    model: DPMixtureModel, total: MixtureStats, params: Components, born: MixtureStats
) -> Proposal:
    """The components of the fit and the new ones, by falling size."""
    K, J = total.K, born.K
    N, S = np.concatenate([total.N, born.N]), np.concatenate([total.S, born.S])
    order = np.argsort(-N, kind="stable")
    place = np.argsort(order)
    provisional = MixtureStats.zeros(K + J, S.shape[1])
    provisional.N[place[K:]], provisional.S[place[K:]] = born.N, born.S
    N, S = N[order], S[order]
    noise = max(total.noise - float(born.N.sum()), 0.0)
    more = replace(
        model.learning(N, S).posterior(N, S, total.mass, noise),
        tried=np.concatenate([params.tried, np.zeros(J)])[order],
        waited=np.concatenate([params.waited, np.ones(J, np.int64)])[order],
        visits=params.visits - 1,
    )
    return Proposal(
        model.ready(more, everyone=True), place[:K], K + J,
        provisional=provisional, trial=True, note=params.visits - 1,
    )  # fmt: skip
