"""No word of a picture lies on another, with few groups and with many."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist

from kplus.plots import (
    ClusterDisplay,
    FeatureDisplay,
    ProfileDisplay,
    SurenessDisplay,
    TreeDisplay,
)
from kplus.plots.labels import apart, spread
from kplus.tree.cluster_tree import ClusterTree


def overlap(texts):
    """The most points by which two texts lie on each other, across and down alike."""
    boxes = np.array(
        [text.get_window_extent().extents for text in texts if text.get_text()]
    )
    scale = 72.0 / texts[0].figure.dpi
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    over = (high - low).min(axis=2) * scale
    np.fill_diagonal(over, 0.0)
    return over.max()


@pytest.mark.parametrize("n", [1, 2, 12, 60])
@pytest.mark.parametrize("width", [0.0, 0.3, 2.0])
def test_discs_are_clear_and_inside(n, width):
    places = np.random.default_rng(0).normal(2.5, width, (n, 2))
    moved = spread(places, 0.15, np.zeros(2), np.full(2, 5.0))
    assert pdist(moved).min(initial=1.0) > 0.95 * 0.15
    assert np.abs(moved - places).max() < 1.0
    outside = (moved < 0.0) | (moved > 5.0)
    assert not (outside & (places >= 0.0) & (places <= 5.0)).any()


def test_what_is_clear_or_nowhere_stays():
    ax = plt.subplots()[1]
    ax.set(xlim=(0, 10), ylim=(0, 10))
    places = np.array([[1.0, 1.0], [np.nan, 2.0], [9.0, 9.0], [9.0, 9.0]])
    moved = apart(ax, places, 0.2)
    np.testing.assert_allclose(moved[0], [1.0, 1.0])
    assert np.isnan(moved[1, 0])
    assert np.linalg.norm(moved[2] - moved[3]) > 0.1


@pytest.mark.parametrize("K", [2, 12, 60])
def test_numbers_of_a_map(K):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, K, 40 * K)
    X = rng.normal(0, 0.5, (K, 2))[labels] + rng.normal(size=(40 * K, 2))
    display = ClusterDisplay.from_predictions(X, labels)
    display.figure_.canvas.draw()
    texts = display.ax_.texts
    assert [text.get_text() for text in texts] == [str(k) for k in range(K)]
    assert overlap(texts) < 2.0


@pytest.mark.parametrize("K", [2, 12, 25, 26, 60])
def test_names_of_unequal_blocks(K):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(K), np.maximum(4000 // 2 ** np.arange(K), 1))
    display = SurenessDisplay.from_predictions(rng.random(len(labels)), labels)
    display.figure_.canvas.draw()
    assert overlap(display.ax_.get_yticklabels()) < 3.0
    assert len(display.ax_.texts) == K


@pytest.mark.parametrize("K", [2, 12, 60])
def test_numbers_under_a_tree(K):
    rng = np.random.default_rng(0)
    steps = linkage(rng.normal(size=(K * 5 // 2, 2)), "average")
    tree = ClusterTree(
        steps[:, :2].astype(np.int64), steps[:, 2], np.ones(len(steps) + 1), K, 0.8
    )
    display = TreeDisplay(tree).plot()
    display.figure_.canvas.draw()
    numbers = [text for text in display.ax_.texts if text.get_text().isdigit()]
    assert len(numbers) == K
    assert overlap(numbers) < 3.0


@pytest.mark.parametrize("K", [2, 12, 60])
def test_every_feature_has_its_number_and_share(K):
    rng = np.random.default_rng(0)
    display = FeatureDisplay(
        components=rng.normal(size=(K, 5)), shares=np.ones(K), base=0
    ).plot()
    display.figure_.canvas.draw()
    names = display.axes_[0].get_yticklabels()
    assert [name.get_text() for name in names[:2]] == ["base 0", "1"]
    assert len(names) == len(display.axes_[1].texts) == K
    assert overlap(names) < 3.0


@pytest.mark.parametrize("K", [2, 12, 60])
def test_the_scale_of_colours_keeps_its_size(K):
    rng = np.random.default_rng(0)
    display = ProfileDisplay(
        means=rng.normal(size=(K, 5)), sizes=np.ones(K), column_names="abcde"
    ).plot()
    display.figure_.canvas.draw()
    scale = display.figure_.axes[1].get_window_extent()
    assert scale.height <= 5.5 * display.figure_.dpi
    assert scale.width <= 0.5 * display.figure_.dpi
