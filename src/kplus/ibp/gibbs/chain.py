"""What chains over feature allocations have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.declared import check, check_shape
from kplus.core.errors import CheckpointError
from kplus.core.types import Array, IntArray
from kplus.ibp.gibbs.factors import Observed
from kplus.ibp.gibbs.kernels_draws import Law
from kplus.ibp.gibbs.scales import Hyperprior, Scales, log_prior_of_state

__all__ = ["Bits", "Chain", "Settings"]

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
        self.scales, self.log_joint = value["scales"], value["log_joint"]
        self._restore(value)

    # ------------------------------------------------------------ what chains differ in

    def _own_state(self) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, state: dict[str, Any]) -> None:
        """Take up what `_own_state` gave."""
        raise NotImplementedError

    def sweep(self) -> None:
        """Draw everything once, and set `log_joint`."""
        raise NotImplementedError

    def draw_first_scales(self) -> None:
        """Draw scales that go with the first Z; else rows would first pay for those.

        With too little noise every row begins with features of its own.
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
