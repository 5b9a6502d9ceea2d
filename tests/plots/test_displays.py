"""The displays: they draw what they are given, in every shape."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from every_estimator import mixed_rows

pytest.importorskip("matplotlib")
import matplotlib.pyplot as plt
from matplotlib.colors import to_hex

from kplus import CRAFT, ColumnsWarning, DPMeans, DPMixture
from kplus.plots import ClusterDisplay, PenaltyPathDisplay
from kplus.plots.style import cluster_style


def blobs(D, K=3, n=60):
    X, labels = make_blobs(n, n_features=D, centers=K, random_state=0)
    return X, labels


def drawn_points(display):
    return sum(len(part.get_offsets()) for part in display.ax_.collections)


class TestClusters:
    @pytest.mark.parametrize(
        ("D", "K"), [(1, 1), (1, 12), (1, 61), (2, 1), (2, 60), (3, 13), (20, 61)]
    )
    def test_draws_every_shape(self, D, K):
        X, labels = blobs(D, K, n=200)
        display = ClusterDisplay.from_predictions(X, labels)
        display.figure_.canvas.draw()
        lines = display.ax_.get_legend().get_texts()
        assert len(lines) == min(K, 60)
        assert len(display.ax_.texts) == (K if K <= 60 else 0)
        if D > 1:
            assert drawn_points(display) == 200

    def test_estimator(self):
        X, _ = blobs(4)
        frame = pd.DataFrame(X, columns=list("abcd"))
        model = DPMeans(n_clusters=3, random_state=0).fit(frame)
        display = ClusterDisplay.from_estimator(model, frame)
        assert display.centers.shape == (3, 2)
        assert display.sizes.tolist() == np.bincount(model.labels_).tolist()
        assert display.ax_.get_xlabel().startswith("axis 1: ")
        legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert legend[0] == f"0: {display.sizes[0]} ({display.sizes[0] / 60:.0%})"

    @pytest.mark.parametrize("cls", [DPMixture, CRAFT])
    def test_frames_with_categories_and_gaps(self, cls):
        frame, _ = mixed_rows(90)
        frame.insert(0, "id", np.arange(90))
        with pytest.warns(ColumnsWarning, match="ids: id"):
            model = cls(random_state=0).fit(frame)
        display = ClusterDisplay.from_estimator(model, frame)
        display.figure_.canvas.draw()
        assert np.isfinite(display.points).all()
        assert "color = " in display.ax_.get_xlabel() + display.ax_.get_ylabel()

    def test_pipeline(self):
        X, _ = blobs(4)
        pipe = make_pipeline(StandardScaler(), DPMeans(n_clusters=3)).fit(X)
        assert ClusterDisplay.from_estimator(pipe, X).centers.shape == (3, 2)

    @pytest.mark.parametrize("K", [2, 3])
    def test_groups_that_differ_in_little_of_the_variance_lie_apart(self, K):
        rng = np.random.default_rng(0)
        labels = rng.integers(0, K, 300)
        X = rng.normal(size=(300, 6)) * [1000.0, 300.0, 1.0, 1.0, 1.0, 1.0]
        X[:, 4] += 9.0 * labels
        display = ClusterDisplay.from_predictions(X, labels)
        assert display.ax_.get_xlabel() == "axis 1: column 4"
        nearest = cdist(display.points, display.centers).argmin(axis=1)
        assert (nearest == labels).all()

    def test_wide_tables_noise_and_constant_columns(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(50, 300))
        X[:, :9] = 5.0
        labels = np.repeat([-1, 0, 1], [10, 20, 20])
        display = ClusterDisplay.from_predictions(X, labels)
        assert np.isfinite(display.points).all()
        assert display.n_noise == 10

    def test_blocks_without_take(self):
        X, _ = blobs(2)

        class Own:
            n_rows, n_features, block_rows = 60, 2, 16

            def read(self, index):
                return X[index * 16 : (index + 1) * 16]

        model = DPMeans(n_clusters=3, random_state=0).fit(Own())
        display = ClusterDisplay.from_estimator(model, Own(), max_points=20)
        assert drawn_points(display) == 20
        assert all(point in X for point in display.points)

    def test_two_columns_are_drawn_as_they_are(self):
        X, labels = blobs(2)
        frame = pd.DataFrame(X, columns=["width", "height"])
        display = ClusterDisplay.from_predictions(frame, labels)
        np.testing.assert_array_equal(display.points, X)
        assert display.ax_.get_xlabel() == "width"
        assert display.ax_.get_ylabel() == "height"
        np.testing.assert_allclose(display.centers[1], X[labels == 1].mean(axis=0))

    @pytest.mark.parametrize("convert", [np.asarray, list, sp.csr_array, sp.csc_matrix])
    def test_any_table(self, convert):
        X, labels = blobs(3)
        display = ClusterDisplay.from_predictions(convert(X), labels)
        expected = ClusterDisplay.from_predictions(X, labels)
        np.testing.assert_allclose(display.points, expected.points)

    def test_file(self, tmp_path):
        X, labels = blobs(2)
        np.save(tmp_path / "x.npy", X)
        display = ClusterDisplay.from_predictions(tmp_path / "x.npy", labels)
        np.testing.assert_array_equal(display.points, X)

    def test_samples_but_counts_all(self):
        X, labels = blobs(2, n=300)
        draw = ClusterDisplay.from_predictions
        display = draw(X, labels, max_points=50)
        assert drawn_points(display) == 50
        assert display.sizes.sum() == 300
        assert "300 rows, 50 of them drawn" in display.ax_.get_title()
        again = draw(X, labels, max_points=50)
        np.testing.assert_array_equal(again.points, display.points)
        other = draw(X, labels, max_points=50, random_state=1)
        assert not np.array_equal(other.points, display.points)

    def test_given_axes(self):
        X, labels = blobs(2)
        figure, ax = plt.subplots()
        display = ClusterDisplay.from_predictions(X, labels, ax=ax)
        assert display.ax_ is ax
        assert display.figure_ is figure

    @pytest.mark.parametrize("n", [1, 2, 5])
    @pytest.mark.parametrize("D", [1, 2, 5])
    def test_equal_rows(self, n, D):
        display = ClusterDisplay.from_predictions(np.ones((n, D)), np.zeros(n, int))
        display.figure_.canvas.draw()

    def test_cluster_without_rows(self):
        X, labels = blobs(2)
        centers = np.vstack([np.zeros((3, 2)), [[50.0, 50]]])
        display = ClusterDisplay.from_predictions(X, labels, centers=centers)
        assert display.sizes.tolist() == [20, 20, 20, 0]
        display.figure_.canvas.draw()


def path(K, corners, chosen):
    """A path whose steps meet at the given penalties."""
    low, high = np.array([*corners, 0.0]), np.array([np.inf, *corners])
    finite = [x for x in (low[chosen], high[chosen]) if 0 < x < np.inf] or [2.0]
    return SimpleNamespace(
        n_clusters=np.array(K),
        penalty_low=low,
        penalty_high=high,
        chosen=chosen,
        penalty=float(np.exp(np.mean(np.log(finite)))),
    )


class TestPenaltyPath:
    @pytest.mark.parametrize(
        ("K", "corners", "chosen"),
        [
            ([1], [], 0),
            ([1, 2, 5, 9], [100.0, 30.0, 2.0], 2),
            ([1, 4, 50, 200], [1e5, 10.0, 1e-3], 1),
            ([1, 3], [5.0], 0),
        ],
    )
    def test_draws_a_staircase(self, K, corners, chosen):
        display = PenaltyPathDisplay.from_path(path(K, corners, chosen))
        display.figure_.canvas.draw()
        stairs = display.ax_.lines[0]
        assert np.isfinite(stairs.get_xdata()).all()
        assert (stairs.get_xdata() > 0).all()
        assert (np.diff(stairs.get_xdata()) >= 0).all()
        assert stairs.get_ydata().tolist() == np.repeat(K[::-1], 2).tolist()
        (text,) = display.ax_.get_legend().get_texts()
        assert text.get_text().startswith(f"chosen: K = {K[chosen]}, ")

    def test_given_axes(self):
        _, ax = plt.subplots()
        given = PenaltyPathDisplay(path([1, 3], [5.0], 1))
        assert given.plot(ax=ax).ax_ is ax


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"kplus\[plot\]"):
        ClusterDisplay.from_predictions(np.eye(2), [0, 1])


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_noise_is_grey_and_below_all(n_columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, n_columns))
    labels = np.repeat([0, 1, -1], 20)
    display = ClusterDisplay.from_predictions(X, labels)
    np.testing.assert_array_equal(display.sizes, [20, 20])
    assert display.n_noise == 20
    names = display.ax_.get_legend_handles_labels()[1]
    assert names == ["noise: 20 (33%)", "0: 20 (33%)", "1: 20 (33%)"]
    assert display.ax_.get_title().startswith("2 clusters of 60 rows")
    if n_columns < 3:
        np.testing.assert_allclose(display.centers[0], X[:20].mean(axis=0))


@pytest.mark.parametrize("n_columns", [1, 2, 4])
def test_hostile_names(n_columns):
    rng = np.random.default_rng(0)
    names = ["$a_b$ %\n$", "\\frac{", "x" * 500, "_"][:n_columns]
    frame = pd.DataFrame(rng.normal(size=(40, n_columns)), columns=names)
    display = ClusterDisplay.from_predictions(frame, np.arange(40) % 3)
    display.figure_.canvas.draw()
    words = display.ax_.get_xlabel() + display.ax_.get_ylabel()
    assert "\n" not in words
    assert len(words) <= 120


def test_an_ellipse_has_the_color_of_its_cluster_beside_noise():
    rng = np.random.default_rng(0)
    labels = np.repeat([-1, 2], 10)  # a component of which half is noise
    display = ClusterDisplay.from_predictions(
        rng.normal(size=(20, 2)), labels, components=np.zeros(20, int)
    )
    (ellipse,) = display.ax_.patches
    assert to_hex(ellipse.get_edgecolor()).upper() == cluster_style(2)[0]
