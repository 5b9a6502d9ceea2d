"""MEIBP's own algorithm: one row after another, q(A) following the rows that change.

A row is taken out, its bits maximise the evidence bound given all else (Eq. 19, in
which a feature that no other row has costs η and −ln N!), and the sums T = ZᵀX, S = ZᵀZ
and the counts follow. After `refresh` changed rows the factors that gained or lost rows
are updated (Eqs. 14 to 17).

Missing entries: columns come sorted into groups of equal gaps, each with a ZᵀZ of its
rows, and rows with equal gaps share a pattern, hence a Gram matrix.
"""

import math
from collections import namedtuple

import numpy as np

from kplus.core.kernels import fast_kernel, kernel
from kplus.ibp.kernels_factors import entropy_cut, truncated
from kplus.ibp.kernels_submodular import (
    Objective,
    double_greedy,
    keep_better,
    local_search,
    random_double_greedy,
    row_slack,
    sums_beside_diagonal,
)

__all__ = [
    "DOUBLE_GREEDY",
    "LOCAL_SEARCH",
    "RANDOM_DOUBLE_GREEDY",
    "Factors",
    "Gram",
    "Model",
    "Schedule",
    "Sums",
    "Table",
    "evidence_of_factors",
    "gram_of",
    "make_grams",
    "row_objective",
    "sweep",
    "update_factors",
]

ZERO = np.int64(0)  # typed, so that numba compiles each function once
LOCAL_SEARCH, DOUBLE_GREEDY, RANDOM_DOUBLE_GREEDY = 0, 1, 2

# X (N, D), 0 where missing; pattern (N,); observed (P, G); starts (G + 1,) of groups
Table = namedtuple("Table", "X pattern observed starts")
# T (K, D), S (G, K, K), counts (K,)
Sums = namedtuple("Sums", "T S counts")
# Parameters mu and scale (a variance) of q(A), its means and variances; (K, D) each
Factors = namedtuple("Factors", "mu scale mean variance")
# Variances of noise and factors; whether factors are confined to nonnegative values
Model = namedtuple("Model", "noise spread alpha nonnegative")

# How rows are visited: by which maximizer, factors after how many changed rows
Schedule = namedtuple("Schedule", "maximizer refresh seed")

# Gram matrices of patterns, as far as there is room, and how recent their rows are
_Grams = namedtuple("_Grams", "Q widths beside owner seen version eta")
# That of one pattern
Gram = namedtuple("Gram", "Q widths eta")
# What a row needs for a moment
_Scratch = namedtuple("_Scratch", "lin w other z was fresh")
_Work = namedtuple("_Work", "grams scratch")

_LOG_2PIE = math.log(2.0 * math.pi * math.e)
_SLOTS = 2**23  # numbers kept in Gram matrices: 64 MB


@kernel
def _take_moments(k, start, stop, scale, nonnegative, factors):
    """Means and variances of the factors of one group of columns.

    MEIBP Eqs. 16 and 17.
    """
    sigma = math.sqrt(scale)
    for d in range(start, stop):
        factors.scale[k, d] = scale
        if nonnegative:
            mean, variance = truncated(-factors.mu[k, d] / sigma)
            factors.mean[k, d] = sigma * mean
            factors.variance[k, d] = scale * variance
        else:
            factors.mean[k, d] = factors.mu[k, d]
            factors.variance[k, d] = scale


@fast_kernel
def _update_factor(k, sums, starts, factors, model):
    """Eqs. 14 and 15 for feature k, group by group of the columns."""
    mu, mean = factors.mu, factors.mean
    for g in range(len(starts) - 1):
        start, stop = starts[g], starts[g + 1]
        for d in range(start, stop):
            mu[k, d] = sums.T[k, d]
        for j in range(len(mu)):
            shared = sums.S[g, k, j]
            if j != k and shared != 0.0:
                for d in range(start, stop):
                    mu[k, d] -= shared * mean[j, d]
        rho = 1.0 / (sums.S[g, k, k] + model.noise / model.spread)
        for d in range(start, stop):
            mu[k, d] *= rho
        _take_moments(k, start, stop, rho * model.noise, model.nonnegative, factors)


@kernel
def update_factors(sums, starts, factors, model):
    """One coordinate pass of q(A) over the features that some row has.

    MEIBP Eqs. 14 to 17.
    """
    for k in range(len(sums.counts)):
        if sums.counts[k] > 0.0:
            _update_factor(k, sums, starts, factors, model)


@kernel
def _evidence_of_factor(k, factors, model):
    """E[ln p(a)] + H(q(a)) of feature k: η of Eq. 12 without ln α."""
    constant = 0.5 * _LOG_2PIE - 0.5 * math.log(2.0 * math.pi * model.spread)
    if model.nonnegative:
        constant += math.log(2.0)
    total = 0.0
    for d in range(factors.mu.shape[1]):
        mu, scale = factors.mu[k, d], factors.scale[k, d]
        mean = factors.mean[k, d]
        square = mean * mean + factors.variance[k, d]
        total += constant + 0.5 * (math.log(scale) - square / model.spread)
        if model.nonnegative:
            sigma = math.sqrt(scale)
            total += entropy_cut(-mu / sigma, mean / sigma)
    return total


@kernel
def evidence_of_factors(factors, model):
    """Σ_kd E[ln p(a_kd)] + H(q(a_kd)).

    Σ η_k of MEIBP Eqs. 10 and 12, without ln α.
    """
    total = 0.0
    for k in range(len(factors.mu)):
        total += _evidence_of_factor(k, factors, model)
    return total


# ----------------------------------------------------------------------------- the rows


@fast_kernel
def _dot(a, b, start, stop):
    """Σ_d a_d b_d over start ≤ d < stop."""
    total = 0.0
    for d in range(start, stop):
        total += a[d] * b[d]
    return total


@kernel
def make_grams(P, K):
    """Empty Gram matrices for P patterns, as far as there is room."""
    slots = max(1, min(P, _SLOTS // (K * K)))
    return _Grams(
        np.empty((slots, K, K)),
        np.empty((slots, K)),
        np.empty((slots, K)),
        np.full(slots, -1),
        np.zeros((slots, K), np.int64),
        np.ones(K, np.int64),
        np.full(K, np.nan),
    )


@kernel
def _make_scratch(K):
    """Empty `_Scratch` for K features."""
    bits = np.empty((3, K), np.uint8)
    return _Scratch(np.empty(K), np.empty(K), np.empty(K), bits[0], bits[1], bits[2])


@fast_kernel
def _renew_feature(k, p, table, factors, noise, Q, widths):
    """Row and column k of a pattern's Q = ΦΦᵀ/σ², and (E‖a_k‖² − ‖Φ_k‖²)/σ².

    MEIBP Eqs. 11 and 19.
    """
    K = len(Q)
    widths[k] = 0.0
    for j in range(K):
        Q[k, j] = 0.0
    for g in range(table.observed.shape[1]):
        if table.observed[p, g]:
            start, stop = table.starts[g], table.starts[g + 1]
            for d in range(start, stop):
                widths[k] += factors.variance[k, d] / noise
            for j in range(K):
                Q[k, j] += _dot(factors.mean[k], factors.mean[j], start, stop) / noise
    for j in range(K):
        Q[j, k] = Q[k, j]


@kernel
def gram_of(p, table, factors, noise, grams):
    """Bring the Gram matrix of a pattern up to date; return in which slot it is.

    ΦΦᵀ/σ² of MEIBP Eq. 19.
    """
    s = p % len(grams.owner)
    if grams.owner[s] != p:
        grams.owner[s] = p
        grams.seen[s] = 0
    stale = False
    for k in range(len(grams.version)):
        if grams.seen[s, k] != grams.version[k]:
            _renew_feature(k, p, table, factors, noise, grams.Q[s], grams.widths[s])
            grams.seen[s, k] = grams.version[k]
            stale = True
    if stale:
        sums_beside_diagonal(grams.Q[s], grams.beside[s])
    return s


@fast_kernel
def row_objective(x, z, N, counts, factors, model, gram, out):
    """Fill lin and fresh for a row; return the number of others' features.

    MEIBP Eq. 19: lin = ω − ½diag Q.
    """
    Q, widths, eta = gram
    lin, fresh = out
    base = 0
    for k in range(len(z)):
        others = counts[k] - z[k]
        fresh[k] = others <= 0.0
        if fresh[k]:
            if math.isnan(eta[k]):
                eta[k] = _evidence_of_factor(k, factors, model)
            prior = math.log(model.alpha / N) + eta[k]
        else:
            prior = math.log(others / (N - others))
            base += 1
        product = _dot(factors.mean[k], x, ZERO, len(x)) / model.noise
        lin[k] = product - 0.5 * (widths[k] + Q[k, k]) + prior
    return base


@kernel
def _visit(n, table, Z, counts, factors, model, schedule, work):
    """Find better bits for row n; return how many changed. `was` has the old ones.

    MEIBP section 3.6: argmax F(Z_n).
    """
    grams = work.grams
    lin, w, other, z, was, fresh = work.scratch
    s = gram_of(table.pattern[n], table, factors, model.noise, grams)
    Q = grams.Q[s]
    gram = Gram(Q, grams.widths[s], grams.eta)
    for k in range(len(was)):
        was[k] = Z[n, k]
    base = row_objective(
        table.X[n], was, len(Z), counts, factors, model, gram, (lin, fresh)
    )
    objective = Objective(lin, Q, grams.beside[s], fresh, base)
    slack = row_slack(lin, Q)
    if schedule.maximizer == LOCAL_SEARCH:
        f_z = local_search(objective, slack, z, w, other)
    elif schedule.maximizer == DOUBLE_GREEDY:
        f_z = double_greedy(objective, z, w, other)
    else:
        f_z = random_double_greedy(objective, schedule.seed, n, z, w, other)
    return keep_better(objective, slack, z, f_z, Z[n], w)


@fast_kernel
def _account(n, was, z, table, sums, touched):
    """Let the sums follow a change of row n's bits; note which features it touches.

    T = ZᵀX, S = ZᵀZ, m = Zᵀ1.
    """
    K = len(z)
    x = table.X[n]
    for k in range(K):
        if z[k] == was[k]:
            continue
        sign = 1.0 if z[k] else -1.0
        sums.counts[k] += sign
        touched[k] = 1
        for d in range(len(x)):
            sums.T[k, d] += sign * x[d]
    for g in range(table.observed.shape[1]):
        if not table.observed[table.pattern[n], g]:
            continue
        for k in range(K):
            for j in range(K):
                sums.S[g, k, j] += float(z[k] & z[j]) - float(was[k] & was[j])


@kernel
def _refresh(touched, sums, starts, factors, model, grams):
    """Update the factors of touched features, unless no row has them any more.

    MEIBP Eqs. 14 to 17.
    """
    for k in range(len(touched)):
        if touched[k] and sums.counts[k] > 0.0:
            _update_factor(k, sums, starts, factors, model)
            grams.version[k] += 1
            grams.eta[k] = np.nan
        touched[k] = 0


@kernel
def sweep(table, order, Z, sums, factors, model, schedule):
    """Visit the rows in order; Z, sums and factors follow at once.

    MEIBP sections 3.3 and 3.6, row by row. Features that lose their last row stay as
    they are: a later row may take them up.

    Returns
    -------
    bits : int
        Number of bits of Z that changed.
    """
    K = Z.shape[1]
    grams, scratch = make_grams(len(table.observed), K), _make_scratch(K)
    work = _Work(grams, scratch)
    touched = np.zeros(K, np.uint8)
    total, waiting = 0, 0
    for n in order:
        bits = _visit(n, table, Z, sums.counts, factors, model, schedule, work)
        if bits:
            _account(n, scratch.was, Z[n], table, sums, touched)
            total += bits
            waiting += 1
        if waiting == schedule.refresh:
            _refresh(touched, sums, table.starts, factors, model, grams)
            waiting = 0
    _refresh(touched, sums, table.starts, factors, model, grams)
    return total
