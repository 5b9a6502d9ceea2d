"""Moves: each proposes what lowers the objective, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest

import reference
from kplus.core import loop
from kplus.core.types import Position
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.moves import (
    DropEmpty,
    EndOverrelaxation,
    OpenClusters,
    RefillClusters,
    RemoveCluster,
    SplitClusters,
    best_splits,
    means_without,
    spread_out,
)
from kplus.dp_means.params import Centers, Scaling
from kplus.engine import SerialEngine

PLAIN = Scaling(np.zeros(2), 1.0)


def rows(seed, n=80):
    return np.random.default_rng(seed).normal(scale=2.0, size=(n, 2))


def visit(X, model, params, weights=None):
    """Summary of all rows, and their labels."""
    with SerialEngine(ArrayBlocks(X, 16), weights) as engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
        return total, np.concatenate([local.labels for local in engine.locals()])


def value(X, params, penalty, weights=None):
    """The objective when every row takes its nearest centre."""
    C = params.centers
    return reference.objective(X, reference.nearest(X, C)[0], C, penalty, weights)


def propose(move, X, model, params, weights=None, converged=True):
    total, _ = visit(X, model, params, weights)
    updated = model.update(params, total)
    return (
        move.propose(Position(model, params, total, updated, converged)),
        total,
        updated,
    )


# -------------------------------------------------------------------------- open


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("K", [1, 4, 16, 24])
def test_opening_lowers_the_objective_at_once(seed, K):
    X = rows(seed)
    weights = [None, np.random.default_rng(seed).uniform(0.2, 2.0, len(X))][seed % 2]
    model, params = DPMeansModel(0.5), Centers.start(PLAIN, X[:K].copy())
    before = value(X, params, 0.5, weights)
    proposal, total, _ = propose(OpenClusters(), X, model, params, weights)
    opened = proposal.K - K
    assert 1 <= opened <= max(1, K // 8)
    np.testing.assert_array_equal(proposal.old_to_new, np.arange(K))
    assert value(X, proposal.params, 0.5, weights) < before
    new = proposal.params.centers[K:]
    assert all((row == X).all(axis=1).any() for row in new)
    np.testing.assert_array_equal(new[0], total.candidates.y[0])


def test_nothing_opens_where_no_row_is_far():
    X = rows(0)
    proposal, *_ = propose(
        OpenClusters(), X, DPMeansModel(1e6), Centers.start(PLAIN, X[:1].copy())
    )
    assert proposal is None


def test_no_more_open_than_the_cap_allows():
    X, params = rows(0), Centers.start(PLAIN, rows(0)[:16].copy())
    for cap, expected in ((18, 18), (17, 17), (16, None)):
        model = DPMeansModel(1e-3, float(cap))
        proposal, *_ = propose(OpenClusters(), X, model, params)
        assert (proposal and proposal.K) == expected


def test_chosen_rows_keep_their_distance():
    X = rows(3)
    total, _ = visit(X, DPMeansModel(0.1), Centers.start(PLAIN, np.zeros((1, 2))))
    chosen = spread_out(total.candidates, 1.5, 50)
    gaps = reference.square_distances(chosen.y, chosen.y) + np.diag(
        [np.inf] * len(chosen)
    )
    assert len(chosen) > 3
    assert gaps.min() > 1.5
    assert chosen.row[0] == total.candidates.row[0]
    assert np.all(np.diff(chosen.cost) <= 0.0)
    left = np.setdiff1d(total.candidates.row, chosen.row)
    near = reference.nearest(X[left], chosen.y)[1]
    assert np.all(near <= 1.5)


def test_means_without_the_rows_that_leave():
    """All candidates that are nearer to an opened row, copies of it among them."""
    X = np.vstack([rows(4), rows(4)[:20]])
    params = Centers.start(PLAIN, X[:3].copy())
    total, labels = visit(X, DPMeansModel(0.1), params)
    candidates = total.candidates
    opened = spread_out(candidates, 1.0, 5)
    own, new = (reference.nearest(X, C)[1] for C in (params.centers, opened.y))
    leave = np.isin(np.arange(len(X)), candidates.row) & (new < own)
    assert leave[opened.row].all()
    expected = reference.means(X, labels, 3, (~leave).astype(float))
    np.testing.assert_allclose(
        means_without(params, total, candidates, opened), expected
    )


def test_a_cluster_whose_only_row_leaves_stays_where_it_was():
    X = np.array([[0.0, 0.0], [0.1, 0.0], [50.0, 0.0]])
    params = Centers.start(PLAIN, np.array([[0.0, 0.0], [40.0, 0.0]]))
    total, _ = visit(X, DPMeansModel(1.0), params)
    opened = spread_out(total.candidates, 1.0, 1)
    means = means_without(params, total, total.candidates, opened)
    np.testing.assert_allclose(means, [[0.05, 0.0], [40.0, 0.0]])


# ------------------------------------------------------------------- drop, refill


def test_empty_clusters_are_dropped():
    X = rows(5)
    C = np.vstack([X[:1], [[1e3, 0.0]], X[1:2], [[-1e3, 0.0]]])
    proposal, _, updated = propose(
        DropEmpty(), X, DPMeansModel(1.0), Centers.start(PLAIN, C)
    )
    assert proposal.K == 2
    np.testing.assert_array_equal(proposal.old_to_new, [0, -1, 1, -1])
    np.testing.assert_array_equal(proposal.params.centers, updated.centers[[0, 2]])
    full = Centers.start(PLAIN, X[:2].copy())
    assert propose(DropEmpty(), X, DPMeansModel(1.0), full)[0] is None


def test_a_cluster_with_earlier_rows_is_not_empty():
    X = rows(5)
    C = np.vstack([X[:1], [[1e3, 0.0]]])
    params = replace(Centers.start(PLAIN, C), mass=np.array([0.0, 3.0]))
    assert propose(DropEmpty(), X, DPMeansModel(1.0), params)[0] is None


@pytest.mark.parametrize("weighted", [False, True])
def test_refilling_gives_empty_clusters_the_costliest_rows(weighted):
    X = rows(6)
    weights = np.random.default_rng(0).uniform(0, 2, len(X)) if weighted else None
    C = np.vstack([X[:2], [[1e3, 0.0], [1e3, 5.0]]])
    model = DPMeansModel(np.inf)
    with SerialEngine(ArrayBlocks(X, 16), weights) as engine:
        result = loop.run(
            model, engine, Centers.start(PLAIN, C),
            moves=[RefillClusters()], max_iter=100, tol=0.0,
        )  # fmt: skip
    assert result.params.K == 4
    assert np.all(result.total.counts > 0.0)
    assert np.all(np.diff(result.history) <= 1e-9)


def test_refilling_gives_up_where_rows_are_too_few():
    X = np.repeat([[0.0, 0.0], [5.0, 0.0]], 4, axis=0)
    C = np.array([[0.0, 0.0], [5.0, 0.0], [99.0, 0.0]])
    with SerialEngine(ArrayBlocks(X)) as engine:
        result = loop.run(
            DPMeansModel(np.inf), engine, Centers.start(PLAIN, C),
            moves=[RefillClusters()], max_iter=50, tol=0.0,
        )  # fmt: skip
    assert result.n_iter < 50
    assert np.count_nonzero(result.total.counts) == 2


# ------------------------------------------------------------------------ remove


@pytest.mark.parametrize("seed", range(10))
def test_the_removal_that_pays_most_is_proposed(seed):
    X = rows(seed, 60)
    model, params = DPMeansModel(3.0), Centers.start(PLAIN, X[:9].copy())
    costs = reference.removal_costs(X, params.centers)
    move = RemoveCluster()
    for _ in range(3):  # at most one look at the rows before it decides
        proposal, *_ = propose(move, X, model, params)
        if proposal is None or proposal.K < params.K:
            break
        params = proposal.params
    assert (proposal is None) == (costs.min() >= 3.0)
    if proposal is not None:
        gone = np.flatnonzero(proposal.old_to_new < 0)
        assert costs[gone] == pytest.approx([costs.min()], rel=1e-3)
        kept = np.delete(params.centers, gone, axis=0)
        np.testing.assert_array_equal(proposal.params.centers, kept)
        assert value(X, proposal.params, 3.0) < value(X, params, 3.0)


def test_removal_waits_for_convergence_and_leaves_one():
    X = rows(0)
    many = Centers.start(PLAIN, X[:9].copy())
    model = DPMeansModel(1e6)
    assert propose(RemoveCluster(), X, model, many, converged=False)[0] is None
    one = Centers.start(PLAIN, X[:1].copy())
    assert propose(RemoveCluster(), X, model, one)[0] is None


# -------------------------------------------------- end of over-relaxation, split


def test_the_end_of_over_relaxation_puts_centres_on_means():
    X = rows(0)
    params = replace(Centers.start(PLAIN, X[:4].copy()), relax=1.6)
    model = DPMeansModel(np.inf)
    assert propose(EndOverrelaxation(), X, model, params, converged=False)[0] is None
    proposal, *_ = propose(EndOverrelaxation(), X, model, params)
    labels = visit(X, model, params)[1]
    np.testing.assert_allclose(
        proposal.params.centers, reference.means(X, labels, 4), rtol=1e-12
    )
    assert propose(EndOverrelaxation(), X, model, proposal.params)[0] is None


@pytest.mark.parametrize("seed", range(6))
def test_best_splits_promise_what_they_give(seed):
    X = rows(seed)
    weights = [np.ones(80), np.random.default_rng(seed).uniform(0, 2, 80)][seed % 2]
    labels = reference.nearest(X, X[:5])[0]
    C = reference.means(X, labels, 5, weights)
    gains, pairs = best_splits(X, weights, labels, C, np.arange(5))
    for k in range(5):
        mine = labels == k
        sides, _ = reference.nearest(X[mine], pairs[k])
        halves = reference.means(X[mine], sides, 2, weights[mine])
        np.testing.assert_allclose(pairs[k], halves, rtol=1e-9, atol=1e-9)
        whole = reference.squared_error(X[mine], 0 * sides, C[k : k + 1], weights[mine])
        parts = reference.squared_error(X[mine], sides, pairs[k], weights[mine])
        assert gains[k] == pytest.approx(whole - parts, rel=0.02)
        assert gains[k] > 0.0


def test_splits_reach_the_target_and_report_convergence():
    X, steps = rows(1), []
    with SerialEngine(ArrayBlocks(X)) as engine:
        split = SplitClusters(
            X,
            np.ones(80),
            lambda: np.concatenate([local.labels for local in engine.locals()]),
            6,
            lambda K: 1,
            lambda sse, counts: steps.append((len(counts), sse)),
        )
        start = Centers.start(PLAIN, X.mean(axis=0, keepdims=True))
        model = DPMeansModel(np.inf)
        result = loop.run(model, engine, start, moves=[split], max_iter=500, tol=0.0)
    assert result.params.K == 6
    assert [K for K, _ in steps] == [1, 2, 3, 4, 5, 6]
    assert np.all(np.diff([sse for _, sse in steps]) < 0.0)
