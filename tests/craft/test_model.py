"""CRAFT as a model of the loop: the laws, and its objective by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from core.test_laws import Laws, law, tables
from craft_objective import gains_of, objective_of, statistics_of
from kplus.core.errors import NotFiniteError
from kplus.core.types import Block
from kplus.craft.layout import Layout
from kplus.craft.model import (
    Clusters,
    ClusterSums,
    CraftModel,
    DropClusters,
    MergeClusters,
)
from kplus.data.blocks import ArrayBlocks


class CraftLaws(Laws):
    """Columns are numbers, or codes where a subclass says so."""

    penalty = None
    fraction = None
    sharing = 0.0
    smoothing = 1.0

    def rows(self, table):
        return table.X.astype(np.float64)

    def levels(self, table):
        return (None,) * table.X.shape[1]

    def engine(self, table, block_rows=7, threads=1):
        return super().engine(replace(table, X=self.rows(table)), block_rows, threads)

    def model(self, table):
        counted = table.weight() > 0.0
        X, w = self.rows(table)[counted], table.weight()[counted]
        # Not the mean of the rows in their order, which would change the last digits.
        order = np.lexsort((w, *X.T))
        layout = Layout.of(X[order], w[order], self.levels(table), "gaussian")
        return CraftModel(
            layout, self.smoothing, self.penalty, self.fraction, self.sharing
        )

    def start(self, model, table):
        """Four clusters, by the middles of the first and the last column."""
        X, counted = np.nan_to_num(self.rows(table)), table.weight() > 0.0
        low, high = X[counted].min(axis=0), X[counted].max(axis=0)
        above = X - low > 0.5 * (high - low)
        labels = above[:, 0] + 2 * above[:, -1]
        rows = model.layout.encode(self.rows(table), table.weight())
        return model.of(
            ClusterSums(*statistics_of(rows, labels, 4, model.layout.n_sums))
        )

    def moves(self):
        return [DropClusters(), MergeClusters()]

    def statistics(self, total):
        return [total.sums, total.counts]

    def labels(self, local):
        return local

    def brute_statistics(self, params, table, labels):
        layout = self.model(table).layout
        rows = layout.encode(self.rows(table), table.weight())
        return statistics_of(rows, labels, params.K, layout.n_sums)

    def brute_objective(self, model, params, table, labels):
        return objective_of(
            self.rows(table),
            table.weight(),
            self.levels(table),
            labels,
            params.K,
            smoothing=self.smoothing,
            penalty=self.penalty,
            budget=model.budget,
            sharing=self.sharing,
        )

    def renumbered(self, params, old_to_new):
        kept = np.flatnonzero(old_to_new >= 0)
        of = kept[np.argsort(old_to_new[kept])]
        return Clusters(
            np.ascontiguousarray(params.tables[:, of]),
            params.shares[of],
            params.gains[of],
            params.chosen[of],
            params.cluster_costs[of],
        )

    def scale(self, params, table):
        # A likelihood ratio has no scale of its own; offsets cost digits.
        return 1e4 * table.weight().sum()

    @law
    @given(tables())
    def test_blocks_catch_up_with_renumbering(self, table):
        """A summary is all that rows say, not a change: the last one is the total."""
        model, params = self.some_params(table)
        with self.engine(table) as engine:
            blocks = range(engine.n_blocks)
            engine.sweep(model, params, blocks)
            for seed in (1, 2):
                old_to_new = self.some_renumbering(
                    params.K, np.random.default_rng(seed)
                )
                params = self.renumbered(params, old_to_new)
                engine.regroup(old_to_new, params.K)
            total = engine.sweep(model, params, blocks)
            fresh, labels = self.summary(model, params, table)
            np.testing.assert_array_equal(self.labels_of(engine), labels)
            self.close(total, self.statistics(fresh), table.n)


class TestNumbers(CraftLaws):
    pass


class TestPenalty(CraftLaws):
    penalty = 0.25
    smoothing = 0.3


class TestCategories(CraftLaws):
    """Codes below 4, of which some may not occur."""

    sharing = 0.0

    def rows(self, table):
        return np.floor(8.0 * np.abs(super().rows(table))) % 4.0

    def levels(self, table):
        return (4,) * table.X.shape[1]


class TestMixedWithGaps(CraftLaws):
    """Every second column has categories; which values are missing, they say."""

    def rows(self, table):
        X = super().rows(table)
        gaps = np.floor(64.0 * np.abs(X)) % 5.0 == 1.0
        X[:, 1::2] = np.floor(8.0 * np.abs(X[:, 1::2])) % 3.0
        return np.where(gaps, np.nan, X)

    def levels(self, table):
        return tuple(3 if d % 2 else None for d in range(table.X.shape[1]))


class TestFraction(TestMixedWithGaps):
    """A budget: half of the features count in each cluster."""

    fraction = 0.5


class TestSharing(TestMixedWithGaps):
    """Features count in part where only others have chosen them."""

    sharing = 0.4


class TestSharedFraction(TestSharing):
    fraction = 0.5


# ------------------------------------------------------------------- what it computes


LEVELS = (None, 3, None, 2)


def mixed_rows(n=60, seed=0, gaps=0.15):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    X = np.column_stack(
        [
            rng.normal(40.0 + 9.0 * z, 2.0),
            np.where(rng.random(n) < 0.8, z, rng.integers(0, 3, n)),
            rng.normal(size=n) * (1 + z),
            z == 1,
        ]
    ).astype(float)
    X[rng.random(X.shape) < gaps] = np.nan
    weights = rng.uniform(0.5, 2.0, n)
    return X, weights, z


def model_of(X, weights, levels=LEVELS, numeric="gaussian", **settings):
    return CraftModel(Layout.of(X, weights, levels, numeric), **settings)


def sums_of(model, X, weights, labels, K):
    rows = model.layout.encode(X, weights)
    return ClusterSums(*statistics_of(rows, labels, K, model.layout.n_sums))


@pytest.mark.parametrize("smoothing", [0.1, 1.0, 5.0])
def test_gains_are_likelihood_ratios(smoothing):
    """CR-2: with the log σ that the paper lost, and the prior (MAP)."""
    X, weights, z = mixed_rows()
    model = model_of(X, weights, smoothing=smoothing)
    clusters = model.of(sums_of(model, X, weights, z, 3))
    gains, _ = gains_of(X, weights, LEVELS, z, 3, smoothing)
    np.testing.assert_allclose(model.layout.by_column(clusters.gains), gains, rtol=1e-9)


def test_costs_are_half_log_n_for_each_parameter():
    X, weights, z = mixed_rows()
    X[X[:, 1] == 2, 1] = 1.0  # a category that never occurs has no parameter
    model = model_of(X, weights)
    total = sums_of(model, X, weights, z, 3)
    penalties = model.penalties(total.sums.sum(axis=0), weights.sum())
    half = 0.5 * np.log(weights.sum())
    np.testing.assert_allclose(
        model.layout.by_column(penalties.costs), half * np.array([2, 1, 2, 1])
    )
    assert penalties.penalty == pytest.approx(half)
    given_one = replace(model, penalty=7.0).penalties(penalties.whole, penalties.total)
    assert given_one.penalty == 7.0


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("fraction", [None, 0.25, 0.5, 1.0])
def test_objective_of_any_partition(fraction, sharing):
    X, weights, z = mixed_rows()
    model = model_of(X, weights, fraction=fraction, sharing=sharing)
    for labels in (z, np.zeros(60, int), np.arange(60) % 4, (z + 2) % 3 + 1):
        total = sums_of(model, X, weights, labels, 5)
        expected = objective_of(
            X, weights, LEVELS, labels, 5, budget=model.budget, sharing=sharing
        )
        assert model.objective(None, total) == pytest.approx(expected, rel=1e-9)


def test_one_cluster_costs_its_penalty_alone():
    X, weights, _ = mixed_rows()
    model = model_of(X, weights)
    clusters = model.of(sums_of(model, X, weights, np.zeros(60, int), 1))
    np.testing.assert_allclose(clusters.gains, 0.0, atol=1e-9)
    assert not clusters.chosen.any()
    assert clusters.cluster_costs[0] == pytest.approx(0.5 * np.log(weights.sum()))


@pytest.mark.parametrize(
    ("fraction", "D", "budget"),
    [
        (None, 4, -1),
        (0.01, 4, 1),
        (0.5, 4, 2),
        (0.5, 5, 2),
        (1 / 3, 24, 8),
        (1.0, 3, 3),
    ],
)
def test_budget(fraction, D, budget):
    X = np.random.default_rng(0).normal(size=(9, D))
    assert model_of(X, np.ones(9), (None,) * D, fraction=fraction).budget == budget


def test_every_cluster_keeps_to_its_budget():
    X, weights, z = mixed_rows()
    for sharing in (0.0, 0.6):
        model = model_of(X, weights, fraction=0.5, sharing=sharing)
        chosen = model.of(sums_of(model, X, weights, z, 3)).chosen
        np.testing.assert_array_equal(chosen.sum(axis=1), 2)


def test_all_sharing_means_the_same_features():
    """CR-4: the other end of the paper's ρ."""
    X, weights, z = mixed_rows()
    for fraction in (None, 0.5):
        model = model_of(X, weights, fraction=fraction, sharing=1.0)
        chosen = model.of(sums_of(model, X, weights, z, 3)).chosen
        assert np.all(chosen == chosen[0])


def test_units_do_not_matter():
    X, weights, z = mixed_rows()
    other = X * [1e-6, 1, 1e5, 1] + [1e3, 0, -7, 0]
    cluster_costs = [
        m.of(sums_of(m, x, weights, z, 3)).cluster_costs
        for x in (X, other)
        for m in [model_of(x, weights)]
    ]
    np.testing.assert_allclose(*cluster_costs, rtol=1e-7)


# -------------------------------------------------------------------- blocks and sums


def visit(model, params, X, weights=None, local=None):
    block = Block(ArrayBlocks(X), 0, 0, len(X), weights)
    return model.summarize(params, block, local)


def test_changes_are_counted():
    X, weights, z = mixed_rows()
    model = model_of(X, weights)
    params = model.of(sums_of(model, X, weights, z, 3))
    found, labels = visit(model, params, X, weights)
    assert found.changed == 60
    assert not model.converged(found)
    kept = labels.copy()
    again, same = visit(model, params, X, weights, labels)
    assert again.changed == 0
    assert model.converged(again)
    kept[:4] = (kept[:4] + 1) % 3
    assert visit(model, params, X, weights, kept)[0].changed == 4
    np.testing.assert_array_equal(same, labels)


def test_rows_without_values_are_weighed():
    X, weights, z = mixed_rows(gaps=0.0)
    X[[4, 9]] = np.nan
    X[5, 0] = np.nan
    model = model_of(X, weights)
    params = model.of(sums_of(model, X, weights, z, 3))
    found, labels = visit(model, params, X, weights)
    assert found.blank == pytest.approx(weights[4] + weights[9])
    assert labels[4] == labels[9] == np.argmax(params.shares)
    found += found.copy()
    assert found.blank == pytest.approx(2.0 * (weights[4] + weights[9]))
    found -= visit(model, params, X, weights)[0]
    assert found.blank == pytest.approx(weights[4] + weights[9])
    found.begin_pass()
    assert found.changed == 0
    assert found.blank > 0.0


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("numeric", ["gaussian", "quantile", "yeo-johnson"])
def test_what_cannot_be_summed_is_refused(value, numeric):
    X, weights, z = mixed_rows()
    model = model_of(X, weights, numeric=numeric)
    params = model.of(sums_of(model, X, weights, z, 3))
    X[7, 2] = value
    with pytest.raises(NotFiniteError):
        visit(model, params, X, weights)


def test_regroup_merges_what_has_the_same_number():
    X, weights, z = mixed_rows()
    model = model_of(X, weights)
    old_to_new = np.array([1, 0, 1])
    merged = sums_of(model, X, weights, z, 3).regroup(old_to_new, 2)
    expected = sums_of(model, X, weights, old_to_new[z], 2)
    np.testing.assert_allclose(merged.sums, expected.sums)
    np.testing.assert_allclose(merged.counts, expected.counts)


# ------------------------------------------------------------------- awkward tables


def plain_rows():
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(size=60), rng.integers(0, 3, 60)])


@pytest.mark.parametrize("weight", [1e-3, 1e-2])
def test_a_table_lighter_than_one_row_costs_nothing(weight):
    """Half the logarithm of its weight would be a reward."""
    X, weights = plain_rows(), np.full(60, weight)
    model = model_of(X, weights, (None, 3))
    total = sums_of(model, X, weights, np.arange(60) % 2, 2)
    penalties = model.penalties(total.sums.sum(axis=0), 60 * weight)
    np.testing.assert_array_equal(penalties.costs, 0.0)
    assert penalties.penalty == 0.0
    assert np.all(np.isfinite(model.of(total).cluster_costs))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_categories_that_rounding_left_behind_are_not_paid_for(scale):
    X, weights = plain_rows(), np.full(60, scale)
    model = model_of(X, weights, (None, 3))
    whole = sums_of(model, X, weights, np.zeros(60, int), 1).sums[0]
    total = 60 * scale
    place = model.layout.places(0)
    half = 0.5 * np.log(max(total, 1.0))
    assert model.penalties(whole, total).costs[1] == pytest.approx(2.0 * half)
    whole[place.start] = 1e-11 * total
    assert model.penalties(whole, total).costs[1] == pytest.approx(half)
    whole[place.start] = 1e-7 * total  # few rows, but some
    assert model.penalties(whole, total).costs[1] == pytest.approx(2.0 * half)


def test_sums_begin_without_a_report():
    X, weights = plain_rows(), np.ones(60)
    model = model_of(X, weights, (None, 3))
    total = sums_of(model, X, weights, np.zeros(60, int), 1)
    assert total.blank == 0.0
    assert model.converged(total)
    total.changed = 3
    assert not model.converged(total)
    total.begin_pass()
    assert model.converged(total)
