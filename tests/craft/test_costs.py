"""What features and clusters of mixed tables cost in awkward tables."""

import numpy as np
import pytest

from craft_objective import statistics_of
from kplus.craft.layout import Layout
from kplus.craft.model import ClusterSums, CraftModel
from kplus.craft.report import Profile

LEVELS = (None, 3)


def model_of(X, weights, **settings):
    return CraftModel(Layout.of(X, weights, LEVELS, "gaussian"), **settings)


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=n), rng.integers(0, 3, n)])


def total_of(model, X, weights, labels, K):
    encoded = model.layout.encode(X, weights)
    return ClusterSums(*statistics_of(encoded, labels, K, model.layout.n_sums))


@pytest.mark.parametrize("weight", [1e-3, 1e-2])
def test_a_table_lighter_than_one_row_costs_nothing(weight):
    """Half the logarithm of its weight would be a reward."""
    X, weights = rows(), np.full(60, weight)
    model = model_of(X, weights)
    total = total_of(model, X, weights, np.arange(60) % 2, 2)
    penalties = model.penalties(total.sums.sum(axis=0), 60 * weight)
    np.testing.assert_array_equal(penalties.costs, 0.0)
    assert penalties.penalty == 0.0
    assert np.all(np.isfinite(model.of(total).cluster_costs))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_categories_that_rounding_left_behind_are_not_paid_for(scale):
    X, weights = rows(), np.full(60, scale)
    model = model_of(X, weights)
    whole = total_of(model, X, weights, np.zeros(60, int), 1).sums[0]
    total = 60 * scale
    place = model.layout.places(0)
    half = 0.5 * np.log(max(total, 1.0))
    assert model.penalties(whole, total).costs[1] == pytest.approx(2.0 * half)
    whole[place.start] = 1e-11 * total
    assert model.penalties(whole, total).costs[1] == pytest.approx(half)
    whole[place.start] = 1e-7 * total  # few rows, but some
    assert model.penalties(whole, total).costs[1] == pytest.approx(2.0 * half)


def test_a_variance_is_never_negative():
    """Sums of equal rows leave rounding of either sign."""
    X, weights = rows(), np.ones(60)
    model = model_of(X, weights, smoothing=1e-20)
    total = total_of(model, X, weights, np.arange(60) % 2, 2)
    n, mean = total.sums[0, 0], 3.3
    total.sums[0, :3] = n, n * mean, n * mean**2 * (1.0 - 1e-15)
    profile = Profile.of(model, total)
    assert np.all(profile.breadth[:, 0] > 0.0)
    assert np.all(np.isfinite(profile.gains))


def test_sums_begin_without_a_report():
    X, weights = rows(), np.ones(60)
    model = model_of(X, weights)
    total = total_of(model, X, weights, np.zeros(60, int), 1)
    assert total.blank == 0.0
    assert model.converged(total)
    total.changed = 3
    assert not model.converged(total)
    total.begin_pass()
    assert model.converged(total)
