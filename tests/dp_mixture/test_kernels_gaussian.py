"""Quadratic forms and second moments, against einsum."""

import numpy as np
import pytest

from kplus.dp_mixture.kernels_gaussian import (
    fill_quadratic,
    gather_outer,
    gather_scores,
    invert_factors,
    near_best,
)
from kplus.dp_mixture.kernels_posterior import gather_pairs
from mixture_reference import some_shares

SHAPES = [(1, 1, 1), (1, 3, 2), (20, 1, 3), (30, 4, 5), (0, 2, 2)]


def rows(n, D, seed=0):
    return np.random.default_rng(seed).normal(size=(n, D)) + 2.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(("n", "D", "_"), SHAPES)
def test_rows_and_the_triangle_of_their_products(n, D, _, linear, dtype):
    Y = rows(n, D).astype(dtype)
    offset = D if linear else 0
    out = np.full((n, offset + D * (D + 1) // 2), np.nan, dtype)
    fill_quadratic(Y, offset, out)
    i, j = np.triu_indices(D)
    np.testing.assert_array_equal(out, np.hstack([Y[:, :offset], Y[:, i] * Y[:, j]]))


@pytest.mark.parametrize(("K", "D"), [(1, 1), (3, 1), (2, 6)])
def test_inverses_of_triangular_factors(K, D):
    rng = np.random.default_rng(D)
    L = np.tril(rng.normal(size=(K, D, D))) + 3.0 * np.eye(D)
    scale, out = rng.uniform(0.5, 2.0, K), np.full((K, D, D), np.nan)
    invert_factors(L, scale, out)
    expected = scale[:, None, None] * np.swapaxes(np.linalg.inv(L), 1, 2)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("margin", [1.0, 40.0])
@pytest.mark.parametrize(("n", "K"), [(0, 3), (1, 1), (40, 7)])
def test_components_near_the_best(n, K, margin):
    """With no rounding at all just those within the margin, in order, then -1."""
    rng = np.random.default_rng(n)
    scores, log_weights = rng.normal(scale=20.0, size=(n, K)), rng.normal(size=K)
    found = near_best(scores.copy(), log_weights, np.ones(n), 0.0, margin)
    logs = scores + log_weights
    for row, candidates in zip(logs, found, strict=True):
        near = np.flatnonzero(row >= row.max() - margin)
        np.testing.assert_array_equal(candidates[: len(near)], near)
        assert np.all(candidates[len(near) :] == -1)


def test_rounding_keeps_more_components():
    scores, ones = np.array([[0.0, -12.0, -30.0]]), np.array([1.0])
    for error, kept in ((0.0, 1), (0.5, 1), (1.0, 2), (8.0, 3)):
        found = near_best(scores.copy(), np.zeros(3), ones, error, 10.0)
        assert np.count_nonzero(found >= 0) == kept


def test_a_row_without_numbers_keeps_every_component():
    scores = np.array([[np.nan, 0.0], [np.inf, 0.0], [0.0, -99.0]])
    found = near_best(scores, np.zeros(2), np.array([np.inf, 1.0, 1.0]), 1.0, 5.0)
    np.testing.assert_array_equal(found, [[0, 1], [0, 1], [0, -1]])


def components(K, D, seed=1):
    rng = np.random.default_rng(seed)
    whiten = rng.normal(size=(K, D, D))
    return rng.normal(size=(K, D)), whiten, rng.normal(size=K)


@pytest.mark.parametrize("hidden", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("n", "D", "K"), SHAPES)
def test_scores_of_candidates(n, D, K, hidden):
    Y, (means, whiten, const) = rows(n, D), components(K, D)
    rng = np.random.default_rng(2)
    C = min(K, 3)
    candidates = np.array([rng.permutation(K)[:C] for _ in range(n)], np.int32).reshape(
        n, C
    )
    candidates[rng.random((n, C)) < hidden] = -1
    out = np.full((n, C), -np.inf)
    gather_scores(Y, *gather_pairs(candidates, K), means, whiten, const, out)
    for i in range(n):
        for c, k in enumerate(candidates[i]):
            expected = -np.inf
            if k >= 0:
                precision = whiten[k] @ whiten[k].T
                off = Y[i] - means[k]
                expected = const[k] - 0.5 * off @ precision @ off
            assert out[i, c] == pytest.approx(expected, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(("n", "D", "K"), SHAPES)
def test_second_moments_by_component(n, D, K, linear):
    """Component 1 has no rows where there is one."""
    Y = rows(n, D)
    shares = some_shares(n, K) if n else np.empty((0, K))
    if K > 1:
        shares[:, 1] = 0.0
    k, members = np.nonzero(shares.T)
    starts = np.searchsorted(k, np.arange(K + 1)).astype(np.int64)
    weights = np.ascontiguousarray(shares[members, k])
    offset = D if linear else 0
    out = np.zeros((K, offset + D * (D + 1) // 2))
    gather_outer(Y, starts, members.astype(np.int64), weights, offset, out)
    i, j = np.triu_indices(D)
    second = np.einsum("nk,ni,nj->kij", shares, Y, Y)[:, i, j]
    np.testing.assert_allclose(out[:, offset:], second, rtol=1e-12, atol=1e-13)
    if linear:
        np.testing.assert_allclose(out[:, :D], shares.T @ Y, rtol=1e-12, atol=1e-13)
