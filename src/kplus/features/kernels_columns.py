"""New columns of Z: where to split the residuals of the others."""

import numpy as np

from kplus.core.kernels import fast_kernel, inlined, kernel
from kplus.features.kernels_collapsed import Fit, fill_residuals, refit

__all__ = ["seed_columns"]


@fast_kernel
def _project(R, a, z):
    """z = whether a row's residual points along a (z = [Ra > 0])."""
    for n in range(len(R)):
        r = R[n]
        total = 0.0
        for d in range(len(a)):
            total += r[d] * a[d]
        z[n] = 1 if total > 0.0 else 0


@fast_kernel
def _direction(R, weights, z, a):
    """a = Rᵀz, the summed residuals of the rows with z."""
    a[:] = 0.0
    for n in range(len(R)):
        if z[n]:
            r = R[n]
            for d in range(len(a)):
                a[d] += weights[n] * r[d]


@fast_kernel
def _gain(weights, Z, H, K, z, a):
    """How much the error falls with column z: ‖a‖² over what z has of its own.

    ‖a‖²/(zᵀ(I − Z(ZᵀZ)⁻¹Zᵀ)z).
    """
    own = 0.0
    shared = np.zeros(K)
    for n in range(len(z)):
        if z[n]:
            own += weights[n]
            for k in range(K):
                if Z[n, k]:
                    shared[k] += weights[n]
    whole = own
    for i in range(K):
        for j in range(K):
            own -= shared[i] * H[i, j] * shared[j]
    if own <= 1e-9 * whole:
        return 0.0
    total = 0.0
    for d in range(len(a)):
        total += a[d] * a[d]
    return total / own


@fast_kernel
def _costs(R, weights):
    """w‖r‖² of each row of residuals."""
    costs = np.empty(len(R))
    for n in range(len(R)):
        r = R[n]
        total = 0.0
        for d in range(len(r)):
            total += r[d] * r[d]
        costs[n] = weights[n] * total
    return costs


@kernel
def _draw(costs, u):
    """A row drawn in proportion to its cost: P(n) = cost_n/Σ cost."""
    left = u * costs.sum()
    for n in range(len(costs)):
        left -= costs[n]
        if left < 0.0:
            return n
    return len(costs) - 1


@inlined
def _split(R, weights, Z, H, K, draws, n_refine):
    """The best of some sign splits of the residuals, one per row of `draws`; its gain.

    Not in the paper, whose seeds (section 5) are single residuals. A split goes along
    the difference of a row drawn by cost and one drawn evenly, and is refined: the
    direction becomes the summed residuals of its side.
    """
    N, D = R.shape
    a, z, best_z = np.empty(D), np.empty(N, np.uint8), np.zeros(N, np.uint8)
    costs = _costs(R, weights)
    best = 0.0
    for c in range(len(draws)):
        i = _draw(costs, draws[c, 0])
        j = min(int(draws[c, 1] * N), N - 1)
        for d in range(D):
            a[d] = R[i, d] - R[j, d]
        _project(R, a, z)
        for _ in range(n_refine):
            _direction(R, weights, z, a)
            _project(R, a, z)
        _direction(R, weights, z, a)
        gain = _gain(weights, Z, H, K, z, a)
        if gain > best:
            best = gain
            for n in range(N):
                best_z[n] = z[n]
    return best_z, best


@inlined
def _fill_column(X, weights, Z, k, draws, n_refine, fit, R):
    """Make column k of Z a split of the residuals of those before it; its gain.

    Not in the paper.
    """
    explained = refit(X, weights, Z, k, fit)
    if explained == -np.inf:
        return 0.0
    fill_residuals(X, Z, k, fit.A, R)
    best_z, gain = _split(R, weights, Z, fit.H, k, draws, n_refine)
    for n in range(len(Z)):
        Z[n, k] = best_z[n]
    return gain


@kernel
def seed_columns(X, weights, Z, first, draws, n_refine):
    """Fill the columns of Z from `first` on, each a split of residuals.

    Not in the paper: seeds for MAD-Bayes Algorithms 3 and 4 by sign splits of
    residuals. `draws` has a row for each of them. Returns what the last one gains.
    """
    K, D = Z.shape[1], X.shape[1]
    fit = Fit(np.empty((K, K)), np.empty((K, D)), np.empty((K, K)))
    R, gain = np.empty_like(X), 0.0
    for k in range(first, K):
        gain = _fill_column(X, weights, Z, k, draws[k - first], n_refine, fit, R)
    return gain
