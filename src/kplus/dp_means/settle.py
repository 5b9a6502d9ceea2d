"""From overshooting steps to plain means, before a fit may rest."""

from dataclasses import replace

import numpy as np

from kplus.core.types import Position, Proposal
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.params import Centers
from kplus.dp_means.stats import ClusterSums

__all__ = ["SettleOnMeans"]


class SettleOnMeans:
    """At rest under overshooting steps: put the centres on the means and go on so."""

    def propose(
        self, at: Position[DPMeansModel, Centers, ClusterSums]
    ) -> Proposal | None:
        params = at.params
        if not at.converged or params.relax == 1.0:
            return None
        plain = replace(params.moved_to(at.model.means(params, at.total)), relax=1.0)
        return Proposal(plain, np.arange(params.K), params.K)
