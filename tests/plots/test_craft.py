"""The display of clusters and their features."""

import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from kplus import CRAFT
from kplus.datasets import make_subspace_clusters
from kplus.plots import CraftDisplay


@pytest.fixture(scope="module")
def X():
    return make_subspace_clusters("3a", random_state=0)[0]


@pytest.fixture(scope="module")
def craft(X):
    return CRAFT(random_state=0).fit(X)


def names(labels):
    return [label.get_text() for label in labels]


def drawn(display):
    """Grey and blue values as they are drawn."""
    grey, blue = display.ax_.get_images()
    return grey.get_array(), blue.get_array()


class TestFromEstimator:
    def test_draws_scores_and_selected_features(self, craft):
        display = CraftDisplay.from_estimator(craft)
        display.figure_.canvas.draw()
        grey, blue = drawn(display)
        selected = craft.selected_features_[:, display.features_]
        scores = np.maximum(craft.feature_scores_[:, display.features_], 0.0)
        np.testing.assert_array_equal(~blue.mask, selected)
        np.testing.assert_array_equal(grey.mask, selected)
        np.testing.assert_array_equal(blue.data, scores)
        np.testing.assert_array_equal(grey.data, scores)
        for image in display.ax_.get_images():
            assert image.get_clim() == (0.0, scores.max())

    def test_every_feature_once(self, craft):
        display = CraftDisplay.from_estimator(craft)
        assert sorted(display.features_) == list(range(36))
        assert display.clusters_.tolist() == [0, 1, 2]
        assert display.ax_.get_title(loc="left") == "3 clusters, 36 features"

    def test_clusters_are_named_with_their_sizes(self, craft):
        display = CraftDisplay.from_estimator(craft)
        sizes = craft.cluster_sizes_
        expected = [f"{k}: {n:.0f} ({n / 300:.0%})" for k, n in enumerate(sizes)]
        assert names(display.ax_.get_yticklabels()) == expected
        assert display.ax_.get_ylabel() == "cluster: rows"

    def test_sizes_of_other_rows(self, craft, X):
        rows = X[:50]
        display = CraftDisplay.from_estimator(craft, rows)
        counts = np.bincount(craft.predict(rows), minlength=3)
        np.testing.assert_array_equal(display.sizes, counts)

    def test_names(self, X):
        columns = [f"column {d}" for d in range(34)] + ["a $ or a $", "x" * 50]
        model = CRAFT(random_state=0).fit(pd.DataFrame(X, columns=columns))
        display = CraftDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        labels = names(display.ax_.get_xticklabels())
        shown = dict(zip(display.features_, labels, strict=True))
        assert shown[0] == "column 0"
        assert shown[34] == "a $ or a $"
        assert shown[35] == "x" * 15 + "…" + "x" * 8

    def test_given_axes_without_pyplot(self, craft):
        figure = Figure()
        ax = figure.subplots()
        display = CraftDisplay.from_estimator(craft, ax=ax)
        assert display.ax_ is ax
        assert display.figure_ is figure
        assert not plt.get_fignums()

    def test_not_fitted(self):
        with pytest.raises(ValueError, match="not fitted"):
            CraftDisplay.from_estimator(CRAFT())

    def test_without_matplotlib(self, monkeypatch, craft):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(ImportError, match=r"kplus\[plot\]"):
            CraftDisplay.from_estimator(craft)


class TestOrder:
    def test_blocks(self):
        """Features of one cluster are side by side, those of nobody come last."""
        selected = np.array([[0, 1, 0, 0, 1, 0], [1, 0, 0, 1, 0, 0]], dtype=bool)
        scores = np.where(selected, [[0, 1, 0, 0, 2, 0], [3, 0, 0, 5, 0, 0]], 0.1)
        display = CraftDisplay(scores=scores, selected=selected, sizes=[5, 5])
        assert display.features_.tolist() == [4, 1, 3, 0, 2, 5]

    def test_shared_features_lie_together(self):
        selected = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], dtype=bool)
        scores = selected * [[4.0, 3.0, 2.0, 1.0], [0, 1, 0, 0.5], [0, 0, 0, 0]]
        display = CraftDisplay(scores=scores, selected=selected, sizes=[1, 1, 1])
        assert display.features_.tolist() in ([0, 2, 1, 3], [1, 3, 0, 2])

    def test_the_features_with_the_highest_scores_are_kept(self):
        rng = np.random.default_rng(0)
        scores = rng.random((4, 100))
        scores[:, 17] = 9.0  # told of nobody
        selected = scores > 0.6
        selected[:, 17] = False
        display = CraftDisplay(scores=scores, selected=selected, sizes=[1] * 4).plot()
        own = np.where(selected, scores, 0.0).max(axis=0)
        assert sorted(display.features_) == sorted(np.argsort(-own)[:40])
        title = display.ax_.get_title(loc="left")
        assert title == "4 clusters, the best 40 of 100 features"

    def test_the_largest_clusters_are_kept(self):
        sizes = np.arange(70)[::-1]
        scores = np.ones((70, 3))
        display = CraftDisplay(scores=scores, selected=scores > 0, sizes=sizes).plot()
        assert display.clusters_.tolist() == list(range(60))
        assert display.ax_.get_title(loc="left").startswith("the largest 60 of 70")


@pytest.mark.parametrize(
    ("K", "D", "share"),
    [(1, 1, 0), (1, 60, 1), (3, 13, 0), (13, 20, 0.3), (41, 3, 1), (60, 300, 0.3)],
)
def test_draws_every_shape(K, D, share):
    rng = np.random.default_rng(0)
    display = CraftDisplay(
        scores=rng.normal(size=(K, D)),
        selected=rng.random((K, D)) < share,
        sizes=rng.integers(1, 2000, K),
        feature_names=[f"feature {d}" for d in range(D)],
    ).plot()
    display.figure_.canvas.draw()
    shape = len(display.clusters_), len(display.features_)
    assert shape == (min(K, 60), min(D, 40))
    # Numbers are written where there is room, none of them below zero.
    texts = [text.get_text() for text in display.ax_.texts]
    cells = shape[0] * shape[1]
    numbers = [text for text in texts if text != "•"]
    assert len(numbers) == (cells if cells <= 260 and D <= 20 else 0)
    selected = display.selected[np.ix_(display.clusters_, display.features_)]
    assert len(texts) - len(numbers) == (0 if numbers else selected.sum())
    assert not any(text.startswith("-") for text in texts)


def test_no_feature_has_a_score():
    display = CraftDisplay(
        scores=np.zeros((1, 3)), selected=np.zeros((1, 3), bool), sizes=[7]
    ).plot()
    display.figure_.canvas.draw()
    assert [text.get_text() for text in display.ax_.texts] == ["0", "0", "0"]
