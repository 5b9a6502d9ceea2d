"""Centres of DP-means with all that the kernels need to know of them."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray

__all__ = ["Centers", "Lens"]

_MOST_PAIRS = 2048  # beyond that many centres the table of their distances is too big


@dataclass(frozen=True, slots=True)
class Lens:
    """How rows are looked at: ``y = (x - origin) * inv``.

    Centring keeps float32 products accurate under any offset; `inv` is a power of
    two, so scaling is exact, and keeps squares inside float32's range.
    """

    origin: Array
    inv: float

    @classmethod
    def on(cls, rows: Array, weights: Array | None = None) -> "Lens":
        """Look at the weighted mean of some rows, in units of their spread."""
        rows = rows.astype(np.float64)
        origin = rows[0].copy() if len(rows) else np.zeros(rows.shape[1])
        origin += np.average(rows - origin, axis=0, weights=weights)
        spread = np.max(np.abs(rows - origin), initial=0.0)
        inv = float(2.0 ** -np.floor(np.log2(spread))) if spread > 0.0 else 1.0
        return cls(origin, inv)

    def view(self, rows: Array) -> Array:
        """To the lens's units."""
        seen: Array = (rows - self.origin) * self.inv
        return seen

    def back(self, seen: Array) -> Array:
        """To the data's units."""
        rows: Array = seen / self.inv + self.origin
        return rows


@dataclass(frozen=True)
class Centers:
    """Cluster centres, in the units of a lens.

    Attributes
    ----------
    centers : array of shape (K, D)
    refs : array of shape (K, D)
        The fixed points that the statistics of each cluster are taken about, near
        its centre, so that sums of squares do not cancel.
    travel : array of shape (K,)
        How far each centre has moved since it was born; differences of it move
        the bounds of rows that were last seen some updates ago.
    scout : bool
        Report the costliest rows even if none exceeds the penalty.
    recheck : bool array of shape (K,) or None
        Clusters whose rows are to find their second nearest centre afresh.
    """

    lens: Lens
    centers: Array
    refs: Array
    travel: Array
    scout: bool = False
    recheck: NDArray[np.bool_] | None = None

    @classmethod
    def start(cls, lens: Lens, centers: Array) -> "Centers":
        return cls(lens, centers, centers.copy(), np.zeros(len(centers)))

    @property
    def K(self) -> int:
        return len(self.centers)

    @cached_property
    def narrow(self) -> NDArray[np.float32]:
        return self.centers.astype(np.float32)

    @cached_property
    def half(self) -> NDArray[np.float32]:
        """Half the squared norms, as the scores y·c - |c|²/2 need them."""
        return (0.5 * np.einsum("kd,kd->k", self.centers, self.centers)).astype(
            np.float32
        )

    @cached_property
    def pairs(self) -> Array | None:
        """Lower bounds of the distances between centres; None when there are many."""
        if self.K > _MOST_PAIRS:
            return None
        C = self.centers
        norms = np.einsum("kd,kd->k", C, C)
        squares = norms[:, None] + norms - 2.0 * (C @ C.T)
        slack = (C.shape[1] + 8) * 2.0**-50 * (norms[:, None] + norms)
        pairs: Array = np.sqrt(np.maximum(squares - slack, 0.0))
        np.fill_diagonal(pairs, np.inf)
        return pairs

    @cached_property
    def halves(self) -> Array:
        """Half the distance to the nearest other centre: closer rows stay."""
        if self.pairs is None:
            halves = np.zeros(self.K)
        else:
            halves = 0.5 * self.pairs.min(axis=1)
        if self.recheck is not None:
            halves[self.recheck] = -1.0
        return halves

    def gaps(self, then: Array) -> Array:
        """Distance from each centre to the nearest one born since a visit."""
        born = np.isnan(then)
        if not born.any():
            return np.full(self.K, np.inf)
        if self.pairs is None:
            return np.full(self.K, -np.inf)
        gaps: Array = np.min(self.pairs[:, born], axis=1)
        return gaps

    def moved_to(self, centers: Array) -> "Centers":
        """The same clusters with other centres."""
        step = np.sqrt(np.sum((centers - self.centers) ** 2, axis=1))
        travel = self.travel + step * (1.0 + 2.0**-40)
        return replace(self, centers=centers, travel=travel, scout=False, recheck=None)

    def regroup(self, into: IntArray, born: Array) -> "Centers":
        """Renumber clusters (-1 drops one) and append those newly born."""
        kept = np.flatnonzero(into >= 0)
        order = kept[np.argsort(into[kept])]
        return replace(
            self,
            centers=np.concatenate([self.centers[order], born]),
            refs=np.concatenate([self.refs[order], born]),
            travel=np.concatenate([self.travel[order], np.zeros(len(born))]),
            scout=False,
            recheck=None,
        )
