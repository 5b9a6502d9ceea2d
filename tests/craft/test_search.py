"""The search for clusters of mixed tables: what it finds, and that J is J."""

import tracemalloc
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from craft_objective import objective_of
from jobs import make_job
from kplus.craft import partition
from kplus.craft.layout import Layout
from kplus.craft.model import CraftModel
from kplus.craft.partition import Table, best_split, canonical, spread_seeds
from kplus.craft.search import CraftSpec, Search, fit, fit_from, score
from kplus.data.blocks import ArrayBlocks
from kplus.datasets import make_subspace_clusters
from reference import canonical as numbered
from reference import partitions

FIGURES = ["2a", "2c", "3a", "3c", "4a", "4c"]
MIXED = (None, 3, None, 2)


def figure(name, n_rows=300, seed=0):
    X, truth, _ = make_subspace_clusters(name, n_rows, random_state=seed)
    levels = (None if X.dtype.kind == "f" else 2,) * X.shape[1]
    return X.astype(float), levels, truth


def mixed_rows(n=90, seed=0, gaps=0.1, groups=3):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, groups, n)
    noisy = np.where(rng.random(n) < 0.9, z % 3, rng.integers(0, 3, n))
    X = np.column_stack(
        [rng.normal(6.0 * z, 1.0), noisy, rng.normal(size=n), z == 1]
    ).astype(float)
    X[rng.random(X.shape) < gaps] = np.nan
    return X, z


def noise(kind, n=300, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "gaussian":
        return rng.normal(size=(n, 8)), (None,) * 8
    if kind == "bernoulli":
        return (rng.random((n, 12)) < 0.3).astype(float), (2,) * 12
    if kind == "five":
        return rng.integers(0, 5, (n, 8)).astype(float), (5,) * 8
    X = np.column_stack([rng.normal(size=(n, 4)), rng.integers(0, 3, (n, 4))])
    return X, (None,) * 4 + (3,) * 4


def job_of(X, weights=None, seed=0, block_rows=40, n_threads=1, max_iter=300):
    blocks, rng = ArrayBlocks(X, block_rows), np.random.default_rng(seed)
    return make_job(blocks, weights, rng, n_threads, max_iter, tol=0.0)


def found(X, levels, weights=None, seed=0, block_rows=40, n_threads=1, **settings):
    job = job_of(X, weights, seed, block_rows, n_threads)
    return fit(job, CraftSpec(levels, **settings))


def brute(X, levels, labels, weights=None, model=None, **settings):
    weights = np.ones(len(X)) if weights is None else weights
    if model is not None:
        settings |= {"budget": model.budget, "sharing": model.sharing}
    K = labels.max() + 1
    return objective_of(X, weights, levels, labels, K, **settings)


def table_of(X, levels, weights=None, **settings):
    weights = np.ones(len(X)) if weights is None else weights
    layout = Layout.of(X, weights, levels, "gaussian")
    return Table.of(CraftModel(layout, **settings), layout.encode(X, weights))


def check_fit(result, X, levels, weights=None, **settings):
    """Labels, sums and J belong together."""
    sizes = np.bincount(result.labels, weights, len(result.sums.counts))
    np.testing.assert_allclose(result.sums.counts, sizes)
    assert np.all(np.diff(sizes) <= 1e-9)
    expected = brute(X, levels, result.labels, weights, result.model, **settings)
    assert result.history[-1] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert np.all(np.diff(result.history) <= 1e-9 * np.abs(result.history[1:]))
    assert result.converged


# ----------------------------------------------------------------- number unknown


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", FIGURES)
def test_true_partition_of_the_papers_tables(name, seed):
    """CR-6, CR-8, CR-9, CR-10: K is not given, and nothing else."""
    X, levels, truth = figure(name, seed=seed)
    result = found(X, levels, seed=seed)
    assert adjusted_rand_score(truth, result.labels) == 1.0
    check_fit(result, X, levels)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli", "five", "mixed"])
def test_one_cluster_where_there_is_no_structure(kind, seed):
    X, levels = noise(kind, seed=seed)
    result = found(X, levels, seed=seed)
    assert result.sums.K == 1
    check_fit(result, X, levels)


@pytest.mark.parametrize("numeric", ["gaussian", "quantile", "yeo-johnson"])
def test_mixed_rows_with_gaps(numeric):
    X, z = mixed_rows(150)
    result = found(X, MIXED, numeric=numeric)
    assert result.sums.K == 3
    assert adjusted_rand_score(z, result.labels) > (
        0.8 if numeric == "quantile" else 0.9  # parts hold several groups
    )
    if numeric == "gaussian":
        check_fit(result, X, MIXED)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_partition_of_few_rows(seed):
    """Of all there are."""
    X, _ = mixed_rows(6, seed, gaps=0.0, groups=2)
    best = min(brute(X, MIXED, np.array(labels)) for labels in partitions(6))
    result = found(X, MIXED, seed=seed)
    assert result.history[-1] == pytest.approx(best, rel=1e-9)


def test_a_low_penalty_gives_more_clusters():
    X, _ = mixed_rows(150)
    sizes = [found(X, MIXED, penalty=p).sums.K for p in (0.0, 20.0, 60.0, 1e4)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_clusters_than_allowed(most):
    X, levels, _ = figure("2a")
    assert most == found(X, levels, max_clusters=most).sums.K


def test_settings_reach_the_objective():
    X, _ = mixed_rows(80)
    for settings in (
        {"penalty": 2.0},
        {"fraction": 0.5},
        {"sharing": 0.5, "fraction": 0.5},
        {"smoothing": 0.3},
    ):
        result = found(X, MIXED, **settings)
        plain = {k: v for k, v in settings.items() if k in ("penalty", "smoothing")}
        check_fit(result, X, MIXED, **plain)


# ------------------------------------------------------------------- number given


@pytest.mark.parametrize("K", [1, 2, 3, 5, 9])
def test_exactly_as_many_as_asked_for(K):
    X, z = mixed_rows(120)
    result = found(X, MIXED, n_clusters=K)
    assert result.sums.K == K
    check_fit(result, X, MIXED)
    if K == 3:
        assert adjusted_rand_score(z, result.labels) > 0.9


@pytest.mark.parametrize("K", [2, 4, 7])
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli", "five", "mixed"])
def test_filled_up_where_there_is_no_structure(kind, K):
    """Converged partitions exist: of 300 starts, 39 to 59 end in seven clusters."""
    if (kind, K) == ("five", 7):
        pytest.skip("80 rows do not hold seven clusters of such columns")
    X, levels = noise(kind, 80)
    result = found(X, levels, n_clusters=K)
    assert result.sums.K == K
    assert np.all(result.sums.counts > 0.0)


def test_as_many_clusters_as_different_rows():
    X = np.repeat([[0.0, 1], [3.0, 0], [9.0, 1]], 4, axis=0)
    result = found(X, (None, 2), n_clusters=3)
    assert result.sums.K == 3
    np.testing.assert_array_equal(np.sort(np.unique(result.labels)), [0, 1, 2])
    assert found(X, (None, 2), n_clusters=5).sums.K <= 3


@pytest.mark.parametrize("name", FIGURES)
def test_true_partition_when_three_are_asked_for(name):
    X, levels, truth = figure(name, seed=3)
    result = found(X, levels, n_clusters=3)
    assert adjusted_rand_score(truth, result.labels) == 1.0


# ---------------------------------------------------------- order, weights, threads


@pytest.mark.parametrize("how", [{}, {"n_clusters": 3}, {"fraction": 0.5}])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_does_not_matter(seed, how):
    """CR-15: it does in the paper's."""
    X, _ = mixed_rows(101, seed)
    X[50:60] = X[:10]  # some come twice
    order = np.random.default_rng(seed).permutation(101)
    one, two = found(X, MIXED, **how), found(X[order], MIXED, **how)
    np.testing.assert_array_equal(one.labels[order], two.labels)
    assert one.history[-1] == pytest.approx(two.history[-1], rel=1e-10)


@pytest.mark.parametrize("how", [{}, {"n_clusters": 4}])
def test_weight_two_is_a_row_twice(how):
    X, _ = mixed_rows(70)
    weights = np.random.default_rng(1).integers(0, 3, 70).astype(float)
    copies = np.repeat(np.arange(70), weights.astype(int))
    one, two = found(X, MIXED, weights, **how), found(X[copies], MIXED, **how)
    np.testing.assert_array_equal(one.labels[copies], two.labels)
    assert one.history[-1] == pytest.approx(two.history[-1], rel=1e-10)
    check_fit(one, X, MIXED, weights)


def test_blocks_and_threads_do_not_matter():
    X, _ = mixed_rows(130)
    plain = found(X, MIXED)
    for block_rows, n_threads in ((7, 1), (40, 2), (130, 3)):
        again = found(X, MIXED, block_rows=block_rows, n_threads=n_threads)
        np.testing.assert_array_equal(again.labels, plain.labels)
        assert again.history[-1] == pytest.approx(plain.history[-1], rel=1e-12)
    one, two = (found(X, MIXED, block_rows=11, n_threads=n) for n in (1, 2))
    assert one.sums.sums.tobytes() == two.sums.sums.tobytes()


@given(st.integers(0, 10**6))
def test_canonical_rows(seed):
    """One line for each different row, in an order that does not depend on theirs."""
    rng = np.random.default_rng(seed)
    n, D = int(rng.integers(1, 60)), int(rng.integers(1, 6))
    X = rng.choice([0.0, 1.0, 0.5, np.nan, -0.3, 1e9], (n, D))
    if seed % 2:
        X = rng.normal(size=(n, D))[rng.integers(0, n, n)]
    weights = rng.integers(1, 4, n).astype(float)
    rows, sums = canonical(X, weights)
    order = rng.permutation(n)
    again, same = canonical(X[order], weights[order])
    np.testing.assert_array_equal(rows, again)
    np.testing.assert_array_equal(sums, same)
    keys = {tuple(np.nan_to_num(row, nan=-77.0)) for row in X}
    assert len(rows) == len(keys)
    assert sums.sum() == weights.sum()
    for row, weight in zip(rows, sums, strict=True):
        equal = np.all((row == X) | (np.isnan(X) & np.isnan(row)), axis=1)
        assert weight == weights[equal].sum()


# ------------------------------------------------------------ splits, merges, seeds


@pytest.mark.parametrize("settings", [{}, {"fraction": 0.5}, {"penalty": 3.0}])
def test_splits_change_j_as_they_say(settings):
    X, z = mixed_rows()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 90)
    table = table_of(X, MIXED, weights, **settings)
    how = {"penalty": settings.get("penalty"), "model": table.model}
    at = table.converge(z // 2, 2, most=0)
    assert at.objective == pytest.approx(brute(X, MIXED, z // 2, weights, **how))
    for k in range(2):
        split = best_split(table, at, k, np.random.default_rng(0))
        np.testing.assert_array_equal(split.rows, np.flatnonzero(z // 2 == k))
        labels = (z // 2).copy()
        labels[split.rows[split.parts == 1]] = 2
        change = brute(X, MIXED, labels, weights, **how) - at.objective
        assert split.change == pytest.approx(change, rel=1e-9)
    found = best_split(table, at, 0, np.random.default_rng(0))
    assert adjusted_rand_score(z[found.rows], found.parts) > 0.9


@pytest.mark.parametrize("most", [1, 30])
def test_splits_do_not_depend_on_how_many_are_compared_at_a_time(most, monkeypatch):
    X, _ = mixed_rows()
    table = table_of(X, MIXED, np.random.default_rng(0).uniform(0.5, 2.0, 90))
    one = table.converge(np.zeros(90, np.int64), 1, most=0)
    together = partition._single_splits(table, one.sums[0], one.counts[0])
    monkeypatch.setattr(partition, "_MOST_SUMS", most)
    apart = partition._single_splits(table, one.sums[0], one.counts[0])
    assert len(together) == 3
    np.testing.assert_array_equal(apart, together)


def test_splits_of_many_columns_take_little_memory():
    """All sums at once would be 54 MB, and several times that."""
    X = np.random.default_rng(0).normal(size=(12, 1500))
    table = table_of(X, (None,) * 1500)
    one = table.converge(np.zeros(12, np.int64), 1, most=0)
    tracemalloc.start()
    splits = partition._single_splits(table, one.sums[0], one.counts[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(splits) == 3
    assert peak < 50e6


def test_what_cannot_be_split():
    X = np.array([[1.0, 0], [1.0, 0], [1.0, 0], [5.0, 1]])
    table = table_of(X, (None, 2))
    at = table.converge(np.array([0, 0, 0, 1]), 2, most=0)
    rng = np.random.default_rng(0)
    assert best_split(table, at, 1, rng) is None  # a single row
    assert best_split(table, at, 0, rng) is None  # equal ones


def test_merges_change_j_as_they_say():
    X, z = mixed_rows(groups=4)
    table = table_of(X, MIXED)
    at = table.converge(z, 4, most=0)
    pairs, losses = Search(table, np.random.default_rng(0), 99)._merges(at)
    assert len(pairs) == 6
    for (i, j), loss in zip(pairs, losses, strict=True):
        labels = np.where(z == j, i, z)
        change = objective_of(X, np.ones(90), MIXED, labels, 4) - at.objective
        assert loss == pytest.approx(change, rel=1e-8)


def test_converge_finds_partitions_without_empty_clusters():
    X, z = mixed_rows()
    table = table_of(X, MIXED)
    labels = np.array([0, 4, 5])[z]
    at = table.converge(labels, 7)
    assert at.K == 3
    np.testing.assert_array_equal(np.unique(at.labels), [0, 1, 2])
    assert at.objective == pytest.approx(brute(X, MIXED, at.labels))
    np.testing.assert_array_equal(labels, np.array([0, 4, 5])[z])  # not changed


def test_seeds_are_far_from_each_other():
    X = np.repeat([[0.0, 0], [50.0, 1], [-50.0, 2]], [20, 3, 2], axis=0)
    table = table_of(X, (None, 3))
    labels = spread_seeds(table, 3, np.random.default_rng(0))
    expected = numbered(np.repeat([0, 1, 2], [20, 3, 2]))
    np.testing.assert_array_equal(numbered(labels), expected)
    assert spread_seeds(table, 9, np.random.default_rng(0)).max() == 2


# ---------------------------------------------------------- path, restarts, streams


def test_the_path_has_what_was_seen():
    X, levels, _ = figure("2a")
    result = found(X, levels)
    assert result.path.dtype.names == ("n_clusters", "objective")
    assert np.all(np.diff(result.path["n_clusters"]) > 0)
    one = brute(X, levels, np.zeros(300, int))
    assert result.path[0]["n_clusters"] == 1
    assert result.path[0]["objective"] == pytest.approx(one)
    best = result.path[np.argmin(result.path["objective"])]
    assert best["n_clusters"] == result.sums.K == 3
    assert best["objective"] == pytest.approx(result.history[-1])


def test_more_searches_are_never_worse():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6)) ** 3
    spec = CraftSpec((None,) * 6, n_clusters=5)
    ends = [
        fit(job_of(X, seed=4), replace(spec, n_init=n)).history[-1] for n in (1, 2, 6)
    ]
    assert ends[0] >= ends[1] - 1e-9 >= ends[2] - 2e-9


def test_scores_say_the_labels():
    X, _ = mixed_rows(90)
    result = found(X, MIXED)
    scores = score(ArrayBlocks(X, 40), result.model, result.clusters)
    assert scores.shape == (90, result.sums.K)
    np.testing.assert_array_equal(scores.argmax(axis=1), result.labels)


def test_a_stream_counts_what_came_before():
    X, z = mixed_rows(240)
    spec = CraftSpec(MIXED)
    first = fit(job_of(X[:120]), spec)
    second = fit_from(job_of(X[120:]), spec, first.model, first.sums, base=first.sums)
    assert second.sums.K == 3
    assert adjusted_rand_score(z[120:], second.labels) > 0.9
    assert second.sums.counts.sum() == 240
    expected = [  # clusters may have been renumbered
        brute(X, MIXED, np.append(np.array(order)[first.labels], second.labels))
        for order in permutations(range(3))
    ]
    assert second.history[-1] == pytest.approx(min(expected), rel=1e-9)
