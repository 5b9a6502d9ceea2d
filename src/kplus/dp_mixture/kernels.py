"""Kernels of mixtures: responsibilities, and scores and sums of rows by component."""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, inlined, kernel

__all__ = [
    "Notes",
    "Shares",
    "add_features",
    "candidate_sets",
    "fill_quadratic",
    "gather_outer",
    "gather_pairs",
    "gather_scores",
    "gather_support",
    "invert_factors",
    "near_best",
    "responsibilities",
    "score_candidates",
]

_CHUNK = 256  # rows gathered at a time, so that they stay in the cache


class Shares(NamedTuple):
    """Components of rows and their responsibilities, those of one row together."""

    support: np.ndarray  # (room,) int32 components
    r: np.ndarray  # (room,)
    starts: np.ndarray  # (n + 1,) where each row begins


class Notes(NamedTuple):
    """What a pass adds up beside the statistics; see `responsibilities`."""

    entropy: np.ndarray  # (K,)
    pairs: np.ndarray  # (K, K)
    removal_cost: np.ndarray  # (K,)


@inlined
def _keep_best(logs, n_kept, order):
    """Put the slots of the `n_kept` largest values first, largest first.

    Not in the paper: r has few entries.
    """
    for i in range(n_kept):
        best = i
        for j in range(i + 1, len(order)):
            if logs[order[j]] > logs[order[best]]:
                best = j
        order[i], order[best] = order[best], order[i]


@kernel
def responsibilities(
    scores, candidates, log_weights, weights, n_active, least, shares, notes
):
    """Eq. 9 for each row, on its best `n_active` components, those above `least`.

    r_nk ∝ exp(E[log w_k] + E[log p(x_n | φ_k)]), Memoized Eq. 9. Entropies are the H_k
    of its section 3, pairs the H_ab of section 3.2. The component with the largest
    share comes first. Adds the rows' entropy to that of their components; to ``pairs[a,
    b]`` (a < b) what entropy a merge would lose, Σ (ra+rb) log(ra+rb) - ra log ra - rb
    log rb; to `removal_cost` what the rows would lose at most without their leading
    component.
    """
    support, r, starts = shares
    entropy, pairs, removal_cost = notes
    n_rows, C = scores.shape
    all_components = candidates.shape[0] == 0
    order = np.empty(C, np.int64)
    logs = np.empty(C)
    at = np.int64(0)
    for n in range(n_rows):
        highest = -np.inf
        for c in range(C):
            k = np.int64(c) if all_components else np.int64(candidates[n, c])
            order[c] = c
            logs[c] = scores[n, c] + log_weights[k] if k >= 0 else -np.inf
            highest = max(highest, logs[c])
        first = np.int64(0)
        n_near = np.int64(0)
        for c in range(C):
            if logs[c] - highest > least:
                order[n_near], order[c] = order[c], order[n_near]
                n_near += 1
        n_kept = min(n_near, n_active)
        near = order[:n_near]
        if n_kept < n_near:
            _keep_best(logs, n_kept, near)
        else:
            for i in range(n_near):
                if logs[near[i]] == highest:
                    first = i
                    break
            near[0], near[first] = near[first], near[0]
        mass = 0.0
        for i in range(n_kept):
            mass += np.exp(logs[near[i]] - highest)
        log_mass = np.log(mass)
        w = weights[n]
        starts[n] = at
        for i in range(n_kept):
            c = near[i]
            k = np.int64(c) if all_components else np.int64(candidates[n, c])
            log_r = logs[c] - highest - log_mass
            share = np.exp(log_r)
            support[at + i] = k
            r[at + i] = share
            entropy[k] -= w * share * log_r
            if i > 0:
                removal_cost[k] -= w * np.log1p(-share)
        if n_kept > 1:
            _note_pairs(support[at : at + n_kept], r[at : at + n_kept], w, pairs)
        k = np.int64(support[at])
        # Those ruled out beforehand are farther off than `least` at any rate.
        second = highest + least
        for c in range(C):
            if c != near[0]:
                second = max(second, logs[c])
        removal_cost[k] += w * (highest + log_mass - second)
        at += n_kept
    starts[n_rows] = at


@inlined
def _note_pairs(ks, r, w, pairs):
    """With t = rb/ra ≤ 1, what is lost is ra ((1 + t) log(1 + t) - t log t).

    The part of H_ab (Memoized, section 3.2) that a merge loses.
    """
    for i in range(len(ks)):
        for j in range(i + 1, len(ks)):
            a, b = min(ks[i], ks[j]), max(ks[i], ks[j])
            large, small = max(r[i], r[j]), min(r[i], r[j])
            if small < 1e-13:
                continue
            t = small / large
            pairs[a, b] += w * large * ((1.0 + t) * np.log1p(t) - t * np.log(t))


@kernel
def gather_support(starts, support, r, weights, K):
    """Rows by component, with responsibility times weight.

    The r_nk of Memoized Eq. 7.
    """
    n_rows = len(starts) - 1
    first, at = np.empty(K + 1, np.int64), np.empty(K, np.int64)
    first[:] = 0
    for i in range(starts[n_rows]):
        first[support[i] + 1] += 1
    for k in range(K):
        at[k] = first[k]
        first[k + 1] += first[k]
    rows = np.empty(starts[n_rows], np.int64)
    shares = np.empty(starts[n_rows])
    for n in range(n_rows):
        for i in range(starts[n], starts[n + 1]):
            k = support[i]
            rows[at[k]] = n
            shares[at[k]] = weights[n] * r[i]
            at[k] += 1
    return first, rows, shares


@kernel
def gather_pairs(candidates, K):
    """Pairs of row and slot by the component in the slot; -1 is none.

    {(n, c) : candidates_nc = k}.
    """
    n_rows, C = candidates.shape
    first, at = np.empty(K + 1, np.int64), np.empty(K, np.int64)
    first[:] = 0
    for n in range(n_rows):
        for c in range(C):
            if candidates[n, c] >= 0:
                first[candidates[n, c] + 1] += 1
    for k in range(K):
        at[k] = first[k]
        first[k + 1] += first[k]
    rows, slots = np.empty(first[K], np.int64), np.empty(first[K], np.int64)
    for n in range(n_rows):
        for c in range(C):
            k = candidates[n, c]
            if k >= 0:
                rows[at[k]], slots[at[k]] = n, c
                at[k] += 1
    return first, rows, slots


@kernel
def candidate_sets(starts, support, neighbours, n_active):
    """Last support of each row and the neighbours of its leading component, once each.

    Not in the paper: where r_nk may be above 0 in the next pass. Unused slots are -1. A
    support larger than `n_active` keeps its first entries.
    """
    n_rows, N = len(starts) - 1, neighbours.shape[1]
    out = np.empty((n_rows, n_active + N), np.int32)
    out[:] = -1
    for n in range(n_rows):
        at = np.int64(0)
        # Merged components may stand in a support twice.
        for i in range(starts[n], min(starts[n + 1], starts[n] + n_active)):
            at += _add_new(out[n], at, support[i])
        for j in range(N):
            at += _add_new(out[n], at, neighbours[support[starts[n]], j])
    return out


@kernel
def _add_new(entries, size, k):
    """Add k to the first `size` entries unless it is there; return how many came."""
    for i in range(size):
        if entries[i] == k:
            return 0
    entries[size] = k
    return 1


@fast_kernel
def score_candidates(F, candidates, eta, bias, out):
    """out[n, c] = F[n] · eta[k] + bias[k] with k = candidates[n, c]; -inf for k < 0.

    Memoized Eq. 9: E[log p(x | φ_k)] = E[φ_k]·t(x) − E[a(φ_k)].
    """
    n_rows, n_stats = F.shape
    for n in range(n_rows):
        for c in range(candidates.shape[1]):
            k = candidates[n, c]
            if k < 0:
                out[n, c] = -np.inf
                continue
            total = bias[k]
            for m in range(n_stats):
                total += F[n, m] * eta[k, m]
            out[n, c] = total


@kernel
def add_features(F, starts, rows, weights, out):
    """out[k] += Σ weights · F[rows] over the rows of component k.

    Memoized Eq. 7: s_k.
    """
    n_stats = F.shape[1]
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            n, weight = rows[i], weights[i]
            for m in range(n_stats):
                out[k, m] += weight * F[n, m]


@kernel
def fill_quadratic(Y, offset, out):
    """out[n] = [y (if `offset` is D), the products y_i y_j with j ≥ i].

    t(x), Memoized Eq. 2.
    """
    n_rows, D = Y.shape
    for n in range(n_rows):
        for i in range(offset):
            out[n, i] = Y[n, i]
        at = offset
        for i in range(D):
            y, left, right = Y[n, i], out[n, at : at + D - i], Y[n, i:]
            for j in range(D - i):  # counted from 0, so that it is vectorised
                left[j] = y * right[j]
            at += D - i


@fast_kernel
def _half_squares(Z):
    """Turn each row's first entry into half the sum of its squares (½Σ_d z_d²)."""
    n_rows, D = Z.shape
    for n in range(n_rows):
        row, total = Z[n], 0.0
        for d in range(D):
            total += row[d] * row[d]
        row[0] = 0.5 * total


@kernel
def gather_scores(Y, starts, rows, slots, means, whiten, const, out):
    """out[n, slot] = const_k - ½ |(y_n - m_k) whiten_k|² for the pairs of each k.

    Memoized, supplement Eq. 19: E[log p(x | φ_k)] of a Gaussian. Pairs
    ``starts[k]:starts[k + 1]`` name the rows that score component k and the slot
    of the score in their row of `out`.
    """
    D = Y.shape[1]
    gathered, turned = np.empty((_CHUNK, D)), np.empty((_CHUNK, D))
    for k in range(len(const)):
        mean = means[k]
        for start in range(starts[k], starts[k + 1], _CHUNK):
            size = min(_CHUNK, starts[k + 1] - start)
            for i in range(size):
                goal, row = gathered[i], Y[rows[start + i]]
                for d in range(D):
                    goal[d] = row[d] - mean[d]
            Z = turned[:size]
            np.dot(gathered[:size], whiten[k], Z)
            _half_squares(Z)
            for i in range(size):
                out[rows[start + i], slots[start + i]] = const[k] - Z[i, 0]


@kernel
def gather_outer(Y, starts, rows, weights, offset, out):
    """out[k] = [Σ w y (if `offset` is D)] and the triangle of Σ w y yᵀ, rows of k.

    Memoized Eq. 7, supplement Eq. 13.
    """
    D = Y.shape[1]
    plain, heavy = np.empty((_CHUNK, D)), np.empty((_CHUNK, D))
    square = np.empty((D, D))
    for k in range(len(starts) - 1):
        for start in range(starts[k], starts[k + 1], _CHUNK):
            size = min(_CHUNK, starts[k + 1] - start)
            for i in range(size):
                row, w = Y[rows[start + i]], weights[start + i]
                same, weighted, sums = plain[i], heavy[i], out[k, :offset]
                for d in range(D):
                    same[d] = row[d]
                    weighted[d] = w * row[d]
                for d in range(offset):
                    sums[d] += weighted[d]
            np.dot(heavy[:size].T, plain[:size], square)
            at = offset
            for d in range(D):
                sums, line = out[k, at : at + D - d], square[d, d:]
                for e in range(D - d):
                    sums[e] += line[e]
                at += D - d


@kernel
def invert_factors(L, scale, out):
    """out[k] = scale[k] · (L_k⁻¹)ᵀ for lower triangular L_k, row by row."""
    K, D = L.shape[0], L.shape[1]
    inverse = np.empty((D, D))
    for k in range(K):
        for i in range(D):
            for j in range(D):
                inverse[i, j] = 0.0
            for m in range(i):
                factor = L[k, i, m]
                for j in range(m + 1):
                    inverse[i, j] -= factor * inverse[m, j]
            inverse[i, i] = 1.0
            pivot = 1.0 / L[k, i, i]
            for j in range(i + 1):
                inverse[i, j] *= pivot
        for i in range(D):
            for j in range(D):
                out[k, j, i] = scale[k] * inverse[i, j]


@kernel
def near_best(scores, log_weights, squares, error, margin):
    """Components of each row whose rounded score comes near the best; -1 fills up.

    Not in the paper: {k : score_nk ≥ max_j score_nj − margin − rounding}. The rounding
    of a row is at most `error` · √(s + s²), with s the squares of its values. A row
    whose scores are no numbers gets every component.
    """
    n_rows, K = scores.shape
    lowest = np.empty(n_rows)
    most = np.int64(1)
    for n in range(n_rows):
        best = -np.inf
        for k in range(K):
            scores[n, k] += log_weights[k]
            best = max(best, scores[n, k])
        lowest[n] = (
            best - margin - 2.0 * error * np.sqrt(squares[n] + squares[n] * squares[n])
        )
        if not np.isfinite(lowest[n]):
            lowest[n] = -np.inf
        count = np.int64(0)
        for k in range(K):
            count += not scores[n, k] < lowest[n]
        most = max(most, count)
    out = np.empty((n_rows, most), np.int32)
    out[:] = -1
    for n in range(n_rows):
        at = np.int64(0)
        for k in range(K):
            if not scores[n, k] < lowest[n]:
                out[n, at] = k
                at += 1
    return out
