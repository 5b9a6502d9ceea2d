"""What a search for clusters returns."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kplus.core.types import Array, IntArray
from kplus.dp_means.params import Lens
from kplus.dp_means.penalty_path import PenaltyPath

__all__ = ["Fitted", "by_size"]


@dataclass(frozen=True)
class Fitted:
    """A fit in the units of the data.

    `errors` are the squared distances of each cluster to its centre; `means` differ
    from the centres where a fit ended before these came to rest. `path` is what the
    number was chosen from, if it was. With `covariances`, distances are Mahalanobis
    distances.
    """

    lens: Lens
    centers: Array
    means: Array
    labels: IntArray
    counts: Array
    errors: Array
    penalty: float
    history: Array
    converged: bool
    path: PenaltyPath | None = None
    covariances: Array | None = None

    @property
    def objective(self) -> float:
        return float(self.history[-1])

    def at_penalty(self, penalty: float) -> Self:
        """The same clusters, charged a penalty each after the first."""
        charge = penalty * (len(self.centers) - 1)
        return replace(self, penalty=penalty, history=self.history + charge)

    def with_earlier(self, counts: Array, errors: Array) -> Self:
        """Together with rows seen earlier, of the first so many clusters."""
        after = (0, len(self.counts) - len(counts))
        return replace(
            self,
            counts=self.counts + np.pad(counts, after),
            errors=self.errors + np.pad(errors, after),
            history=self.history + errors.sum(),
        )


def by_size(centers: Array, counts: Array) -> IntArray:
    """Clusters by falling size, equals by their centres."""
    return np.lexsort((*centers.T[::-1], -counts))
