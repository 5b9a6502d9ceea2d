"""Projections of the rows with two values."""

import numpy as np
import pytest

from kplus.linear.pursuit import _Columns, _cube, _unmixed, two_valued


def rotated(share, K=3, n=4000):
    """Whitened rows of independent bits that a share of the rows has; the rotation."""
    rng = np.random.default_rng(0)
    bits = rng.random((n, K)) < share
    centred = bits - bits.mean(axis=0)
    white = centred @ np.linalg.inv(np.linalg.cholesky(np.cov(centred.T, ddof=0)).T)
    rotation = np.linalg.qr(rng.normal(size=(K, K)))[0]
    return bits, white @ rotation.T, rotation


@pytest.mark.parametrize(
    ("share", "contrast", "shrink"), [(0.1, np.square, 0.0), (0.5, _cube, 3.0)]
)
def test_directions_of_independent_bits(share, contrast, shrink):
    """Squares for rare bits; for those of half the rows E[y (y·w)³] − 3w."""
    _, Y, rotation = rotated(share)
    shares = np.full(len(Y), 1.0 / len(Y))
    for seed in range(5):
        W = _unmixed(Y, shares, contrast, shrink, np.random.default_rng(seed))
        np.testing.assert_allclose(W.T @ W, np.eye(3), atol=1e-9)
        cosines = np.abs(rotation.T @ W)
        assert np.all(cosines.max(axis=0) > 0.99)
        assert sorted(cosines.argmax(axis=0)) == [0, 1, 2]


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_bits_are_found_up_to_their_sign(share):
    bits, Y, _ = rotated(share)
    shares = np.full(len(Y), 1.0 / len(Y))
    columns, n_pure = two_valued(Y, shares, np.random.default_rng(0))
    assert n_pure == 3
    agree = np.array([[np.mean(bits[:, k] == c) for c in columns.T] for k in range(3)])
    np.testing.assert_array_equal(np.maximum(agree, 1.0 - agree).max(axis=1), 1.0)


@pytest.mark.parametrize(("enough", "pure"), [(1.0, False), (0.6, True), (0.3, True)])
def test_enough_of_the_columns_have_two_values(enough, pure):
    """Two of three; the other is a normal."""
    _, Y, rotation = rotated(0.5)
    Y = Y @ rotation
    Y[:, 2] = np.random.default_rng(1).normal(size=len(Y))
    columns = _Columns(Y, np.full(len(Y), 1.0 / len(Y)), enough)
    assert not columns.pure  # none was tried
    columns.try_directions(np.eye(3))
    assert columns.pure is pure
