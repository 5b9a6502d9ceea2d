"""Clusters of mixed tables from the sums of their rows.

Parameters of clusters, as tables by which rows are scored (see `kernels_rows`), what
features gain, which of them count, and what clusters cost.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.craft.kernels_rank import choose_lowest
from cython.cimports.kplus.craft.kernels_rows import move_rows, sum_rows

if cy.compiled:
    from cython.cimports.libc.math import log
else:
    from numpy import log

from kplus.craft.kernels_rows import TILE

__all__ = [
    "Columns",
    "Encoded",
    "Fitted",
    "Rules",
    "choose_features",
    "converge",
    "cost_clusters",
    "evaluate_clusters",
    "fit_clusters",
    "weigh_tables",
]

INF = cy.declare(cy.double, float("inf"))


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Columns:
    """Where the sums of the columns are: 3P for numbers, then one for each place."""

    P: cy.Py_ssize_t
    scored: cy.Py_ssize_t  # the first so many numbers count
    starts: cy.const[cy.longlong][::1]  # (Q,) first place of the column's categories
    widths: cy.const[cy.longlong][::1]  # (Q,) their number; the place after: missing


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Encoded:
    """Rows, see `kernels_encode`."""

    numbers: cy.const[cy.double][:, ::1]  # (n, 3P)
    codes: cy.const[cy.longlong][:, ::1]  # (n, Q)
    weights: cy.const[cy.double][::1]  # (n,)


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Rules:
    """How clusters are fitted and choose features, and what they cost."""

    whole: cy.const[cy.double][::1]  # (F,) sums of all rows: the background
    total: cy.double  # their weight
    costs: cy.const[cy.double][::1]  # (D,) of each feature
    penalty: cy.double  # of each cluster
    smoothing: cy.double
    budget: cy.Py_ssize_t  # features of each cluster, -1: those worth their cost
    sharing: cy.double


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Fitted:
    """What is found for K clusters, and room to work."""

    gains: cy.double[:, ::1]  # (K, D) of features, see `fit_clusters`
    weights: cy.double[:, ::1]  # (K, D) see `choose_features`
    chosen: cy.uchar[:, ::1]  # (K, D) bool: which features count
    tables: cy.double[:, ::1]  # (F, K) log-likelihood ratios, by which rows are scored
    cluster_costs: cy.double[::1]  # (K,)
    work: cy.double[:, ::1]  # (3, D)


# ----------------------------------------------------------- gains and parameters


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def fit_clusters(
    sums: cy.const[cy.double][:, ::1], columns: Columns, rules: Rules, fitted: Fitted
) -> cy.void:
    """Parameters of clusters from their sums, as `tables`, and what features gain.

    Not in the paper: its objective (section 2) without log σ is degenerate; G_kd = log
    p(x | k)/p(x) summed over the rows of k. The sums of all rows give the background. A
    cluster's variance and frequencies are pulled towards it as by `smoothing` rows. The
    gain is the log-likelihood ratio of the cluster's rows, cluster against background,
    with the logarithm of that prior.
    """
    fitted.tables[:] = 0.0
    for p in range(columns.scored):
        _fit_number(sums, columns.P, p, rules, fitted.gains, fitted.tables)
    for q in range(columns.starts.shape[0]):
        _fit_category(sums, columns, q, rules, fitted.gains, fitted.tables)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fit_number(
    sums: cy.const[cy.double][:, ::1],
    P: cy.Py_ssize_t,
    p: cy.Py_ssize_t,
    rules: Rules,
    gains: cy.double[:, ::1],
    tables: cy.double[:, ::1],
) -> cy.void:
    """Gains and tables of number p: Gaussians against that of the background."""
    a, n0 = rules.smoothing, rules.whole[p]
    mean0: cy.double = rules.whole[P + p] / n0 if n0 > 0.0 else 0.0
    square0: cy.double = rules.whole[2 * P + p] / n0 if n0 > 0.0 else 0.0
    var0 = square0 - mean0 * mean0
    constant: cy.bint = var0 <= 1e-14 * (1.0 + mean0 * mean0)
    for k in range(sums.shape[0]):
        n: cy.double = sums[k, p]
        gains[k, p] = 0.0
        if constant or n <= 0.0:
            continue
        mean: cy.double = sums[k, P + p] / n
        spread: cy.double = max(sums[k, 2 * P + p] - n * mean * mean, 0.0)
        var: cy.double = (spread + a * var0) / (n + a)
        if var <= 0.0:  # no smoothing, no spread
            var = 1e-12 * var0
        off = mean - mean0
        ratio = log(var / var0)
        gains[k, p] = (
            -0.5 * (n + a) * ratio
            - 0.5 * (spread + a * var0) / var
            + 0.5 * a
            + 0.5 * (spread + n * off * off) / var0
        )
        tables[p, k] = 0.5 * (mean0 * mean0 / var0 - mean * mean / var - ratio)
        tables[P + p, k] = mean / var - mean0 / var0
        tables[2 * P + p, k] = 0.5 / var0 - 0.5 / var


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fit_category(
    sums: cy.const[cy.double][:, ::1],
    columns: Columns,
    q: cy.Py_ssize_t,
    rules: Rules,
    gains: cy.double[:, ::1],
    tables: cy.double[:, ::1],
) -> cy.void:
    """Gains and tables of category column q: frequencies against the background's."""
    a, d = rules.smoothing, columns.scored + q
    first = 3 * columns.P + columns.starts[q]
    stop = first + columns.widths[q]
    n0: cy.double = 0.0
    for t in range(first, stop):
        n0 += rules.whole[t]
    for k in range(sums.shape[0]):
        gains[k, d] = 0.0
        n: cy.double = 0.0
        for t in range(first, stop):
            n += sums[k, t]
        if n <= 0.0:
            continue
        gain: cy.double = 0.0
        for t in range(first, stop):
            if rules.whole[t] <= 0.0:
                continue
            base = rules.whole[t] / n0
            seen: cy.double = sums[k, t] + a * base
            ratio = log((seen if seen > 0.0 else 1e-12) / ((n + a) * base))
            gain += seen * ratio
            tables[t, k] = ratio
        gains[k, d] = gain


# -------------------------------------------------------- features, costs, weights


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def choose_features(
    counts: cy.const[cy.double][::1], rules: Rules, fitted: Fitted
) -> cy.void:
    """Which features count in which cluster that has rows, and with what weight.

    Stands for the choice of v_k in CRAFT Algorithm 2; c_d = ½ p_d log N is not in the
    paper. A feature is worth its gain less its cost, G_kd − c_d, and, by the share
    `sharing`, what it is worth to the average cluster. Chosen are those worth more than
    nothing (budget < 0) or the `budget` that are worth most, ties to the lower number.
    Its weight in a cluster is 1 − sharing if chosen there, and the share of the
    clusters in which it is chosen times sharing.
    """
    gains, weights, chosen = fitted.gains, fitted.weights, fitted.chosen
    common, scores, work = fitted.work[0], fitted.work[1], fitted.work[2]
    K, D, own = gains.shape[0], gains.shape[1], 1.0 - rules.sharing
    alive: cy.Py_ssize_t = _share_worth(counts, rules, fitted)
    chosen[:] = 0
    weights[:] = 0.0
    for k in range(K):
        if counts[k] <= 0.0:
            continue
        for d in range(D):
            scores[d] = -own * (gains[k, d] - rules.costs[d]) - common[d]
        if rules.budget < 0:
            for d in range(D):
                chosen[k, d] = scores[d] < 0.0
        else:
            choose_lowest(scores, rules.budget, work, chosen, k)
        for d in range(D):
            weights[k, d] = own * chosen[k, d]
    if rules.sharing > 0.0:
        for d in range(D):
            n_chosen: cy.Py_ssize_t = 0
            for k in range(K):
                n_chosen += chosen[k, d]
            for k in range(K):
                weights[k, d] += rules.sharing * n_chosen / alive


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _share_worth(
    counts: cy.const[cy.double][::1], rules: Rules, fitted: Fitted
) -> cy.Py_ssize_t:
    """work_0d = sharing·(mean of G_kd − c_d over the clusters with rows); how many."""
    common, gains = fitted.work[0], fitted.gains
    alive: cy.Py_ssize_t = 0
    for k in range(counts.shape[0]):
        alive += counts[k] > 0.0
    common[:] = 0.0
    for k in range(counts.shape[0] if rules.sharing > 0.0 else 0):
        if counts[k] > 0.0:
            share = rules.sharing / alive
            for d in range(gains.shape[1]):
                common[d] += (gains[k, d] - rules.costs[d]) * share
    return alive


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def cost_clusters(
    counts: cy.const[cy.double][::1], rules: Rules, fitted: Fitted
) -> cy.void:
    """λ − n_k log(n_k/N) − Σ_d w_kd (G_kd − c_d) of each cluster.

    Not in the paper.
    """
    gains, weights = fitted.gains, fitted.weights
    for k in range(counts.shape[0]):
        n = counts[k]
        worth: cy.double = 0.0
        for d in range(gains.shape[1]):
            worth += weights[k, d] * (gains[k, d] - rules.costs[d])
        fitted.cluster_costs[k] = (
            rules.penalty - n * log(n / rules.total) - worth if n > 0.0 else 0.0
        )


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def weigh_tables(columns: Columns, fitted: Fitted) -> cy.void:
    """Multiply each feature's part of the tables by its weight w_kd."""
    tables, weights = fitted.tables, fitted.weights
    P, scored, K = columns.P, columns.scored, weights.shape[0]
    for p in range(scored):
        for k in range(K):
            w: cy.double = weights[k, p]
            tables[p, k] *= w
            tables[P + p, k] *= w
            tables[2 * P + p, k] *= w
    for q in range(columns.starts.shape[0]):
        first = 3 * P + columns.starts[q]
        for t in range(first, first + columns.widths[q]):
            for k in range(K):
                tables[t, k] *= weights[k, scored + q]


# ------------------------------------------------------------------------ together


def evaluate_clusters(
    sums: cy.const[cy.double][:, ::1],
    counts: cy.const[cy.double][::1],
    columns: Columns,
    rules: Rules,
    fitted: Fitted,
) -> None:
    """Fit clusters to their sums, choose their features, and say what they cost."""
    with cy.nogil:
        fit_clusters(sums, columns, rules, fitted)
        choose_features(counts, rules, fitted)
        weigh_tables(columns, fitted)
        cost_clusters(counts, rules, fitted)


def converge(
    rows: Encoded,
    columns: Columns,
    rules: Rules,
    warm: cy.Py_ssize_t,
    most_passes: cy.Py_ssize_t,
    labels: cy.longlong[::1],
    sums: cy.double[:, ::1],
    counts: cy.double[::1],
    fitted: Fitted,
) -> None:
    """Assign rows and fit clusters in turn until no row changes.

    Repeats the steps of CRAFT Algorithm 2 on another objective, which none of them
    raises. Starts from `labels` and overwrites them, and sums and counts; the objective
    is the sum of the cluster costs. In the first `warm` rounds every feature counts.
    """
    K = counts.shape[0]
    shares: cy.double[::1] = np.empty(K)
    scores: cy.double[:, ::1] = np.empty((TILE, K))
    moved: cy.Py_ssize_t
    with cy.nogil:
        for passes in range(most_passes + 1):
            sums[:] = 0.0
            counts[:] = 0.0
            sum_rows(rows.numbers, rows.codes, rows.weights, labels, sums, counts)
            fit_clusters(sums, columns, rules, fitted)
            if passes < warm:
                fitted.weights[:] = 1.0
            else:
                choose_features(counts, rules, fitted)
            if passes == most_passes:
                break
            weigh_tables(columns, fitted)
            for k in range(K):
                shares[k] = log(counts[k] / rules.total) if counts[k] > 0.0 else -INF
            moved = move_rows(
                rows.numbers, rows.codes, fitted.tables, shares, scores, labels
            )
            if moved == 0 and passes >= warm:
                break
        cost_clusters(counts, rules, fitted)
