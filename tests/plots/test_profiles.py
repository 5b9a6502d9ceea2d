"""Profiles of clusters: the numbers drawn against pandas."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from every_estimator import mixed_rows
from kplus import CRAFT, DPMeans, DPMixture
from kplus.plots import ProfileDisplay

HOSTILE = ["$a_b$ %s", "new\nline", "\\frac{", "<b>&amp;", "x" * 500, "_"]


def brute_force(frame, labels):
    """By definition, one column after the other."""
    columns = {}
    for name in frame:
        column = frame[name]
        if column.dtype.kind == "f":
            columns[name] = column
            continue
        for level in column.value_counts(sort=True).index:
            one = (column == level).astype(float).where(column.notna())
            columns[f"{name} = {level}"] = one
    wide = pd.DataFrame(columns)
    groups = [wide[labels == k].mean() for k in range(labels.max() + 1)]
    return (pd.DataFrame(groups) - wide.mean()) / wide.std(ddof=0)


def drawn(display):
    (image,) = display.ax_.get_images()
    return image.get_array()


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas])
def test_against_brute_force(convert):
    frame, labels = mixed_rows(300)
    frame.loc[5:30, "color"] = None
    labels = np.where(np.arange(300) % 11 == 0, -1, labels)
    display = ProfileDisplay.from_predictions(convert(frame), labels)
    expected = brute_force(frame, labels)
    assert set(display.column_names) == set(expected)
    np.testing.assert_allclose(
        display.means, expected[list(display.column_names)], atol=1e-9
    )
    np.testing.assert_allclose(drawn(display), display.means)
    assert display.n_noise == np.count_nonzero(labels < 0)
    assert display.sizes.tolist() == np.bincount(labels[labels >= 0]).tolist()


@pytest.mark.parametrize("cls", [DPMixture, CRAFT, DPMeans])
def test_every_clusterer(cls):
    frame, _ = mixed_rows(120)
    if cls is DPMeans:
        frame = frame.drop(columns="color").fillna(30.0)
    model = cls(random_state=0).fit(frame)
    display = ProfileDisplay.from_estimator(model, frame)
    expected = brute_force(frame, model.predict(frame))
    np.testing.assert_allclose(
        display.means, expected[list(display.column_names)], atol=1e-9
    )


def test_pipeline_file_sparse_and_float32(tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 3)) < 0.5, 0.0, rng.normal(5, 1, (80, 3)))
    pipe = make_pipeline(StandardScaler(), DPMeans(n_clusters=3)).fit(X)
    display = ProfileDisplay.from_estimator(pipe, X)
    labels = pipe.predict(X)
    expected = brute_force(pd.DataFrame(X), labels)
    np.testing.assert_allclose(display.means, expected, atol=1e-9)
    np.save(tmp_path / "rows.npy", X)
    for table in (sp.csr_array(X), X.astype(np.float32), tmp_path / "rows.npy"):
        other = ProfileDisplay.from_predictions(table, labels)
        np.testing.assert_allclose(other.means, display.means, atol=1e-5)


def test_offsets_constant_columns_gaps_and_empty_groups():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 1e9
    X[:, 1] = 0.1 + 1e9
    X[:20, 2] = np.nan
    labels = np.repeat([0, 1, 3], 20)  # 2 is empty
    display = ProfileDisplay.from_predictions(X, labels)
    display.figure_.canvas.draw()
    small = np.column_stack([X[:, 0] - 1e9, X[:, 3] - 1e9])
    expected = brute_force(pd.DataFrame(small), labels)
    np.testing.assert_allclose(display.means[:, [0, 3]], expected, atol=1e-6)
    assert np.isnan(display.means[2]).all()
    assert np.isnan(display.means[0, 2])
    assert (display.means[[0, 1, 3], 1] == 0.0).all()
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts.count("–") == 5


def test_a_column_without_values():
    X = np.column_stack([np.arange(6.0), np.full(6, np.nan)])
    display = ProfileDisplay.from_predictions(X, [0, 0, 0, 1, 1, 1])
    display.figure_.canvas.draw()
    assert np.isnan(display.means[:, 1]).all()


@pytest.mark.parametrize("kind", ["map", "lines"])
@pytest.mark.parametrize(("K", "D"), [(1, 1), (2, 3), (12, 15), (60, 100)])
def test_draws_every_shape(kind, K, D):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(600, D)), np.arange(600) % K
    X[labels == 0, 0] += 9.0
    display = ProfileDisplay.from_predictions(X, labels, kind=kind)
    display.figure_.canvas.draw()
    assert len(display.columns_) == min(D, 40)
    assert display.columns_[0] == 0  # the most telling is among those drawn
    assert (np.diff(display.columns_) > 0).all()
    if kind == "lines":
        lines = display.ax_.get_lines()[1:]
        assert len(lines) == K
        np.testing.assert_allclose(
            lines[-1].get_ydata(), display.means[-1, display.columns_]
        )
        assert len(display.ax_.get_legend().get_texts()) == min(K, 12)


@pytest.mark.parametrize("kind", ["map", "lines"])
def test_hostile_names(kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 6)), columns=HOSTILE)
    frame["c$\n"] = np.array(["$x_%", "\\alpha", "y" * 300])[np.arange(30) % 3]
    figure = Figure(layout="constrained")
    display = ProfileDisplay.from_predictions(
        frame, np.arange(30) % 2, kind=kind, ax=figure.subplots()
    )
    figure.draw_without_rendering()
    ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert ticks[:2] == ["$a_b$ %s", "new line"]
    assert max(map(len, ticks)) == 24


def test_mistakes():
    with pytest.raises(ValueError, match="labels has 2 entries, but X has 3 rows"):
        ProfileDisplay.from_predictions(np.eye(3), [0, 1])
    with pytest.raises(ValueError, match='kind must be "map" or "lines"'):
        ProfileDisplay.from_predictions(np.eye(3), [0, 1, 1], kind="bars")
    with pytest.raises(ValueError, match="There is no cluster"):
        ProfileDisplay.from_predictions(np.eye(2), [-1, -1])


@pytest.mark.parametrize("kind", ["map", "lines"])
def test_rounding_is_no_difference(kind):
    X = np.random.default_rng(0).normal(size=(500, 6))
    display = ProfileDisplay.from_predictions(X, np.zeros(500, int), kind=kind)
    assert np.abs(display.means).max() < 1e-9
    if kind == "map":
        assert display.ax_.get_images()[0].get_clim() == (-1.0, 1.0)
    else:
        assert display.ax_.get_ylim() == (-1.0, 1.0)
