"""Which features does a row have? The best z for ‖x − zA‖², in Gram form.

With b = Ax and G = AAᵀ the error is ‖x‖² − 2z·b + zGz: trying a flip costs O(1), making
it O(K). Rows are handled one by one with the same arithmetic wherever they stand, so
that z does not depend on how a table is cut.
"""

import numba as nb
import numpy as np

__all__ = [
    "TABLE_SIZE",
    "allocate_gaps",
    "allocate_rows",
    "factor",
    "pattern_costs",
]

FAST = {"contract", "reassoc"}
_TILE = 128  # rows whose residuals stay in the cache
TABLE_SIZE = 8  # up to so many features all 2^K patterns are looked up in a table


@nb.njit(nogil=True, cache=True)
def factor(G):
    """Order features and factor G = RᵀR in that order; (order, R).

    The feature with the least left over comes first: it is decided last by `_decode`,
    which begins where a wrong bit costs most. Features that depend on others get a
    row of zeros.
    """
    K = G.shape[0]
    order = np.arange(K)
    left = np.empty(K)
    largest = 0.0
    for k in range(K):
        left[k] = G[k, k]
        largest = max(largest, G[k, k])
    R = np.zeros((K, K))
    for i in range(K):
        least = i
        for j in range(i + 1, K):
            if left[j] < left[least]:
                least = j
        order[i], order[least] = order[least], order[i]
        left[i], left[least] = left[least], left[i]
        for m in range(i):
            R[m, i], R[m, least] = R[m, least], R[m, i]
        if left[i] <= 1e-12 * largest:
            continue
        R[i, i] = np.sqrt(left[i])
        for j in range(i + 1, K):
            total = G[order[i], order[j]]
            for m in range(i):
                total -= R[m, i] * R[m, j]
            R[i, j] = total / R[i, i]
            left[j] -= R[i, j] * R[i, j]
    return order, R


@nb.njit(nogil=True, cache=True)
def pattern_costs(G):
    """zGz of all 2^K patterns z; bit k of the pattern's number is z_k."""
    K = G.shape[0]
    costs = np.zeros(1 << K)
    for k in range(K):
        half = 1 << k
        for p in range(half):
            cross = 0.0
            for j in range(k):
                if (p >> j) & 1:
                    cross += G[k, j]
            costs[p + half] = costs[p] + 2.0 * cross + G[k, k]
    return costs


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _look_up(b, costs, sums, z):
    """The best pattern of all 2^K; the lower number among equals."""
    K = len(b)
    sums[0] = 0.0
    for k in range(K):
        half = 1 << k
        upper = sums[half : 2 * half]
        for p in range(half):
            upper[p] = sums[p] + b[k]
    best, least = 0, 0.0
    for p in range(1 << K):
        cost = costs[p] - 2.0 * sums[p]
        if cost < least:
            best, least = p, cost
    for k in range(K):
        z[k] = (best >> k) & 1


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _flip(rest, G, norms, length, z):
    """Flip the bit that helps most until none does; True if any was flipped.

    `rest` is Ar, with the residual r = x − zA; `length` is ‖x‖, by which rounding is
    told from gain.
    """
    K = len(rest)
    flipped = False
    while True:
        best, least = -1, 0.0
        for k in range(K):
            sign = 1.0 - 2.0 * z[k]
            change = G[k, k] - 2.0 * sign * rest[k]
            if change < least and change < -1e-14 * norms[k] * (length + norms[k]):
                best, least = k, change
        if best < 0:
            return flipped
        flipped = True
        sign = 1.0 - 2.0 * z[best]
        z[best] = 1 - z[best]
        row = G[best]
        for k in range(K):
            rest[k] -= sign * row[k]


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _gram_cost(b, G, z):
    """zGz − 2z·b."""
    K = len(b)
    total = 0.0
    for i in range(K):
        if z[i]:
            total -= 2.0 * b[i]
            row = G[i]
            for j in range(K):
                if z[j]:
                    total += row[j]
    return total


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _decode(b, G, order, R, most_steps, z, y, trial, costs, turns):
    """Improve z to the best of all 2^K by depth-first search (sphere decoding).

    ‖x − zA‖² is ‖y − Rz‖² and a constant, with Rᵀy = b. Bits are decided from the
    last to the first, the likelier value first; a branch ends where its part of the
    sum exceeds the best known whole. After `most_steps` the best so far is kept.
    """
    K = len(b)
    norm = 0.0
    for i in range(K):
        total = b[order[i]]
        for m in range(i):
            total -= R[m, i] * y[m]
        y[i] = total / R[i, i] if R[i, i] > 0.0 else 0.0
        norm += y[i] * y[i]
    best = _gram_cost(b, G, z) + norm
    slack = 1e-12 * (norm + abs(best))
    best -= slack
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
        for j in range(level + 1, K):
            if trial[j]:
                gap -= R[level, j]
        likely = 1 if 2.0 * gap > R[level, level] else 0
        trial[level] = likely if turns[level] == 0 else 1 - likely
        turns[level] += 1
        if trial[level]:
            gap -= R[level, level]
        cost = costs[level + 1] + gap * gap
        if cost >= best:
            turns[level] = 2  # the other value costs more still
            continue
        if level > 0:
            costs[level] = cost
            level -= 1
            turns[level] = 0
        else:
            best = cost
            for i in range(K):
                z[order[i]] = trial[i]


@nb.njit(nogil=True, cache=True, fastmath=FAST)
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


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _row_norm(x):
    total = 0.0
    for d in range(len(x)):
        total += x[d] * x[d]
    return np.sqrt(total)


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _flip_tile(X, At, G, norms, R, rests, Z):
    """Flip bits of a tile's rows, given their residuals R; count rows changed."""
    np.dot(R, At, rests)
    changed = 0
    for n in range(len(X)):
        changed += _flip(rests[n], G, norms, _row_norm(X[n]), Z[n])
    return changed


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def _best_of_tile(X, At, G, norms, order, factor, costs, most_steps, products, Z):
    """The best z of all 2^K for a tile's rows; count rows changed.

    Found from nothing, so that equal rows get equal z whatever came before.
    """
    n_rows, K = Z.shape
    np.dot(X, At, products)
    rest, y, partial = np.empty(K), np.empty(K), np.empty(K + 1)
    z, trial = np.empty(K, np.uint8), np.zeros(K, np.uint8)
    turns, sums = np.zeros(K + 1, np.int64), np.empty(1 << min(K, TABLE_SIZE))
    changed = 0
    for n in range(n_rows):
        b = products[n]
        if K <= TABLE_SIZE:
            _look_up(b, costs, sums, z)
        else:
            for k in range(K):
                z[k], rest[k] = 0, b[k]
            _flip(rest, G, norms, _row_norm(X[n]), z)
            _decode(b, G, order, factor, most_steps, z, y, trial, partial, turns)
        differs = False
        for k in range(K):
            differs |= z[k] != Z[n, k]
            Z[n, k] = z[k]
        changed += differs
    return changed


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def allocate_rows(
    X, weights, A, G, exact, order, factor, costs, most_steps, Z, errors, S, T
):
    """Choose z for each row and add up S += ZᵀWZ, T += ZᵀW(X − ZA); count rows changed.

    `errors` becomes ‖x − zA‖². Flips start from Z as it stands; with `exact` the best
    of all patterns is taken, if `most_steps` suffice to prove it so. `costs` is
    `pattern_costs` up to `TABLE_SIZE` features.
    """
    n_rows, D = X.shape
    K = len(A)
    At = np.ascontiguousarray(A.T)
    ones, rests, R = np.empty((_TILE, K)), np.empty((_TILE, K)), np.empty((_TILE, D))
    SS, TT, norms = np.empty((K, K)), np.empty((K, D)), np.empty(K)
    for k in range(K):
        norms[k] = np.sqrt(G[k, k])
    changed = 0
    for start in range(0, n_rows, _TILE):
        stop = min(start + _TILE, n_rows)
        m = stop - start
        x, z, r, one, rest = X[start:stop], Z[start:stop], R[:m], ones[:m], rests[:m]
        if exact:
            now = _best_of_tile(
                x, At, G, norms, order, factor, costs, most_steps, rest, z
            )
            _residuals(x, A, z, one, r)
        else:
            _residuals(x, A, z, one, r)
            now = _flip_tile(x, At, G, norms, r, rest, z)
            if now > 0:
                _residuals(x, A, z, one, r)
        changed += now
        for n in range(m):
            errors[start + n] = _row_norm(r[n]) ** 2
            for k in range(K):
                rest[n, k] = weights[start + n] * one[n, k]
        np.dot(rest.T, one, SS)
        np.dot(rest.T, r, TT)
        S += SS
        T += TT
    return changed


@nb.njit(nogil=True, cache=True)
def allocate_gaps(X, weights, A, exact, most_steps, Z, errors, S, T):
    """As `allocate_rows` where entries are missing (NaN).

    Each row is solved on its observed columns, hence with a Gram matrix of its own;
    S[d] sums over the rows that have column d.
    """
    n_rows, K = Z.shape
    b, rest, norms = np.empty(K), np.empty(K), np.empty(K)
    y, partial = np.empty(K), np.empty(K + 1)
    z, trial = np.empty(K, np.uint8), np.zeros(K, np.uint8)
    turns = np.zeros(K + 1, np.int64)
    sums = np.empty(1 << min(K, TABLE_SIZE))
    G = np.empty((K, K))
    changed = 0
    for n in range(n_rows):
        x = X[n]
        _observed_products(x, A, b, G)
        length = _row_norm(x[~np.isnan(x)])
        for k in range(K):
            norms[k] = np.sqrt(G[k, k])
            z[k] = 0 if exact else Z[n, k]
        if exact and K <= TABLE_SIZE:
            _look_up(b, pattern_costs(G), sums, z)
        else:
            for k in range(K):
                rest[k] = b[k]
                for j in range(K):
                    if z[j]:
                        rest[k] -= G[k, j]
            _flip(rest, G, norms, length, z)
            if exact:
                order, R = factor(G)
                _decode(b, G, order, R, most_steps, z, y, trial, partial, turns)
        differs = False
        for k in range(K):
            differs |= z[k] != Z[n, k]
            Z[n, k] = z[k]
        changed += differs
        errors[n] = _add_observed(x, A, z, weights[n], S, T)
    return changed


@nb.njit(nogil=True, cache=True)
def _observed_products(x, A, b, G):
    """b = Ax and G = AAᵀ over the columns that x has."""
    K, D = A.shape
    for i in range(K):
        b[i] = 0.0
        for j in range(K):
            G[i, j] = 0.0
    for d in range(D):
        if np.isnan(x[d]):
            continue
        for i in range(K):
            a = A[i, d]
            b[i] += a * x[d]
            for j in range(i + 1):
                G[i, j] += a * A[j, d]
    for i in range(K):
        for j in range(i):
            G[j, i] = G[i, j]


@nb.njit(nogil=True, cache=True)
def _add_observed(x, A, z, weight, S, T):
    """Add the sums of a row with gaps and return its error."""
    K, D = A.shape
    error = 0.0
    for d in range(D):
        if np.isnan(x[d]):
            continue
        left = x[d]
        for k in range(K):
            if z[k]:
                left -= A[k, d]
        error += left * left
        for i in range(K):
            if z[i]:
                T[i, d] += weight * left
                for j in range(K):
                    if z[j]:
                        S[d, i, j] += weight
    return error
