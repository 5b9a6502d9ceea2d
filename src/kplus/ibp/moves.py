"""Changes to the features of an Indian buffet process between two passes."""

import numpy as np
from scipy.special import gammaln

from kplus.core.regroup import without
from kplus.core.types import Array, Position, Proposal
from kplus.ibp.meibp_model import IBPParams, MEIBPModel, renumbered
from kplus.ibp.stats import IBPSums

__all__ = ["DropEmpty", "DropFeature", "removal_upper_bounds"]

_REFITTED = 3  # of the features that are missed least
_SLACK = 10.0  # what scales that follow may add to a hope, in nats


class DropEmpty:
    """Drop features that no row has; the bound leaves them out already."""

    def propose(self, at: Position[MEIBPModel, IBPParams, IBPSums]) -> Proposal | None:
        empty = at.total.counts <= 0.0
        if not empty.any():
            return None
        old_to_new = without(at.total.K, empty)
        K = int(np.count_nonzero(~empty))
        fewer = renumbered(at.updated, old_to_new, K, at.updated.factors.mean[:0])
        return Proposal(fewer, old_to_new, K, exact=True)


class DropFeature:
    """At rest, drop a feature if the bound is higher without it, all else refitted.

    Rows keep their other features, so that the sums tell the bound exactly.
    """

    def propose(self, at: Position[MEIBPModel, IBPParams, IBPSums]) -> Proposal | None:
        model, total, updated = at.model, at.total, at.updated
        K = total.K
        if not at.converged or K == 0 or not np.all(total.counts > 0.0):
            return None
        most = removal_upper_bounds(updated, total)
        now = model.bound(updated, total)
        for k in np.argsort(most)[::-1][:_REFITTED]:
            if not most[k] > -_SLACK:
                return None
            old_to_new = without(K, int(k))
            fewer = renumbered(updated, old_to_new, K - 1, updated.factors.mean[:0])
            sums = total.regroup(old_to_new, K - 1)
            refitted = model.update(fewer, sums)
            if model.bound(refitted, sums) > now:
                return Proposal(refitted, old_to_new, K - 1, exact=True)
        return None


def removal_upper_bounds(params: IBPParams, total: IBPSums) -> Array:
    """At most what the bound could gain by dropping each feature, given the scales.

    That is what a feature costs in the priors, less what its squares explain that the
    others, refitted without regard to any prior, cannot.
    """
    N, counts, A = total.weight, total.counts, params.factors.mean
    column = gammaln(N - counts + 1.0) + gammaln(counts) - gammaln(N + 1.0)
    prior = column + np.log(params.alpha) - np.log(total.K)
    costs = -params.factors.own_gains(params.spread) - prior
    explained = total.losses(A)
    explained[total.same_rows().sum(axis=1) > 1] = 0.0
    most: Array = costs - 0.5 * explained / params.noise
    return most
