"""The display of latent features."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("matplotlib")
import matplotlib.pyplot as plt

from kplus import BPMeans, KFeatures
from kplus.plots import FeatureDisplay


@pytest.fixture(scope="module")
def X():
    """A level and two features in six columns."""
    rng = np.random.default_rng(0)
    Z = rng.random((80, 2)) < [0.45, 0.3]
    A = np.array([[4.0, 4, 0, 0, 0, -4], [0, 0, 5, 5, 0, 0]])
    return 9.0 + Z @ A + rng.normal(0, 0.2, (80, 6))


@pytest.fixture(scope="module")
def model(X):
    return KFeatures(3, random_state=0).fit(X)


def texts(ax):
    return [text.get_text() for text in ax.texts]


class TestMap:
    def test_values_as_they_are(self, model):
        display = FeatureDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        np.testing.assert_array_equal(display.components, model.components_)
        np.testing.assert_allclose(display.shares, model.feature_counts_ / 80)
        assert display.base == 0
        assert display.ax_.get_title(loc="left") == "3 features"
        heat, bars, _ = display.axes_
        ticks = [tick.get_text() for tick in heat.get_yticklabels()]
        assert ticks == ["base 0", "1", "2"]
        assert [bar.get_width() for bar in bars.patches] == display.shares.tolist()
        assert texts(bars) == [f"{share:.0%}" for share in display.shares]
        # Colours are centred at 0, and the level of the base does not drown the rest.
        (image,) = heat.get_images()
        low, high = image.get_clim()
        assert -low == high == np.abs(model.components_[1:]).max()

    def test_rows_give_units_and_shares(self, model, X):
        display = FeatureDisplay.from_estimator(model, X[:40])
        mean, deviation = X[:40].mean(axis=0), X[:40].std(axis=0)
        expected = model.components_ / deviation
        expected[0] = (model.components_[0] - mean) / deviation
        np.testing.assert_allclose(display.components, expected, atol=1e-8)
        np.testing.assert_allclose(display.shares, model.transform(X[:40]).mean(axis=0))
        assert "standard deviations" in display.ax_.get_title(loc="left")

    def test_gaps_and_constant_columns(self, X):
        rows = np.column_stack([X, np.full(80, 3.0)])
        rows[4, 1] = rows[6, 2] = np.nan
        rows[9] = np.nan
        model = KFeatures(3, random_state=0).fit(rows)
        display = FeatureDisplay.from_estimator(model, rows)
        assert display.base == 0
        assert np.isfinite(display.components).all()
        np.testing.assert_array_equal(display.components[:, 6], 0.0)

    @pytest.mark.parametrize("convert", [sp.csr_array, pd.DataFrame, np.float32])
    def test_any_table(self, model, X, convert):
        display = FeatureDisplay.from_estimator(model, convert(X))
        expected = FeatureDisplay.from_estimator(model, X)
        np.testing.assert_allclose(display.components, expected.components, rtol=1e-3)

    def test_sparse_output(self, X):
        model = BPMeans(penalty=50, sparse_output=True, random_state=0).fit(X)
        display = FeatureDisplay.from_estimator(model, X)
        np.testing.assert_allclose(display.shares, model.feature_counts_ / 80)

    def test_names(self, X):
        names = ["width", "price in $ per $", "x" * 50, "d", "e", "f"]
        frame = pd.DataFrame(X, columns=names)
        model = KFeatures(3, random_state=0).fit(frame)
        display = FeatureDisplay.from_estimator(model, frame)
        display.figure_.canvas.draw()
        ticks = [tick.get_text() for tick in display.axes_[0].get_xticklabels()]
        assert ticks[:2] == names[:2]
        assert len(ticks[2]) == 24
        assert ticks[2][15] == "…"

    @pytest.mark.parametrize(
        ("K", "D"), [(1, 1), (1, 60), (5, 20), (41, 3), (60, 300), (0, 4)]
    )
    @pytest.mark.parametrize("base", [None, 0])
    def test_draws_every_shape(self, K, D, base):
        rng = np.random.default_rng(0)
        display = FeatureDisplay(
            components=rng.normal(size=(K, D)),
            shares=rng.random(K),
            base=base if K else None,
            column_names=[f"column {j}" for j in range(D)],
        ).plot()
        display.figure_.canvas.draw()
        assert len(display.axes_) == (3 if K else 0)
        if K == 0:
            assert display.ax_.get_title(loc="left") == "0 features"

    def test_all_zero(self):
        display = FeatureDisplay(components=np.zeros((2, 3)), shares=[0.5, 0.5])
        display.plot().figure_.canvas.draw()

    def test_base_at_the_mean(self, X):
        """Rounding errors are not shown as if they were values."""
        model = KFeatures(1, random_state=0).fit(X)
        display = FeatureDisplay.from_estimator(model, X)
        np.testing.assert_array_equal(display.components, 0.0)

    def test_given_axes(self, model):
        figure, (left, right) = plt.subplots(1, 2)
        display = FeatureDisplay.from_estimator(model, ax=right)
        assert display.ax_ is right
        assert display.figure_ is figure
        assert not left.child_axes
        assert right.child_axes == display.axes_


class TestPictures:
    def test_base_is_grey(self, model):
        display = FeatureDisplay.from_estimator(model, image_shape=(2, 3))
        display.figure_.canvas.draw()
        base, *others, scale = display.axes_
        (image,) = base.get_images()
        assert image.get_cmap().name == "gray"
        assert base.get_title() == "base 0: 100%"
        assert len(others) == 2
        for k, ax in enumerate(others, start=1):
            (image,) = ax.get_images()
            np.testing.assert_array_equal(
                image.get_array(), model.components_[k].reshape(2, 3)
            )
            low, high = image.get_clim()
            assert -low == high == np.abs(model.components_[1:]).max()
        assert not scale.get_title()

    def test_values_as_they_are_with_rows(self, model, X):
        display = FeatureDisplay.from_estimator(model, X, image_shape=(3, 2))
        np.testing.assert_array_equal(display.components, model.components_)

    @pytest.mark.parametrize("K", [0, 1, 2, 7, 30])
    @pytest.mark.parametrize("base", [None, 0])
    def test_draws_every_number(self, K, base):
        rng = np.random.default_rng(0)
        display = FeatureDisplay(
            components=rng.normal(size=(K, 12)),
            shares=rng.random(K),
            base=base if K else None,
            image_shape=(3, 4),
        ).plot()
        display.figure_.canvas.draw()
        only_base = K == 1 and base == 0
        assert len(display.axes_) == (K if K == 0 or only_base else K + 1)

    def test_wrong_shape(self, model):
        with pytest.raises(ValueError, match=r"has 8 pixels, but .* 6 columns"):
            FeatureDisplay.from_estimator(model, image_shape=(4, 2))
        assert not plt.get_fignums()


def test_not_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        FeatureDisplay.from_estimator(BPMeans())


def test_no_features(X):
    with pytest.warns(UserWarning, match="no feature"):
        model = BPMeans(penalty=1e9).fit(X)
    for rows in (None, X):
        display = FeatureDisplay.from_estimator(model, rows)
        assert display.ax_.get_title(loc="left").startswith("0 features")


def test_without_matplotlib(monkeypatch, model):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"kplus\[plot\]"):
        FeatureDisplay.from_estimator(model)
