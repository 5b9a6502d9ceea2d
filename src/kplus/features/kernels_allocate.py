"""Which features does a row have? The best z for ‖x − zA‖², in Gram form.

With b = Ax and G = AAᵀ the error is ‖x‖² − 2z·b + zGz: trying a flip costs O(1), making
it O(K). Rows are handled one by one with the same arithmetic wherever they stand, so
that z does not depend on how a table is cut.
"""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, inlined, kernel
from kplus.linear.kernels_algebra import dot

__all__ = ["Allocated", "Factored", "allocate_gaps", "allocate_rows", "factor"]

_TILE = 128  # rows whose residuals stay in the cache


class Factored(NamedTuple):
    """Features, G = AAᵀ, and what `factor` makes of it (empty if not exact)."""

    A: np.ndarray  # (K, D)
    G: np.ndarray  # (K, K)
    order: np.ndarray  # (K,)
    R: np.ndarray  # (K, K)


class Allocated(NamedTuple):
    """What a visit of rows changes and adds up."""

    Z: np.ndarray  # (n, K) uint8
    errors: np.ndarray  # (n,) ‖x − zA‖²
    S: np.ndarray  # (K, K) ZᵀWZ; with gaps (D, K, K), over the rows that have d
    T: np.ndarray  # (K, D) ZᵀW(X − ZA)


class _Tree(NamedTuple):
    """Room for the depth-first search of `_decode`."""

    work: np.ndarray  # (3, K + 1)
    turns: np.ndarray  # (K + 1,)
    trial: np.ndarray  # (K,)
    flips: np.ndarray  # (K,)


@inlined
def _tree_for(K):
    """An empty `_Tree` for K features."""
    return _Tree(
        np.empty((3, K + 1)),
        np.empty(K + 1, np.int64),
        np.empty(K, np.uint8),
        np.empty(K, np.uint8),
    )


@fast_kernel
def factor(G):
    """Order features and factor G = RᵀR in that order; (order, R).

    The feature with the least left over comes first: it is decided last by `_decode`,
    which begins where a wrong bit costs most. Features that depend on others get a
    row of zeros.
    """
    K = G.shape[0]
    order, left, R = np.empty(K, np.int64), np.empty(K), np.empty((K, K))
    for k in range(K):
        order[k], left[k], R[k] = k, G[k, k], 0.0
    for i in range(K):
        least = i
        for j in range(i + 1, K):
            if left[j] < left[least]:
                least = j
        order[i], order[least] = order[least], order[i]
        left[i], left[least] = left[least], left[i]
        for m in range(i):
            R[m, i], R[m, least] = R[m, least], R[m, i]
        if left[i] <= 1e-12 * G[order[i], order[i]]:
            continue
        R[i, i] = np.sqrt(left[i])
        for j in range(i + 1, K):
            total = G[order[i], order[j]]
            for m in range(i):
                total -= R[m, i] * R[m, j]
            R[i, j] = total / R[i, i]
            left[j] -= R[i, j] * R[i, j]
    return order, R


@fast_kernel
def _flip(ar, G, norms, length, z):
    """Flip the bit that helps most until none does; True if any was flipped.

    MAD-Bayes Algorithm 1, "choose the optimal value of z_nk": Δ_k = G_kk − 2(±(Ar)_k).
    `ar` is Ar, with the residual r = x − zA; `length` is ‖x‖: changes below its
    rounding do not count.
    """
    K = len(ar)
    flipped = False
    while True:
        best, least = -1, 0.0
        for k in range(K):
            sign = 1.0 - 2.0 * z[k]
            change = G[k, k] - 2.0 * sign * ar[k]
            if change < least and change < -1e-14 * norms[k] * (length + norms[k]):
                best, least = k, change
        if best < 0:
            return flipped
        flipped = True
        sign = 1.0 - 2.0 * z[best]
        z[best] = 1 - z[best]
        row = G[best]
        for k in range(K):
            ar[k] -= sign * row[k]


@fast_kernel
def _decode(ar, order, R, most_steps, z, tree):
    """Improve z to the best of all 2^K by depth-first search (sphere decoding).

    Not in the paper: argmin_z ‖x − zA‖², the step of MAD-Bayes Algorithm 4, over all z
    at once. Bits to flip are sought, f, so that a large feature that stays costs no
    digits: with signs s = 1 − 2z, ‖r − (f·s)A‖² is ‖y − R(f·s)‖² and a constant, where
    Rᵀy = Ar, which is `ar`. Bits are decided from the last to the first, the likelier
    value first; a branch ends where its part of the sum exceeds the best known whole.
    After `most_steps` the best so far is kept. True if that was the end.
    """
    K = len(ar)
    if K == 0:
        return False
    work, turns, trial, flips = tree
    y, signs, costs = work[0], work[1], work[2]
    best = 0.0
    for i in range(K):
        total = ar[order[i]]
        for m in range(i):
            total -= R[m, i] * y[m]
        y[i] = total / R[i, i] if R[i, i] > 0.0 else 0.0
        signs[i] = 1.0 - 2.0 * z[order[i]]
        best += y[i] * y[i]
    best *= 1.0 - 1e-10
    for i in range(K):
        flips[i] = 0
    level = K - 1
    turns[level] = 0
    costs[K] = 0.0
    for _ in range(most_steps):
        if level == K:
            break
        if turns[level] == 2:
            level += 1
            continue
        gap = y[level]
        row = R[level]
        for j in range(level + 1, K):
            if trial[j]:
                gap -= signs[j] * row[j]
        step = signs[level] * row[level]
        likely = 1 if abs(gap - step) < abs(gap) else 0
        trial[level] = likely if turns[level] == 0 else 1 - likely
        turns[level] += 1
        if trial[level]:
            gap -= step
        cost = costs[level + 1] + gap * gap
        if cost >= best:
            turns[level] = 2  # the other value costs more still
        elif level > 0:
            costs[level] = cost
            level -= 1
            turns[level] = 0
        else:
            best = cost
            for i in range(K):
                flips[i] = trial[i]
    for i in range(K):
        z[order[i]] ^= flips[i]
    return level < K


@kernel
def _keep_better(x, A, before, z):
    """Go back to the z from before a search that was cut short, if that was better.

    The lower ‖x − zA‖² of two.
    """
    now, then = 0.0, 0.0
    for d in range(len(x)):
        if np.isnan(x[d]):
            continue
        a, b = x[d], x[d]
        for k in range(len(A)):
            if z[k]:
                a -= A[k, d]
            if before[k]:
                b -= A[k, d]
        now += a * a
        then += b * b
    if then < now:
        for k in range(len(A)):
            z[k] = before[k]


@fast_kernel
def _residuals(X, A, Z, ones, R):
    """`ones` = Z as numbers, R = X − ZA."""
    n_rows, K = Z.shape
    for n in range(n_rows):
        for k in range(K):
            ones[n, k] = Z[n, k]
    np.dot(ones, A, R)
    for n in range(n_rows):
        x, r = X[n], R[n]
        for d in range(len(x)):
            r[d] = x[d] - r[d]


@fast_kernel
def _row_norm(x):
    """‖x‖."""
    return np.sqrt(dot(x, x))


@inlined
def _flip_tile(X, At, G, norms, R, tile_ar, Z):
    """Flip bits of a tile's rows, given their residuals R; count rows changed.

    `_flip` on b = AR.
    """
    np.dot(R, At, tile_ar)
    changed = 0
    for n in range(len(X)):
        changed += _flip(tile_ar[n], G, norms, _row_norm(X[n]), Z[n])
    return changed


@inlined
def _decode_tile(X, features, At, most_steps, before, R, tile_ar, Z):
    """The best z of all 2^K for rows, given their residuals R.

    MAD-Bayes Algorithm 4, step 1.
    """
    np.dot(R, At, tile_ar)
    tree = _tree_for(Z.shape[1])
    for n in range(len(Z)):
        if _decode(tile_ar[n], features.order, features.R, most_steps, Z[n], tree):
            _keep_better(X[n], features.A, before[n], Z[n])


@fast_kernel
def allocate_rows(X, weights, features, exact, most_steps, out):
    """Choose z for each row and add up S += ZᵀWZ, T += ZᵀW(X − ZA); count rows changed.

    Step 1 of MAD-Bayes Algorithms 1 and 4: z = argmin ‖x − zA‖²; A = (ZᵀWZ)⁻¹ZᵀWX of
    step 2 follows from S and T. `errors` becomes ‖x − zA‖². Flips start from Z as it
    stands. With `exact` they start from nothing, so that equal rows get equal z
    whatever came before, and the best of all patterns follows, if `most_steps` suffice
    to prove it so.
    """
    A, G = features.A, features.G
    Z, errors, S, T = out
    n_rows, D = X.shape
    K = len(A)
    At = np.empty((D, K))
    ones, tile_ar, R = np.empty((_TILE, K)), np.empty((_TILE, K)), np.empty((_TILE, D))
    SS, TT, norms = np.empty((K, K)), np.empty((K, D)), np.empty(K)
    before = np.empty((_TILE, K), np.uint8)
    for k in range(K):
        norms[k] = np.sqrt(G[k, k])
        for d in range(D):
            At[d, k] = A[k, d]
    changed = 0
    for start in range(0, n_rows, _TILE):
        stop = min(start + _TILE, n_rows)
        m = stop - start
        x, z, r, one, ar = X[start:stop], Z[start:stop], R[:m], ones[:m], tile_ar[:m]
        for n in range(m):
            for k in range(K):
                before[n, k] = z[n, k]
                z[n, k] = 0 if exact else z[n, k]
        _residuals(x, A, z, one, r)
        if _flip_tile(x, At, G, norms, r, ar, z) > 0:
            _residuals(x, A, z, one, r)
        if exact:
            _decode_tile(x, features, At, most_steps, before[:m], r, ar, z)
            _residuals(x, A, z, one, r)
        for n in range(m):
            errors[start + n] = _row_norm(r[n]) ** 2
            differs = False
            for k in range(K):
                differs |= z[n, k] != before[n, k]
                ar[n, k] = weights[start + n] * one[n, k]
            changed += differs
        np.dot(ar.T, one, SS)
        np.dot(ar.T, r, TT)
        for k in range(K):
            for j in range(K):
                S[k, j] += SS[k, j]
            for d in range(D):
                T[k, d] += TT[k, d]
    return changed


@kernel
def allocate_gaps(X, weights, A, exact, most_steps, out):
    """As `allocate_rows` where entries are missing (NaN).

    z = argmin Σ_d ∈ observed (x − zA)_d². Each row is solved on its observed columns,
    hence with a Gram matrix of its own; S[d] sums over the rows that have column d.
    """
    Z, errors, S, T = out
    n_rows, K = Z.shape
    ar, norms, G = np.empty(K), np.empty(K), np.empty((K, K))
    tree = _tree_for(K)
    z = np.empty(K, np.uint8)
    changed = 0
    for n in range(n_rows):
        x = X[n]
        for k in range(K):
            z[k] = 0 if exact else Z[n, k]
        _observed_products(x, A, z, ar, G)
        length = _row_norm(x[~np.isnan(x)])
        for k in range(K):
            norms[k] = np.sqrt(G[k, k])
        _flip(ar, G, norms, length, z)
        if exact:
            order, R = factor(G)
            _observed_products(x, A, z, ar, G)
            if _decode(ar, order, R, most_steps, z, tree):
                _keep_better(x, A, Z[n], z)
        differs = False
        for k in range(K):
            differs |= z[k] != Z[n, k]
            Z[n, k] = z[k]
        changed += differs
        errors[n] = _add_observed(x, A, z, weights[n], S, T)
    return changed


@kernel
def _residual_at(x, A, z, d):
    """(x − zA)_d."""
    left = x[d]
    for k in range(len(A)):
        if z[k]:
            left -= A[k, d]
    return left


@kernel
def _observed_products(x, A, z, ar, G):
    """ar = A(x − zA) and G = AAᵀ over the columns that x has."""
    K, D = A.shape
    for i in range(K):
        ar[i] = 0.0
        for j in range(K):
            G[i, j] = 0.0
    for d in range(D):
        if np.isnan(x[d]):
            continue
        left = _residual_at(x, A, z, d)
        for i in range(K):
            a = A[i, d]
            ar[i] += a * left
            for j in range(i + 1):
                G[i, j] += a * A[j, d]
    for i in range(K):
        for j in range(i):
            G[j, i] = G[i, j]


@kernel
def _add_observed(x, A, z, weight, S, T):
    """Add the sums of a row with gaps and return its error.

    S_d += w zᵀz, T_d += w z(x − zA)_d.
    """
    K, D = A.shape
    error = 0.0
    for d in range(D):
        if np.isnan(x[d]):
            continue
        left = _residual_at(x, A, z, d)
        error += left * left
        for i in range(K):
            if z[i]:
                T[i, d] += weight * left
                for j in range(K):
                    if z[j]:
                        S[d, i, j] += weight
    return error
