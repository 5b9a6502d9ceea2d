"""What chains over feature allocations have in common, and how to run one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.declared import check, check_shape, returned
from kplus.core.errors import CheckpointError
from kplus.core.journal import Journal, RngState, Stateful, checkpointed
from kplus.core.types import Array, Callback, Checkpointer, IntArray, PassInfo
from kplus.engine.blas import SINGLE_THREAD
from kplus.ibp.gibbs.conditionals import Observed
from kplus.ibp.gibbs.kernels_draws import Law
from kplus.ibp.gibbs.scales import Hyperprior, Scales, log_prior_of_state

__all__ = [
    "Bits",
    "Chain",
    "GibbsFit",
    "Settings",
    "Start",
    "pooled",
    "run_chain",
]

Bits = NDArray[np.uint8]
_UNLIMITED = 2**62
_STATE: dict[str, Any] = {
    "Z": Bits,
    "K": int,
    "counts": IntArray,
    "scales": Scales,
    "log_joint": float,
}


@dataclass(frozen=True)
class Settings:
    """How to sample.

    Attributes
    ----------
    sampler : {"accelerated", "collapsed", "uncollapsed"}
    nonnegative : bool
        Factors are half-normal; for the uncollapsed sampler only.
    enumerate_new : bool
        Draw the number of a row's own features from its conditional distribution,
        otherwise by Metropolis.
    most : int or None
        Largest number of features.
    hyper : Hyperprior
    """

    sampler: str
    nonnegative: bool
    enumerate_new: bool
    most: int | None
    hyper: Hyperprior


@dataclass(frozen=True)
class Start:
    """Where a chain begins: Z, scales, and the factors if they are known."""

    Z: Bits
    scales: Scales
    A: Array | None = None


class Chain:
    """The state of a chain: Z with room for more features, and scales.

    Parameters
    ----------
    data : Observed
    settings : Settings
    Z : (N, K) of 0 and 1
        Where to start; every feature has rows.
    scales : Scales
    rng : Generator
    """

    def __init__(
        self,
        data: Observed,
        settings: Settings,
        Z: Bits,
        scales: Scales,
        rng: np.random.Generator,
    ) -> None:
        self.data, self.settings, self.scales, self.rng = data, settings, scales, rng
        self.N, self.width = data.X.shape
        self.K = Z.shape[1]
        self.Z = np.ascontiguousarray(Z, dtype=np.uint8)
        self.counts = Z.sum(axis=0, dtype=np.int64)
        m = np.arange(1, max(self.N, 2))
        with np.errstate(divide="ignore"):  # the only row of a table has no others
            odds = np.log(m / (self.N - m))
        self._log_odds = np.concatenate(([0.0], odds))
        self.log_joint = -np.inf

    @property
    def state(self) -> dict[str, Any]:
        """The state, all but the random numbers, as plain values."""
        return {
            "Z": self.Z,
            "K": self.K,
            "counts": self.counts,
            "scales": self.scales,
            "log_joint": self.log_joint,
            **self._own_state(),
        }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        own = self._own_state()
        if value.keys() != _STATE.keys() | own.keys():
            raise CheckpointError("the state is that of another chain")
        for name, kind in (_STATE | dict.fromkeys(own, Array)).items():
            check(value[name], kind, {}, f"{name} of the chain")
        sizes = {"N": self.N}
        check_shape(value["Z"], "N C", sizes, {}, "Z of the chain")
        check_shape(value["counts"], "C", sizes, {}, "the counts of the chain")
        if not 0 <= value["K"] <= sizes["C"]:
            raise CheckpointError(f"the chain has {value['K']} features")
        self.Z, self.K, self.counts = value["Z"], value["K"], value["counts"]
        self.Z[:, self.K :] = 0  # as kernels expect
        self.scales, self.log_joint = value["scales"], value["log_joint"]
        self._restore(value)

    # ------------------------------------------------------------ what chains differ in

    def _own_state(self) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, state: dict[str, Any]) -> None:
        """Restore what `_own_state` gave."""
        raise NotImplementedError

    def sweep(self) -> None:
        """Draw everything once, and set `log_joint`."""
        raise NotImplementedError

    def draw_first_scales(self) -> None:
        """Draw scales that go with the first Z.

        With too little noise every row would begin with features of its own.
        """
        raise NotImplementedError

    def keep(self) -> Any:
        """What `mean_factors` needs to know of the present state."""
        raise NotImplementedError

    def mean_factors(self, kept: Any) -> Array:
        """E[A] given the Z and scales of a state that was kept."""
        raise NotImplementedError

    def _resize(self, capacity: int) -> None:
        """Make room in arrays other than Z and counts."""
        raise NotImplementedError

    # ----------------------------------------------------------------------- the rest

    def bits(self) -> Bits:
        """The present Z, a copy."""
        return self.Z[:, : self.K].copy()

    def _law(self) -> Law:
        rate = self.scales.alpha / self.N
        return Law(
            noise=self.scales.noise,
            ratio=self.scales.noise / self.scales.factor,
            rate=rate,
            width=self.width,
            most=_UNLIMITED if self.settings.most is None else self.settings.most,
            most_singles=self._most_singles(rate),
            log_odds=self._log_odds,
            enumerate_new=self.settings.enumerate_new,
        )

    def _most_singles(self, rate: float) -> int:
        """More features of its own than a row will ever have."""
        plenty = int(rate + 10.0 * np.sqrt(rate)) + 10
        most = self.settings.most
        return plenty if most is None else min(plenty, most)

    def _draw_rows(self, kernel: Callable[..., tuple[int, int]]) -> None:
        """Let a kernel pass over all rows, with room for new features."""
        law, row = self._law(), 0
        while row < self.N:
            if self.K + law.most_singles > self.Z.shape[1]:
                capacity = 2 * self.K + law.most_singles
                self.Z = _wider(self.Z, capacity)
                self.counts = np.resize(self.counts, capacity)
                self._resize(capacity)
            row, self.K = kernel(law, row, self.K)

    def _log_prior(self) -> float:
        counts = self.counts[: self.K].astype(np.float64)
        settings = self.settings
        return log_prior_of_state(
            counts, self.N, self.scales, settings.hyper, settings.most
        )


def _wider(Z: Bits, capacity: int) -> Bits:
    wide = np.zeros((len(Z), capacity), dtype=np.uint8)
    wide[:, : Z.shape[1]] = Z
    return wide


# -------------------------------------------------------------------------------- a run


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
        The columns of all samples kept, eight rows per byte.
    sizes : (n_kept,)
        Number of features of each sample kept.
    chains : tuple of GibbsFit
        All chains of a run of several, itself the one with the best sample and the
        samples of all.
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
    chains: tuple["GibbsFit", ...] = ()


def pooled(chains: Sequence[GibbsFit]) -> GibbsFit:
    """The chain with the best sample, with the samples of all."""
    best = max(chains, key=lambda chain: chain.log_joint)
    samples = [chain.samples for chain in chains if chain.samples is not None]
    return replace(
        best,
        samples=np.concatenate(samples, axis=1) if samples else None,
        sizes=np.concatenate([chain.sizes for chain in chains]),
        chains=tuple(chains),
    )


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


def run_chain(
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
    """Run the sweeps that are left; `sampled` are the numbers of those to keep."""

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
