"""Moves of feature models: what they propose, against refits of the definition."""

import numpy as np
import pytest

import feature_reference as obvious
from kplus.core import loop
from kplus.core.types import Position
from kplus.data.blocks import ArrayBlocks
from kplus.engine import SerialEngine
from kplus.features.model import Candidates, FeatureModel, Features, FeatureSums
from kplus.features.moves import OpenFeatures, RemoveFeature, TidyFeatures
from kplus.linear.bits import regroup_columns
from kplus.linear.sums import as_groups


def sums_of(X, Z, A, weights=None):
    S, T, error, counts = obvious.sums(X, Z, A, weights)
    weight = float(len(X)) if weights is None else weights.sum()
    return FeatureSums(A, *as_groups(S, X.shape[1]), T, error, weight, counts)


def at_optimum(X, Z, weights=None):
    """Best features for Z, and the sums about them."""
    A = obvious.features(X, Z, weights)
    return Features(A), sums_of(X, Z, A, weights)


def propose(move, total, params, penalty=1.0, converged=True):
    return move.propose(
        Position(FeatureModel(penalty), params, total, params, converged)
    )


def rows(gaps, seed=0, n=30, K=3, weighted=False):
    X, Z, _ = obvious.planted(n, 4, K, seed, noise=0.5)
    weights = np.random.default_rng(seed).uniform(0.2, 2.0, n) if weighted else None
    return obvious.with_gaps(X, 0.25, seed) if gaps else X, Z, weights


# -------------------------------------------------------------------------- tidy


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("n", [7, 30, 300])
def test_empty_features_go_and_equal_ones_are_fused(n, gaps, weighted):
    """Neither changes the error (MB-3). Sums of such weights are exact."""
    X, Z, weights = rows(gaps, n=n, weighted=weighted)
    Z = np.column_stack([0 * Z[:, 0], Z[:, 0], Z[:, 1], Z[:, 0], Z[:, 2], Z[:, 1]])
    A = np.random.default_rng(1).normal(size=(6, 4))
    weights = None if weights is None else np.ceil(4.0 * weights) / 4.0
    total = sums_of(X, Z, A, weights)
    proposal = propose(TidyFeatures(), total, Features(A))
    np.testing.assert_array_equal(proposal.old_to_new, [-1, 0, 1, 0, 2, 1])
    assert (proposal.K, proposal.exact) == (3, True)
    np.testing.assert_allclose(proposal.params.A, [A[1] + A[3], A[2] + A[5], A[4]])
    fused = regroup_columns(Z, proposal.old_to_new, 3)
    np.testing.assert_array_equal(fused, Z[:, [1, 2, 4]])
    before = obvious.error(X, Z, A, weights)
    after = obvious.error(X, fused, proposal.params.A, weights)
    assert after == pytest.approx(before, rel=1e-12)
    found = total.regroup(proposal.old_to_new, 3)
    assert found.error == pytest.approx(before, rel=1e-9)


def test_nothing_to_tidy():
    X, Z, _ = rows(False)
    params, total = at_optimum(X, Z)
    assert propose(TidyFeatures(), total, params) is None


def test_features_of_as_many_rows_are_not_fused():
    Z = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], np.uint8)
    params, total = at_optimum(np.random.default_rng(0).normal(size=(4, 2)), Z)
    assert propose(TidyFeatures(), total, params) is None


def test_a_feature_of_rows_without_weight_goes():
    X, Z, _ = rows(False)
    Z = np.column_stack([Z, np.zeros(30, np.uint8)])
    Z[:2, 3] = 1
    weights = np.append([0.0, 0.0], np.ones(28))
    params, total = at_optimum(X, Z, weights)
    np.testing.assert_array_equal(
        propose(TidyFeatures(), total, params).old_to_new, [0, 1, 2, -1]
    )


@pytest.mark.parametrize("n", [5, 40, 200, 1000])
@pytest.mark.parametrize("K", [2, 5, 9])
def test_equal_columns_are_seen_in_sums_of_a_pass(n, K):
    """With real weights: the sums of equal columns have equal bits."""
    rng = np.random.default_rng(n + K)
    A = np.zeros((K, 3))
    A[:, 0], A[0, 1] = 1.0, 5.0
    X = np.repeat([[float(K), 5.0, 0.0], [0.0, 0.0, 0.0]], [n, n], axis=0)
    X = X[rng.permutation(2 * n)]
    weights = rng.uniform(0.1, 3.0, 2 * n)
    with SerialEngine(ArrayBlocks(X, 150), weights) as engine:
        total = engine.sweep(FeatureModel(), Features(A), range(engine.n_blocks))
    proposal = propose(TidyFeatures(), total, Features(A))
    assert proposal.K == 1


# ------------------------------------------------------------------------ remove


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_feature_worth_least_goes_and_the_others_adapt(seed, gaps, weighted):
    X, Z, weights = rows(gaps, seed, weighted=weighted)
    params, total = at_optimum(X, Z, weights)
    others = [np.delete(Z, k, axis=1) for k in range(3)]
    refits = [obvious.features(X, other, weights) for other in others]
    errors = [
        obvious.error(X, z, a, weights) for z, a in zip(others, refits, strict=True)
    ]
    k = int(np.argmin(errors))
    loss = errors[k] - total.error
    assert propose(RemoveFeature(), total, params, 0.999 * loss) is None
    equal = total.losses(params.A).min()  # worth just what it costs
    assert propose(RemoveFeature(), total, params, equal) is None
    assert propose(RemoveFeature(), total, params, 2.0 * loss, converged=False) is None
    proposal = propose(RemoveFeature(), total, params, 1.001 * loss)
    np.testing.assert_array_equal(np.flatnonzero(proposal.old_to_new < 0), [k])
    np.testing.assert_allclose(proposal.params.A, refits[k], atol=1e-6)
    found = total.regroup(proposal.old_to_new, 2).about(proposal.params.A)
    assert found.error == pytest.approx(errors[k], rel=1e-7)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("kind", ["equal rank", "empty"])
def test_a_feature_that_depends_on_others_goes_for_nothing(kind, offset):
    X, Z, _ = rows(False)
    Z[:, 1] &= 1 - Z[:, 0]
    third = Z[:, 0] | Z[:, 1] if kind == "equal rank" else 0 * Z[:, 0]
    Z = np.column_stack([np.ones_like(third), Z[:, 0], Z[:, 1], third])
    params, total = at_optimum(X + offset, Z)
    proposal = propose(RemoveFeature(), total, params, 1e-3)
    found = total.regroup(proposal.old_to_new, 3).about(proposal.params.A)
    assert found.error <= total.error * (1 + 1e-6) + 1e-3


def test_a_column_that_only_rows_without_features_have():
    """No row tells what a feature is in that column; the feature goes all the same."""
    X = np.zeros((12, 3))
    X[:6, :2], X[:6, 2], X[6:, 2] = 5.0, np.nan, 0.01
    X[:3, 0] = 0.0
    Z = np.zeros((12, 2), np.uint8)
    Z[:6, 0], Z[3:6, 1] = 1, 1
    params, total = at_optimum(X, Z)
    proposal = propose(RemoveFeature(), total, params, 1e3)
    assert proposal.K == 1
    assert np.all(np.isfinite(proposal.params.A))


# -------------------------------------------------------------------------- open


def with_candidates(X, Z, A, penalty, weights=None):
    total = sums_of(X, Z, A, weights)
    w = np.ones(len(X)) if weights is None else weights
    costs = w * obvious.row_errors(X, Z, A)
    rows = np.flatnonzero(costs > penalty)
    rows = rows[np.argsort(-costs[rows])]
    residuals = np.nan_to_num(X[rows] - Z[rows] @ A)
    total.candidates = Candidates(rows, costs[rows], residuals)
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
def test_costly_rows_get_features_of_their_own(gaps, weighted):
    X, Z, weights = rows(gaps, weighted=weighted)
    A = obvious.features(X, Z, weights)
    penalty = 0.5 * float(np.max(obvious.row_errors(X, Z, A)))
    total = with_candidates(X, Z, A, penalty, weights)
    proposal = propose(OpenFeatures(10), total, Features(A), penalty)
    n_new = proposal.K - 3
    assert n_new > 0
    np.testing.assert_array_equal(proposal.old_to_new, np.arange(3))
    np.testing.assert_array_equal(proposal.params.A[:3], A)
    after = obvious.best_rows(X, proposal.params.A)
    before = obvious.objective(X, Z, A, penalty, weights)
    assert obvious.objective(X, after, proposal.params.A, penalty, weights) < before


def test_only_after_convergence_and_only_up_to_the_number_allowed():
    X, Z, _ = rows(False)
    A = obvious.features(X, Z)
    total = with_candidates(X, Z, A, 0.1)
    assert propose(OpenFeatures(10), total, Features(A), 0.1, converged=False) is None
    assert propose(OpenFeatures(3), total, Features(A), 0.1) is None
    assert propose(OpenFeatures(4), total, Features(A), 0.1).K == 4


def test_rows_that_the_same_feature_explains_open_it_once():
    X = np.repeat([[3.0, 0.0], [0.0, 3.0]], 4, axis=0)
    Z, A = np.zeros((8, 0), np.uint8), np.zeros((0, 2))
    total = with_candidates(X, Z, A, 1.0)
    assert propose(OpenFeatures(10), total, Features(A), 1.0).K == 2


# ------------------------------------------------------------------------- a run


@pytest.mark.parametrize("seed", range(4))
def test_a_run_opens_and_removes_until_nothing_pays(seed):
    X, _, _ = obvious.planted(50, 4, 3, seed, noise=0.3)
    penalty = 6.0
    moves = [TidyFeatures(), RemoveFeature(), OpenFeatures(10**6)]
    with SerialEngine(ArrayBlocks(X, 16), None) as engine:
        result = loop.run(
            FeatureModel(penalty, most=10**6), engine, Features(np.empty((0, 4)), True),
            moves=moves, max_iter=300, tol=0.0,
        )  # fmt: skip
        Z = np.concatenate([local.unpack() for local in engine.locals()])
    assert result.converged
    assert result.params.K > 0
    history = np.array(result.history)
    assert np.all(np.diff(history) <= 1e-9 * history[0])
    assert history[-1] == pytest.approx(
        obvious.objective(X, Z, result.params.A, penalty), rel=1e-10
    )
    assert obvious.row_errors(X, Z, result.params.A).max() <= penalty
    for k in range(result.params.K):
        fewer = obvious.collapsed(X, np.delete(Z, k, axis=1))
        assert fewer - obvious.collapsed(X, Z) >= penalty * (1 - 1e-6)
