"""The probabilities that a row has each feature, given what is known of the factors.

Exactly, for a known A: the log-probability of z is z·c − zGz/2 and a constant, with
G = AAᵀ/σx² and c the log-odds before plus Ax/σx² (columns without a value left out of
both).

By mean field: with b = E[A]x, G = E[AAᵀ] and `odds`, the log-odds of the prior, the
part of the bound that belongs to a row is ν·odds + p(ν·b − ½νᵀGν − ½Σν_k(1 − ν_k)G_kk)
+ entropy(ν), with p the precision of the noise. It is linear in each ν_k but for the
entropy. `rest` is b − Gν throughout. Row n has the matrix G[which[n]], that of its
observed columns.
"""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import exp
else:
    from numpy import exp

__all__ = ["ascend_rows", "exact_marginals", "seed_rows"]

_TIE = cy.declare(cy.double, 1e-10)  # gains that differ less: equal but for rounding


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _flip(
    k: cy.Py_ssize_t,
    z: cy.double[::1],
    field: cy.double[::1],
    G: cy.const[cy.double][:, ::1],
) -> cy.double:
    """Flip bit k; return how the log-probability changes. `field` is c − Gz.

    ±(c − Gz)_k − ½G_kk.
    """
    sign: cy.double = 1.0 - 2.0 * z[k]
    change: cy.double = sign * field[k] - 0.5 * G[k, k]
    z[k] = 1.0 - z[k]
    for i in range(z.shape[0]):
        field[i] -= sign * G[k, i]
    return change


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _marginals_of_row(
    n: cy.Py_ssize_t,
    G: cy.const[cy.double][:, ::1],
    z: cy.double[::1],
    field: cy.double[::1],
    out: cy.double[:, ::1],
) -> cy.void:
    """All 2^K patterns of row n from the first, z = 0, at which field is c."""
    K = z.shape[0]
    score: cy.double = 0.0
    peak: cy.double = 0.0
    total: cy.double = 1.0
    step: cy.longlong
    for step in range(1, cy.cast(cy.longlong, 1) << K):
        k: cy.Py_ssize_t = 0
        while not (step >> k) & 1:
            k += 1
        score += _flip(k, z, field, G)
        if score > peak:
            shrink: cy.double = exp(peak - score)
            total *= shrink
            for i in range(K):
                out[n, i] *= shrink
            peak = score
        weight: cy.double = exp(score - peak)
        total += weight
        for i in range(K):
            out[n, i] += weight * z[i]
    for i in range(K):
        out[n, i] /= total


def exact_marginals(
    c: cy.const[cy.double][:, ::1],
    G: cy.const[cy.double][:, ::1],
    out: cy.double[:, ::1],
) -> None:
    """Sum over all 2^K patterns, of which neighbours differ in one bit (Gray code).

    P(z_k = 1 | x, A), z·c − ½zGz being log P(z | x, A).
    """
    K = c.shape[1]
    z: cy.double[::1] = np.empty(K)
    field: cy.double[::1] = np.empty(K)
    with cy.nogil:
        for n in range(c.shape[0]):
            for i in range(K):
                z[i] = 0.0
                field[i] = c[n, i]
                out[n, i] = 0.0
            _marginals_of_row(n, G, z, field, out)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _ascend(
    n: cy.Py_ssize_t,
    rest: cy.double[:, ::1],
    G: cy.const[cy.double][:, :, ::1],
    p: cy.Py_ssize_t,
    odds: cy.const[cy.double][::1],
    precision: cy.double,
    nu: cy.double[:, ::1],
) -> cy.double:
    """Set each ν_k of row n to its best value once; return the largest change."""
    K = nu.shape[1]
    largest: cy.double = 0.0
    for k in range(K):
        own: cy.double = nu[n, k]
        field: cy.double = rest[n, k] + (own - 0.5) * G[p, k, k]
        step: cy.double = 1.0 / (1.0 + exp(-(odds[k] + precision * field))) - own
        if step == 0.0:
            continue
        largest = max(largest, abs(step))
        nu[n, k] = own + step
        for j in range(K):
            rest[n, j] -= step * G[p, k, j]
    return largest


def ascend_rows(
    rest: cy.double[:, ::1],
    G: cy.const[cy.double][:, :, ::1],
    which: cy.const[cy.longlong][::1],
    odds: cy.const[cy.double][::1],
    precision: cy.double,
    most_sweeps: cy.Py_ssize_t,
    tol: cy.double,
    nu: cy.double[:, ::1],
) -> None:
    """Set each ν_k to its best value in turn until none moves by more than `tol`.

    q(Z) of MEIBP Eq. 2 in mean field (Doshi-Velez et al. 2009): ν_k = 1/(1 + exp
    −[odds_k + p(rest_k + (ν_k − ½)G_kk)]). `rest` and `nu` are changed.
    """
    with cy.nogil:
        for n in range(nu.shape[0]):
            for _ in range(most_sweeps):
                if _ascend(n, rest, G, which[n], odds, precision, nu) <= tol:
                    break


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _best_flip(
    n: cy.Py_ssize_t,
    rest: cy.const[cy.double][:, ::1],
    G: cy.const[cy.double][:, :, ::1],
    p: cy.Py_ssize_t,
    odds: cy.const[cy.double][::1],
    precision: cy.double,
    nu: cy.const[cy.double][:, ::1],
) -> cy.Py_ssize_t:
    """The first of the bits of row n that gain most, -1 if none gains."""
    best: cy.Py_ssize_t = -1
    most: cy.double = 0.0
    for k in range(nu.shape[1]):
        sign: cy.double = 1.0 - 2.0 * nu[n, k]
        weight: cy.double = precision * G[p, k, k]
        gain: cy.double = sign * (odds[k] + precision * rest[n, k]) - 0.5 * weight
        if gain > most + _TIE * (1.0 + weight):
            best = k
            most = gain
    return best


def seed_rows(
    rest: cy.double[:, ::1],
    G: cy.const[cy.double][:, :, ::1],
    which: cy.const[cy.longlong][::1],
    odds: cy.const[cy.double][::1],
    precision: cy.double,
    nu: cy.double[:, ::1],
) -> None:
    """Zeros and ones to start from: flip the bit that gains most until none does.

    Not in the papers: gain ±(odds_k + p rest_k) − ½pG_kk. `nu` begins as zeros and
    `rest` as b; both are changed. Of bits that gain the same the first is flipped, so
    that equal rows go the same way.
    """
    K = nu.shape[1]
    with cy.nogil:
        for n in range(nu.shape[0]):
            p = which[n]
            for _ in range(4 * K):
                k = _best_flip(n, rest, G, p, odds, precision, nu)
                if k < 0:
                    break
                sign: cy.double = 1.0 - 2.0 * nu[n, k]
                nu[n, k] += sign
                for j in range(K):
                    rest[n, j] -= sign * G[p, k, j]
