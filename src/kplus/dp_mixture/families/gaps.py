"""Rows of Gaussians with full covariances of which some values are missing.

What is missing is a hidden part of its row: given the component, q(y_m) is the Gaussian
that the observed values lead to under the expected precision. The bound then has the
expected squares of the whole row, and the entropy of q(y_m).
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from kplus.core.kernels_uniform import uniform_of_rows
from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import Scaling, contiguous
from kplus.dp_mixture.families.family import ByComponent
from kplus.dp_mixture.kernels import count_beyond, gather_pairs
from kplus.dp_mixture.kernels_gaps import fill_gaps, gap_distances, gap_outer

__all__ = [
    "LOG_2PI",
    "Gaps",
    "fill_at_random",
    "fill_with_means",
    "mean_fill",
    "normals_of_rows",
    "some_members",
]

LOG_2PI = float(np.log(2.0 * np.pi))


class Gaps(NamedTuple):
    """The rows of a block in which something is missing."""

    rows: IntArray  # their places in the block
    Y: Array  # in the units of the family, NaN where missing
    n_missing: Array  # of each

    @classmethod
    def of(cls, X: Array, scaling: Scaling) -> Self | None:
        """None: nothing is missing."""
        if count_beyond(contiguous(X).reshape(-1), np.inf)[1] == 0:
            return None
        n_missing = np.isnan(X).sum(axis=1)
        rows = np.flatnonzero(n_missing)
        return cls(rows, scaling.transform(X[rows]), n_missing[rows].astype(np.float64))

    def pairs(
        self, candidates: IntArray | None, K: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Which of these rows meet which components: starts, rows, slots."""
        if candidates is not None:
            return gather_pairs(np.ascontiguousarray(candidates[self.rows]), K)
        n = len(self.rows)
        starts = np.arange(K + 1) * n
        return starts, np.tile(np.arange(n), K), np.repeat(np.arange(K), n)

    def split(self, members: ByComponent) -> tuple[ByComponent, ByComponent]:
        """Members without and with gaps; the latter by their number among these."""
        place = np.full(int(members.rows.max(initial=-1)) + 1, -1, np.int64)
        known = self.rows < len(place)
        place[self.rows[known]] = np.flatnonzero(known)
        where = place[members.rows]
        whole = some_members(members, where < 0, members.rows)
        return whole, some_members(members, where >= 0, where)

    def distances(
        self, starts: IntArray, rows: IntArray, means: Array, precisions: Array
    ) -> tuple[Array, Array]:
        """Squared distances of what is observed, and log |Λ_mm|, of pairs."""
        distances, log_dets = np.empty(len(rows)), np.empty(len(rows))
        gap_distances(self.Y, starts, rows, means, precisions, distances, log_dets)
        return distances, log_dets

    def entropy(self, rows: IntArray, log_dets: Array) -> Array:
        """Of q(y_m), for pairs."""
        out: Array = 0.5 * (self.n_missing[rows] * (LOG_2PI + 1.0) - log_dets)
        return out

    def outer(
        self,
        members: ByComponent,
        scales: Array,
        means: Array,
        precisions: Array,
        offset: int,
        out: Array,
    ) -> None:
        """Add Σ r u E[y] and Σ r E[u y yᵀ] of members to `out`."""
        gap_outer(self.Y, *members, scales, means, precisions, offset, out)


def some_members(
    members: ByComponent, kept: NDArray[np.bool_], rows: IntArray
) -> ByComponent:
    before = np.concatenate([[0], np.cumsum(kept)])
    return ByComponent(before[members.starts], rows[kept], members.weights[kept])


def mean_fill(Y: Array, members: ByComponent) -> tuple[Array, Array, ByComponent]:
    """Rows whose gaps are filled with the mean of their component, where nothing else
    is known of them yet.

    Also how much squares are then short of, of each column (K, D): for each gap the
    variance of the values observed. A row of several components is several rows.
    """
    K, D = len(members.starts) - 1, Y.shape[1]
    rows, weights = Y[members.rows], members.weights[:, None]
    owner = members.owners
    seen = ~np.isnan(rows)
    filled, short = np.where(seen, rows, 0.0), np.zeros((K, D))
    for d in range(D):
        w = np.where(seen[:, d], weights[:, 0], 0.0)
        total = np.maximum(np.bincount(owner, w, K), 1e-300)
        mean = np.bincount(owner, w * filled[:, d], K) / total
        apart = np.where(seen[:, d], filled[:, d] - mean[owner], 0.0)
        variance = np.bincount(owner, w * apart**2, K) / total
        filled[:, d] = np.where(seen[:, d], filled[:, d], mean[owner])
        gone = np.bincount(owner, weights[:, 0], K) - np.bincount(owner, w, K)
        short[:, d] = np.maximum(gone, 0.0) * variance
    alone = ByComponent(members.starts, np.arange(len(rows)), members.weights)
    return filled, short, alone


def normals_of_rows(Y: Array) -> Array:
    """Normal numbers, as many as values, that what is observed in a row decides."""
    seeds = (np.nansum(Y, axis=1) + 0.0).view(np.int64)
    normals, uniform = np.empty(Y.shape), np.empty(len(Y))
    for d in range(Y.shape[1]):
        uniform_of_rows(seeds, d, uniform)
        normals[:, d] = ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12))
    return normals


def fill_at_random(Y: Array, owners: IntArray, means: Array, precisions: Array) -> None:
    """Draw what is missing in rows, given their components.

    What is observed decides the draw, so that it is the same in any order of the rows.
    """
    rows = np.flatnonzero(np.isnan(Y).any(axis=1))
    if not len(rows):
        return
    gaps = np.ascontiguousarray(Y[rows])
    normals = normals_of_rows(gaps)
    owned = np.ascontiguousarray(owners[rows], dtype=np.int64)
    fill_gaps(gaps, owned, means, precisions, normals)
    Y[rows] = gaps


def fill_with_means(Y: Array, shares: Array, means: Array, precisions: Array) -> None:
    """Put Σ_k r_nk E[y_m | y_o, k] in the place of what is missing in rows."""
    missing, total = np.isnan(Y), np.zeros(Y.shape)
    for k, r in enumerate(shares.T):
        some = np.flatnonzero(r)
        rows = np.ascontiguousarray(Y[some])
        fill_gaps(rows, np.full(len(some), k), means, precisions, np.zeros(rows.shape))
        total[some] += r[some, None] * rows
    Y[missing] = total[missing]
