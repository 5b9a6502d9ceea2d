"""Births: new components from a fresh fit to the rows of one (section 3.1, Sup. 2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kplus.core.types import Array, Blocks, IntArray, Position, Proposal
from kplus.dp_mixture.fresh import create
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.moves import MoveRecords, pair_changes
from kplus.dp_mixture.params import Collected, Components, MixtureStats

__all__ = ["BirthSettings", "BornComponents", "beside"]

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
    shakes : int
        Few rows: how often each component is shattered in vain before no more are.
    """

    max_components: float = np.inf
    n_new: int = 10
    n_targets: int = 25
    n_iter: int = 8
    changed: float = 0.2
    n_rounds: int = 1
    patience: int = 3
    shakes: int = 3


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
