"""Moves of mixed tables: what they propose, against refits of the rows."""

import numpy as np
import pytest

from craft_objective import objective_of, statistics_of
from kplus.core import loop
from kplus.core.types import Position
from kplus.craft.layout import Layout
from kplus.craft.model import (
    ClusterSums,
    CraftModel,
    DropClusters,
    MergeClusters,
    SortClusters,
    by_size,
)
from kplus.data.blocks import ArrayBlocks
from kplus.engine import SerialEngine

LEVELS = (None, 3, None, 2)


def rows(n=60, seed=0):
    """Three groups, with gaps and weights."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % 3
    noisy = np.where(rng.random(n) < 0.9, z, rng.integers(0, 3, n))
    X = np.column_stack(
        [rng.normal(8.0 * z, 1.0), noisy, rng.normal(size=n), rng.random(n) < 0.5]
    ).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, rng.integers(1, 4, n).astype(float), z


def model_of(X, weights, **settings):
    return CraftModel(Layout.of(X, weights, LEVELS, "gaussian"), **settings)


def sums_of(model, X, weights, labels, K):
    encoded = model.layout.encode(X, weights)
    return ClusterSums(*statistics_of(encoded, labels, K, model.layout.n_sums))


def propose(move, model, total, converged=True):
    updated = model.of(total)
    return move.propose(Position(model, updated, total, updated, converged))


def brute(model, X, weights, labels, K):
    return objective_of(
        X, weights, LEVELS, labels, K, budget=model.budget, sharing=model.sharing
    )


def check_exact(proposal, model, X, weights, labels):
    """The parameters are those of a fit of the rows with their new numbers."""
    assert proposal.exact
    after = sums_of(model, X, weights, proposal.old_to_new[labels], proposal.K)
    expected = model.of(after)
    for name in ("tables", "shares", "gains", "cluster_costs"):
        np.testing.assert_allclose(
            getattr(proposal.params, name), getattr(expected, name), atol=1e-9
        )


# -------------------------------------------------------------------------- drop


def test_clusters_without_rows_go():
    X, weights, z = rows()
    model = model_of(X, weights)
    labels = np.array([1, 3, 4])[z]
    total = sums_of(model, X, weights, labels, 6)
    for converged in (False, True):
        proposal = propose(DropClusters(), model, total, converged)
        np.testing.assert_array_equal(proposal.old_to_new, [-1, 0, -1, 1, 2, -1])
        check_exact(proposal, model, X, weights, labels)
    before = model.objective(None, total)
    assert proposal.params.cluster_costs.sum() == pytest.approx(before)


def test_nothing_to_drop():
    X, weights, z = rows()
    model = model_of(X, weights)
    assert propose(DropClusters(), model, sums_of(model, X, weights, z, 3)) is None


def test_dropping_does_not_change_what_is_shared():
    X, weights, z = rows()
    model = model_of(X, weights, sharing=0.6)
    total = sums_of(model, X, weights, np.array([0, 2, 3])[z], 4)
    proposal = propose(DropClusters(), model, total)
    before = model.objective(None, total)
    assert proposal.params.cluster_costs.sum() == pytest.approx(before)


# ------------------------------------------------------------------------- merge


@pytest.mark.parametrize("sharing", [0.0, 0.5])
@pytest.mark.parametrize("fraction", [None, 0.5])
def test_halves_of_a_group_are_merged(fraction, sharing):
    X, weights, z = rows()
    model = model_of(X, weights, fraction=fraction, sharing=sharing)
    labels = z.copy()
    labels[(z == 1) & (np.arange(60) % 2 == 0)] = 3
    total = sums_of(model, X, weights, labels, 4)
    proposal = propose(MergeClusters(), model, total)
    np.testing.assert_array_equal(proposal.old_to_new, [0, 1, 2, 1])
    assert proposal.K == proposal.params.K == 3
    check_exact(proposal, model, X, weights, labels)
    change = proposal.params.cluster_costs.sum() - model.objective(None, total)
    expected = brute(model, X, weights, z, 3) - brute(model, X, weights, labels, 4)
    assert change == pytest.approx(expected, rel=1e-6)
    assert change < 0.0


def test_the_best_pair_is_merged():
    """Of all pairs of a bad partition, the one that brute force would merge."""
    X, weights, _ = rows()
    model = model_of(X, weights)
    labels = np.random.default_rng(3).integers(0, 5, 60)
    total = sums_of(model, X, weights, labels, 5)
    found = {}
    for i in range(5):
        for j in range(i + 1, 5):
            merged = np.where(labels == j, i, labels)
            found[i, j] = brute(model, X, weights, merged, 5)
    i, j = min(found, key=found.get)
    proposal = propose(MergeClusters(), model, total)
    assert proposal.old_to_new[i] == proposal.old_to_new[j]
    assert proposal.params.cluster_costs.sum() == pytest.approx(found[i, j])


def test_only_what_pays_and_only_after_convergence():
    X, weights, z = rows()
    model = model_of(X, weights)
    total = sums_of(model, X, weights, z, 3)
    assert propose(MergeClusters(), model, total) is None
    labels = np.where(np.arange(60) % 2, z, z + 3)
    assert (
        propose(MergeClusters(), model, sums_of(model, X, weights, labels, 6), False)
        is None
    )
    one = sums_of(model, X, weights, 0 * z, 1)
    assert propose(MergeClusters(), model, one) is None


def test_a_high_penalty_merges_all():
    X, weights, z = rows()
    model = model_of(X, weights, penalty=1e4)
    labels = np.where(np.arange(60) % 2, z, z + 3)
    with SerialEngine(ArrayBlocks(X, 11), weights) as engine:
        start = model.of(sums_of(model, X, weights, labels, 6))
        moves = [DropClusters(), MergeClusters()]
        result = loop.run(model, engine, start, moves=moves, max_iter=99, tol=0.0)
    assert result.converged
    assert result.params.K == 1
    assert np.all(np.diff(result.history) <= 0.0)
    # One cluster is the whole table: no feature gains anything.
    assert result.history[-1] == pytest.approx(1e4)


# -------------------------------------------------------------------------- sort


def test_clusters_are_numbered_by_size():
    X, weights, z = rows()
    model = model_of(X, weights)
    labels = np.where((z == 0) & (np.arange(60) > 20), 2, z)
    total = sums_of(model, X, weights, labels, 3)
    proposal = propose(SortClusters(), model, total)
    after = total.regroup(proposal.old_to_new, 3)
    assert np.all(np.diff(after.counts) <= 0.0)
    check_exact(proposal, model, X, weights, labels)


def test_clusters_of_equal_size_have_an_order_of_their_own():
    """It does not matter how they were numbered before."""
    X, _, z = rows()
    weights = np.ones(60)
    model = model_of(X, weights)
    found = []
    for renumber in ([0, 1, 2], [2, 0, 1], [1, 0, 2]):
        labels = np.array(renumber)[z]
        total = sums_of(model, X, weights, labels, 3)
        np.testing.assert_array_equal(total.counts, 20)
        proposal = propose(SortClusters(), model, total)
        found.append(labels if proposal is None else proposal.old_to_new[labels])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_clusters_in_order_stay_as_they_are():
    X, weights, z = rows()
    model = model_of(X, weights)
    total = sums_of(model, X, weights, z, 3)
    total = total.regroup(by_size(total), 3)
    assert propose(SortClusters(), model, total) is None
