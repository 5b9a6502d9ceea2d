"""Maximisers of the row objective of MEIBP (section 3.6).

For one row, f(z) = Σ_k u_k z_k − ½ zᵀQz − ln[(K₊ + c)!/K₊!], where c is the number of
`fresh` features chosen (those that no other row has), less f(∅) = 0. Written with
``lin = u − diag(Q)/2``, the gain of feature k given the others is
``w_k = lin_k − Σ_{j≠k} Q_kj z_j``, less the cost of a fresh one: O(1) per flip tried,
O(K) per flip made. For Q ≥ 0 the objective is submodular, and

- a local optimum A, or V∖A if that is better, reaches 1/3 of the range of f;
- the double greedy of Buchbinder et al. (2012) reaches 1/3, and 1/2 in expectation if
  it decides at random.

For a signed Q neither is guaranteed. `ROUNDING` of what the numbers of a row add up to
is taken as no improvement, so that no bit flips to and fro for ever.
"""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, inlined
from kplus.core.kernels_uniform import scramble, uniform

__all__ = [
    "ROUNDING",
    "Objective",
    "double_greedy",
    "exchange",
    "keep_better",
    "local_search",
    "random_double_greedy",
    "row_slack",
    "rows_double_greedy",
    "rows_local_search",
    "sums_beside_diagonal",
    "value",
]

ROUNDING = 1e-12
NONE = np.int64(0)  # typed, so that numba compiles each function once


class Objective(NamedTuple):
    """f of one row, see above."""

    lin: np.ndarray  # (K,)
    Q: np.ndarray  # (K, K)
    sums: np.ndarray  # (K,) of Q beside its diagonal
    fresh: np.ndarray  # (K,) uint8: features that no other row has
    base: int  # number of the others, K₊


@fast_kernel
def sums_beside_diagonal(Q, sums):
    """sums_k = Σ_{j≠k} Q_kj."""
    for k in range(len(Q)):
        total = 0.0
        for j in range(len(Q)):
            if j != k:
                total += Q[k, j]
        sums[k] = total


@fast_kernel
def row_slack(lin, Q):
    """By how much an objective must rise to be higher by more than rounding.

    10⁻¹² Σ_k (max(lin_k, 0) + Q_kk). Gains that come near zero are those of features
    with lin > 0 (or raised by a negative Q), so that features forbidden by a huge
    negative lin do not count.
    """
    total = 0.0
    for k in range(len(lin)):
        total += max(lin[k], 0.0) + Q[k, k]
    return ROUNDING * total


@inlined
def _shift(w, Q, k, sign):
    """w −= ±Q_k: let gains follow when feature k comes (1) or goes (-1)."""
    for j in range(len(w)):
        w[j] -= sign * Q[k, j]


@fast_kernel
def _cost(c, base):
    """ln[(base + c)!/base!].

    MEIBP Eq. 20.
    """
    total = 0.0
    for i in range(1, c + 1):
        total += np.log(base + i)
    return total


@fast_kernel
def value(lin, Q, fresh, base, z, w):
    """f(z) = lin·z + ½Σ Q_kk z_k − ½zᵀQz − ln[(base + c)!/base!]; w is a buffer.

    MEIBP Eq. 19.
    """
    K = len(lin)
    for k in range(K):
        w[k] = lin[k] + 0.5 * Q[k, k]
    for k in range(K):
        if z[k]:
            _shift(w, Q, k, 0.5)
    total, c = 0.0, 0
    for k in range(K):
        if z[k]:
            total += w[k]
            c += fresh[k]
    return total - _cost(c, base)


@inlined
def _complement_value(lin, sums, fresh, base, c, free, held):
    """f(V∖A) of all features that are not held, given their gains.

    MEIBP section 3.6.
    """
    total, rest = 0.0, 0
    for k in range(len(lin)):
        total += 3.0 * lin[k] - free[k] - sums[k] if held[k] == np.inf else 0.0
    for k in range(len(lin)):
        if fresh[k] and held[k] == np.inf:
            total -= np.log(base + c + 1.0)
            rest += 1
    return 0.5 * total - _cost(rest, base)


@inlined
def _update_costs(moved, fresh, base, before, after, free, held):
    """Let the gains of fresh features follow when the number of those chosen changes.

    Eq. 20 as c changes: ln(base + c + 1). A free one would be number c + 1, a held one
    is as good as number c; the one that was moved keeps its number.
    """
    of_free = np.log((base + before + 1.0) / (base + after + 1.0))
    of_held = np.log(max(base + before, 1.0) / max(base + after, 1.0))
    for k in range(len(fresh)):
        if fresh[k] and k != moved:
            free[k] += of_free
            held[k] += of_held


@inlined
def _highest(w, least):
    """argmax_k w_k if that exceeds `least`, else -1."""
    best = -1
    for k in range(len(w)):
        if w[k] > least:
            best, least = k, w[k]
    return best


@inlined
def _lowest(w, most):
    """argmin_k w_k if that is below `most`, else -1."""
    best = -1
    for k in range(len(w)):
        if w[k] < most:
            best, most = k, w[k]
    return best


@inlined
def _move(k, Q, sign, source, target, absent):
    """Take the gain of feature k from one list to the other, and let both follow.

    w −= ±Q_k.
    """
    own = source[k]
    for j in range(len(source)):
        source[j] -= sign * Q[k, j]
        target[j] -= sign * Q[k, j]
    source[k], target[k] = absent, own
    return own


@inlined
def _climb(Q, fresh, base, slack, free, held):
    """Add greedily; where nothing is to add, remove the worst and add again.

    Steps 2 and 3 of the ls-algorithm in MEIBP section 3.6. `free` has the gains of
    features not chosen (else -inf), `held` of those chosen (else inf). Returns by how
    much f rose and the number of fresh features chosen.
    """
    rise, c = 0.0, 0
    while True:
        k = _highest(free, slack)
        if k >= 0:
            rise += _move(k, Q, 1.0, free, held, -np.inf)
            after = c + fresh[k]
        else:
            k = _lowest(held, -slack)
            if k < 0:
                return rise, c
            rise -= _move(k, Q, -1.0, held, free, np.inf)
            after = c - fresh[k]
        if after != c:
            _update_costs(k, fresh, base, c, after, free, held)
            c = after


@fast_kernel
def local_search(objective, slack, z, free, held):
    """Fill z with a local maximum, or with its complement if that is better; return f.

    The ls-algorithm of MEIBP section 3.6 (Feige et al. 2011). `free` and `held` are
    buffers.
    """
    lin, Q, sums, fresh, base = objective
    K = len(lin)
    for k in range(K):
        free[k] = lin[k] - (np.log(base + 1.0) if fresh[k] else 0.0)
        held[k] = np.inf
    here, c = _climb(Q, fresh, base, slack, free, held)
    there = _complement_value(lin, sums, fresh, base, c, free, held)
    turned = there > here + slack
    for k in range(K):
        z[k] = (held[k] < np.inf) != turned
    return there if turned else here


@inlined
def _best_exchange(Q, overlaps, slack, z, w):
    """The feature to give up for another, and that one; (-1, -1) if none pays.

    Not in the paper: w_k − w_j + Q_jk. `overlaps` has the largest Q_jk of each j: most
    features need not be compared.
    """
    out, into, most = -1, -1, slack
    free = -np.inf
    for k in range(len(z)):
        if not z[k]:
            free = max(free, w[k])
    for j in range(len(z)):
        if z[j] and free - w[j] + overlaps[j] > most:
            for k in range(len(z)):
                gain = w[k] - w[j] + Q[j, k]
                if gain > most and not z[k]:
                    out, into, most = j, k, gain
    return out, into


@fast_kernel
def _best_flip(slack, z, w):
    """The bit whose flip raises f most, by more than `slack`; -1: none."""
    best, most = -1, slack
    for k in range(len(z)):
        gain = -w[k] if z[k] else w[k]
        if gain > most:
            best, most = k, gain
    return best


@fast_kernel
def _flip(k, Q, z, w):
    """Flip bit k: w ∓ Q_k; return by how much f rises, ±w_k."""
    own, sign = w[k], 1.0 - 2.0 * z[k]
    for j in range(len(z)):
        w[j] -= sign * Q[k, j]
    w[k] = own
    z[k] = 1 - z[k]
    return sign * own


@fast_kernel
def _gains(lin, Q, z, w):
    """w_k = lin_k − Σ_{j≠k} Q_kj z_j, the gain of each feature at z."""
    for k in range(len(z)):
        w[k] = lin[k]
    for k in range(len(z)):
        if z[k]:
            own = w[k]
            for j in range(len(z)):
                w[j] -= Q[k, j]
            w[k] = own


@inlined
def exchange(Q, overlaps, slack, z, w):
    """Improve a z without fresh features by exchanging one feature for another.

    Not in the paper. Local search stops where no single flip pays; among features that
    overlap, a row may hold the wrong one of two. `w` has the gains at z, `overlaps` are
    those of Q. Return by how much f rose.
    """
    rise = 0.0
    while True:
        out, into = _best_exchange(Q, overlaps, slack, z, w)
        if out < 0:
            return rise
        rise += _flip(out, Q, z, w)
        rise += _flip(into, Q, z, w)
        k = _best_flip(slack, z, w)
        while k >= 0:
            rise += _flip(k, Q, z, w)
            k = _best_flip(slack, z, w)


@fast_kernel
def _squeeze(objective, randomly, start, z, low, high):
    """Decide feature after feature between a growing and a shrinking set; fill z.

    The double greedy of Buchbinder et al. (2012), which the paper cites. `low` and
    `high` are the gains at the two sets, which meet at the end. The feature is taken in
    with probability a/(a + b) or, if not at random, where a ≥ b.
    """
    lin, Q, sums, fresh, base = objective
    K = len(lin)
    c_low = c_high = 0
    for k in range(K):
        low[k] = lin[k]
        high[k] = lin[k] - sums[k]
        c_high += fresh[k]
    for k in range(K):
        a, b = low[k], -high[k]
        if fresh[k]:
            a -= np.log(base + c_low + 1.0)
            b += np.log(base + c_high)
        take = a >= b
        if randomly:
            a, b = max(a, 0.0), max(b, 0.0)
            take = uniform(start, k) * (a + b) <= a
        if take:
            z[k] = 1
            c_low += fresh[k]
            _shift(low, Q, k, 1.0)
        else:
            z[k] = 0
            c_high -= fresh[k]
            _shift(high, Q, k, -1.0)


@fast_kernel
def double_greedy(objective, z, w, high):
    """Fill z by the deterministic double greedy; return f. `w`, `high`: buffers.

    Buchbinder et al. 2012.
    """
    lin, Q, _, fresh, base = objective
    _squeeze(objective, False, np.uint64(0), z, w, high)
    return value(lin, Q, fresh, base, z, w)


@fast_kernel
def random_double_greedy(objective, seed, row, z, w, high):
    """Fill z by the randomised double greedy; return f. Seed and row fix the draws.

    Buchbinder et al. 2012.
    """
    start = scramble(np.uint64(seed) + scramble(np.uint64(row)))
    lin, Q, _, fresh, base = objective
    _squeeze(objective, True, start, z, w, high)
    return value(lin, Q, fresh, base, z, w)


@fast_kernel
def _row_gains(b, offset, Q, lin):
    """lin_k = b_k + offset_k − ½Q_kk."""
    for k in range(len(lin)):
        lin[k] = b[k] + offset[k] - 0.5 * Q[k, k]


@fast_kernel
def keep_better(objective, slack, z, f_z, old, w):
    """Write z over a row's old bits if it is better; return how many bits changed.

    f(z) > f(old).
    """
    lin, Q, _, fresh, base = objective
    bits = 0
    for k in range(len(z)):
        bits += z[k] != old[k]
    if bits == 0:
        return 0
    if not f_z > value(lin, Q, fresh, base, old, w) + slack:
        return 0
    for k in range(len(z)):
        old[k] = z[k]
    return bits


@inlined
def _all_sums(Qs):
    """Σ_{j≠k} Q_kj for each pattern."""
    sums = np.empty((Qs.shape[0], Qs.shape[1]))
    for p in range(len(Qs)):
        sums_beside_diagonal(Qs[p], sums[p])
    return sums


@inlined
def _all_overlaps(Qs):
    """max_k≠j Q_jk for each pattern and j."""
    overlaps = np.empty((Qs.shape[0], Qs.shape[1]))
    for p in range(len(Qs)):
        overlaps[p] = 0.0
        for j in range(Qs.shape[1]):
            for k in range(Qs.shape[1]):
                if k != j:
                    overlaps[p, j] = max(overlaps[p, j], Qs[p, j, k])
    return overlaps


@fast_kernel
def rows_local_search(B, linear, Qs, pattern, Z):
    """Maximise f for every row of a block by local search and exchanges.

    MEIBP section 3.6 on Eq. 19, all rows given the same q(A).

    Parameters
    ----------
    B : (N, K)
        Products of the rows with the features, in units of the objective.
    linear : (P, K)
        What else is linear in z; row n has ``u = B[n] + linear[pattern[n]]``.
    Qs : (P, K, K)
        Row n has ``Q = Qs[pattern[n]]``.
    pattern : (N,) int
    Z : (N, K) uint8
        The bits so far. They stay for rows of which no better ones are found.

    Returns
    -------
    changed : int
        Number of rows changed.
    """
    N, K = Z.shape
    sums, overlaps = _all_sums(Qs), _all_overlaps(Qs)
    lin, w, held, z = np.empty(K), np.empty(K), np.empty(K), np.empty(K, np.uint8)
    fresh = np.empty(K, np.uint8)
    fresh[:] = 0
    changed = 0
    for n in range(N):
        p = pattern[n]
        Q = Qs[p]
        _row_gains(B[n], linear[p], Q, lin)
        slack = row_slack(lin, Q)
        objective = Objective(lin, Q, sums[p], fresh, NONE)
        f_z = local_search(objective, slack, z, w, held)
        _gains(lin, Q, z, w)
        f_z += exchange(Q, overlaps[p], slack, z, w)
        changed += keep_better(objective, slack, z, f_z, Z[n], w) > 0
    return changed


@fast_kernel
def rows_double_greedy(B, linear, Qs, pattern, Z, seed, numbers):
    """The same by the randomised double greedy.

    Buchbinder et al. (2012) on MEIBP Eq. 19. `numbers` are those of the rows in their
    table: what is drawn for a row depends on its number and on `seed` alone, not on how
    the table is cut.
    """
    N, K = Z.shape
    sums = _all_sums(Qs)
    lin, w, high, z = np.empty(K), np.empty(K), np.empty(K), np.empty(K, np.uint8)
    fresh = np.empty(K, np.uint8)
    fresh[:] = 0
    changed = 0
    for n in range(N):
        p = pattern[n]
        Q = Qs[p]
        _row_gains(B[n], linear[p], Q, lin)
        slack = row_slack(lin, Q)
        objective = Objective(lin, Q, sums[p], fresh, NONE)
        f_z = random_double_greedy(objective, seed, numbers[n], z, w, high)
        changed += keep_better(objective, slack, z, f_z, Z[n], w) > 0
    return changed
