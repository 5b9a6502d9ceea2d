"""MEIBP as a model: its bound against the definition, and what raises it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import meibp_reference as obvious
from kplus.core.types import Block
from kplus.data.blocks import ArrayBlocks
from kplus.ibp import meibp_model
from kplus.ibp.factors import GaussianFactors, TruncatedFactors
from kplus.ibp.meibp_model import (
    IBPParams,
    MEIBPModel,
    RowState,
    kept_factors,
    renumbered,
    sums_of,
)
from kplus.ibp.prior import count_slopes, log_prior
from kplus.linear.bits import Allocation
from kplus.linear.gaps import Gaps, whole

KINDS = {"nonnegative": TruncatedFactors, "gaussian": GaussianFactors}
every_prior = pytest.mark.parametrize("prior", KINDS)
seeds = st.integers(0, 2**20)


def a_table(rng, N=6, D=3, K=2, gaps=0.2, noise=0.5):
    """Rows with gaps, but none without a value; all features are held."""
    Z = (rng.random((N, K)) < 0.5).astype(np.uint8)
    Z[rng.integers(0, N, K), np.arange(K)] = 1
    X = Z @ np.abs(rng.normal(size=(K, D))) + noise * rng.normal(size=(N, D))
    missing = rng.random((N, D)) < gaps
    missing[:, 0] = False
    X[missing] = np.nan
    return X, Z


def some_factors(rng, prior, K, D):
    """A distribution that fits nothing; Gaussian columns share covariances."""
    mean = rng.normal(size=(K, D))
    if prior == "nonnegative":
        return TruncatedFactors(mean, rng.uniform(0.05, 1.0, (K, D)))
    roots = rng.normal(size=(2, K, K + 2))
    return GaussianFactors(
        mean, 0.2 * roots @ roots.swapaxes(1, 2), rng.integers(0, 2, D)
    )


def some_params(rng, prior, K, D, counts=None, N=6):
    slopes = np.zeros(K) if counts is None else count_slopes(counts, N)
    noise, spread, alpha = rng.uniform(0.2, 2.0, 3)
    return IBPParams(some_factors(rng, prior, K, D), noise, spread, alpha, slopes)


def gaps_of(X):
    missing = np.isnan(X)
    return Gaps.of(missing) if missing.any() else whole(*X.shape)


def summed(X, Z, A, cut=None):
    """Sums over rows, of two blocks with gaps of their own if cut."""
    if cut is not None:
        total = summed(X[:cut], Z[:cut], A)
        total += summed(X[cut:], Z[cut:], A)
        return total
    missing = np.isnan(X)
    filled, found = np.where(missing, 0.0, X), missing if missing.any() else None
    return sums_of(filled, found, gaps_of(X), Z, A)


def direct_bound(params, X, Z):
    factors, scales = params.factors, (params.noise, params.spread, params.alpha)
    if isinstance(factors, TruncatedFactors):
        return obvious.bound_truncated(X, Z, factors.mu, factors.variance, *scales)
    covariance = factors.covariance[factors.group]
    return obvious.bound_gaussian(X, Z, factors.mean, covariance, *scales)


def bound(params, X, Z):
    return MEIBPModel().bound(params, summed(X, Z, params.factors.mean))


# -------------------------------------------------------------------- the bound


@every_prior
@pytest.mark.parametrize("gaps", [0.0, 0.3])
@settings(max_examples=30)
@given(seeds)
def test_ME_2_the_bound_is_expected_log_joint_and_entropy(prior, gaps, seed):
    """ME-2, from sums about any features, with and without empty features."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(0, 4))
    X, Z = a_table(rng, K=K, gaps=gaps)
    if K and rng.random() < 0.3:
        Z[:, 0] = 0
    params = some_params(rng, prior, K, 3)
    expected = direct_bound(params, X, Z)
    about = rng.normal(size=(K, 3))
    for total in (summed(X, Z, params.factors.mean), summed(X, Z, about, cut=2)):
        found = MEIBPModel().bound(params, total)
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)
        assert MEIBPModel().objective(params, total) == -found


@every_prior
def test_ME_4_inactive_features_change_nothing(prior):
    """ME-4: appended with the moments of the prior, or with any others."""
    rng = np.random.default_rng(0)
    X, Z = a_table(rng, K=2)
    params = some_params(rng, prior, 2, 3)
    more = renumbered(params, np.arange(2), 4, np.abs(rng.normal(size=(2, 3))))
    wider = np.hstack([Z, np.zeros_like(Z)])
    assert bound(more, X, wider) == pytest.approx(bound(params, X, Z), rel=1e-13)
    still, fitted, both = MEIBPModel(False, False, False), params, more
    for _ in range(20):
        fitted = still.update(fitted, summed(X, Z, fitted.factors.mean))
        both = still.update(both, summed(X, wider, both.factors.mean))
    assert bound(both, X, wider) == pytest.approx(bound(fitted, X, Z), rel=1e-9)
    second = both.factors.squares - kept_factors(both.factors, np.arange(2)).squares
    assert second == pytest.approx(2 * 3 * params.spread, rel=1e-9)


def some_classes(rng, N):
    for K in range(3 if N < 4 else 2):
        yield from obvious.all_classes(N, K)
    for _ in range(10):
        yield (rng.random((N, 3)) < 0.5).astype(np.uint8)


@pytest.mark.parametrize("N", [1, 2, 3, 4])
def test_ME_2_gaussian_bound_is_the_joint_and_below_the_evidence(N):
    """With the best q(A) it is log p(X, Z), exactly, and the sum over Z exceeds it."""
    rng = np.random.default_rng(N)
    X = rng.normal(size=(N, 2))
    if N > 1:
        X[0, 1] = np.nan
    scales = (0.4, 1.3, 0.8)
    joints = []
    for Z in some_classes(rng, N):
        Z = Z[:, Z.any(axis=0)]
        K = Z.shape[1]
        factors = some_factors(rng, "gaussian", K, 2)
        params = IBPParams(factors, *scales, np.zeros(K))
        joint = obvious.log_joint(X, Z, *scales, nonnegative=False)
        assert bound(params, X, Z) <= joint + 1e-9
        best = factors.refreshed(summed(X, Z, factors.mean), *scales[:2])
        found = bound(replace(params, factors=best), X, Z)
        assert found == pytest.approx(joint, rel=1e-10, abs=1e-10)
        joints.append(found)
    evidence = logsumexp(
        [
            obvious.log_joint(X, Z, *scales, nonnegative=False)
            for K in range(4 if N < 4 else 3)
            for Z in obvious.all_classes(N, K)
        ]
    )
    assert max(joints) < evidence


@pytest.mark.parametrize("N", [2, 3])
def test_ME_2_nonnegative_bound_is_below_the_evidence(N):
    """With one feature q(A) can be the posterior; with two the bound is lower."""
    rng = np.random.default_rng(N)
    X = np.abs(rng.normal(size=(N, 2)))
    scales = (0.4, 1.3, 0.8)
    joints, bounds = [], []
    for K in range(3):
        for Z in obvious.all_classes(N, K):
            factors = some_factors(rng, "nonnegative", K, 2)
            params = IBPParams(factors, *scales, np.zeros(K))
            joint = obvious.log_joint(X, Z, *scales, nonnegative=True)
            assert bound(params, X, Z) <= joint + 1e-6
            for _ in range(10):
                factors = factors.refreshed(summed(X, Z, factors.mean), *scales[:2])
            found = bound(replace(params, factors=factors), X, Z)
            assert found <= joint + 1e-6
            if K < 2:
                assert found == pytest.approx(joint, rel=1e-9)
            joints.append(joint)
            bounds.append(found)
    assert max(bounds) < logsumexp(joints)


# -------------------------------------------------------------- what raises it

SWITCHES = [(False,) * 3, (True, False, False), (False, True, False),
            (False, False, True), (True,) * 3]  # fmt: skip


@every_prior
@pytest.mark.parametrize("infer", SWITCHES)
@settings(max_examples=40)
@given(seeds)
def test_updates_never_lower_the_bound(prior, infer, seed):
    """q(A) and each scale, also where features are empty; then nothing nearby helps."""
    rng = np.random.default_rng(seed)
    K, D = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    X, Z = a_table(rng, N=int(rng.integers(1, 9)), D=D, K=K, gaps=0.3)
    if rng.random() < 0.3:
        Z[:, rng.integers(0, K)] = 0
    cut = 1 if len(X) > 1 else None
    model, params = MEIBPModel(*infer), some_params(rng, prior, K, D)
    before = bound(params, X, Z)
    for _ in range(3):
        params = model.update(params, summed(X, Z, params.factors.mean, cut))
        after = bound(params, X, Z)
        assert after >= before - 1e-9 * (1 + abs(before))
        before = after
    if prior == "gaussian":  # the other needs more rounds
        total = summed(X, Z, params.factors.mean)
        best = params.factors.refreshed(total, params.noise, params.spread)
        assert bound(replace(params, factors=best), X, Z) >= before - 1e-9


@every_prior
@pytest.mark.parametrize("name", ["noise", "spread", "alpha"])
def test_each_scale_is_the_best(name, prior):
    rng = np.random.default_rng(3)
    X, Z = a_table(rng, N=20, D=4, K=3)
    start = some_params(rng, prior, 3, 4)
    model = MEIBPModel(
        **{f"infer_{s}": s == name for s in ("noise", "spread", "alpha")}
    )
    params = model.update(start, summed(X, Z, start.factors.mean))
    best = bound(params, X, Z)
    for factor in (0.5, 0.99, 1.01, 2.0):
        other = replace(params, **{name: factor * getattr(params, name)})
        assert bound(other, X, Z) < best
    for fixed in {"noise", "spread", "alpha"} - {name}:
        assert getattr(params, fixed) == getattr(start, fixed)


@every_prior
def test_q_is_stationary_after_convergence(prior):
    """ME-3: no other mean or variance of the same family does better."""
    rng = np.random.default_rng(5)
    X, Z = a_table(rng, N=15, D=3, K=3)
    params = some_params(rng, prior, 3, 3)
    for _ in range(50):
        params = MEIBPModel(False, False, False).update(
            params, summed(X, Z, params.factors.mean)
        )
    best = bound(params, X, Z)
    for _ in range(40):
        step = 1e-2 * rng.normal(size=(3, 3))
        f = params.factors
        if prior == "nonnegative":
            other = TruncatedFactors(f.mu + step, f.variance * np.exp(step.T))
        else:
            other = replace(f, mean=f.mean + step, covariance=f.covariance * 1.01)
        assert bound(replace(params, factors=other), X, Z) < best + 1e-9


def visited(model, params, X, Z, first=0):
    """A block's second visit: bits as they were, chosen again."""
    block = Block(ArrayBlocks(X, len(X)), 0, 0, len(X))
    local = None if Z is None else RowState(Allocation.of(Z), gaps_of(X))
    total, after = model.summarize(params, block, local)
    return total, after.unpack()


@every_prior
@pytest.mark.parametrize("greedy", [None, 7])
@settings(max_examples=80)
@given(seeds)
def test_rows_never_lower_the_bound(prior, greedy, seed):
    """With the tangent at their counts; empty features and any alpha included."""
    rng = np.random.default_rng(seed)
    N, K, D = int(rng.integers(1, 12)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    X, Z = a_table(rng, N=N, D=D, K=K, gaps=0.3)
    start = some_params(rng, prior, K, D)
    start = replace(start, alpha=10.0 ** rng.uniform(-2, 2))
    still = MEIBPModel(False, False, False, greedy)
    params = still.update(start, summed(X, Z, start.factors.mean))
    total, after = visited(still, params, X, Z)
    before = bound(params, X, Z)
    assert still.bound(params, total) >= before - 1e-9 * (1 + abs(before))
    assert total.changed == np.count_nonzero(np.any(after != Z, axis=1))
    np.testing.assert_array_equal(total.counts, after.sum(axis=0))


@every_prior
@pytest.mark.parametrize("most", [1, 3, 4])
def test_rows_with_many_patterns_of_gaps_choose_as_those_with_few(
    prior, most, monkeypatch
):
    rng = np.random.default_rng(5)
    X, Z = a_table(rng, N=40, D=4, K=3, gaps=0.4)
    params, model = some_params(rng, prior, 3, 4), MEIBPModel()
    total, after = visited(model, params, X, Z)
    assert len(gaps_of(X).known) > 4
    monkeypatch.setattr(meibp_model, "_PATTERNS", most)
    again, same = visited(model, params, X, Z)
    np.testing.assert_array_equal(same, after)
    assert again.changed == total.changed > 0


@every_prior
def test_leaving_a_feature_out(prior):
    """own_gains is what `gain` loses."""
    rng = np.random.default_rng(0)
    for K in (1, 2, 5):
        factors = some_factors(rng, prior, K, 4)
        without = [
            kept_factors(factors, np.delete(np.arange(K), k)).gain(1.7)
            for k in range(K)
        ]
        gains = factors.own_gains(1.7)
        np.testing.assert_allclose(factors.gain(1.7) - gains, without, atol=1e-9)
        order = rng.permutation(K)
        turned = kept_factors(factors, order)
        np.testing.assert_allclose(turned.own_gains(1.7), gains[order], rtol=1e-10)
        assert turned.gain(1.7) == pytest.approx(factors.gain(1.7), rel=1e-12)


@every_prior
@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_grams_uncertainty_and_squares(prior, gaps):
    rng = np.random.default_rng(1)
    X, Z = a_table(rng, N=9, D=5, K=3, gaps=gaps)
    factors = some_factors(rng, prior, 3, 5)
    covariance = (
        np.stack([np.diag(v) for v in factors._moments[1].T])
        if prior == "nonnegative"
        else factors.covariance[factors.group]
    )
    second = np.einsum("id,jd->dij", factors.mean, factors.mean) + covariance
    found = gaps_of(X)
    grams = factors.grams(found.group, found.known.shape[1])
    for g, gram in enumerate(grams):
        np.testing.assert_allclose(gram, second[found.group == g].sum(axis=0))
    assert factors.squares == pytest.approx(np.einsum("dii->", second))
    total = sum(
        Z[n] @ covariance[d] @ Z[n]
        for n, d in zip(*np.nonzero(~np.isnan(X)), strict=True)
    )
    for cut in (None, 4):
        sums = summed(X, Z, factors.mean, cut)
        assert factors.uncertainty(sums) == pytest.approx(total)


# ------------------------------------------------------------------------ rows


def tangent_values(params, x, bits):
    """The objective of each z of a row: likelihood, and slopes for its features."""
    seen = ~np.isnan(x)
    grams = params.factors.grams(np.where(seen, 0, 1), 2)[0]
    b = params.factors.mean[:, seen] @ x[seen]
    quadratic = np.einsum("zi,ij,zj->z", bits, grams, bits)
    return (bits @ b - 0.5 * quadratic) / params.noise + bits @ params.slopes


@every_prior
@pytest.mark.parametrize("gaps", [0.0, 0.5])
def test_rows_choose_well(prior, gaps):
    """A third of the range at least, and mostly the best, of all 2^K."""
    bits = np.array(list(np.ndindex(*(2,) * 4)), float)
    best = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, Z = a_table(rng, N=20, D=6, K=4, gaps=gaps)
        params = some_params(rng, prior, 4, 6, Z.sum(axis=0).astype(float), N=20)
        _, found = visited(MEIBPModel(), params, X, None)
        for x, z in zip(X, found, strict=True):
            values = tangent_values(params, x, bits)
            value = tangent_values(params, x, z[None].astype(float))[0]
            share = (value - values.min()) / np.ptp(values)
            assert share >= 1 / 3 or prior == "gaussian"
            best.append(value >= values.max() - 1e-9)
    assert np.mean(best) > (0.9 if prior == "nonnegative" else 0.5)


@pytest.mark.parametrize("greedy", [None, 3])
def test_rows_of_very_many_patterns(greedy):
    """More than are handled at a time: each row ends as if it were alone."""
    rng = np.random.default_rng(0)
    X, Z = a_table(rng, N=700, D=30, K=4, gaps=0.4)
    assert len(gaps_of(X).known) > 600
    params = some_params(rng, "nonnegative", 4, 30, Z.sum(axis=0).astype(float), N=700)
    model = MEIBPModel(greedy=greedy)
    _, together = visited(model, params, X, None)
    source = ArrayBlocks(X, 1)
    for n in range(0, 700, 7):
        _, alone = model.summarize(params, Block(source, n, n, n + 1), None)
        np.testing.assert_array_equal(alone.unpack()[0], together[n])


# ------------------------------------------------------------------ features kept alive


def updated(Z, alpha, D=3, seed=0):
    """Parameters for rows that have these features."""
    rng = np.random.default_rng(seed)
    K = Z.shape[1]
    A = rng.uniform(0.5, 2.0, (K, D))
    X = Z @ A + rng.uniform(0.0, 0.1, (len(Z), D))
    counts = Z.sum(axis=0).astype(float)
    params = IBPParams(
        TruncatedFactors.near(A, 1.0), 1.0, 1.0, alpha, count_slopes(counts, len(Z))
    )
    total = sums_of(X, None, whole(*X.shape), Z.astype(np.uint8), A)
    return MEIBPModel(infer_alpha=False).update(params, total)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_in_ordinary_tables_no_feature_is_kept_alive(alpha, seed):
    """Also features of one row, or of all."""
    rng = np.random.default_rng(seed)
    Z = (rng.random((100, 5)) < rng.uniform(0.05, 0.9, 5)).astype(int)
    Z[:, 0] = 1
    Z[:, 1] = np.arange(100) == 7
    assert updated(Z, alpha).keep_alive is None


@pytest.mark.parametrize("alpha", [0.1, 1.0, 20.0, 500.0])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 20])
@pytest.mark.parametrize("K", [1, 2, 4])
def test_features_are_kept_alive_where_the_tangent_is_too_high(n, alpha, K):
    """What the prior loses with a feature, against its slope times its rows."""
    Z = (np.random.default_rng(n).random((n, K)) < 0.6).astype(int)
    Z[0] = 1
    counts = Z.sum(axis=0).astype(float)
    params = updated(Z, alpha)
    before = log_prior(counts, n, alpha)
    for k in range(K):
        lost = before - log_prior(np.delete(counts, k), n, alpha)
        if lost > counts[k] * params.slopes[k]:
            assert params.keep_alive is not None
            assert params.keep_alive[k]


def test_rows_keep_a_feature_alive():
    """Two rows, neither of which wants the feature any more: one keeps it."""
    Z = np.array([[1], [1]])
    params = updated(Z, 500.0)
    assert params.keep_alive is not None
    assert params.keep_alive.all()
    X, bits = np.zeros((2, 3)), Z.astype(np.uint8)
    model = MEIBPModel()
    model.choose(params, X, whole(2, 3), free := bits.copy(), 0)
    assert not free.any()
    changed = model._visit(params, X, whole(2, 3), bits, 0)
    np.testing.assert_array_equal(bits, [[1], [0]])
    assert changed == 1
