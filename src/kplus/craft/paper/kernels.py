"""Algorithm 2 of CRAFT (Garg, Rudin & Jaakkola 2016): rows one by one, as published.

Column d of a row holds a number where ``first[d] < 0``; otherwise a code 0, 1, ...
whose place in one list of all categories of all columns is ``first[d]`` plus the code.
NaN is missing. `algorithm.py` says what was decided where the paper is silent.
"""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import kernel

__all__ = [
    "Clusters",
    "Columns",
    "Penalties",
    "Rules",
    "Sums",
    "cost_table",
    "fit_clusters",
    "sum_rows",
    "total_cost",
    "walk_rows",
]

LEAST_GAIN = 1e-12  # as a share; less is rounding, and must not rank features


class Columns(NamedTuple):
    """What is known of the columns of the whole table."""

    first: np.ndarray  # (D,) where the column's categories begin, -1: numbers
    widths: np.ndarray  # (D,) how many categories it has
    means: np.ndarray  # (D,) of numbers
    units: np.ndarray  # (D,) variances of numbers, 1 where all are equal
    constant: np.ndarray  # (D,) bool: whether they are
    costs: np.ndarray  # (categories,) −log η0


class Clusters(NamedTuple):
    """Clusters as Algorithm 2 has them; arrays may have room for more."""

    chosen: np.ndarray  # (room, D) bool: v
    means: np.ndarray  # (room, D): ζ, of numbers
    variances: np.ndarray  # (room, D): σ², of numbers
    costs: np.ndarray  # (room, categories): −log η


class Sums(NamedTuple):
    """Rows of clusters added up, missing values left out."""

    seen: np.ndarray  # (K, D) weight of the values that are there
    means: np.ndarray  # (K, D) of numbers
    squares: np.ndarray  # (K, D) Σw(x − mean)² of numbers
    counts: np.ndarray  # (K, categories) weights


class Rules(NamedTuple):
    """How clusters are fitted; NaN: a rule that is not in force."""

    smoothing: float
    variance_floor: float
    fixed_variance: float
    n_numbers: int
    n_categories: int
    variance_threshold: float
    category_threshold: float


class Penalties(NamedTuple):
    """What Algorithm 2 charges beside the discrepancies."""

    feature: float  # F_Δ, for each chosen feature
    opening: float  # λ + D F_0: a row that costs more opens a cluster


# --------------------------------------------------------------------------- rows


@kernel
def _row_cost(X, n, clusters, k, columns, feature_cost):
    """d_nk of Algorithm 2."""
    cost, n_chosen = 0.0, 0
    for d in range(X.shape[1]):
        chosen = clusters.chosen[k, d]
        n_chosen += chosen
        x = X[n, d]
        if np.isnan(x):
            continue
        if columns.first[d] >= 0:
            place = columns.first[d] + np.int64(x)
            cost += clusters.costs[k, place] if chosen else columns.costs[place]
        elif chosen:
            diff = x - clusters.means[k, d]
            cost += diff * diff / (2.0 * clusters.variances[k, d])
    return cost + n_chosen * feature_cost


@kernel
def walk_rows(X, weights, start, clusters, K, columns, penalties, labels):
    """Give rows, from `start` on, to the cheapest of K clusters, ties to the lower.

    z_n = argmin_k d_nk of CRAFT Algorithm 2. Stops at the first row whose cheapest
    cluster costs more than opening one, and returns its number, or that of all rows. A
    row of weight below 1 costs its share.
    """
    for n in range(start, X.shape[0]):
        best, at = _row_cost(X, n, clusters, 0, columns, penalties.feature), 0
        for k in range(1, K):
            cost = _row_cost(X, n, clusters, k, columns, penalties.feature)
            if cost < best:
                best, at = cost, k
        labels[n] = at
        if min(weights[n], 1.0) * best > penalties.opening:
            return n
    return X.shape[0]


@kernel
def cost_table(X, clusters, columns, feature_cost, out):
    """out_nk = d_nk of Algorithm 2, for every row and cluster."""
    for n in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[n, k] = _row_cost(X, n, clusters, k, columns, feature_cost)


@kernel
def total_cost(X, weights, labels, clusters, columns):
    """The discrepancy terms of the objective: rows in their clusters, without F_Δ.

    CRAFT section 2.
    """
    total = 0.0
    for n in range(X.shape[0]):
        total += weights[n] * _row_cost(X, n, clusters, labels[n], columns, 0.0)
    return total


# ----------------------------------------------------------------------- clusters


@kernel
def sum_rows(X, weights, labels, first, sums):
    """Add rows to the sums of their clusters, which are 0 to begin with.

    Σw, means and Σw(x − mean)² by cluster and column.
    """
    for n in range(X.shape[0]):
        k, w = labels[n], weights[n]
        for d in range(X.shape[1]):
            x = X[n, d]
            if np.isnan(x):
                continue
            sums.seen[k, d] += w
            if first[d] >= 0:
                sums.counts[k, first[d] + np.int64(x)] += w
            else:
                sums.means[k, d] += w * x
    for k in range(sums.seen.shape[0]):
        for d in range(X.shape[1]):
            if sums.seen[k, d] > 0.0:
                sums.means[k, d] /= sums.seen[k, d]
    for n in range(X.shape[0]):  # once more: squares about the mean do not cancel
        k, w = labels[n], weights[n]
        for d in range(X.shape[1]):
            x = X[n, d]
            if first[d] < 0 and not np.isnan(x):
                sums.squares[k, d] += w * (x - sums.means[k, d]) ** 2


@kernel
def fit_clusters(sums, columns, rules, clusters):
    """Update means, variances, frequencies and features from the rows of clusters.

    Updates of η, ζ, σ² and v in CRAFT Algorithm 2.
    """
    K, D = sums.seen.shape
    scores = np.empty(D)
    for k in range(K):
        for d in range(D):
            clusters.chosen[k, d] = False
            if columns.first[d] >= 0:
                scores[d] = _fit_category(sums, columns, rules, clusters, k, d)
            else:
                scores[d] = _fit_number(sums, columns, rules, clusters, k, d)
        if np.isnan(rules.category_threshold):
            _choose_lowest(scores, columns.first >= 0, rules.n_categories, clusters, k)
        if np.isnan(rules.variance_threshold):
            _choose_lowest(scores, columns.first < 0, rules.n_numbers, clusters, k)
        elif not np.any(clusters.chosen[k] & (columns.first < 0)):
            _choose_lowest(scores, columns.first < 0, 1, clusters, k)


@kernel
def _fit_number(sums, columns, rules, clusters, k, d):
    """Mean and variance; returns σ² in units of the column, the lower the better.

    ζ_kd and σ²_kd of CRAFT Algorithm 2.
    """
    seen, unit = sums.seen[k, d], columns.units[d]
    if seen <= 0.0:
        clusters.means[k, d], variance = columns.means[d], unit
    else:
        clusters.means[k, d] = sums.means[k, d]
        variance = sums.squares[k, d] / seen
        clusters.chosen[k, d] = variance < rules.variance_threshold
    clusters.variances[k, d] = max(variance, rules.variance_floor * unit)
    if not np.isnan(rules.fixed_variance):
        clusters.variances[k, d] = rules.fixed_variance
    return np.inf if columns.constant[d] or seen <= 0.0 else variance / unit


@kernel
def _fit_category(sums, columns, rules, clusters, k, d):
    """Frequencies; returns G_kd − G_d, the lower the better.

    η_kd of CRAFT Algorithm 2.
    """
    seen, a = sums.seen[k, d], rules.smoothing
    without, within = 0.0, 0.0  # G_d, G_kd
    for t in range(columns.first[d], columns.first[d] + columns.widths[d]):
        clusters.costs[k, t] = columns.costs[t]
        if seen <= 0.0:
            continue
        count = sums.counts[k, t]
        eta = (count + a * np.exp(-columns.costs[t])) / (seen + a)
        clusters.costs[k, t] = -np.log(eta) if eta > 0.0 else np.inf
        if count > 0.0:
            without += count * columns.costs[t]
            within += count * clusters.costs[k, t]
    gain = without - within
    clusters.chosen[k, d] = gain > rules.category_threshold * without
    return -gain if gain > LEAST_GAIN * without else 0.0


@kernel
def _choose_lowest(scores, among, most, clusters, k):
    """Choose the features of the lowest scores, ties to the left.

    v_k of CRAFT Algorithm 2.
    """
    left = most
    for d in np.argsort(scores, kind="mergesort"):
        if left > 0 and among[d]:
            clusters.chosen[k, d] = True
            left -= 1
