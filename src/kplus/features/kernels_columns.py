"""Columns of Z: the best A for them, and new ones by splits of the residuals."""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, inlined, kernel
from kplus.linear.kernels_algebra import dot

__all__ = ["Fit", "fill_residuals", "refit", "residual", "seed_columns"]

RIDGE = 1e-8


class Fit(NamedTuple):
    """What follows from Z."""

    H: np.ndarray  # (K, K) (ZᵀWZ)⁻¹
    A: np.ndarray  # (K, D) the best features
    G: np.ndarray  # (K, K) AAᵀ


@inlined
def _invert(S, H):
    """H = S⁻¹ by Cholesky; False where S is singular (S = LLᵀ, H = L⁻ᵀL⁻¹)."""
    K = len(S)
    L = np.empty((K, K))
    for i in range(K):
        for j in range(i + 1):
            total = S[i, j]
            for m in range(j):
                total -= L[i, m] * L[j, m]
            if i == j:
                if total <= 1e-9 * S[i, i]:
                    return False
                L[i, i] = np.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    for i in range(K):
        L[i, i] = 1.0 / L[i, i]
        for j in range(i):
            total = 0.0
            for m in range(j, i):
                total -= L[i, m] * L[m, j]
            L[i, j] = total * L[i, i]
    for i in range(K):
        for j in range(i + 1):
            total = 0.0
            for m in range(i, K):
                total += L[m, i] * L[m, j]
            H[i, j] = total
            H[j, i] = total
    return True


@fast_kernel
def refit(X, weights, Z, K, fit):
    """Fit A to Z: fill H = (ZᵀWZ)⁻¹, A and G = AAᵀ; return what A explains of ‖X‖².

    A = (ZᵀWZ)⁻¹ZᵀWX, step 2 of MAD-Bayes Algorithms 1 and 4. Only the first K columns
    of Z count. Minus infinity where they depend on each other.
    """
    H, A, G = fit
    N, D = X.shape
    S, T = np.empty((K, K)), np.empty((K, D))
    S[:], T[:] = 0.0, 0.0
    for n in range(N):
        weight, x = weights[n], X[n]
        for i in range(K):
            if Z[n, i]:
                t = T[i]
                for d in range(D):
                    t[d] += weight * x[d]
                for j in range(i + 1):
                    if Z[n, j]:
                        S[i, j] += weight
    for i in range(K):
        S[i, i] += RIDGE
        for j in range(i):
            S[j, i] = S[i, j]
    if not _invert(S, H):
        return -np.inf
    explained = 0.0
    for i in range(K):
        a = A[i]
        a[:] = 0.0
        for j in range(K):
            t, h = T[j], H[i, j]
            for d in range(D):
                a[d] += h * t[d]
        explained += dot(a, T[i])
    for i in range(K):
        for j in range(i + 1):
            G[i, j] = dot(A[i], A[j])
            G[j, i] = G[i, j]
    return explained


@fast_kernel
def fill_residuals(X, Z, K, A, R):
    """R = X − ZA, for the first K columns of Z."""
    for n in range(len(X)):
        residual(X[n], A, Z[n], K, R[n])


@fast_kernel
def residual(x, A, z, K, r):
    """r = x − zA."""
    for d in range(len(x)):
        r[d] = x[d]
    for k in range(K):
        if z[k]:
            a = A[k]
            for d in range(len(x)):
                r[d] -= a[d]


# ------------------------------------------------------------------ new columns


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
