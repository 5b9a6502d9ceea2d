"""Algorithm 2 of CRAFT (Garg, Rudin & Jaakkola 2016): rows one by one, as published.

Column d of a row holds a number where ``first[d] < 0``; otherwise a code 0, 1, ...
whose place in one list of all categories of all columns is ``first[d]`` plus the code.
NaN is missing. `algorithm.py` says what was decided where the paper is silent.
"""

from typing import Any, NamedTuple

import cython as cy
import numpy as np
from cython.cimports.kplus.craft.kernels_rank import choose_lowest

if cy.compiled:
    from cython.cimports.libc.math import exp, log
else:
    from numpy import exp, log

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

LEAST_GAIN = cy.declare(cy.double, 1e-12)  # as a share; less is rounding: no rank
INF = cy.declare(cy.double, float("inf"))
NAN = cy.declare(cy.double, float("nan"))


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


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Rules:
    """How clusters are fitted; NaN: a rule that is not in force."""

    smoothing: cy.double
    variance_floor: cy.double
    fixed_variance: cy.double
    n_numbers: cy.Py_ssize_t
    n_categories: cy.Py_ssize_t
    variance_threshold: cy.double
    category_threshold: cy.double


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Penalties:
    """What Algorithm 2 charges beside the discrepancies."""

    feature: cy.double  # F_Δ, for each chosen feature
    opening: cy.double  # λ + D F_0: a row that costs more opens a cluster


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Columns:
    """`Columns`, for loops."""

    first: cy.const[cy.longlong][::1]
    widths: cy.const[cy.longlong][::1]
    means: cy.const[cy.double][::1]
    units: cy.const[cy.double][::1]
    constant: cy.const[cy.uchar][::1]
    costs: cy.const[cy.double][::1]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Fitted:
    """`Clusters`, for loops."""

    chosen: cy.uchar[:, ::1]
    means: cy.double[:, ::1]
    variances: cy.double[:, ::1]
    costs: cy.double[:, ::1]


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Sums:
    """`Sums`, for loops."""

    seen: cy.double[:, ::1]
    means: cy.double[:, ::1]
    squares: cy.double[:, ::1]
    counts: cy.double[:, ::1]


# --------------------------------------------------------------------------- rows


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Costs:
    """Rows and what they cost in clusters."""

    X: cy.const[cy.double][:, ::1]
    first: cy.const[cy.longlong][::1]  # (D,) as in `Columns`
    categories: cy.const[cy.longlong][::1]  # columns of categories
    means: cy.const[cy.double][:, ::1]  # (K, D)
    factors: cy.const[cy.double][:, ::1]  # (K, D) 1/(2σ²) of chosen numbers, else 0
    costs: cy.const[cy.double][:, ::1]  # (K, categories) −log η if chosen, else −log η0
    features: cy.const[cy.double][::1]  # (K,) F_Δ of the chosen features


@cy.cfunc
def _costs_of(X: Any, clusters: Any, columns: Any, feature_cost: Any) -> _Costs:
    chosen, numbers = clusters.chosen, columns.first < 0
    return _Costs(
        X,
        columns.first,
        np.flatnonzero(~numbers),
        clusters.means,
        np.divide(
            0.5,
            clusters.variances,
            out=np.zeros(chosen.shape),
            where=chosen & numbers,
        ),
        np.where(
            np.repeat(chosen, columns.widths, axis=1), clusters.costs, columns.costs
        ),
        feature_cost * np.count_nonzero(chosen, axis=1),
    )


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _row_cost(of: _Costs, n: cy.Py_ssize_t, k: cy.Py_ssize_t) -> cy.double:
    """d_nk of Algorithm 2."""
    cost: cy.double = 0.0
    D, Q = of.first.shape[0], of.categories.shape[0]
    for d in range(D if Q < D else 0):
        diff: cy.double = of.X[n, d] - of.means[k, d]
        term: cy.double = diff * diff * of.factors[k, d]
        cost += term if (diff == diff) & (of.factors[k, d] > 0.0) else 0.0
    for c in range(Q):
        column = of.categories[c]
        x: cy.double = of.X[n, column]
        if x == x:
            cost += of.costs[k, of.first[column] + cy.cast(cy.longlong, x)]
    return cost + of.features[k]


def walk_rows(
    X: Any,
    weights: cy.const[cy.double][::1],
    start: cy.Py_ssize_t,
    clusters: Any,
    K: cy.Py_ssize_t,
    columns: Any,
    penalties: Penalties,
    labels: cy.longlong[::1],
) -> int:
    """Give rows, from `start` on, to the cheapest of K clusters, ties to the lower.

    z_n = argmin_k d_nk of CRAFT Algorithm 2. Stops at the first row whose cheapest
    cluster costs more than opening one, and returns its number, or that of all rows. A
    row of weight below 1 costs its share.
    """
    costs = _costs_of(X, clusters, columns, penalties.feature)
    stop: cy.Py_ssize_t = labels.shape[0]
    with cy.nogil:
        for n in range(start, labels.shape[0]):
            best: cy.double = _row_cost(costs, n, 0)
            at: cy.Py_ssize_t = 0
            for k in range(1, K):
                cost = _row_cost(costs, n, k)
                if cost < best:
                    best, at = cost, k
            labels[n] = at
            if min(weights[n], 1.0) * best > penalties.opening:
                stop = n
                break
    return stop


def cost_table(
    X: Any, clusters: Any, columns: Any, feature_cost: Any, out: cy.double[:, ::1]
) -> None:
    """out_nk = d_nk of Algorithm 2, for every row and cluster."""
    costs = _costs_of(X, clusters, columns, feature_cost)
    with cy.nogil:
        for n in range(out.shape[0]):
            for k in range(out.shape[1]):
                out[n, k] = _row_cost(costs, n, k)


def total_cost(
    X: Any,
    weights: cy.const[cy.double][::1],
    labels: cy.const[cy.longlong][::1],
    clusters: Any,
    columns: Any,
) -> float:
    """The discrepancy terms of the objective: rows in their clusters, without F_Δ.

    CRAFT section 2.
    """
    costs = _costs_of(X, clusters, columns, 0.0)
    total: cy.double = 0.0
    with cy.nogil:
        for n in range(labels.shape[0]):
            total += weights[n] * _row_cost(costs, n, labels[n])
    return total


# ----------------------------------------------------------------------- clusters


def sum_rows(
    X: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    labels: cy.const[cy.longlong][::1],
    first: cy.const[cy.longlong][::1],
    sums: Any,
) -> None:
    """Add rows to the sums of their clusters, which are 0 to begin with.

    Σw, means and Σw(x − mean)² by cluster and column.
    """
    to = _Sums(*sums)
    with cy.nogil:
        for n in range(X.shape[0]):
            _add_row(X, n, weights[n], labels[n], first, to)
        for k in range(to.seen.shape[0]):
            for d in range(X.shape[1]):
                if to.seen[k, d] > 0.0:
                    to.means[k, d] /= to.seen[k, d]
        for n in range(X.shape[0]):  # once more: squares about the mean do not cancel
            for d in range(X.shape[1]):
                x: cy.double = X[n, d]
                if first[d] < 0 and x == x:
                    diff: cy.double = x - to.means[labels[n], d]
                    to.squares[labels[n], d] += weights[n] * (diff * diff)


@cy.cfunc
@cy.inline
@cy.nogil
@cy.exceptval(check=False)
def _add_row(
    X: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    w: cy.double,
    k: cy.Py_ssize_t,
    first: cy.const[cy.longlong][::1],
    to: _Sums,
) -> cy.void:
    """Σw and Σwx of cluster k with row n."""
    for d in range(X.shape[1]):
        x: cy.double = X[n, d]
        if x != x:
            continue
        to.seen[k, d] += w
        if first[d] >= 0:
            to.counts[k, first[d] + cy.cast(cy.longlong, x)] += w
        else:
            to.means[k, d] += w * x


@cy.cfunc
def _columns(of: Any) -> _Columns:
    return _Columns(*of._replace(constant=of.constant.view(np.uint8)))


@cy.cfunc
def _fitted(of: Any) -> _Fitted:
    return _Fitted(*of._replace(chosen=of.chosen.view(np.uint8)))


def fit_clusters(sums: Any, columns: Any, rules: Rules, clusters: Any) -> None:
    """Update means, variances, frequencies and features from the rows of clusters.

    Updates of η, ζ, σ² and v in CRAFT Algorithm 2.
    """
    of, table, to = _Sums(*sums), _columns(columns), _fitted(clusters)
    scores: cy.double[:, ::1] = np.empty((3, of.seen.shape[1]))
    with cy.nogil:
        for k in range(of.seen.shape[0]):
            _fit_cluster(of, table, rules, to, k, scores)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fit_cluster(
    sums: _Sums,
    columns: _Columns,
    rules: Rules,
    clusters: _Fitted,
    k: cy.Py_ssize_t,
    scores: cy.double[:, ::1],
) -> cy.void:
    """As `fit_clusters`, for one of them."""
    numbers, categories, work = scores[0], scores[1], scores[2]
    any_number: cy.bint = False
    for d in range(numbers.shape[0]):
        numbers[d] = categories[d] = NAN
        if columns.first[d] >= 0:
            categories[d] = _fit_category(sums, columns, rules, clusters, k, d)
        else:
            numbers[d] = _fit_number(sums, columns, rules, clusters, k, d)
            any_number |= clusters.chosen[k, d]
    if rules.category_threshold != rules.category_threshold:
        choose_lowest(categories, rules.n_categories, work, clusters.chosen, k)
    if rules.variance_threshold != rules.variance_threshold:
        choose_lowest(numbers, rules.n_numbers, work, clusters.chosen, k)
    elif not any_number:
        choose_lowest(numbers, 1, work, clusters.chosen, k)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fit_number(
    sums: _Sums,
    columns: _Columns,
    rules: Rules,
    clusters: _Fitted,
    k: cy.Py_ssize_t,
    d: cy.Py_ssize_t,
) -> cy.double:
    """Mean and variance; returns σ² in units of the column, the lower the better.

    ζ_kd and σ²_kd of CRAFT Algorithm 2.
    """
    seen, unit = sums.seen[k, d], columns.units[d]
    mean: cy.double = columns.means[d]
    variance: cy.double = unit
    if seen > 0.0:
        mean, variance = sums.means[k, d], sums.squares[k, d] / seen
    clusters.chosen[k, d] = seen > 0.0 and variance < rules.variance_threshold
    clusters.means[k, d] = mean
    clusters.variances[k, d] = max(variance, rules.variance_floor * unit)
    if rules.fixed_variance == rules.fixed_variance:
        clusters.variances[k, d] = rules.fixed_variance
    score = variance / unit
    known: cy.bint = seen > 0.0 and not columns.constant[d] and score == score
    return score if known else INF


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _fit_category(
    sums: _Sums,
    columns: _Columns,
    rules: Rules,
    clusters: _Fitted,
    k: cy.Py_ssize_t,
    d: cy.Py_ssize_t,
) -> cy.double:
    """Frequencies; returns G_kd − G_d, the lower the better.

    η_kd of CRAFT Algorithm 2.
    """
    seen, a = sums.seen[k, d], rules.smoothing
    without: cy.double = 0.0  # G_d
    within: cy.double = 0.0  # G_kd
    for t in range(columns.first[d], columns.first[d] + columns.widths[d]):
        clusters.costs[k, t] = columns.costs[t]
        if seen <= 0.0:
            continue
        count = sums.counts[k, t]
        eta = (count + a * exp(-columns.costs[t])) / (seen + a)
        clusters.costs[k, t] = -log(eta) if eta > 0.0 else INF
        if count > 0.0:
            without += count * columns.costs[t]
            within += count * clusters.costs[k, t]
    gain = without - within
    clusters.chosen[k, d] = gain > rules.category_threshold * without
    return -gain if gain > LEAST_GAIN * without else 0.0
