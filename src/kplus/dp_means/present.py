"""The last step of a fit: clusters in an order of their own, centres as stored."""

from dataclasses import replace

import numpy as np

from kplus.core.types import Position, Proposal
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.params import Centers
from kplus.dp_means.stats import ClusterSums

__all__ = ["PresentClusters"]


class PresentClusters:
    """Number the clusters by falling size, equals by their centres.

    Centres are rounded to what the data's units can hold. Both may decide a row that
    is equally far from two centres, so the sweep that follows makes the labels equal
    to what `predict` will say.
    """

    def __init__(self, keep_order: bool = False) -> None:
        self.keep_order = keep_order

    def propose(
        self, at: Position[DPMeansModel, Centers, ClusterSums]
    ) -> Proposal | None:
        params = at.params
        stored = params.lens.back(params.centers)
        if self.keep_order:
            order = np.arange(params.K)
        else:
            order = np.lexsort((*stored.T[::-1], -at.total.counts))
        old_to_new = np.argsort(order)
        rounded = params.moved_to(params.lens.view(stored))
        shown = replace(rounded.regroup(old_to_new), relax=1.0)
        return Proposal(shown, old_to_new, params.K)
