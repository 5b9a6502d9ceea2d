"""Weights on the features of rows: bound and sums by hand, fits with gaps."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

import ibp_reference as obvious
from kplus import MEIBP, load, save
from kplus.datasets import make_nonnegative_features
from kplus.ibp.factors import TruncatedFactors
from kplus.ibp.kernels_weights import rows_weights
from kplus.ibp.meibp_model import IBPParams
from kplus.ibp.meibp_weights import WeightedModel, weigh, weighted_sums
from kplus.ibp.prior import count_slopes
from kplus.linear.gaps import Gaps, whole


def amounts(n=300, D=40, K=4, noise=0.3, seed=0):
    """Rows that have some amount of half of K parts."""
    rng = np.random.default_rng(seed)
    W = (rng.random((n, K)) < 0.5) * rng.gamma(4.0, 0.25, (n, K))
    A = (rng.random((K, D)) < 0.4) * rng.gamma(4.0, 0.5, (K, D))
    return np.maximum(W @ A + noise * rng.normal(size=(n, D)), 0.0), W, A


def hidden(X, share=0.1, seed=1):
    return np.random.default_rng(seed).random(X.shape) < share


def some_params(rng, K, D, n):
    factors = TruncatedFactors(
        rng.normal(1.0, 1.0, (K, D)), rng.gamma(1.0, 0.2, (K, D))
    )
    slopes = count_slopes(rng.uniform(1.0, n, K), float(n))
    return IBPParams(factors, 0.3, 1.2, 1.5, slopes, slab=rng.gamma(2.0, 0.5, K))


def a_case(seed, share):
    rng = np.random.default_rng(seed)
    n, D, K = 12, 6, 3
    params = some_params(rng, K, D, n)
    X = (rng.random((n, K)) < 0.6) @ params.factors.mean + rng.normal(size=(n, D))
    missing = rng.random((n, D)) < share
    gaps = Gaps.of(missing) if share else whole(n, D)
    M, V, H = (np.zeros((n, K)) for _ in range(3))
    X = np.where(missing, 0.0, X)
    weigh(params, X, gaps, M, V, H)
    return params, X, missing, gaps, M, V, H


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_bound_and_sums_by_hand(seed, share):
    params, X, missing, gaps, M, V, H = a_case(seed, share)
    mean, variance = params.factors._moments
    sums = weighted_sums(X, missing, gaps, M, V, H, mean)
    n, K = M.shape
    squares = M[:, :, None] * M[:, None, :]
    squares[:, range(K), range(K)] += V
    S = np.einsum("nkj,nd->dkj", squares, ~missing)
    np.testing.assert_allclose(sums.S[sums.group], S, atol=1e-12)
    XW = M.T @ X
    np.testing.assert_allclose(
        sums.T, XW - np.einsum("dkj,jd->kd", S, mean), atol=1e-10
    )

    seconds = np.einsum("kd,jd->dkj", mean, mean)
    seconds[:, range(K), range(K)] += variance.T
    fit = np.einsum("nkj,dkj->nd", squares, seconds)
    expected = X * X - 2.0 * X * (M @ mean) + fit
    each = -0.5 * np.log(2.0 * np.pi * params.noise) - 0.5 * expected / params.noise
    total = each[~missing].sum()
    for m, v, h, slab in zip(M.T, V.T, H.T, params.slab, strict=True):
        has = m > 0.0
        total += h[has].sum()
        total += np.sum(
            0.5 * np.log(2.0 / (np.pi * slab)) - 0.5 * (m**2 + v)[has] / slab
        )
    used = M.any(axis=0)
    total += params.factors.own_gains(params.spread)[used].sum()
    total += obvious.log_prior((M[:, used] > 0).sum(axis=0), n, params.alpha)
    assert WeightedModel().bound(params, sums) == pytest.approx(total, rel=1e-12)


def test_a_weight_is_what_integration_says():
    """One feature: the bit, the moments and the entropy of q(v)."""
    b, Q, noise, slab = 1.3, 0.8, 0.5, 0.7

    def density(v):
        return stats.halfnorm.pdf(v, scale=slab**0.5) * np.exp(
            (b * v - 0.5 * Q * v * v) / noise
        )

    total = integrate.quad(density, 0.0, 30.0)[0]
    mean = integrate.quad(lambda v: v * density(v), 0.0, 30.0)[0] / total
    second = integrate.quad(lambda v: v * v * density(v), 0.0, 30.0)[0] / total
    entropy = -integrate.quad(
        lambda v: density(v) / total * np.log(density(v) / total), 0.0, 12.0
    )[0]
    for above, has in ((1e-9, True), (-1e-9, False)):
        M, V, H = np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1))
        slopes = np.array([above - np.log(total)])
        rows_weights(
            np.array([[b]]), slopes, np.array([[[Q]]]), whole(1, 1),
            noise, np.array([slab]), 5, 0.0, M, V, H,
        )  # fmt: skip
        wanted = [mean, second - mean**2, entropy] if has else [0.0, 0.0, 0.0]
        np.testing.assert_allclose([M[0, 0], V[0, 0], H[0, 0]], wanted, rtol=1e-7)


def test_no_pass_lowers_the_bound_with_features_kept_alive():
    params, X, _, gaps, M, V, H = a_case(0, 0.2)
    assert M.any(axis=0).any()
    k = int(np.argmax(M.any(axis=0)))
    alive = np.zeros(M.shape[1], bool)
    alive[k] = True
    forbidden = np.where(alive, -1e30, params.slopes)
    weigh(replace(params, keep_alive=alive, slopes=forbidden), X, gaps, M, V, H)
    assert np.count_nonzero(M[:, k]) == 1
    assert np.all(V[M[:, k] > 0, k] > 0.0)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_planted_amounts_are_found(share):
    X, W, A = amounts()
    mask = hidden(X, share)
    gaps = np.where(mask, np.nan, X)
    model = MEIBP(weights="nonnegative", random_state=0).fit(gaps)
    history = model.lower_bound_history_
    assert np.all(np.diff(history) >= -1e-9 * np.abs(history[-1]))
    assert model.n_components_ == 4
    assert model.noise_scale_ == pytest.approx(0.3, rel=0.2)
    found = model.transform(gaps)
    assert found.shape == (300, 4)
    assert np.all(found >= 0.0)
    if share:
        filled = model.impute(gaps)
        binary = MEIBP(random_state=0).fit(gaps).impute(gaps)
        error = np.mean((filled - W @ A)[mask] ** 2)
        assert error < 0.5 * np.mean((binary - W @ A)[mask] ** 2)


def test_blocks_and_threads_do_not_matter():
    X, _, _ = amounts()
    gaps = np.where(hidden(X), np.nan, X)
    one = MEIBP(weights="nonnegative", random_state=0).fit(gaps)
    other = MEIBP(weights="nonnegative", batch_size=70, n_jobs=2, random_state=0).fit(
        gaps
    )
    assert other.n_components_ == one.n_components_
    assert other.lower_bound_ == pytest.approx(one.lower_bound_, rel=1e-6)


def test_files_samples_and_warm_starts(tmp_path):
    X, _, _ = amounts()
    model = MEIBP(weights="nonnegative", random_state=0).fit(X)
    save(model, tmp_path / "model")
    same = load(tmp_path / "model")
    np.testing.assert_array_equal(same.transform(X), model.transform(X))
    drawn, W = model.sample(2000, random_state=0)
    expected = model.transform(X).mean(axis=0) @ model.components_
    np.testing.assert_allclose(drawn.mean(axis=0), expected, rtol=0.15, atol=0.05)
    assert len(np.unique(W)) > 100
    again = model.set_params(warm_start=True).fit(X)
    assert again.n_iter_ < 20
    assert again.n_components_ == 4
    bits = again.set_params(weights=None).fit(X)
    assert set(np.unique(bits.transform(X))) <= {0.0, 1.0}
    back = bits.set_params(weights="nonnegative").fit(X)
    assert len(np.unique(back.transform(X))) > 100


@pytest.mark.parametrize(
    "other",
    [
        {"prior": "gaussian"},
        {"maximizer": "double_greedy"},
        {"sweep": "rows"},
        {"init": "nmf"},
    ],
)
def test_what_does_not_go_with_weights(other):
    (name,) = other
    with pytest.raises(ValueError, match=f"{name}.*weights='nonnegative'"):
        MEIBP(weights="nonnegative", **other).fit(np.ones((5, 2)))


@pytest.mark.parametrize("seed", range(3))
def test_as_many_features_with_a_tenth_missing(seed):
    X, _, _ = make_nonnegative_features(300, 60, 8, noise=0.5, random_state=seed)
    gaps = np.where(hidden(X, seed=seed), np.nan, X)
    how = {"negative": "noise", "random_state": 0}
    complete, some = MEIBP(**how).fit(X), MEIBP(**how).fit(gaps)
    assert complete.n_components_ == 8
    assert abs(some.n_components_ - 8) <= 1


@pytest.mark.parametrize("weights", [None, "nonnegative"])
def test_never_more_features_than_columns(weights):
    """Graded values in few columns would take many bits."""
    X = np.random.default_rng(0).gamma(2.0, size=(400, 5))
    for table in (X, np.where(hidden(X), np.nan, X)):
        table[:, 0] = X[:, 0]  # every row has a value
        model = MEIBP(20, weights=weights, random_state=0).fit(table)
        assert model.n_components_ <= 5


@pytest.mark.filterwarnings("ignore:MEIBP found no feature")
@pytest.mark.parametrize(
    "X", [np.ones((1, 3)), np.zeros((6, 2)), np.full((5, 1), 3.0), np.eye(4)[[0, 0, 1]]]
)
def test_tables_with_little_in_them(X):
    model = MEIBP(weights="nonnegative", random_state=0, noise_scale=0.1).fit(X)
    assert np.all(np.isfinite(model.transform(X)))
    free = MEIBP(weights="nonnegative", random_state=0).fit(X.astype(np.float32))
    assert np.all(np.isfinite(free.components_))
