"""The picture of stability, with few groups and many."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from kplus.plots import StabilityDisplay
from kplus.validation.stability_result import Stability


def made(K, n_fits=6):
    rng = np.random.default_rng(0)
    jaccard = rng.uniform(0.4, 1.0, (n_fits, K))
    return Stability(
        method="bootstrap", n_rows=500, rows=np.arange(500), kind="clusters",
        sizes=np.full(K, 10.0), jaccard=jaccard, by_chance=np.zeros((n_fits, K)),
        noise_jaccard=None, row_agreement=np.ones(500),
        n_found=K + rng.integers(0, 3, n_fits),
    )  # fmt: skip


@pytest.mark.parametrize("K", [1, 2, 12, 60])
def test_bars_and_numbers(K):
    result = made(K)
    display = StabilityDisplay.from_stability(result)
    display.figure_.canvas.draw()
    bars, numbers = display.axes_
    heights = [bar.get_height() for bar in bars.patches]
    np.testing.assert_allclose(heights, result.group_stability)
    for bar, value in zip(bars.patches, result.group_stability, strict=True):
        color = "#0072B2" if value >= 0.75 else "#D55E00" if value < 0.6 else "#E69F00"
        assert bar.get_facecolor()[:3] == to_rgb(color)
    assert [bar.get_width() for bar in numbers.patches] == list(
        result.number_counts.values()
    )
    dots = [line for line in bars.lines if line.get_marker() == "o"]
    assert len(dots) == (K <= 20)
    assert len(bars.get_xticks()) <= 30


def test_on_axes_of_ones_own():
    _, ax = plt.subplots()
    assert StabilityDisplay(made(3)).plot(ax=ax).ax_ is ax
    assert ax.get_title() == made(3).verdict.replace(". ", ".\n")


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="no group"):
        StabilityDisplay.from_stability(made(0))
