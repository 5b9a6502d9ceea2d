"""Displays of models with an Indian buffet process prior."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

pytest.importorskip("matplotlib")
import matplotlib.pyplot as plt

from kplus import MEIBP, IBPGibbs, IBPVariational
from kplus.plots import FeatureDisplay, TraceDisplay

A = np.array([[4.0, 4, 0, 0, 0, 4], [0, 0, 5, 5, 0, 0]])


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    Z = rng.random((80, 2)) < [0.45, 0.3]
    return Z @ A + rng.normal(0, 0.2, (80, 6))


@pytest.fixture(scope="module")
def model(X):
    return MEIBP(negative="noise", random_state=0).fit(X)


class TestFeatures:
    def test_of_the_fit(self, model):
        display = FeatureDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        np.testing.assert_array_equal(display.components, model.components_)
        np.testing.assert_array_equal(display.shares, model.feature_counts_ / 80)
        assert display.base is None

    def test_of_rows(self, model, X):
        gaps = X.copy()
        gaps[3, 1] = np.nan
        display = FeatureDisplay.from_estimator(model, gaps)
        expected = model.components_ / np.nanstd(gaps, axis=0)
        np.testing.assert_allclose(display.components, expected, atol=1e-8)
        shares = model.transform(gaps).mean(axis=0)
        np.testing.assert_allclose(display.shares, shares)

    def test_base_after_a_shift(self, X):
        """The base is told from the means, with what was taken off counted."""
        rows = pd.DataFrame(X - 20.0, columns=list("abcdef"))
        model = MEIBP(negative="shift", random_state=0).fit(rows)
        display = FeatureDisplay.from_estimator(model, rows)
        assert display.base is not None
        level = model.components_[display.base] + model.offset_
        expected = (level - rows.mean()) / rows.std(ddof=0)
        np.testing.assert_allclose(
            display.components[display.base], expected, atol=1e-8
        )
        assert np.abs(display.components[display.base]).max() < 2.0

    @pytest.mark.parametrize(
        "model",
        [IBPGibbs(n_samples=10, random_state=0), IBPVariational(3, random_state=0)],
        ids=["sampler", "variational"],
    )
    def test_probabilities(self, model, X):
        """A base has more than one half in all rows; shares are expected ones."""
        model.fit(X + 3.0)
        display = FeatureDisplay.from_estimator(model, X + 3.0)
        bits = model.transform(X + 3.0)
        np.testing.assert_allclose(display.shares, bits.mean(axis=0))
        everywhere = np.flatnonzero((bits > 0.5).all(axis=0))
        assert display.base == (everywhere[0] if len(everywhere) else None)
        FeatureDisplay.from_estimator(model).figure_.canvas.draw()

    def test_pictures(self, model):
        display = FeatureDisplay.from_estimator(model, image_shape=(2, 3))
        display.figure_.canvas.draw()
        assert len(display.axes_) == 3


class TestTraces:
    def test_bound_of_a_fit(self, model):
        display = TraceDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        panel, numbers = display.axes_
        (line,) = panel.get_lines()
        np.testing.assert_array_equal(line.get_ydata(), model.lower_bound_history_)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(model.n_iter_) + 1)
        assert panel.get_ylabel() == "lower bound"
        assert numbers.get_ylabel() == "features"
        assert numbers.get_lines()[0].get_ydata()[-1] == model.n_components_
        assert numbers.get_xlabel() == "pass"

    def test_chain(self, X):
        model = IBPGibbs(n_samples=20, burn_in=5, random_state=0).fit(X)
        display = TraceDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        names = ["log joint", "features", "noise scale", "factor scale", "alpha"]
        assert [ax.get_ylabel() for ax in display.axes_] == names
        assert display.burn_in == 5
        numbers = display.axes_[1].get_lines()[0].get_ydata()
        np.testing.assert_array_equal(numbers, model.n_components_history_)

    def test_burn_in_is_grey_and_does_not_stretch_the_axis(self):
        values = np.concatenate([[-1e6], np.linspace(-3, -1, 99)])
        display = TraceDisplay({"log joint": values}, burn_in=10).plot()
        display.figure_.canvas.draw()
        (panel,) = display.axes_
        low, high = panel.get_ylim()
        assert -10 < low < -3
        assert -1 < high < 5
        assert len(panel.patches) == 1

    @pytest.mark.parametrize("n", [1, 2, 500])
    @pytest.mark.parametrize("burn_in", [0, 1, 9999])
    def test_draws_every_length(self, n, burn_in):
        traces = {"features": np.full(n, 3), "alpha": np.linspace(0, 1, n)}
        display = TraceDisplay(traces, burn_in=burn_in).plot()
        display.figure_.canvas.draw()
        assert [ax.get_ylabel() for ax in display.axes_] == ["features", "alpha"]

    def test_given_axes(self, model):
        _, (left, right) = plt.subplots(1, 2)
        display = TraceDisplay.from_estimator(model, ax=right)
        assert right.child_axes == display.axes_
        assert not left.child_axes

    def test_models_without_a_history(self, X):
        with pytest.raises(ValueError, match="KMeans keeps no history"):
            TraceDisplay.from_estimator(KMeans(2).fit(X))
        with pytest.raises(ValueError, match="not fitted"):
            TraceDisplay.from_estimator(MEIBP())
