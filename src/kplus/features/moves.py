"""Changes to the set of features between two passes."""

from dataclasses import dataclass, replace

import numpy as np

from kplus.core.regroup import without
from kplus.core.types import Array, Position, Proposal
from kplus.features.model import FeatureModel, Features, FeatureSums
from kplus.linear.sums import regroup_features

__all__ = ["OpenFeatures", "RemoveFeature", "TidyFeatures"]


class TidyFeatures:
    """Drop features that no row has, fuse those with the same rows.

    Neither changes the fit; both save the penalty.
    """

    def propose(
        self, at: Position[FeatureModel, Features, FeatureSums]
    ) -> Proposal | None:
        total, updated = at.total, at.updated
        old_to_new = np.full(total.K, -1)
        same = total.same_rows()
        K = 0
        for k in np.flatnonzero(total.counts > 0.0):
            twin = int(np.argmax(same[k]))  # the first, k itself if there is no other
            if twin == k:
                old_to_new[k] = K
                K += 1
            else:
                old_to_new[k] = old_to_new[twin]
        if K == total.K:
            return None
        A = regroup_features(updated.A, old_to_new, K)
        return Proposal(replace(updated, A=A), old_to_new, K, exact=True)


class RemoveFeature:
    """After convergence, remove the feature worth least if it is worth less than λ²."""

    def propose(
        self, at: Position[FeatureModel, Features, FeatureSums]
    ) -> Proposal | None:
        total, updated = at.total, at.updated
        if not at.converged or total.K == 0:
            return None
        losses = total.losses(updated.A)
        k = int(np.argmin(losses))
        if losses[k] >= at.model.penalty * (1.0 - 1e-9):
            return None
        H = total.inverses()
        share = (H[:, :, k] / H[:, k, k, None])[total.group].T
        A = np.delete(updated.A - share * updated.A[k], k, axis=0)
        old_to_new = without(total.K, k)
        return Proposal(replace(updated, A=A), old_to_new, total.K - 1, exact=True)


@dataclass
class OpenFeatures:
    """After convergence, give the costliest rows features of their own (Algorithm 1).

    A row that costs more than λ² pays for its residual as a feature. Of several such
    rows, those count that the features opened before them leave above λ².
    """

    most: int

    def propose(
        self, at: Position[FeatureModel, Features, FeatureSums]
    ) -> Proposal | None:
        total, updated = at.total, at.updated
        n_free = self.most - total.K
        candidates = total.candidates
        if not at.converged or n_free <= 0 or not len(candidates.rows):
            return None
        new: list[Array] = []
        for cost, residual in zip(candidates.costs, candidates.residuals, strict=True):
            left = _left_by(residual, new)
            before = float(residual @ residual)
            if before > 0.0 and cost * float(left @ left) / before > at.model.penalty:
                new.append(left)
            if len(new) == n_free:
                break
        if not new:
            return None
        A = np.vstack([updated.A, *new])
        return Proposal(replace(updated, A=A), np.arange(total.K), len(A))


def _left_by(residual: Array, features: list[Array]) -> Array:
    """What some features leave of a residual if each is used where it helps."""
    for feature in features:
        less = residual - feature
        if less @ less < residual @ residual:
            residual = less
    return residual
