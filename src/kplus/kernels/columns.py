"""New columns of Z: where to split the residuals of the others."""

import numba as nb
import numpy as np

from kplus.kernels.collapsed import SINGLE, improve, leftovers, refit

__all__ = ["add_column", "replace_columns", "seed_columns"]

FAST = {"contract", "reassoc"}


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _project(R, a, z):
    """z = whether a row's residual points along a."""
    for n in range(len(R)):
        r = R[n]
        total = 0.0
        for d in range(len(a)):
            total += r[d] * a[d]
        z[n] = 1 if total > 0.0 else 0


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _direction(R, weights, z, a):
    """a = Rᵀz, the summed residuals of the rows with z."""
    a[:] = 0.0
    for n in range(len(R)):
        if z[n]:
            r = R[n]
            for d in range(len(a)):
                a[d] += weights[n] * r[d]


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _gain(weights, Z, H, K, z, a):
    """How much the error falls with column z: ‖a‖² over what z has of its own."""
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


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _costs(R, weights):
    """Weighted squared residuals."""
    costs = np.empty(len(R))
    for n in range(len(R)):
        r = R[n]
        total = 0.0
        for d in range(len(r)):
            total += r[d] * r[d]
        costs[n] = weights[n] * total
    return costs


@nb.njit(nogil=True, cache=True)
def _draw(costs, u):
    """A row drawn in proportion to its cost."""
    left = u * costs.sum()
    for n in range(len(costs)):
        left -= costs[n]
        if left < 0.0:
            return n
    return len(costs) - 1


@nb.njit(nogil=True, cache=True)
def _split(R, weights, Z, H, K, draws, n_refine):
    """The best of some sign splits of the residuals, one a row of `draws`; its gain.

    A split goes along the difference of a row drawn by cost and one drawn evenly, and
    is refined: the direction becomes the summed residuals of its side.
    """
    N, D = R.shape
    a, z, found = np.empty(D), np.empty(N, np.uint8), np.zeros(N, np.uint8)
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
            found[:] = z
    return found, best


@nb.njit(nogil=True, cache=True)
def _fill_column(X, weights, Z, k, draws, n_refine, H, A, G, R):
    """Make column k of Z a split of what the columns before it leave; its gain."""
    explained = refit(X, weights, Z[:, :k], H[:k, :k], A[:k], G[:k, :k])
    if explained == -np.inf:
        return 0.0
    leftovers(X, Z[:, :k], A[:k], R)
    Z[:, k], gain = _split(R, weights, Z, H, k, draws, n_refine)
    return gain


@nb.njit(nogil=True, cache=True)
def seed_columns(X, weights, Z, first, draws, n_refine):
    """Fill the columns of Z from `first` on, each a split of what others leave."""
    K, D = Z.shape[1], X.shape[1]
    H, A, G = np.empty((K, K)), np.empty((K, D)), np.empty((K, K))
    R = np.empty_like(X)
    for k in range(first, K):
        _fill_column(X, weights, Z, k, draws[k], n_refine, H, A, G, R)


@nb.njit(nogil=True, cache=True)
def add_column(X, weights, Z, draws, n_refine):
    """Z with one more column, a split of what the others leave, and what it gains."""
    N, K = Z.shape
    D = X.shape[1]
    more = np.zeros((N, K + 1), np.uint8)
    more[:, :K] = Z
    H, A, G = np.empty((K, K)), np.empty((K, D)), np.empty((K, K))
    R = np.empty_like(X)
    gain = _fill_column(X, weights, more, K, draws, n_refine, H, A, G, R)
    return more, gain


@nb.njit(nogil=True, cache=True)
def replace_columns(X, weights, squares, Z, locked, chosen, draws, max_sweeps, target):
    """Z with some columns replaced by splits of what the rest leaves; (Z, error)."""
    N, K = Z.shape
    D = X.shape[1]
    keep = np.ones(K, np.bool_)
    for k in chosen:
        keep[k] = False
    new = np.zeros((N, K), np.uint8)
    m = 0
    for k in range(K):
        if keep[k]:
            new[:, m] = Z[:, k]
            m += 1
    H, A, G = np.empty((K, K)), np.empty((K, D)), np.empty((K, K))
    R = np.empty_like(X)
    for k in range(m, K):
        _fill_column(X, weights, new, k, draws[k - m], 0, H, A, G, R)
    error = improve(X, weights, squares, new, locked, SINGLE, max_sweeps, target)
    return new, error
