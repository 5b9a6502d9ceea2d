"""The map: rows, names and outlines where they should be."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs, make_circles

from kplus import DPMeans, DPMixture
from kplus.report.rows import column_names, draw
from kplus.report.scatter import MAP, NAME_RADIUS, _apart, scatter


def mapped(model, X):
    drawn = draw(model, X, model.labels_)
    own = model.labels_[drawn.numbers]
    return scatter(model, drawn, own, column_names(model), model.n_clusters_)


@pytest.fixture(scope="module")
def blobs():
    X, _ = make_blobs(300, centers=3, n_features=5, random_state=1)
    return X, DPMixture(n_init=1, random_state=0).fit(X)


def test_the_map_shows_every_row_of_a_small_table(blobs):
    X, model = blobs
    found = mapped(model, X)
    assert found.dots.shape == (300, 2)
    assert ((found.dots >= 0.0) & (found.dots <= 1.0)).all()
    np.testing.assert_array_equal(found.labels, model.labels_)
    assert (found.n_rows, found.n_beyond) == (300, 0)


def test_groups_lie_apart(blobs):
    """Each dot is nearest to the middle of its own group."""
    X, model = blobs
    found = mapped(model, X)
    middles = np.array([np.median(found.dots[found.labels == k], 0) for k in range(3)])
    far = np.square(found.dots[:, None] - middles).sum(axis=2)
    assert (far.argmin(axis=1) == found.labels).all()
    for k, center in found.centers.items():
        assert np.square(np.array(center) - middles).sum(axis=1).argmin() == k


def test_an_outline_holds_most_rows_of_a_component(blobs):
    X, model = blobs
    found = mapped(model, X)
    assert {e.group for e in found.ellipses} == {0, 1, 2}
    for e in found.ellipses:
        turn = np.radians(e.angle)
        axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        own = (found.dots[found.labels == e.group] - e.center) @ axes / e.radii
        assert 0.75 < np.mean(np.square(own).sum(axis=1) <= 1.0) <= 1.0
        assert e.radii[0] >= e.radii[1]


def test_the_name_of_a_ring_is_not_in_the_hole():
    X, _ = make_circles(400, factor=0.3, noise=0.02, random_state=0)
    model = DPMeans(n_clusters=1).fit(X)
    model.labels_ = (np.linalg.norm(X, axis=1) < 0.6).astype(np.int64)
    model.n_clusters_ = 2
    found = mapped(model, X)
    for k, center in found.centers.items():
        far = np.linalg.norm(found.dots[found.labels == k] - center, axis=1)
        assert far.min() < 0.05


@pytest.mark.parametrize("K", [2, 20, 60])
def test_names_do_not_cover_each_other(K):
    rng = np.random.default_rng(K)
    apart = _apart(dict(enumerate(0.5 + 0.01 * rng.random((K, 2)))))
    at = np.array(list(apart.values())) * MAP
    far = np.linalg.norm(at[:, None] - at, axis=2)
    np.fill_diagonal(far, np.inf)
    assert far.min() > 0.7 * NAME_RADIUS[K > 24]
    same = _apart({0: np.array([0.2, 0.2]), 1: np.array([0.2, 0.2])})
    assert same[0] != same[1]


def test_names_that_have_room_stay():
    given = {0: np.array([0.2, 0.3]), 3: np.array([0.8, 0.7])}
    assert {k: pytest.approx(at) for k, at in _apart(given).items()} == {
        k: tuple(at) for k, at in given.items()
    }


def test_axes_are_told_in_words():
    rng = np.random.default_rng(0)
    side = np.repeat(["left", "right"], 60)
    up = rng.normal(size=120) + 20.0 * (side == "right")
    frame = pd.DataFrame({"the height of it, in metres": up, "side": side})
    model = DPMixture(n_init=1, random_state=0).fit(frame)
    words = {word for axis in mapped(model, frame).axes for word in axis}
    assert words <= {
        f"{how}{what}"
        for how, what in [
            ("higher ", "the height of it, in metres"),
            ("lower ", "the height of it, in metres"),
            *[
                (no, f"side = {way}")
                for no in ("", "not ")
                for way in ("left", "right")
            ],
        ]
    }


def test_one_column_has_one_axis():
    X = np.r_[np.zeros(20), np.ones(20)][:, None] + np.arange(40)[:, None] / 1e3
    found = mapped(DPMeans(n_clusters=2, random_state=0).fit(X), X)
    assert len(found.axes) == 1
    assert np.unique(found.dots[:, 1]).size == 40


def test_large_tables_are_drawn_in_part_and_small_groups_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    X[:15] += 40.0
    model = DPMeans(n_clusters=1).fit(X)
    model.labels_ = (np.arange(20_000) < 15).astype(np.int64)
    model.n_clusters_ = 2
    found = mapped(model, X)
    assert 4_000 <= len(found.dots) < 4_100
    assert (found.labels == 1).sum() == 15


def test_a_row_far_out_does_not_squeeze_the_others():
    X, _ = make_blobs(1000, centers=2, random_state=0)
    X[0] = 1e6
    model = DPMeans(n_clusters=2, random_state=0).fit(X[1:])
    labels = model.predict(X)
    drawn = draw(model, X, labels)
    found = scatter(model, drawn, labels, column_names(model), 2)
    assert found.n_beyond >= 1
    assert np.ptp(found.dots[1:], axis=0).min() > 0.3


@pytest.mark.parametrize("X", [np.zeros((1, 3)), np.zeros((30, 3)), np.eye(2)])
def test_tables_of_little(X):
    found = mapped(DPMeans(n_clusters=1).fit(X), X)
    assert np.isfinite(found.dots).all()
