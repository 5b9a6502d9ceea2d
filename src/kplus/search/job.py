"""What a search is given."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from kplus.core.errors import NotFiniteError
from kplus.core.types import Array, Blocks, Callback
from kplus.engine import BlockEngine, make_engine
from kplus.engine.meter import Meter
from kplus.engine.resources import Resources
from kplus.search.journal import Chance, Journal, Remembering, watched
from kplus.search.sample import Sample, draw

__all__ = ["Job"]

T = TypeVar("T")

_SURELY_FINE = 1e100  # sums of squares of smaller numbers are finite


@dataclass(frozen=True)
class Job:
    """The data and how to go about them; a journal watches loops over all rows.

    Starts that no callback is told of ask `ended` after each pass whether to go on.
    """

    source: Blocks
    weights: Array | None
    rng: np.random.Generator
    n_threads: int = 1
    max_iter: int = 300
    tol: float = 1e-5
    callback: Callback | None = None
    ended: Callable[[], bool] = lambda: False
    journal: Journal | None = None
    resources: Resources = field(default_factory=Resources)
    meter: Meter | None = None

    def engine(self) -> BlockEngine:
        """An engine for loops over all rows."""
        resources = self.resources
        if self.journal is not None:
            resources = replace(resources, lasting=self.journal.rows)
        return make_engine(
            self.source, self.weights, self.n_threads, resources, self.meter
        )

    def aside(
        self, source: Blocks, weights: Array | None = None, **changes: Any
    ) -> "Job":
        """The same for some of the rows; nobody is told of it."""
        unseen = replace(self, callback=None, journal=None, meter=None)
        return replace(unseen, source=source, weights=weights, **changes)

    def alone(self) -> "Job":
        """The same for one thread, which takes blocks in order: nobody can help it."""
        resources = replace(self.resources, client=None)
        return replace(self, n_threads=1, resources=resources)

    def watched(self, loop: Callable[..., T], *others: Remembering) -> T:
        """What a loop over all rows finds, or found before a crash; see `journal`."""
        return watched(self.journal, [Chance(self.rng), *others], loop)

    def sample(self, size: int) -> Sample:
        sample = draw(self.source, self.weights, size, self.rng)
        largest = float(np.max(np.abs(sample.rows), initial=0.0))  # NaN if any is
        if not largest < _SURELY_FINE and not _squares_fit(sample.rows):
            raise NotFiniteError("A row of the sample")
        return sample


def _squares_fit(rows: Array) -> bool:
    """Whether all values, and the squares of their spread, are finite in float64."""
    wide = rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.max(wide, axis=0) - np.min(wide, axis=0)
        return bool(np.isfinite(np.sum(spread**2) * len(rows)))
