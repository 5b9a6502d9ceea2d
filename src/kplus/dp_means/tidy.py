"""After a pass that opened and emptied clusters on its way."""

from typing import Any

import numpy as np

from kplus.core.regroup import without
from kplus.core.types import Position, Proposal
from kplus.dp_means.sequential import Means, Tally

__all__ = ["TidyUp"]


class TidyUp:
    """Drop the clusters that lost all their rows; no rest while passes open some."""

    def propose(self, at: Position[Any, Means, Tally]) -> Proposal | None:
        params, total = at.params, at.total
        empty = np.flatnonzero(total.members == 0)
        if not len(empty) and not len(total.born):
            return None
        old_to_new = without(params.K, empty)
        return Proposal(
            at.updated.regroup(old_to_new), old_to_new, params.K - len(empty)
        )
