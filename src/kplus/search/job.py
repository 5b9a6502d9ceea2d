"""What a search is given, and what it returns."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kplus.core.errors import NotFiniteError
from kplus.core.types import Array, Blocks, Callback, IntArray
from kplus.models.dp_means.params import Lens
from kplus.search.path import PenaltyPath
from kplus.search.sample import Sample, draw

__all__ = ["Fitted", "Job"]

_SURELY_FINE = 1e100  # sums of squares of smaller numbers are finite


@dataclass(frozen=True)
class Job:
    """The data and how to go about them."""

    source: Blocks
    weights: Array | None
    rng: np.random.Generator
    n_threads: int = 1
    max_iter: int = 300
    tol: float = 1e-5
    callback: Callback | None = None

    def sample(self, size: int) -> Sample:
        sample = draw(self.source, self.weights, size, self.rng)
        largest = float(np.max(np.abs(sample.rows), initial=0.0))  # NaN if any is
        if not largest < _SURELY_FINE and not _squares_fit(sample.rows):
            raise NotFiniteError("A row of the sample")
        return sample


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


def _squares_fit(rows: Array) -> bool:
    """Whether all values, and the squares of their spread, are finite in float64."""
    wide = rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.max(wide, axis=0) - np.min(wide, axis=0)
        return bool(np.isfinite(np.sum(spread**2) * len(rows)))
