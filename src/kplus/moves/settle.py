"""From overshooting steps to plain means, before a fit may rest."""

from dataclasses import replace

import numpy as np

from kplus.core.types import Proposal
from kplus.models.dp_means.fast import DPMeansModel
from kplus.models.dp_means.params import Centers
from kplus.models.dp_means.stats import ClusterSums

__all__ = ["SettleOnMeans"]


class SettleOnMeans:
    """At rest under overshooting steps: put the centres on the means and go on so."""

    name = "settle"

    def propose(
        self,
        model: DPMeansModel,
        params: Centers,
        total: ClusterSums,
        updated: Centers,
        resting: bool,
    ) -> Proposal | None:
        if not resting or params.relax == 1.0:
            return None
        plain = replace(params.moved_to(model.means(params, total)), relax=1.0)
        return Proposal(plain, np.arange(params.K), params.K)
