"""Which features a row has: exact search and flips, against enumeration."""

import numpy as np
import pytest

import feature_reference as obvious
from kplus.features.kernels_allocate import Allocated, allocate_rows
from kplus.features.kernels_gaps import AllocatedGaps, allocate_gaps
from kplus.features.kernels_row import factor
from kplus.features.model import Features

STEPS = 10**9  # as many as an exact search needs
KINDS = ["plain", "dependent", "equal", "zero", "opposite", "uneven"]


def allocated(X, A, *, exact, Z=None, weights=None, gaps=False):
    """Z, errors, S, T and the number of rows changed, as the kernels give them."""
    X, A = np.asarray(X, np.float64), np.ascontiguousarray(A)
    n, (K, D) = len(X), A.shape
    Z = np.zeros((n, K), np.uint8) if Z is None else Z.copy()
    weights = np.ones(n) if weights is None else weights
    errors, T = np.empty(n), np.zeros((K, D))
    if gaps:
        S = np.zeros((D, K, K))
        out = AllocatedGaps(Z, errors, S, T)
        changed = allocate_gaps(X, weights, A, exact, STEPS, out)
    else:
        S, params = np.zeros((K, K)), Features(A, exact)
        out = Allocated(Z, errors, S, T)
        changed = allocate_rows(X, weights, A, params.G, exact, STEPS, out)
    return Z, errors, S, T, changed


def rows_for(A, n, seed, noise=0.5):
    """Some near sums of features, some far from all of them, one zero."""
    rng = np.random.default_rng(seed)
    Z = rng.integers(0, 2, (n, len(A)))
    X = Z @ A + noise * rng.normal(size=(n, A.shape[1]))
    X[::5] = 3.0 * rng.normal(size=X[::5].shape)
    X[0] = 0.0
    return X


# ------------------------------------------------------------------------- exact


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", range(1, 13))
def test_exact_search_finds_the_best_of_all_patterns(K, kind):
    for D in (1, 3, 14):
        A = obvious.awkward(kind, K, D, seed=K + D)
        X = rows_for(A, 12, seed=K)
        Z, errors, *_ = allocated(X, A, exact=True)
        best = obvious.best_errors(X, A)
        told, size = obvious.row_errors(X, Z, A), _size(X, A)
        np.testing.assert_allclose(errors, told, rtol=1e-12, atol=1e-14 * size)
        np.testing.assert_allclose(errors, best, rtol=1e-9, atol=1e-10 * size)


def _size(X, A):
    """The scale of ‖x‖² and ‖A‖², below whose rounding errors are not told apart."""
    return 1.0 + np.max(X**2) + np.max(A**2)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_search_of_25_features_is_never_worse_than_many_flips(kind):
    A = obvious.awkward(kind, 25, 20, seed=3)
    X = rows_for(A, 25, seed=4)
    _, errors, *_ = allocated(X, A, exact=True)
    rng = np.random.default_rng(5)
    for _ in range(40):
        start = rng.integers(0, 2, (25, 25), dtype=np.uint8)
        _, others, *_ = allocated(X, A, exact=False, Z=start)
        assert np.all(errors <= others * (1 + 1e-9) + 1e-10 * _size(X, A))


def test_exact_search_of_25_features_finds_what_rows_are_made_of():
    X, planted, A = obvious.planted(60, 40, 25, seed=1, noise=0.1)
    Z, *_ = allocated(X, A, exact=True)
    np.testing.assert_array_equal(Z, planted)


@pytest.mark.parametrize("K", [3, 10])
@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6, 1e8])
def test_exact_search_beside_a_huge_base(K, offset):
    """A base feature far larger than the others hides none of them."""
    X, _, A = obvious.planted(40, 6, K - 1, seed=2, noise=0.1)
    A = np.vstack([np.full(6, offset), A])
    _, errors, *_ = allocated(X + offset, A, exact=True)
    best = obvious.best_errors(X + offset, A)
    np.testing.assert_allclose(errors, best, rtol=1e-6, atol=1e-14 * offset)


@pytest.mark.parametrize("noise", [0.01, 0.5])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_exact_search_does_not_depend_on_what_came_before(kind, gaps, noise):
    """Rows that keep a z as certain are those that would find it again."""
    A = obvious.awkward(kind, 10, 4, seed=0)
    X = rows_for(A, 260, seed=1, noise=noise)
    X = obvious.with_gaps(X, 0.2, seed=3) if gaps else X
    some = np.random.default_rng(2).integers(0, 2, (260, 10), dtype=np.uint8)
    expected, *_ = allocated(X, A, exact=True, gaps=gaps)
    some[::2] = expected[::2]
    again, *_, changed = allocated(X, A, exact=True, Z=some, gaps=gaps)
    np.testing.assert_array_equal(again, expected)
    assert changed == np.sum(np.any(some != expected, axis=1))


@pytest.mark.parametrize("K", [4, 11])
def test_equal_rows_get_equal_z_wherever_they_stand(K):
    """Blocks and tiles of any length give a row the same z."""
    A = obvious.awkward("equal", K, 5, seed=K)
    X = np.tile(rows_for(A, 7, seed=1), (50, 1))
    Z, *_ = allocated(X, A, exact=True)
    np.testing.assert_array_equal(Z, np.tile(Z[:7], (50, 1)))
    for n in (1, 2, 129, 249, 250):
        part, *_ = allocated(X[:n], A, exact=True)
        np.testing.assert_array_equal(part, Z[:n])


# ------------------------------------------------------------------------- flips


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [1, 2, 5, 12, 30])
def test_flips_end_where_no_single_flip_helps_and_never_raise(K, kind):
    A = obvious.awkward(kind, K, 6, seed=K)
    X = rows_for(A, 30, seed=7)
    rng = np.random.default_rng(8)
    for start in (np.zeros((30, K), np.uint8), rng.integers(0, 2, (30, K), np.uint8)):
        Z, errors, *_, changed = allocated(X, A, exact=False, Z=start)
        slack = 1e-10 * _size(X, A)
        assert np.all(errors <= obvious.row_errors(X, start, A) + slack)
        flips = obvious.flip_errors(X, Z, A)
        assert np.all(errors[:, None] <= flips + slack)
        assert changed == np.sum(np.any(start != Z, axis=1))
        again, *_, still = allocated(X, A, exact=False, Z=Z)
        np.testing.assert_array_equal(again, Z)
        assert still == 0


def test_flips_are_no_better_than_exact_search_and_start_where_given():
    A = obvious.awkward("plain", 9, 3, seed=0)
    X = rows_for(A, 40, seed=1)
    _, exact, *_ = allocated(X, A, exact=True)
    worst = 0.0
    for seed in range(5):
        start = np.random.default_rng(seed).integers(0, 2, (40, 9), dtype=np.uint8)
        _, errors, *_ = allocated(X, A, exact=False, Z=start)
        assert np.all(errors >= exact - 1e-12)
        worst = max(worst, np.max(errors - exact))
    assert worst > 0.1  # single flips do get caught


# -------------------------------------------------------------------------- gaps


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [1, 3, 8, 9, 11])
def test_exact_search_on_what_was_observed(K, kind):
    A = obvious.awkward(kind, K, 5, seed=K)
    X = obvious.with_gaps(rows_for(A, 25, seed=3), 0.4, seed=K)
    X[1] = np.nan
    Z, errors, *_ = allocated(X, A, exact=True, gaps=True)
    slack = 1e-10 * (1.0 + np.nanmax(X**2) + np.max(A**2))
    np.testing.assert_allclose(errors, obvious.row_errors(X, Z, A), atol=slack)
    np.testing.assert_allclose(errors, obvious.best_errors(X, A), rtol=1e-9, atol=slack)
    assert errors[1] == 0.0
    assert not Z[1].any()


@pytest.mark.parametrize("K", [2, 10])
def test_flips_on_what_was_observed(K):
    A = obvious.awkward("dependent", K, 5, seed=K)
    X = obvious.with_gaps(rows_for(A, 30, seed=3), 0.4, seed=K)
    start = np.random.default_rng(0).integers(0, 2, (30, K), dtype=np.uint8)
    Z, errors, *_ = allocated(X, A, exact=False, Z=start, gaps=True)
    assert np.all(errors <= obvious.row_errors(X, start, A) + 1e-9)
    assert np.all(errors[:, None] <= obvious.flip_errors(X, Z, A) + 1e-9)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("K", [3, 10])
def test_rows_without_gaps_are_treated_alike(K, exact):
    A = obvious.awkward("plain", K, 5, seed=K)
    X = rows_for(A, 30, seed=3)
    Z, errors, S, T, _ = allocated(X, A, exact=exact)
    found = allocated(X, A, exact=exact, gaps=True)
    np.testing.assert_array_equal(found[0], Z)
    np.testing.assert_allclose(found[1], errors, rtol=1e-12)
    np.testing.assert_allclose(found[2], np.broadcast_to(S, (5, K, K)))
    np.testing.assert_allclose(found[3], T, atol=1e-11)


# -------------------------------------------------------------------------- sums


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("n", [1, 5, 248, 600])
def test_sums_are_those_of_the_rows(n, share):
    """Added to what is there, over tiles of any length."""
    A = obvious.awkward("plain", 4, 5, seed=n)
    X = obvious.with_gaps(rows_for(A, n, seed=3), share)
    weights = np.random.default_rng(n).uniform(0.0, 2.0, n)
    weights[n // 2] = 0.0
    gaps = bool(np.isnan(X).any())
    Z, errors, S, T, _ = allocated(X, A, exact=False, weights=weights, gaps=gaps)
    expected = obvious.sums(X, Z, A, weights)
    np.testing.assert_allclose(S, expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(T, expected[1], rtol=1e-9, atol=1e-11)
    assert errors @ weights == pytest.approx(expected[2], rel=1e-12)


# -------------------------------------------------------------------- small parts


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize("K", [1, 2, 9, 25])
def test_factor_gives_the_gram_matrix_back(K, kind):
    A = obvious.awkward(kind, K, 12, seed=K)
    G = A @ A.T
    order, R = factor(G)
    np.testing.assert_array_equal(np.sort(order), np.arange(K))
    np.testing.assert_array_equal(R, np.triu(R))
    np.testing.assert_allclose(R.T @ R, G[np.ix_(order, order)], atol=1e-9)


def test_factor_keeps_small_features_beside_huge_ones():
    A = np.array([[1e7, 1e7, 1e7], [1.0, 0.0, -1.0], [0.0, 0.5, 0.2]])
    G = A @ A.T
    order, R = factor(G)
    back = R.T @ R
    expected = G[np.ix_(order, order)]
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(back / size, expected / size, atol=1e-9)
