"""The components of a mixture: a posterior given counts and sums."""

from dataclasses import dataclass, field
from typing import ClassVar

from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.family import Expectations

__all__ = ["Components", "Plan"]


@dataclass(frozen=True)
class Plan:
    """What the next pass is to do besides its sums.

    Attributes
    ----------
    everyone : bool
        Compare each row with every component, not with its candidates only.
    frozen : bool
        Keep the parameters as they are through the whole pass.
    targets : int array or None
        Components whose rows are to be noted for births.
    seed : int
        Decides which rows are noted.
    """

    shapes: ClassVar[dict[str, str]] = {"targets": "t <K"}

    everyone: bool = True
    frozen: bool = False
    targets: IntArray | None = None
    seed: int = 0


@dataclass(frozen=True)
class Components:
    """q(v) and q(φ) of K components: the posterior given counts `N` and sums `S`.

    Attributes
    ----------
    expected : Expected
        Log-likelihoods under q(φ); see `kplus.observations`.
    log_weights : array of shape (K,)
        E_q[log w_k].
    concentration : float
    mass : float
        Summed weight of the rows that N and S come from; sums over fewer rows do not
        replace them.
    neighbours : int array of shape (K, n_neighbours)
        For each component those that explain its rows next best.
    tried : array of shape (K,)
        Count of each component when a birth was last tried there; 0: never.
    waited : int array of shape (K,)
        Passes since then.
    visits : int
        Passes so far.
    plan : Plan
    """

    shapes: ClassVar[dict[str, str]] = {
        "N": "K",
        "S": "K M",
        "log_weights": "K",
        "neighbours": "K n <K",
        "tried": "K",
        "waited": "K",
    }

    N: Array
    S: Array
    expected: Expectations
    log_weights: Array
    concentration: float
    mass: float
    neighbours: IntArray
    tried: Array
    waited: IntArray
    visits: int = 0
    plan: Plan = field(default=Plan())

    @property
    def K(self) -> int:
        return len(self.N)
