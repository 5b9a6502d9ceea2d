"""Centres of DP-means, their scaling, and how far they moved, for the kernels."""

import math
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray
from kplus.dp_means.kernels_bounds import Drift, Frame

__all__ = ["Centers", "Scaling"]

_FITS_FLOAT32 = 1e38  # squares up to this are numbers in float32
_MOST_PAIRS = 2048  # beyond that many centres the table of their distances is too big


def _tier_widths(K: int, least: int) -> IntArray:
    """Halve K while BLAS still has something to do, not below `least`."""
    widths = [K]
    while len(widths) < 6 and widths[0] // 2 >= max(least, 4):
        widths.insert(0, widths[0] // 2)
    return np.array(widths)


def _narrow(centers: Array, half: Array) -> tuple[Array, Array, float]:
    """Centres and |c|²/2 as float32, and the largest norm.

    What overflows becomes infinite, which the kernels expect.
    """
    most = float(half.max())
    if most < _FITS_FLOAT32:
        narrow, half32 = centers.astype(np.float32), half.astype(np.float32)
    else:
        with np.errstate(over="ignore"):
            narrow, half32 = centers.astype(np.float32), half.astype(np.float32)
    return narrow, half32, math.sqrt(2.0 * most)


@lru_cache(maxsize=256)
def _nothing_known(K: int) -> dict[str, Any]:
    """The drift of K centres of which nothing is known, but for the centres."""
    nowhere = np.full(K, 1e300)  # infinite bounds must not meet infinite drifts
    places = np.arange(K)
    return {
        "own": np.zeros(K),
        "others": nowhere,
        "gaps": -nowhere,
        "order": places,
        "rank": places,
        "widths": np.array([K]),
        "beyond": np.zeros(1),
    }


def _largest_other(values: Array) -> Array:
    """For each value the largest of all others; 0 where there are none."""
    if len(values) == 1:
        return np.zeros(1)
    second, first = np.partition(values, -2)[-2:]
    others: Array = np.where(values == first, second, first)
    return others


@dataclass(frozen=True, slots=True)
class Scaling:
    """Scaled units of rows: ``y = (x - origin) * inv``.

    Centring keeps float32 products accurate under any offset, by the median so that a
    few far rows do not matter; `inv` is a power of two, so scaling is exact, and keeps
    squares inside float32's range.
    """

    shapes: ClassVar[dict[str, str]] = {"origin": "D"}

    origin: Array
    inv: float

    @classmethod
    def fit(cls, rows: Array) -> "Scaling":
        """Origin at the median of some rows, unit near their largest deviation."""
        rows = rows.astype(np.float64)
        origin = np.median(rows, axis=0)
        spread = np.max(np.abs(rows - origin), initial=0.0)
        if spread == 0.0:
            return cls(origin, 1.0)
        power = np.clip(-np.floor(np.log2(spread)), -1000.0, 1000.0)
        return cls(origin, float(2.0**power))

    def transform(self, rows: Array) -> Array:
        """Rows in scaled units."""
        scaled: Array = (rows - self.origin) * self.inv
        return scaled

    def inverse_transform(self, scaled: Array) -> Array:
        """Rows in the units of the data."""
        rows: Array = scaled / self.inv + self.origin
        return rows

    def transform_squared(self, value: float) -> float:
        """A squared distance in scaled units, without squaring `inv`."""
        return value * self.inv * self.inv

    def inverse_transform_squared(self, value: Any) -> Any:
        """Squared distances in the units of the data."""
        return value / self.inv / self.inv


@dataclass(frozen=True)
class Centers:
    """Cluster centres, in scaled units.

    Attributes
    ----------
    centers : array of shape (K, D)
    refs : array of shape (K, D)
        The fixed points that the statistics of each cluster are taken about, near
        its centre, so that sums of squares do not cancel.
    travel : array of shape (K,)
        How far each centre has moved since it was born; differences of it move
        the bounds of rows that were last seen some updates ago.
    mass : array of shape (K,)
        Weight of rows seen earlier in a stream, all taken to lie at `refs`.
    relax : float
        An update moves each centre by this much of the way to the mean. Beyond 1 it
        overshoots, which converges in fewer passes; up to 2 the objective never
        rises, since the squared distance to the mean does not.
    report_farthest : bool
        Report the costliest rows even if none exceeds the penalty.
    recheck : bool array of shape (K,) or None
        Clusters whose removal is to be measured exactly.
    exact_removal_cost : array of shape (K,) or None
        Exact costs of removal at these centres, NaN where not known.
    """

    shapes: ClassVar[dict[str, str]] = {
        "centers": "K D",
        "refs": "K D",
        "travel": "K",
        "mass": "K",
        "recheck": "K",
        "exact_removal_cost": "K",
    }

    scaling: Scaling
    centers: Array
    refs: Array
    travel: Array
    mass: Array
    relax: float = 1.0
    report_farthest: bool = False
    recheck: NDArray[np.bool_] | None = None
    exact_removal_cost: Array | None = None
    _latest: tuple[Array | None, Drift] | None = field(default=None, init=False)

    @classmethod
    def start(cls, scaling: Scaling, centers: Array) -> "Centers":
        zeros = np.zeros(len(centers))
        return cls(scaling, centers, centers.copy(), zeros, zeros)

    def __getstate__(self) -> dict[str, Any]:
        """Without what was computed for the kernels: workers compute it, too."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    @property
    def K(self) -> int:
        return len(self.centers)

    @cached_property
    def norms(self) -> Array:
        """Squared norms of the centres."""
        norms: Array = np.einsum("kd,kd->k", self.centers, self.centers)
        return norms

    @cached_property
    def pairs(self) -> Array | None:
        """Lower bounds of the distances between centres; None when there are many."""
        if self.K > _MOST_PAIRS:
            return None
        C, norms = self.centers, self.norms
        squares = norms[:, None] + norms - 2.0 * (C @ C.T)
        slack = (C.shape[1] + 8) * 2.0**-50 * (norms[:, None] + norms)
        pairs: Array = np.sqrt(np.maximum(squares - slack, 0.0)) * (1.0 - 2.0**-20)
        np.fill_diagonal(pairs, np.inf)
        return pairs

    @cached_property
    def halves(self) -> Array:
        """Half the distance to the nearest other centre: closer rows stay."""
        if self.pairs is None:
            halves = np.zeros(self.K)
        else:
            halves = 0.5 * self.pairs.min(axis=1)
        return halves

    def frame(self, reach: float, halves: Array | None = None) -> Frame:
        """The centres for the kernels; without `halves` no row stays for being near."""
        origin, inv = self.scaling.origin, self.scaling.inv
        if halves is None:
            halves = np.zeros(self.K)
        return Frame(origin, inv, self.centers, self.refs, halves, reach)

    @cached_property
    def unknown_drift(self) -> Drift:
        """For few rows: take nothing as known, compare every row with every centre."""
        narrow, half, widest = _narrow(self.centers, 0.5 * self.norms)
        return Drift(narrow=narrow, half=half, widest=widest, **_nothing_known(self.K))

    def drift(self, then: Array | None) -> Drift:
        """How the centres moved since `travel` was `then` (None: nothing is known).

        Blocks of one pass were mostly last visited together, so the latest answer is
        kept.
        """
        if self._latest is None or self._latest[0] is not then:
            object.__setattr__(self, "_latest", (then, self._drift_since(then)))
        return self._latest[1]  # type: ignore[index]

    def _drift_since(self, then: Array | None) -> Drift:
        born = np.ones(self.K, np.bool_) if then is None else np.isnan(then)
        n_born = int(np.count_nonzero(born))
        own = self.travel - (0.0 if then is None else then)
        ranked, gaps = own, np.full(self.K, np.inf)
        if n_born:
            own[born] = 0.0
            ranked = np.where(born, np.inf, own)
            gaps = self._gaps(born)
        order = np.argsort(-ranked, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(self.K)
        widths = _tier_widths(self.K, n_born)
        beyond = np.zeros(len(widths))  # of the widest tier: there are no others
        beyond[:-1] = ranked[order[widths[:-1]]]
        return Drift(
            own, _largest_other(own), gaps, order, rank,
            *_narrow(self.centers[order], 0.5 * self.norms[order]), widths, beyond,
        )  # fmt: skip

    def _gaps(self, born: NDArray[np.bool_]) -> Array:
        """Distance to the nearest centre born since, or less."""
        if self.pairs is None or born.all():
            return np.full(self.K, -1e300)
        gaps: Array = np.min(self.pairs[:, born], axis=1)
        return gaps

    def moved_to(self, centers: Array) -> "Centers":
        """The same clusters with other centres."""
        step = centers - self.centers
        length = np.sqrt(np.einsum("kd,kd->k", step, step))
        travel = self.travel + length * (1.0 + 2.0**-40)
        return Centers(self.scaling, centers, self.refs, travel, self.mass, self.relax)

    def regroup(self, old_to_new: IntArray) -> "Centers":
        """Renumber clusters; -1 drops one."""
        kept = np.flatnonzero(old_to_new >= 0)
        order = kept[np.argsort(old_to_new[kept])]
        return Centers(
            self.scaling,
            self.centers[order],
            self.refs[order],
            self.travel[order],
            self.mass[order],
            self.relax,
        )

    def grown(self, born: Array) -> "Centers":
        """With more clusters, which begin at the points given."""
        zeros = np.zeros(len(born))
        return Centers(
            self.scaling,
            np.concatenate([self.centers, born]),
            np.concatenate([self.refs, born]),
            np.concatenate([self.travel, zeros]),
            np.concatenate([self.mass, zeros]),
            self.relax,
        )
