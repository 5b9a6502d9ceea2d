"""New columns of Z: splits of what the others leave."""

import numpy as np
import pytest

import feature_reference as obvious
from kplus.features.kernels_split import seed_columns
from kplus.features.local_search import add_column, replace_columns


def draws(*shape, seed=0):
    return np.random.default_rng(seed).random(shape)


def squares(X):
    return np.einsum("nd,nd->n", X, X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_column_is_added_and_lowers_the_error(seed, weighted):
    X, _, _ = obvious.planted(40, 4, 3, seed)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, 40) if weighted else np.ones(40)
    Z = np.ones((40, 1), np.uint8)
    more, gain = add_column(X, weights, Z, draws(5, 2, seed=seed), 2)
    np.testing.assert_array_equal(more[:, :1], Z)
    before = obvious.collapsed(X, Z, weights=weights)
    after = obvious.collapsed(X, more, weights=weights)
    assert after < 0.9 * before
    assert gain == pytest.approx(before - after, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_more_candidates_and_refinements_keep_the_best_gain(seed):
    """The split kept is the one with the largest exact gain: more are no worse."""
    X, _, _ = obvious.planted(40, 4, 3, seed)
    Z, tries = np.ones((40, 1), np.uint8), draws(8, 2, seed=seed)
    errors = [
        obvious.collapsed(X, add_column(X, np.ones(40), Z, tries[:m], 1)[0])
        for m in (1, 2, 4, 8)
    ]
    assert np.all(np.diff(errors) <= 1e-9)


def test_a_split_is_by_the_sign_of_what_is_left():
    """One candidate without refinements: along the difference of two rows."""
    X, _, _ = obvious.planted(30, 3, 2)
    centred = X - X.mean(axis=0)
    tries = draws(1, 2)
    Z, _ = add_column(X, np.ones(30), np.ones((30, 1), np.uint8), tries, 0)
    shares = np.cumsum(squares(centred)) / squares(centred).sum()
    i, j = int(np.searchsorted(shares, tries[0, 0])), int(tries[0, 1] * 30)
    expected = centred @ (centred[i] - centred[j]) > 0.0
    np.testing.assert_array_equal(Z[:, 1], expected)


def test_columns_are_seeded_after_the_first():
    X, _, _ = obvious.planted(50, 6, 3, noise=0.05)
    Z = np.zeros((50, 4), np.uint8)
    Z[:, 0] = 1
    seed_columns(X, np.ones(50), Z, 1, draws(4, 5, 2), 2)
    assert np.all(Z[:, 0] == 1)
    errors = [obvious.collapsed(X, Z[:, :K]) for K in range(1, 5)]
    assert np.all(np.diff(errors) < 0.0)


def test_nothing_left_gives_an_empty_column():
    X = np.repeat([[1.0, 2.0]], 8, axis=0)
    Z = np.ones((8, 1), np.uint8)
    more, gain = add_column(X, np.ones(8), Z, draws(5, 2), 2)
    assert gain == pytest.approx(0.0, abs=1e-12)
    assert obvious.collapsed(X, more) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_replaced_and_the_rest_improved(seed):
    X, Z, _ = obvious.planted(60, 6, 4, seed)
    Z[:, 0] = 1
    new, error = replace_columns(
        X, np.ones(60), squares(X), Z, 1, np.array([2]), draws(1, 1, 2, seed=seed),
        100, np.inf,
    )  # fmt: skip
    assert new.shape == Z.shape
    assert np.all(new[:, 0] == 1)
    if np.isfinite(error):
        assert error == pytest.approx(obvious.collapsed(X, new), rel=1e-6, abs=1e-9)
        without = obvious.collapsed(X, np.delete(Z, 2, axis=1))
        assert error <= without * (1 + 1e-9)
    else:
        assert np.linalg.matrix_rank(new) < 4


def test_replacing_leaves_the_original_alone():
    X, Z, _ = obvious.planted(30, 4, 3)
    kept = Z.copy()
    chosen = np.array([0, 2])
    replace_columns(
        X, np.ones(30), squares(X), Z, 0, chosen, draws(2, 1, 2), 100, np.inf
    )
    np.testing.assert_array_equal(Z, kept)
