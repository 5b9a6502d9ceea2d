"""Moves of MEIBP, against sums and bounds computed afresh."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kplus.core import loop
from kplus.core.regroup import without
from kplus.core.types import Position
from kplus.data.blocks import ArrayBlocks
from kplus.engine import SerialEngine
from kplus.ibp.factors import GaussianFactors, TruncatedFactors
from kplus.ibp.meibp_model import (
    DropEmpty,
    DropFeature,
    IBPParams,
    MEIBPModel,
    removal_upper_bounds,
    renumbered,
    sums_of,
)
from kplus.ibp.prior import count_slopes
from kplus.linear.gaps import Gaps, whole

KINDS = {"nonnegative": TruncatedFactors, "gaussian": GaussianFactors}
every_prior = pytest.mark.parametrize("prior", KINDS)
MOVES = {"empty": DropEmpty, "drop": DropFeature}


def planted(seed, N=40, D=6, K=3, noise=0.3, gaps=0.0):
    rng = np.random.default_rng(seed)
    Z = (rng.random((N, K)) < 0.5).astype(np.uint8)
    Z[:K] = np.eye(K, dtype=np.uint8)
    A = rng.uniform(1.0, 2.0, (K, D)) * (rng.random((K, D)) < 0.6)
    X = Z @ A + noise * rng.normal(size=(N, D))
    hidden = rng.random(X.shape) < gaps
    hidden[:, 0] = False
    return np.where(hidden, np.nan, X), Z


def summed(X, Z, A):
    missing = np.isnan(X)
    some = missing.any()
    return sums_of(
        np.where(missing, 0.0, X),
        missing if some else None,
        Gaps.of(missing) if some else whole(*X.shape),
        Z,
        A,
    )


def fitted(prior, X, Z, rounds=8):
    """Parameters for given bits, converged but for rows."""
    K, D = Z.shape[1], X.shape[1]
    start = KINDS[prior].near(np.ones((K, D)), 0.1)
    params = IBPParams(start, 0.1, 1.0, 1.0, np.zeros(K))
    for _ in range(rounds):
        params = MEIBPModel().update(params, summed(X, Z, params.factors.mean))
    return params, summed(X, Z, params.factors.mean)


def proposed(name, params, total, converged=True):
    return MOVES[name]().propose(
        Position(MEIBPModel(), params, total, params, converged)
    )


def check_exact(proposal, X, Z):
    """Return the bits that are left, and the bound from sums over them."""
    Z, K = Z[:, proposal.old_to_new >= 0], proposal.K
    left = np.empty_like(Z)
    left[:, proposal.old_to_new[proposal.old_to_new >= 0]] = Z
    total = summed(X, left, proposal.params.factors.mean)
    assert proposal.exact
    assert proposal.params.K == K == len(proposal.params.factors.mean) == left.shape[1]
    return left, MEIBPModel().bound(proposal.params, total)


# --------------------------------------------------------------------- empty ones


@every_prior
@pytest.mark.parametrize("empty", [[0], [2], [0, 2], [0, 1, 2]])
def test_empty_features_go_and_the_bound_stays(prior, empty):
    X, Z = planted(0)
    Z[:, empty] = 0
    params, total = fitted(prior, X, Z)
    before = MEIBPModel().bound(params, total)
    proposal = proposed("empty", params, total)
    left, after = check_exact(proposal, X, Z)
    assert left.any(axis=0).all()
    assert after == pytest.approx(before, rel=1e-12)
    carried = total.regroup(proposal.old_to_new, proposal.K)
    assert MEIBPModel().bound(proposal.params, carried) == pytest.approx(before)


@every_prior
def test_nothing_to_drop(prior):
    X, Z = planted(0)
    params, total = fitted(prior, X, Z)
    assert proposed("empty", params, total) is None
    assert proposed("drop", params, total) is None
    assert proposed("drop", params, total, converged=False) is None


def test_no_features_at_all():
    X, Z = planted(0)
    params, total = fitted("nonnegative", X, Z[:, :0])
    for name in ("empty", "drop"):
        assert proposed(name, params, total) is None


# ----------------------------------------------------------- what does not pay


@every_prior
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_a_needless_feature_goes(prior, gaps):
    """Of rows drawn at random: it explains noise only."""
    X, Z = planted(1, gaps=gaps)
    extra = np.random.default_rng(1).random((len(X), 1)) < 0.4
    wide = np.hstack([Z, extra.astype(np.uint8)])
    params, total = fitted(prior, X, wide)
    before = MEIBPModel().bound(params, total)
    proposal = proposed("drop", params, total)
    assert proposal is not None
    np.testing.assert_array_equal(proposal.old_to_new, [0, 1, 2, -1])
    _, after = check_exact(proposal, X, wide)
    assert after > before


@every_prior
@pytest.mark.parametrize("level", [1.0, 1e4, 1e8])
def test_one_of_two_equal_features_goes(prior, level):
    """A level that all rows share is one feature, however large it is."""
    rng = np.random.default_rng(0)
    X = level + rng.normal(size=(50, 6))
    Z = np.ones((50, 2), np.uint8)
    half = KINDS[prior].near(np.full((2, 6), 0.5 * level), 1.0)
    params = IBPParams(half, 1.0, level**2, 0.4, count_slopes(np.full(2, 50.0), 50))
    for _ in range(8):
        params = MEIBPModel().update(params, summed(X, Z, params.factors.mean))
    total = summed(X, Z, params.factors.mean)
    one = fitted_from(params, prior, X, Z[:, :1])
    assert one > MEIBPModel().bound(params, total)
    proposal = proposed("drop", params, total)
    assert proposal is not None
    assert proposal.K == 1


def fitted_from(params, prior, X, Z):
    """The bound with one feature that has it all."""
    mean = KINDS[prior].near(params.factors.mean.sum(axis=0)[None], 1.0)
    alone = IBPParams(
        mean, params.noise, params.spread, params.alpha, params.slopes[:1]
    )
    for _ in range(8):
        alone = MEIBPModel().update(alone, summed(X, Z, alone.factors.mean))
    return MEIBPModel().bound(alone, summed(X, Z, alone.factors.mean))


@every_prior
@settings(max_examples=40)
@given(st.integers(0, 2**20))
def test_whatever_is_dropped_raises_the_bound(prior, seed):
    rng = np.random.default_rng(seed)
    X, Z = planted(seed, N=int(rng.integers(4, 30)), noise=rng.uniform(0.1, 2.0))
    params, total = fitted(prior, X, Z)
    proposal = proposed("drop", params, total)
    if proposal is None:
        return
    before = MEIBPModel().bound(params, total)
    left, after = check_exact(proposal, X, Z)
    assert after > before
    carried = total.regroup(proposal.old_to_new, proposal.K)
    assert MEIBPModel().bound(proposal.params, carried) == pytest.approx(after)
    np.testing.assert_array_equal(carried.counts, left.sum(axis=0))


@every_prior
@pytest.mark.parametrize("infer", [False, True])
@settings(max_examples=40)
@given(st.integers(0, 2**20))
def test_nothing_is_left_whose_loss_would_pay(prior, infer, seed):
    """No upper bound misses one: to drop any and refit lowers the bound."""
    rng = np.random.default_rng(seed)
    X, Z = planted(seed, N=int(rng.integers(4, 30)), noise=rng.uniform(0.1, 2.0))
    params, total = fitted(prior, X, Z)
    model = MEIBPModel(infer, infer, infer)
    if DropFeature().propose(Position(model, params, total, params, True)) is not None:
        return
    before = model.bound(params, total)
    for k in range(3):
        old_to_new = np.arange(3) - (np.arange(3) > k)
        old_to_new[k] = -1
        fewer = total.regroup(old_to_new, 2)
        few = renumbered(params, old_to_new, 2, params.factors.mean[:0])
        refitted = model.update(few, fewer)
        assert model.bound(refitted, fewer) <= before + 1e-9 * abs(before)


# --------------------------------------------------------------------- the order


@every_prior
def test_moves_in_a_loop(prior):
    """Too many features shrink to those planted, and the bound never falls."""
    X, Z = planted(3, N=200, D=12)
    rng = np.random.default_rng(3)
    more = (rng.random((200, 4)) < 0.3).astype(np.uint8)
    params, _ = fitted(prior, X, np.hstack([Z, more]))
    with SerialEngine(ArrayBlocks(X, 33), None) as engine:
        result = loop.run(
            MEIBPModel(), engine, params, moves=[DropEmpty(), DropFeature()],
            max_iter=200, tol=1e-9,
        )  # fmt: skip
        found = np.concatenate([local.unpack() for local in engine.locals()])
    assert result.params.K == 3
    assert np.all(np.diff(result.history) <= 1e-9 * np.abs(result.history[0]))
    np.testing.assert_array_equal(result.total.counts, found.sum(axis=0))
    assert sorted(found.sum(axis=0)) == pytest.approx(sorted(Z.sum(axis=0)), abs=2)


# ----------------------------------------------------------------- removal upper bounds


FIXED = MEIBPModel(infer_noise=False, infer_spread=False, infer_alpha=False)


def gaussian_fit(X, Z, noise):
    """The best Gaussian factors for given bits."""
    K, D = Z.shape[1], X.shape[1]
    start = GaussianFactors.near(np.ones((K, D)), 0.1)
    params = IBPParams(start, noise, 1.0, 1.0, np.zeros(K))
    total = sums_of(X, None, whole(*X.shape), Z, start.mean)
    params = FIXED.update(params, total)
    return params, total.about(params.factors.mean)


def gain_of_dropping(params, total, k):
    """All else refitted, rows keep their other features, scales stay."""
    K = total.K
    old_to_new = without(K, np.array([k]))
    fewer = renumbered(params, old_to_new, K - 1, params.factors.mean[:0])
    sums = total.regroup(old_to_new, K - 1)
    return FIXED.bound(FIXED.update(fewer, sums), sums) - FIXED.bound(params, total)


@pytest.mark.parametrize("size", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_removal_upper_bounds_are_gains_but_for_the_uncertainty_of_the_factor(
    size, seed
):
    """Which is at most half a nat per column; a feature of zeros has none."""
    rng = np.random.default_rng(seed)
    Z = (rng.random((60, 3)) < 0.4).astype(np.uint8)
    A = rng.uniform(1.0, 2.0, (3, 5))
    A[2] *= size
    X = Z @ A + 0.3 * rng.normal(size=(60, 5))
    params, total = gaussian_fit(X, Z, 0.09)
    gains = [gain_of_dropping(params, total, k) for k in range(3)]
    left = removal_upper_bounds(params, total) - gains
    assert np.all(left >= -2.5)
    if size == 0.0:
        assert left[2] <= 0.0
