"""Responsibilities of rows, and what a pass adds up beside the statistics."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import INFINITY as INF
    from cython.cimports.libc.math import exp, fabs, log, log1p
else:
    from numpy import exp, fabs, log, log1p
    from numpy import inf as INF

__all__ = ["Notes", "Shares", "responsibilities"]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Shares:
    """Components of rows and their responsibilities, those of one row together."""

    support: cy.int[::1]  # (room,) components
    r: cy.double[::1]  # (room,)
    starts: cy.longlong[::1]  # (n + 1,) where each row begins
    noise: cy.double[::1]  # (n,) before: scores of noise; after: its shares; or empty


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Notes:
    """What a pass adds up beside the statistics; see `responsibilities`."""

    entropy: cy.double[::1]  # (K,)
    pairs: cy.double[:, ::1]  # (K, K)
    removal_cost: cy.double[::1]  # (K,)


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Row:
    """Slots of one row that are near the best; room for all."""

    slots: cy.longlong[::1]
    logs: cy.double[::1]  # log r up to a constant: 0 is the best
    highest: cy.double  # that constant


def responsibilities(
    scores: cy.const[cy.double][:, ::1],
    candidates: cy.const[cy.int][:, ::1],
    log_weights: cy.const[cy.double][::1],
    weights: cy.const[cy.double][::1],
    n_active: cy.Py_ssize_t,
    least: cy.double,
    shares: Shares,
    notes: Notes,
) -> None:
    """Eq. 9 for each row, on its best `n_active` components, those above `least`.

    r_nk ∝ exp(E[log w_k] + E[log p(x_n | φ_k)]), Memoized Eq. 9. Entropies are the H_k
    of its section 3, pairs the H_ab of section 3.2. The component with the largest
    share comes first. Adds the rows' entropy to that of their components; to ``pairs[a,
    b]`` (a < b) what entropy a merge would lose, Σ (ra+rb) log(ra+rb) - ra log ra - rb
    log rb; to `removal_cost` what the rows would lose at most without their leading
    component. Without `candidates` every component has a slot.

    Where there is noise, ``shares.noise`` holds its score of each row beside those of
    the components: r₀ of the row goes to it, and counts as if its weight were less.
    """
    C = scores.shape[1]
    row = _Row(np.empty(C, np.int64), np.empty(C), 0.0)
    at: cy.Py_ssize_t = 0
    with cy.nogil:
        for n in range(scores.shape[0]):
            shares.starts[n] = at
            n_near = _find_near(scores, candidates, log_weights, n, least, row)
            n_kept = _lead_first(row, n_near, n_active)
            if n_kept > 0:
                _share_out(
                    row, n_near, n_kept, candidates, n, weights[n], least, shares, notes
                )
                at += n_kept
        shares.starts[scores.shape[0]] = at


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _find_near(
    scores: cy.const[cy.double][:, ::1],
    candidates: cy.const[cy.int][:, ::1],
    log_weights: cy.const[cy.double][::1],
    n: cy.Py_ssize_t,
    least: cy.double,
    row: _Row,
) -> cy.Py_ssize_t:
    """Slots with a score of row n, plus log weight, less than -`least` off the best."""
    C = scores.shape[1]
    highest: cy.double = -INF
    total: cy.double
    k: cy.Py_ssize_t
    n_near: cy.Py_ssize_t = 0
    if candidates.shape[0] == 0:
        for c in range(C):
            total = scores[n, c] + log_weights[c]
            row.logs[c] = total
            highest = total if total > highest else highest
    else:
        for c in range(C):
            k = candidates[n, c]
            total = scores[n, c] + log_weights[k] if k >= 0 else -INF
            row.logs[c] = total
            highest = total if total > highest else highest
    row.highest = highest
    for c in range(C):
        total = row.logs[c] - highest
        row.logs[n_near] = total
        row.slots[n_near] = c
        n_near += total > least
    return n_near


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _lead_first(
    row: _Row, n_near: cy.Py_ssize_t, n_active: cy.Py_ssize_t
) -> cy.Py_ssize_t:
    """Put the best slots first; return how many are kept.

    Not in the paper: r has few entries. Where some are dropped the rest is in order.
    """
    n_sorted = min(1, n_near) if n_near <= n_active else n_active
    for i in range(n_sorted):
        best: cy.Py_ssize_t = i
        highest: cy.double = row.logs[i]
        for j in range(i + 1, n_near):  # without branches, which nobody could predict
            value: cy.double = row.logs[j]
            best += (j - best) * (value > highest)
            highest = value if value > highest else highest
        slot = row.slots[i]
        row.slots[i] = row.slots[best]
        row.slots[best] = slot
        row.logs[best] = row.logs[i]
        row.logs[i] = highest
    return min(n_near, n_active)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _share_out(
    row: _Row,
    n_near: cy.Py_ssize_t,
    n_kept: cy.Py_ssize_t,
    candidates: cy.const[cy.int][:, ::1],
    n: cy.Py_ssize_t,
    w: cy.double,
    least: cy.double,
    shares: Shares,
    notes: Notes,
) -> cy.void:
    """Divide row n among the slots kept, and note what follows."""
    at: cy.Py_ssize_t = shares.starts[n]
    mass: cy.double = 0.0
    k: cy.Py_ssize_t
    # Those ruled out beforehand are farther off than `least` at any rate.
    second: cy.double = least
    for i in range(1, n_near):
        second = row.logs[i] if row.logs[i] > second else second
    for i in range(n_kept):
        share: cy.double = exp(row.logs[i])
        shares.r[at + i] = share
        mass += share
    log_mass: cy.double = log(mass)
    stays: cy.double = _without_noise(row, n, log_mass, shares)
    for i in range(n_kept):
        c = row.slots[i]
        k = c if candidates.shape[0] == 0 else candidates[n, c]
        share = shares.r[at + i] / mass
        shares.support[at + i] = k
        shares.r[at + i] = share
        notes.entropy[k] -= w * stays * share * (row.logs[i] - log_mass)
        if i > 0:
            notes.removal_cost[k] -= w * log1p(-share * stays)
    for i in range(n_kept):
        _note_pairs(row, i, n_kept, at, w * stays, shares, notes)
    loss: cy.double = log_mass - second
    if shares.noise.shape[0] > 0:
        loss = -log(shares.noise[n] + stays * exp(-loss))
        for i in range(n_kept):
            shares.r[at + i] *= stays
    notes.removal_cost[shares.support[at]] += w * loss


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _without_noise(
    row: _Row, n: cy.Py_ssize_t, log_mass: cy.double, shares: Shares
) -> cy.double:
    """1 - r₀ of row n; puts r₀ in the place of the score of noise."""
    if shares.noise.shape[0] == 0:
        return 1.0
    odds: cy.double = shares.noise[n] - row.highest - log_mass
    less: cy.double = exp(-fabs(odds))
    more: cy.double = 1.0 / (1.0 + less)
    less = less * more
    shares.noise[n] = more if odds > 0.0 else less
    return less if odds > 0.0 else more


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _note_pairs(
    row: _Row,
    i: cy.Py_ssize_t,
    n_kept: cy.Py_ssize_t,
    at: cy.Py_ssize_t,
    w: cy.double,
    shares: Shares,
    notes: Notes,
) -> cy.void:
    """With t = rb/ra ≤ 1, what is lost is ra ((1 + t) log(1 + t) - t log t).

    The part of H_ab (Memoized, section 3.2) that a merge loses; a is kept number i.
    """
    for j in range(i + 1, n_kept):
        large: cy.double = max(shares.r[at + i], shares.r[at + j])
        small: cy.double = min(shares.r[at + i], shares.r[at + j])
        if small < 1e-13:
            continue
        t: cy.double = small / large
        lost: cy.double = (1.0 + t) * log1p(t) + t * fabs(row.logs[i] - row.logs[j])
        a = min(shares.support[at + i], shares.support[at + j])
        b = max(shares.support[at + i], shares.support[at + j])
        notes.pairs[a, b] += w * large * lost
