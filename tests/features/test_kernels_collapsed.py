"""Collapsed search: one row against all 2^K by Eq. 10, rest, and the error it tells."""

import numpy as np
import pytest

import feature_reference as obvious
from kplus.features.kernels_collapsed import ALL, SINGLE, improve
from kplus.features.kernels_columns import refit, residuals


def squares(X):
    return np.einsum("nd,nd->n", X, X)


def improved(X, Z, *, exact=True, locked=0, weights=None, sweeps=100, target=np.inf):
    weights = np.ones(len(X)) if weights is None else weights
    Z = Z.copy()
    flips = ALL if exact else SINGLE
    error = improve(X, weights, squares(X), Z, locked, flips, sweeps, target)
    return Z, error


def fitted(X, Z, weights=None):
    return refit(X, np.ones(len(X)) if weights is None else weights, Z)


def setting(seed, n=14, D=3, K=3, noise=0.6):
    """Rows, weights, and a start with independent columns of two rows or more."""
    rng = np.random.default_rng(seed)
    X, _, _ = obvious.planted(n, D, K, seed, noise)
    weights = [None, rng.uniform(0.2, 2.0, n), rng.integers(1, 4, n) * 1.0][seed % 3]
    while True:
        Z = rng.integers(0, 2, (n, K), dtype=np.uint8)
        if np.linalg.matrix_rank(Z) == K and Z.sum(axis=0).min() > 1:
            return X, Z, weights


# ------------------------------------------------------------------------- refit


@pytest.mark.parametrize("seed", range(6))
def test_refit_is_least_squares(seed):
    X, Z, weights = setting(seed)
    explained, H, A, G = fitted(X, Z, weights)
    expected = obvious.features(X, Z, weights)
    w = np.ones(len(X)) if weights is None else weights
    np.testing.assert_allclose(A, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(G, A @ A.T, rtol=1e-10, atol=1e-12)
    S = (Z * w[:, None]).T @ Z.astype(float)
    np.testing.assert_allclose(H @ S, np.eye(Z.shape[1]), atol=1e-6)
    assert w @ squares(X) - explained == pytest.approx(
        obvious.collapsed(X, Z, weights=weights), rel=1e-6
    )


@pytest.mark.parametrize("copies", [1, 30])
@pytest.mark.parametrize("kind", ["equal", "sum", "empty"])
def test_columns_that_depend_on_each_other_are_reported_or_survived(kind, copies):
    """Distinct columns may depend on each other (MB-3)."""
    X = np.random.default_rng(0).normal(size=(6 * copies, 2))
    first, second = np.array([1, 1, 0, 0, 0, 0]), np.array([0, 0, 1, 1, 0, 0])
    third = {"equal": first, "sum": first + second, "empty": 0 * first}[kind]
    Z = np.tile(np.column_stack([first, second, third]), (copies, 1)).astype(np.uint8)
    explained = fitted(X, Z)[0]
    if explained > -np.inf:
        error = squares(X).sum() - explained
        assert error == pytest.approx(obvious.collapsed(X, Z), rel=1e-6)
    end, error = improved(X, Z)
    if np.isfinite(error):
        assert error == pytest.approx(obvious.collapsed(X, end), rel=1e-6)
    else:
        np.testing.assert_array_equal(end, Z)


def test_leftovers():
    X, Z, A = obvious.planted(9, 4, 3)
    np.testing.assert_allclose(residuals(X, Z, A), X - Z @ A, atol=1e-14)


# ----------------------------------------------------------------------- one row


@pytest.mark.parametrize("locked", [0, 1])
@pytest.mark.parametrize("seed", range(12))
def test_no_row_has_a_better_pattern_at_the_end(seed, locked):
    """The exact row step against brute force over 2^K by Eq. 10."""
    X, Z, weights = setting(seed)
    Z[:, :locked] = 1
    if np.linalg.matrix_rank(Z) < 3:
        pytest.skip("locked columns made the start singular")
    end, error = improved(X, Z, locked=locked, weights=weights)
    assert np.all(end[:, :locked] == 1)
    expected = obvious.collapsed(X, end, weights=weights)
    assert error == pytest.approx(expected, rel=1e-6)
    for n in range(len(X)):
        if not _alone(end, n):
            best = obvious.best_row(X, end, n, locked, weights)
            assert expected <= best * (1 + 1e-7)


def _alone(Z, n):
    """Whether columns depend on each other without row n."""
    return np.linalg.matrix_rank(np.delete(Z, n, axis=0)) < Z.shape[1]


@pytest.mark.parametrize("seed", range(12))
def test_first_row_of_a_sweep_takes_the_best_pattern(seed):
    """Only the first row is off; it moves to where brute force would put it."""
    X, Z, weights = setting(seed)
    Z, _ = improved(X, Z, weights=weights)
    Z = np.vstack([Z[-1:] ^ 1, Z[:-1]])
    X = np.vstack([X[-1:], X[:-1]])
    weights = None if weights is None else np.append(weights[-1], weights[:-1])
    if _alone(Z, 0) or np.linalg.matrix_rank(Z) < 3:
        pytest.skip("the row holds up a feature")
    best = obvious.best_row(X, Z, 0, weights=weights)
    _, error = improved(X, Z, weights=weights)
    assert error <= best * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_flips_end_where_no_single_flip_helps(seed):
    X, Z, weights = setting(seed, K=4)
    end, _ = improved(X, Z, exact=False, weights=weights)
    value = obvious.collapsed(X, end, weights=weights)
    for n, k in np.ndindex(*end.shape):
        if _alone(end, n):
            continue
        other = end.copy()
        other[n, k] ^= 1
        assert value <= obvious.collapsed(X, other, weights=weights) * (1 + 1e-7)


def test_rows_looked_at_together_stay_where_no_flip_helps():
    X, Z, weights = setting(1, n=250, D=4, K=3)
    weights[::50] = 0.0
    end, error = improved(X, Z, exact=False, weights=weights)
    value = obvious.collapsed(X, end, weights=weights)
    assert error == pytest.approx(value, rel=1e-6)
    for n, k in np.ndindex(*end.shape):
        other = end.copy()
        other[n, k] ^= 1
        assert value <= obvious.collapsed(X, other, weights=weights) * (1 + 1e-7)


# -------------------------------------------------------------------------- runs


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_sweeps_never_raise_and_converge(seed, exact):
    X, Z, weights = setting(seed, n=40, D=5, K=5)
    before = obvious.collapsed(X, Z, weights=weights)
    for _ in range(60):
        Z, error = improved(X, Z, exact=exact, weights=weights, sweeps=1)
        value = obvious.collapsed(X, Z, weights=weights)
        assert value <= before * (1 + 1e-9)
        assert error == pytest.approx(value, rel=1e-6)
        before = value
    again, _ = improved(X, Z, exact=exact, weights=weights)
    np.testing.assert_array_equal(again, Z)


def test_weight_zero_leaves_a_row_alone():
    X, Z, _ = setting(0)
    weights = np.append(np.ones(13), 0.0)
    X[-1] = 1e3
    end, error = improved(X, Z, weights=weights)
    np.testing.assert_array_equal(end[-1], Z[-1])
    assert error == pytest.approx(obvious.collapsed(X[:-1], end[:-1]), rel=1e-6)


def test_weight_two_equals_a_row_twice():
    X, Z, _ = setting(3)
    copies = np.repeat(np.arange(14), 2)
    one, error = improved(X, Z, weights=np.full(14, 2.0))
    _, other = improved(X[copies], Z[copies])
    assert error == pytest.approx(obvious.collapsed(X[copies], one[copies]), rel=1e-6)
    assert other == pytest.approx(error, rel=0.5)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e3, 1e9])
def test_the_unit_of_the_data_does_not_matter(unit):
    X, Z, _ = setting(4, n=20)
    expected, error = improved(X, Z)
    found, scaled = improved(unit * X, Z)
    np.testing.assert_array_equal(found, expected)
    assert scaled / unit**2 == pytest.approx(error, rel=1e-9)


def test_a_search_far_above_its_target_is_given_up():
    X, Z, _ = setting(2, n=60, D=5, K=5)
    _, error = improved(X, Z)
    given_up, above = improved(X, Z, target=0.1 * error)
    assert above >= error
    assert above == pytest.approx(obvious.collapsed(X, given_up), rel=1e-6)
