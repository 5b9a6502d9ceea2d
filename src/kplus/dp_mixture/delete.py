"""Deletes: components whose rows are as well off without them."""

import numpy as np

from kplus.core.regroup import without
from kplus.core.types import Position, Proposal
from kplus.dp_mixture.merge import carried_over
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.params import Components
from kplus.dp_mixture.records import MoveRecords
from kplus.dp_mixture.stats import MixtureStats
from kplus.dp_mixture.sticks import removal_gains

__all__ = ["DeleteComponent"]

_SAME = 0.02  # counts this close belong to the component that was tried before


class DeleteComponent:
    """At rest, take a component away where the bound would gain, on trial.

    The last pass has summed what its rows would lose at most under the other
    components as they are; against that stand its divergence from the prior and its
    stick. The next pass shows the exact bound, and the loop takes back what failed.
    """

    state: list[float]  # sizes of components that were needed

    def __init__(self, records: MoveRecords) -> None:
        self.records = records
        self.state = []

    def propose(
        self, at: Position[DPMixtureModel, Components, MixtureStats]
    ) -> Proposal | None:
        model, total, updated = at.model, at.total, at.updated
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
        new = carried_over(model, updated, rest, old_to_new)
        note = (updated.visits - 1, target, float(N[target]))
        return Proposal(new, old_to_new, total.K - 1, trial=True, note=note)

    def on_outcome(
        self, note: tuple[int, int, float], change: float, kept: bool
    ) -> None:
        iteration, target, count = note
        self.records.note(iteration, "delete", (target,), kept, -change)
        if not kept:
            self.state.append(count)
