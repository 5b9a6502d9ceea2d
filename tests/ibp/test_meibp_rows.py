"""MEIBP row by row: `fit_rows` and its starts."""

import numpy as np
import pytest

import ibp_reference as obvious
from kplus.ibp.meibp_rows import (
    RowSettings,
    RowStart,
    fit_rows,
    start_at_random,
    start_from_bits,
    start_from_features,
)

MODEL = (0.25, 1.0, 2.0)
FIXED = {"noise_scale": 0.5, "factor_scale": 1.0, "alpha": 2.0}


def fitted(X, start, seed=0, **settings):
    return fit_rows(X, start, RowSettings(**settings), np.random.default_rng(seed))


def plain_bound(X, fit, nonnegative=True):
    model = (fit.noise_scale**2, fit.factor_scale**2, fit.alpha)
    return obvious.bound(X, fit.Z, fit.mu, fit.scale, model, nonnegative)


def random_start(X, K, seed, nonnegative=True):
    return start_at_random(X, K, np.random.default_rng([seed, 7]), nonnegative)


@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("maximizer", ["local_search", "double_greedy"])
def test_bound_is_exact_and_never_falls(nonnegative, gaps, maximizer):
    X, _, _ = obvious.planted(50, 8, 4, 1, gaps=gaps)
    start = random_start(X, 6, 0, nonnegative)
    fit = fitted(X, start, nonnegative=nonnegative, maximizer=maximizer, shuffle=True)
    assert np.all(np.diff(fit.history) >= -1e-9 * abs(fit.history[-1]))
    assert fit.history[-1] == pytest.approx(plain_bound(X, fit, nonnegative), rel=1e-11)
    assert fit.Z.any(axis=0).all()
    mean, variance, _ = obvious.moments(fit.mu, fit.scale, nonnegative)
    np.testing.assert_allclose(fit.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(fit.variance, variance, rtol=1e-9)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_after_convergence_no_other_row_is_better(gaps):
    """All 2^K bits of every row, as Eq. 10 has it."""
    X, _, _ = obvious.planted(20, 8, 3, 2, gaps=gaps)
    fit = fitted(X, random_start(X, 3, 1), refresh=1, tol=1e-10, max_iter=500, **FIXED)
    assert fit.converged
    assert fit.changed[-1] == 0
    for n in range(20):
        every = obvious.bounds_of_rows(X, fit.Z, n, fit.mu, fit.scale, MODEL)
        assert every.max() <= fit.history[-1] + 1e-6


def test_the_best_of_all_matrices_is_a_fixed_point_and_is_found():
    """N = 4, K = 2: q(A) fitted to each of the 256 matrices."""
    X, _, _ = obvious.planted(4, 5, 2, 3, noise=0.2)
    fixed = {"noise_scale": 0.2, "factor_scale": 1.0, "alpha": 2.0}
    best, best_Z = -np.inf, None
    for Z in obvious.all_matrices(4, 2):
        if Z.any(axis=0).all():
            start = start_from_bits(Z, 5)
            fit = fitted(X, start, max_iter=1, refresh=1, **fixed)
            if fit.history[-1] > best:
                best, best_Z = fit.history[-1], fit.Z
    stays = fitted(X, start_from_bits(best_Z, 5), **fixed)
    np.testing.assert_array_equal(stays.Z, best_Z)
    found = max(
        fitted(X, random_start(X, 2, s), **fixed).history[-1] for s in range(20)
    )
    assert found == pytest.approx(stays.history[-1], rel=1e-6)


@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_planted_bits_stay_and_scales_are_found(gaps):
    X, Z, A = obvious.planted(300, 40, 5, 4, noise=0.3, gaps=gaps)
    fit = fitted(X, RowStart(Z, A))
    np.testing.assert_array_equal(fit.Z, Z)
    assert fit.noise_scale == pytest.approx(0.3, rel=0.03)
    assert fit.factor_scale == pytest.approx(np.sqrt(np.mean(A**2)), rel=0.02)
    assert fit.alpha == pytest.approx(5.0 / np.sum(1.0 / np.arange(1, 301)))
    assert np.abs(fit.mean - A).max() < 0.2


@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_bits_are_found_from_planted_features_but_for_local_optima(gaps):
    """Dense features: few rows exchange two of them, where no single flip helps."""
    X, Z, A = obvious.planted(300, 40, 5, 4, noise=0.3, gaps=gaps)
    start = start_from_features(X, A, 0.5)
    wrong = np.flatnonzero(np.any(start.Z != Z, axis=1))
    assert len(wrong) <= 6
    R = X - start.Z @ A
    for n in wrong:
        error = np.nansum(R[n] ** 2)
        for k in range(5):
            sign = 1.0 - 2.0 * start.Z[n, k]
            assert np.nansum((R[n] - sign * A[k]) ** 2) > error


def test_columns_with_equal_gaps_in_any_order_give_the_same():
    X, _, _ = obvious.planted(40, 6, 3, 5)
    X[20:, [1, 4]] = np.nan
    X[:10, [0, 5]] = np.nan
    start = random_start(X, 3, 2)
    order = np.array([3, 5, 1, 0, 2, 4])
    one = fitted(X, start)
    other = fitted(X[:, order], RowStart(start.Z, start.mean[:, order]))
    np.testing.assert_array_equal(one.Z, other.Z)
    np.testing.assert_allclose(one.mean[:, order], other.mean, rtol=1e-9)
    assert one.history[-1] == pytest.approx(other.history[-1], rel=1e-12)


def test_features_that_explain_nothing_go():
    X = np.abs(np.random.default_rng(0).normal(size=(30, 4))) * 1e-3
    fixed = {**FIXED, "noise_scale": 1.0}
    fit = fitted(X, random_start(X, 5, 0), **fixed)
    assert fit.Z.shape == (30, 0)
    assert fit.mean.shape == (0, 4)
    assert fit.converged
    assert fit.history[-1] == pytest.approx(plain_bound(X, fit), rel=1e-12)


def test_rows_of_zeros_leave_no_feature_and_no_error():
    fit = fitted(np.zeros((10, 3)), random_start(np.zeros((10, 3)), 2, 0))
    assert np.isfinite(fit.history).all()


def test_exact_rows_do_not_bring_the_noise_to_nothing():
    _, Z, A = obvious.planted(60, 10, 3, 6)
    X = Z @ A
    fit = fitted(X, start_from_features(X, A, 0.5), max_iter=500)
    np.testing.assert_array_equal(fit.Z, Z)
    assert np.isfinite(fit.history).all()
    assert fit.noise_scale > 0.0


def test_given_scales_stay():
    X, _, _ = obvious.planted(30, 5, 2, 7)
    fit = fitted(X, random_start(X, 3, 0), **FIXED)
    assert (fit.noise_scale, fit.factor_scale, fit.alpha) == (0.5, 1.0, 2.0)


def test_a_callback_is_called_after_every_sweep_and_may_stop():
    X, _, _ = obvious.planted(30, 5, 2, 8)
    seen = []

    def stop(iteration, here):
        seen.append((iteration, here.history[-1]))
        return iteration == 2

    start, rng = random_start(X, 3, 0), np.random.default_rng(0)
    fit = fit_rows(X, start, RowSettings(), rng, stop)
    assert seen == [(1, fit.history[0]), (2, fit.history[1])]
    assert not fit.converged


def test_the_same_seed_gives_the_same():
    X, _, _ = obvious.planted(40, 6, 3, 9)
    ways = {"shuffle": True, "maximizer": "double_greedy"}
    fits = [fitted(X, random_start(X, 4, 1), seed=s, **ways) for s in (3, 3)]
    np.testing.assert_array_equal(fits[0].Z, fits[1].Z)
    assert fits[0].history == fits[1].history


def test_the_start_is_not_changed():
    X, _, _ = obvious.planted(30, 5, 2, 7)
    start = random_start(X, 3, 0)
    Z, mean = start.Z.copy(), start.mean.copy()
    fitted(X, start)
    np.testing.assert_array_equal(start.Z, Z)
    np.testing.assert_array_equal(start.mean, mean)
