"""Scaling and centres: the bounds for the kernels must never promise too much."""

import pickle

import numpy as np
import pytest

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


def test_scaling_to_a_unit_spread_and_back():
    rng = np.random.default_rng(0)
    for scale, offset in ((1e-9, 5e-9), (1.0, 5.0), (1e12, 5e12), (1e-3, 1e7)):
        X = rng.normal(size=(40, 3)) * scale + offset
        scaling = Scaling.fit(X)
        Y = scaling.transform(X)
        assert 1.0 <= np.abs(Y).max() < 2.0
        np.testing.assert_allclose(scaling.inverse_transform(Y), X, rtol=1e-13)
        assert np.log2(scaling.inv) % 1.0 == 0.0
        squares = np.sum((X[0] - X[1]) ** 2), np.sum((Y[0] - Y[1]) ** 2)
        assert scaling.transform_squared(squares[0]) == pytest.approx(
            squares[1], rel=1e-12
        )
        assert scaling.inverse_transform_squared(squares[1]) == pytest.approx(
            squares[0], rel=1e-12
        )


def test_scaling_of_equal_rows():
    scaling = Scaling.fit(np.full((4, 2), 7.0))
    assert scaling.inv == 1.0
    np.testing.assert_array_equal(scaling.transform(np.full((1, 2), 7.0)), [[0.0, 0.0]])


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-160, 1e150, 1e300])
def test_scaling_of_extreme_scales(scale):
    X = np.array([[0.0], [1.0], [2.0], [3.0]]) * scale
    scaling = Scaling.fit(X)
    assert 0.0 < scaling.inv < np.inf
    assert np.all(np.isfinite(scaling.transform(X)))
    np.testing.assert_allclose(
        scaling.inverse_transform(scaling.transform(X)), X, rtol=1e-12
    )


def test_centres_renumbered_and_born():
    params = Centers.start(Scaling(np.zeros(1), 1.0), np.array([[1.0], [2.0], [3.0]]))
    params = params.moved_to(params.centers + 0.5)
    after = params.regroup(np.array([1, -1, 0])).grown(np.array([[9.0]]))
    np.testing.assert_array_equal(after.centers, [[3.5], [1.5], [9.0]])
    np.testing.assert_array_equal(after.refs, [[3.0], [1.0], [9.0]])
    assert after.travel[2] == 0.0
    assert np.all(after.travel[:2] >= 0.5)


def test_centres_are_sent_without_what_the_kernels_computed():
    params = Centers.start(PLAIN, np.eye(3))
    assert params.drift(params.travel) is params.drift(params.travel)
    assert params.unknown_drift is not None
    assert params.halves.tolist() != [0.0] * 3
    there = pickle.loads(pickle.dumps(params))
    assert vars(there).keys() == vars(Centers.start(PLAIN, np.eye(3))).keys()
    np.testing.assert_array_equal(there.centers, params.centers)
    np.testing.assert_array_equal(there.halves, params.halves)
