"""What the kernels are told of centres: bounds that must never promise too much."""

import numpy as np
import pytest

import reference
from kplus.dp_means.full_covariance import Ellipsoids
from kplus.dp_means.params import Centers, Scaling

PLAIN = Scaling(np.zeros(3), 1.0)


def crowded(size, gap, seed=0):
    """Centres around one point at distance `size`, a `gap` or so from each other."""
    rng = np.random.default_rng(seed)
    return size + gap * rng.normal(size=(40, 3))


def distances(C):
    """From differences, in long double: nothing cancels."""
    C = C.astype(np.longdouble)
    return np.sqrt(np.sum((C[:, None] - C) ** 2, axis=2))


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("share", [1.0, 1e-4, 1e-7, 1e-8, 1e-9])
def test_centres_are_never_nearer_than_their_bound_says(size, share):
    C = crowded(size, share * size)
    params = Centers.start(PLAIN, C)
    true = distances(C)
    off = ~np.eye(len(C), dtype=bool)
    assert np.all(params.pairs[off] <= true[off])
    assert np.all(params.halves <= 0.5 * np.min(true + np.diag([np.inf] * 40), axis=1))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_bounds_of_distances_are_close_where_nothing_cancels(size):
    C = crowded(size, size)
    off = ~np.eye(len(C), dtype=bool)
    pairs = Centers.start(PLAIN, C).pairs
    np.testing.assert_allclose(pairs[off], distances(C)[off].astype(float), rtol=1e-5)


def test_rounding_is_bounded_by_the_centre_farthest_from_the_origin():
    C = crowded(2.0, 30.0)
    params = Centers.start(PLAIN, C)
    farthest = np.sqrt(np.max(np.sum(C**2, axis=1)))
    for drift in (
        params.unknown_drift,
        params.drift(None),
        params.drift(params.travel),
    ):
        assert drift.widest == pytest.approx(farthest)


def test_tiers_hold_the_centres_that_drifted_most():
    """Rows may be compared with a half, a quarter, ... of the centres first."""
    before = Centers.start(PLAIN, crowded(2.0, 30.0))
    steps = np.random.default_rng(3).normal(size=(40, 3))
    drift = before.moved_to(before.centers + steps).drift(before.travel)
    length = np.sqrt(np.sum(steps**2, axis=1))
    np.testing.assert_array_equal(drift.widths, [5, 10, 20, 40])
    for width, beyond in zip(drift.widths, drift.beyond, strict=True):
        rest = np.argsort(-length)[width:]
        assert set(drift.order[width:]) == set(rest)
        assert beyond == pytest.approx(np.max(length[rest], initial=0.0))


def test_a_flat_cluster_keeps_its_distances_finite():
    """Rows on a line: the variance across it is 0, or rounding below 0."""
    direction = np.array([1.0, 0.3, -0.2])
    flat = Ellipsoids(np.zeros((1, 3)), np.outer(direction, direction)[None])
    across = np.cross(direction, [0.0, 0.0, 1.0])
    squares = flat.squares(np.stack([direction, across]))[:, 0]
    assert squares[0] == pytest.approx(1.0)
    assert 1e12 < squares[1] < np.inf
    assert np.all(np.isfinite(flat.stein(1.0)))


def test_distances_are_those_of_the_covariance():
    rng = np.random.default_rng(1)
    half = rng.normal(size=(4, 3, 3))
    params = Ellipsoids(rng.normal(size=(4, 3)), half @ np.swapaxes(half, 1, 2))
    X = rng.normal(size=(9, 3))
    for k in range(4):
        diff, inverse = X - params.centers[k], np.linalg.inv(params.covariances[k])
        expected = np.einsum("nd,de,ne->n", diff, inverse, diff)
        np.testing.assert_allclose(params.squares(X)[:, k], expected, rtol=1e-8)


def test_squares_are_scaled_as_rows_are():
    X = 1e7 + np.random.default_rng(2).normal(scale=1e-3, size=(20, 3))
    scaling = Scaling.fit(X)
    assert np.abs(scaling.transform(X)).max() < 2.0
    assert np.abs(scaling.transform(X)).max() >= 1.0
    far = reference.square_distances(X[:1], X[1:2])[0, 0]
    seen = reference.square_distances(
        scaling.transform(X[:1]), scaling.transform(X[1:2])
    )[0, 0]
    assert scaling.transform_squared(far) == pytest.approx(seen, rel=1e-9)
    assert scaling.inverse_transform_squared(seen) == pytest.approx(far, rel=1e-9)
    np.testing.assert_array_equal(scaling.inverse_transform(scaling.transform(X)), X)
