"""Responsibilities of rows, their entropies, and rows gathered by component."""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import inlined, kernel

__all__ = [
    "Notes",
    "Shares",
    "candidate_sets",
    "gather_pairs",
    "gather_support",
    "responsibilities",
]


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
    """Pairs of row and slot by the component asked for; -1 asks for none.

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
def _add_new(found, size, k):
    """Add k to the first `size` entries unless it is there; return how many came."""
    for i in range(size):
        if found[i] == k:
            return 0
    found[size] = k
    return 1
