"""Run a chain: sweeps, what is noted of them, and the best sample."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kplus.core.declared import check, returned
from kplus.core.errors import CheckpointError
from kplus.core.journal import Journal, RngState, Stateful, checkpointed
from kplus.core.types import Array, Callback, Checkpointer, IntArray, PassInfo
from kplus.engine.blas import SINGLE_THREAD
from kplus.ibp.gibbs.chain import Bits, Chain, Settings
from kplus.ibp.gibbs.collapsed import CollapsedChain
from kplus.ibp.gibbs.factors import Observed
from kplus.ibp.gibbs.scales import Scales
from kplus.ibp.gibbs.uncollapsed import UncollapsedChain

__all__ = ["GibbsFit", "Start", "draw_ibp", "make_chain", "run", "tidy"]


@dataclass(frozen=True)
class Start:
    """Where a chain begins: Z, scales, and the factors if they are known."""

    Z: Bits
    scales: Scales
    A: Array | None = None


@dataclass(frozen=True)
class GibbsFit:
    """What a run leaves.

    Attributes
    ----------
    Z, components, scales, log_joint
        Of the best sample; `components` is E[A] given its Z.
    history : (n_iter,)
        The log-joint after each sweep.
    numbers, alphas, noises, factors : (n_iter,)
        Features, α, σx and σa after each sweep.
    samples : (⌈N/8⌉, columns) uint8 or None
        The columns of all samples kept, eight rows a byte.
    sizes : (n_kept,)
        Number of features of each sample kept.
    """

    Z: Bits
    components: Array
    scales: Scales
    log_joint: float
    history: Array
    numbers: IntArray
    alphas: Array
    noises: Array
    factors: Array
    samples: Bits | None
    sizes: IntArray


# --------------------------------------------------------------------------- start


def draw_ibp(N: int, alpha: float, most: int | None, rng: np.random.Generator) -> Bits:
    """Draw Z from the Indian buffet process; features beyond the limit are left out."""
    columns: list[Bits] = []
    counts = np.empty(0)
    for n in range(N):
        for k in np.flatnonzero(rng.random(len(counts)) < counts / (n + 1)):
            columns[k][n] = 1
            counts[k] += 1
        new = int(rng.poisson(alpha / (n + 1)))
        if most is not None:
            new = min(new, most - len(columns))
        for _ in range(new):
            columns.append(np.zeros(N, dtype=np.uint8))
            columns[-1][n] = 1
        counts = np.append(counts, np.ones(new))
    return np.column_stack(columns) if columns else np.zeros((N, 0), dtype=np.uint8)


def tidy(Z: Bits, A: Array | None, most: int | None) -> tuple[Bits, Array | None]:
    """Without features that no row has, and the rarest beyond the limit."""
    counts = Z.sum(axis=0, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")[:most]
    kept = np.sort(order[counts[order] > 0])
    return np.ascontiguousarray(Z[:, kept]), None if A is None else A[kept]


def make_chain(
    data: Observed, settings: Settings, start: Start, rng: np.random.Generator
) -> Chain:
    """The chain of a sampler."""
    with SINGLE_THREAD:
        if settings.sampler == "uncollapsed":
            return UncollapsedChain(
                data, settings, start.Z, start.scales, rng, A=start.A
            )
        return CollapsedChain(data, settings, start.Z, start.scales, rng)


# ----------------------------------------------------------------------------- run


_Values = tuple[float, float, float, float, float]
_State = tuple[list[_Values], list[Bits], list[int], tuple[float, Any]]


class _Trace:
    """Notes of each sweep; the samples, if they are to be kept; the best of them."""

    def __init__(self, store: bool) -> None:
        self.values: list[_Values] = []
        self.samples: list[Bits] = []
        self.sizes: list[int] = []
        self.best: tuple[float, Any] = (-np.inf, None)
        self._store = store

    @property
    def state(self) -> _State:
        return self.values, self.samples, self.sizes, self.best

    @state.setter
    def state(self, value: _State) -> None:
        self.values, self.samples, self.sizes, self.best = value

    def note(self, chain: Chain) -> None:
        s = chain.scales
        noise, factor = float(np.sqrt(s.noise)), float(np.sqrt(s.factor))
        self.values.append((chain.log_joint, chain.K, s.alpha, noise, factor))

    def keep(self, chain: Chain) -> None:
        self.sizes.append(chain.K)
        if self._store:
            self.samples.append(np.packbits(chain.Z[:, : chain.K], axis=0))
        if self.best[1] is None or chain.log_joint > self.best[0]:
            self.best = (chain.log_joint, chain.keep())

    def packed(self) -> Bits | None:
        if not self._store or not self.samples:
            return None
        return np.concatenate(self.samples, axis=1)


def run(
    chain: Chain,
    n_samples: int,
    burn_in: int,
    thin: int,
    store: bool = False,
    callback: Callback | None = None,
    journal: Journal | None = None,
) -> GibbsFit:
    """Sweep `burn_in` times, then `thin` times for each sample.

    The best sample is the one with the highest log-joint of those after the burn-in; if
    a callback ends the run before, it is the last state.
    """
    trace = _Trace(store)
    n_sweeps = burn_in + n_samples * thin
    sampled = range(burn_in + thin, n_sweeps + 1, thin)
    others: list[Stateful] = [RngState(chain.rng), chain, trace]
    with SINGLE_THREAD:
        sweeps = partial(_sweep, chain, trace, n_sweeps, sampled, callback)
        checkpointed(journal, others, sweeps, _check_nothing)
        if trace.best[1] is None:
            trace.best = (chain.log_joint, chain.keep())
        return _fit(chain, trace.best, trace)


def _sweep(
    chain: Chain,
    trace: _Trace,
    n_sweeps: int,
    sampled: range,
    callback: Callback | None,
    checkpointer: Checkpointer | None,
) -> None:
    """Let the chain go from where it stands; `sampled` tells which sweeps count."""

    def restore(done: Any) -> int:
        check(done, int, {}, "the number of sweeps")
        check(trace.best[1], returned(type(chain).keep) | None, {}, "the best sample")
        if not len(trace.values) == done <= n_sweeps:
            raise CheckpointError(f"{done} sweeps were done, {len(trace.values)} noted")
        return int(done)

    done = None if checkpointer is None else checkpointer.load(restore)
    if done is None:
        chain.draw_first_scales()
        done = 0
    for sweep in range(done + 1, n_sweeps + 1):
        chain.sweep()
        trace.note(chain)
        if sweep in sampled:
            trace.keep(chain)
        if callback is not None and callback(PassInfo(sweep, chain.log_joint, chain)):
            break
        if checkpointer is not None:
            checkpointer.save(partial(int, sweep))


def _check_nothing(value: Any) -> None:
    check(value, type(None), {}, "what sweeps return")


def _fit(chain: Chain, best: tuple[float, Any], trace: _Trace) -> GibbsFit:
    kept = best[1]
    notes = np.array(trace.values, dtype=np.float64)
    return GibbsFit(
        Z=kept[0],
        components=chain.mean_factors(kept),
        scales=kept[1],
        log_joint=best[0],
        history=notes[:, 0].copy(),
        numbers=notes[:, 1].astype(np.int64),
        alphas=notes[:, 2].copy(),
        noises=notes[:, 3].copy(),
        factors=notes[:, 4].copy(),
        samples=trace.packed(),
        sizes=np.array(trace.sizes, dtype=np.int64),
    )
