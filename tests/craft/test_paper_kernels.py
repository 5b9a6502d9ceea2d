"""One row, one pass and one update of Algorithm 2 against plain Python."""

from dataclasses import replace

import numpy as np
import pytest

import craft_reference as obvious
from kplus.craft.paper.algorithm import PaperSpec
from kplus.craft.paper.kernels import (
    Clusters,
    Columns,
    Penalties,
    Rules,
    Sums,
    cost_table,
    fit_clusters,
    sum_rows,
    total_cost,
    walk_rows,
)

MIXED = (3, None, 2, None, None, 4)
KINDS = [MIXED, (None, None, None), (2, 3, 2)]
RULES = [
    {},
    {"smoothing": 0.0, "fraction": 0.3},
    {"variance_threshold": 0.4, "category_threshold": 0.2},
    {"variance_threshold": 1e-9, "variance_floor": 0.5},
    {"fraction": 1.0, "fixed_variance": 0.5},
]


def rows(levels, seed, n=30, missing=0.1):
    rng = np.random.default_rng(seed)
    X = np.empty((n, len(levels)))
    for d, level in enumerate(levels):
        X[:, d] = (
            rng.normal(3.0, d + 1.0, n) if level is None else rng.integers(0, level, n)
        )
    X[rng.uniform(size=X.shape) < missing] = np.nan
    return X, rng.choice([0.3, 1.0, 2.0], n)


def first_places(levels):
    widths = np.array([level or 0 for level in levels])
    return np.where(widths > 0, np.cumsum(widths) - widths, -1), widths


def join(lists):
    return np.concatenate(
        [np.array(part, float) for part in lists if part] + [np.empty(0)]
    )


def columns_of(table):
    first, widths = first_places(table["levels"])
    numbers = [d for d, level in enumerate(table["levels"]) if level is None]
    means, units = np.zeros(len(first)), np.ones(len(first))
    constant = np.zeros(len(first), bool)
    for d in numbers:
        means[d], units[d] = table["mean"][d], obvious.unit(table, d)
        constant[d] = obvious.constant(table, d)
    return Columns(first, widths, means, units, constant, -np.log(join(table["eta0"])))


def rules_of(spec):
    numbers = sum(level is None for level in spec.levels)
    names = ("fixed_variance", "variance_threshold", "category_threshold")
    values = [getattr(spec, name) for name in names]
    fixed, *thresholds = [np.nan if value is None else value for value in values]
    return Rules(
        spec.smoothing, spec.variance_floor, fixed,
        obvious.budget(spec.fraction, numbers),
        obvious.budget(spec.fraction, len(spec.levels) - numbers), *thresholds,
    )  # fmt: skip


def clusters_of(clusters):
    with np.errstate(divide="ignore"):
        costs = np.array([-np.log(join(c["eta"])) for c in clusters])
    return Clusters(
        np.array([c["v"] for c in clusters]),
        np.array([c["zeta"] for c in clusters], float),
        np.array([c["sigma2"] for c in clusters], float),
        costs,
    )


def fitted(X, w, labels, K, columns, rules):
    D, T = X.shape[1], len(columns.costs)
    sums = Sums(*(np.zeros((K, size)) for size in (D, D, D, T)))
    sum_rows(X, w, labels, columns.first, sums)
    out = Clusters(np.zeros((K, D), bool), *(np.zeros((K, size)) for size in (D, D, T)))
    fit_clusters(sums, columns, rules, out)
    return out


def setting(levels, rule, seed):
    """Rows, and three clusters of them with which the next pass begins."""
    X, w = rows(levels, seed)
    spec = replace(PaperSpec(levels, penalty=1.0), **rule)
    table = obvious.whole_table(obvious.plain(X), w, levels)
    labels = np.random.default_rng(seed).integers(0, 3, len(X))
    clusters = obvious.refit(obvious.plain(X), w, list(labels), table, spec)[1]
    return X, w, labels, spec, table, clusters


@pytest.mark.parametrize("levels", KINDS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_those_of_their_rows(levels, rule, seed):
    X, w, labels, spec, table, clusters = setting(levels, rule, seed)
    found = fitted(X, w, labels, 3, columns_of(table), rules_of(spec))
    expected = clusters_of(clusters)
    np.testing.assert_array_equal(found.chosen, expected.chosen)
    numbers = [d for d, level in enumerate(levels) if level is None]
    for name in ("means", "variances"):
        np.testing.assert_allclose(
            getattr(found, name)[:, numbers], getattr(expected, name)[:, numbers],
            rtol=1e-12,
        )  # fmt: skip
    np.testing.assert_allclose(found.costs, expected.costs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("levels", KINDS)
@pytest.mark.parametrize("rule", RULES)
def test_costs_are_those_of_algorithm_2(levels, rule):
    X, w, labels, _, table, clusters = setting(levels, rule, 7)
    columns, arrays = columns_of(table), clusters_of(clusters)
    found = np.empty((len(X), 3))
    cost_table(X, arrays, columns, -0.14, found)
    plain = obvious.plain(X)
    expected = [[obvious.row_cost(x, c, table, -0.14) for c in clusters] for x in plain]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    total = total_cost(X, w, labels, arrays, columns)
    own = [
        obvious.row_cost(plain[n], clusters[k], table, 0.0)
        for n, k in enumerate(labels)
    ]
    np.testing.assert_allclose(total, np.dot(w, own), rtol=1e-12)


@pytest.mark.parametrize("levels", KINDS)
def test_a_walk_stops_at_each_row_that_costs_too_much(levels):
    X, w, _, _, table, clusters = setting(levels, {}, 3)
    columns, arrays = columns_of(table), clusters_of(clusters)
    costs = np.empty((len(X), 3))
    cost_table(X, arrays, columns, 0.05, costs)
    limit = float(np.median(costs.min(axis=1)))
    labels, stops, row = np.full(len(X), -1), [], 0
    penalties = Penalties(0.05, limit)
    while (row := walk_rows(X, w, row, arrays, 3, columns, penalties, labels)) < len(X):
        stops.append(row)
        row += 1
    assert stops
    dear = np.minimum(w, 1.0) * costs.min(axis=1) > limit
    np.testing.assert_array_equal(stops, np.flatnonzero(dear))
    np.testing.assert_array_equal(labels, np.argmin(costs, axis=1))


def test_only_the_first_K_of_the_room_count_and_ties_go_to_the_lower():
    X = np.array([[0.0], [1.0], [2.0]])
    columns = Columns(
        np.array([-1]),
        np.array([0]),
        np.zeros(1),
        np.ones(1),
        np.zeros(1, bool),
        np.empty(0),
    )
    centers = np.array([[0.0], [2.0], [1.0]])
    clusters = Clusters(
        np.ones((3, 1), bool), centers, np.ones((3, 1)), np.empty((3, 0))
    )
    labels = np.empty(3, np.int64)
    penalties = Penalties(0.0, np.inf)
    assert walk_rows(X, np.ones(3), 0, clusters, 2, columns, penalties, labels) == 3
    np.testing.assert_array_equal(labels, [0, 0, 1])


def test_a_cluster_without_a_column_takes_that_of_the_whole_table():
    X, _ = rows(MIXED, 0, missing=0.0)
    X[:10, 0] = X[:10, 1] = np.nan
    w = np.ones(len(X))
    labels = np.repeat([0, 1], [10, 20])
    spec = PaperSpec(MIXED, fraction=1.0, penalty=1.0)
    table = obvious.whole_table(obvious.plain(X), w, MIXED)
    found = fitted(X, w, labels, 2, columns_of(table), rules_of(spec))
    np.testing.assert_allclose(np.exp(-found.costs[0, :3]), table["eta0"][0])
    np.testing.assert_allclose(found.means[0, 1], table["mean"][1])
    np.testing.assert_allclose(found.variances[0, 1], table["variance"][1])
    few = fitted(
        X, w, labels, 2, columns_of(table), rules_of(replace(spec, fraction=0.6))
    )
    assert not few.chosen[0, 1]  # what was never seen is the last to be chosen
