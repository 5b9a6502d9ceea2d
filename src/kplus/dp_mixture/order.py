"""The last step of a mixture's fit: components by size, rows assigned once more."""

from dataclasses import replace

import numpy as np

from kplus.core.types import IntArray, Position, Proposal
from kplus.dp_mixture.merge import carried_over
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.params import Components, Plan
from kplus.dp_mixture.stats import MixtureStats

__all__ = ["PresentComponents"]


_HARDLY = 0.5  # a component of fewer rows is none


class PresentComponents:
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
            K = max(1, int(np.count_nonzero(_HARDLY * self.lightest < total.N)))
        old_to_new = np.where(old_to_new < K, old_to_new, -1)
        shown = carried_over(
            at.model, at.params, total.regroup(old_to_new, K), old_to_new
        )
        plan = Plan(everyone=True, frozen=True)
        return Proposal(replace(shown, plan=plan), old_to_new, K)


def _ranked(total: MixtureStats) -> IntArray:
    """Components by falling count, equals by their mean statistics.

    Both are rounded, so that the order of rows, which rounds sums, does not decide.
    """
    means = total.S / np.maximum(total.N, 1e-12)[:, None]
    keys = np.round(means, 9).T[::-1]
    return np.lexsort((*keys, -np.round(total.N, 9)))
