"""New columns of Z by splits of the residuals.

Not in the paper, whose seeds (section 5) are single residuals.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import (
    add_product_of_rows,
    add_product_of_transposed,
)
from cython.cimports.kplus.features.kernels_columns import (
    RIDGE,
    Fit,
    fit_to,
    subtract,
)

__all__ = ["seed_columns"]

_TILE = cy.declare(cy.Py_ssize_t, 120)  # rows that stay in the cache
_NEVER = cy.declare(cy.double, -float("inf"))


@cy.final
@cy.cclass
class _Splits:
    """Some splits of the residuals R, side by side, each along a direction."""

    R: cy.double[:, ::1]  # (N, D)
    reached: cy.double[::1]  # (N,) w‖r‖², added up to here
    sides: cy.uchar[:, ::1]  # (N, splits)
    along: cy.double[:, ::1]  # (splits, D) directions
    sums: cy.double[:, ::1]  # (splits, D) residuals on the positive side
    P: cy.double[:, ::1]  # (tile, splits)
    Z: cy.double[:, ::1]  # (tile, K)
    shared: cy.double[:, ::1]  # (splits, K) weight shared with the columns before
    own: cy.double[::1]  # (splits,) weight of the positive side

    def __init__(
        self, N: cy.Py_ssize_t, D: cy.Py_ssize_t, K: cy.Py_ssize_t, C: cy.Py_ssize_t
    ) -> None:
        self.R, self.reached = np.empty((N, D)), np.empty(N)
        self.sides = np.zeros((N, C), np.uint8)
        self.along, self.sums = np.zeros((2, C, D))
        self.P, self.Z = np.zeros((_TILE, C)), np.zeros((_TILE, K))
        self.shared, self.own = np.zeros((C, K)), np.zeros(C)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _add_costs(weights: cy.const[cy.double][::1], splits: _Splits) -> cy.void:
    """w‖r‖² of the rows, added up."""
    reached: cy.double = 0.0
    for n in range(splits.R.shape[0]):
        total: cy.double = 0.0
        for d in range(splits.R.shape[1]):
            total += splits.R[n, d] * splits.R[n, d]
        reached += weights[n] * total
        splits.reached[n] = reached


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _draw(splits: _Splits, u: cy.double) -> cy.Py_ssize_t:
    """A row drawn in proportion to its cost: P(n) = cost_n/Σ cost."""
    low: cy.Py_ssize_t = 0
    high: cy.Py_ssize_t = splits.R.shape[0] - 1
    wanted: cy.double = u * splits.reached[high]
    while low < high:
        middle = (low + high) // 2
        if splits.reached[middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _begin(
    weights: cy.const[cy.double][::1],
    draws: cy.const[cy.double][:, ::1],
    splits: _Splits,
) -> cy.double:
    """Directions: from a row drawn evenly to one drawn by cost. Return Σ w‖r‖²."""
    N = splits.R.shape[0]
    _add_costs(weights, splits)
    for c in range(draws.shape[0]):
        i = _draw(splits, draws[c, 0])
        j: cy.Py_ssize_t = cy.cast(cy.Py_ssize_t, draws[c, 1] * N)
        j = min(j, N - 1)
        for d in range(splits.R.shape[1]):
            splits.along[c, d] = splits.R[i, d] - splits.R[j, d]
    return splits.reached[N - 1]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _split_some(
    r: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
    K: cy.Py_ssize_t,
    last: cy.bint,
    sides: cy.uchar[:, ::1],
    splits: _Splits,
) -> cy.void:
    """Split some rows: z = [Ra > 0], and sums of wz, wzr and, at last, wzZ."""
    m, D, C = r.shape[0], r.shape[1], splits.along.shape[0]
    add_product_of_rows(1.0, r, splits.along, m, C, D, 0.0, splits.P)
    for n in range(m):
        for c in range(C):
            sides[n, c] = splits.P[n, c] > 0.0
    for n in range(m):
        for c in range(C):
            splits.P[n, c] = weights[n] if splits.P[n, c] > 0.0 else 0.0
    add_product_of_transposed(1.0, splits.P, r, C, D, m, 1.0, splits.sums)
    if not last:
        return
    for n in range(m):
        for c in range(C):
            splits.own[c] += splits.P[n, c]
        for k in range(K):
            splits.Z[n, k] = Z[n, k]
    add_product_of_transposed(1.0, splits.P, splits.Z, C, K, m, 1.0, splits.shared)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _split(
    weights: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
    K: cy.Py_ssize_t,
    last: cy.bint,
    splits: _Splits,
) -> cy.void:
    """Split all rows; directions become the summed residuals of the positive side."""
    N, D = splits.R.shape[0], splits.R.shape[1]
    C = splits.along.shape[0]
    for c in range(C):
        splits.own[c] = 0.0
        for k in range(K):
            splits.shared[c, k] = 0.0
        for d in range(D):
            splits.sums[c, d] = 0.0
    for t in range((N + _TILE - 1) // _TILE):
        start = t * _TILE
        stop = min(start + _TILE, N)
        _split_some(
            splits.R[start:stop], weights[start:stop], Z[start:stop], K, last,
            splits.sides[start:stop], splits,
        )  # fmt: skip
    for c in range(C):
        for d in range(D):
            splits.along[c, d] = splits.sums[c, d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _gain(c: cy.Py_ssize_t, K: cy.Py_ssize_t, splits: _Splits, fit: Fit) -> cy.double:
    """How much the error falls with split c: ‖a‖² over what z has of its own.

    ‖a‖²/(zᵀ(I − Z(ZᵀZ)⁻¹Zᵀ)z).
    """
    own: cy.double = splits.own[c]
    for i in range(K):
        total: cy.double = 0.0
        for j in range(K):
            total += fit.H[i, j] * splits.shared[c, j]
        own -= splits.shared[c, i] * total
    if own <= 1e-9 * splits.own[c]:
        return 0.0
    square: cy.double = 0.0
    for d in range(splits.sums.shape[1]):
        square += splits.sums[c, d] * splits.sums[c, d]
    return square / own


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _rounding(explained: cy.double, K: cy.Py_ssize_t, fit: Fit) -> cy.double:
    """What `fit_to` leaves of rows that features explain: its ridge ε, and rounding.

    ε²‖ZHA‖², which is about ε² tr(AᵀHA).
    """
    total: cy.double = 0.0
    for i in range(K):
        for j in range(K):
            total += fit.H[i, j] * fit.G[i, j]
    return 10.0 * RIDGE * RIDGE * total + 1e-28 * explained


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fill_column(
    X: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
    k: cy.Py_ssize_t,
    draws: cy.const[cy.double][:, ::1],
    n_refine: cy.Py_ssize_t,
    fit: Fit,
    splits: _Splits,
) -> cy.double:
    """Make column k of Z a split of the residuals of those before it; its gain.

    The best of some sign splits, one per row of `draws`. A split goes along the
    difference of a row drawn by cost and one drawn evenly, and is refined: the
    direction becomes the summed residuals of its side. Where nothing is left to
    split, the column is empty.
    """
    explained = fit_to(X, weights, Z, k, fit)
    if explained == _NEVER:
        return 0.0
    subtract(X, Z, k, fit, splits.R)
    left = _begin(weights, draws, splits)
    best: cy.Py_ssize_t = -1
    most: cy.double = 0.0
    n_splits: cy.Py_ssize_t = 0
    if left > _rounding(explained, k, fit):
        n_splits = draws.shape[0]
        for i in range(n_refine + 1):
            _split(weights, Z, k, i == n_refine, splits)
    for c in range(n_splits):
        gain = _gain(c, k, splits, fit)
        if gain > most:
            best, most = c, gain
    for n in range(Z.shape[0]):
        Z[n, k] = splits.sides[n, best] if best >= 0 else 0
    return most


def seed_columns(
    X: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
    first: cy.Py_ssize_t,
    draws: cy.const[cy.double][:, :, ::1],
    n_refine: cy.Py_ssize_t,
) -> float:
    """Fill the columns of Z from `first` on, each a split of residuals.

    Not in the paper: seeds for MAD-Bayes Algorithms 3 and 4 by sign splits of
    residuals. `draws` has a row for each of them. Returns what the last one gains.
    """
    K, N, D = Z.shape[1], X.shape[0], X.shape[1]
    fit, splits = Fit(K, D), _Splits(N, D, K, draws.shape[1])
    gain: cy.double = 0.0
    with cy.nogil:
        for k in range(first, K):
            gain = _fill_column(
                X, weights, Z, k, draws[k - first], n_refine, fit, splits
            )
    return gain
