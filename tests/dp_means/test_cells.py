"""Clusters of any shape, joined from cells."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

import kplus
from kplus import DPMeans
from kplus.core.types import Block
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means.cells import Cells, TouchingCells
from kplus.dp_means.params import Scaling
from kplus.tree.borders import N_BINS


def ring_and_disc(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    around = rng.uniform(0, 2 * np.pi, n)
    ring = 5 * np.column_stack([np.cos(around), np.sin(around)])
    X = np.concatenate([ring, np.zeros((n // 2, 2))]) + rng.normal(
        0, 0.35, (n + n // 2, 2)
    )
    return X, np.repeat([0, 1], [n, n // 2])


@pytest.fixture(scope="module")
def fitted():
    X, y = ring_and_disc()
    return X, y, DPMeans(cells="auto", random_state=0).fit(X)


def test_a_ring_and_what_is_in_it_are_two_clusters(fitted):
    X, y, model = fitted
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(y, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(
        model.cluster_of_cell_[model.cell_labels_], model.labels_
    )
    assert len(model.cell_centers_) == len(X) // 40
    np.testing.assert_allclose(model.cluster_sizes_, np.bincount(model.labels_))
    for k in range(2):
        np.testing.assert_allclose(
            model.cluster_centers_[k], X[model.labels_ == k].mean(axis=0), atol=1e-9
        )


def test_distances_are_those_to_the_nearest_cell(fitted):
    X, _, model = fitted
    every = cdist(X, model.cell_centers_)
    expected = np.stack(
        [every[:, model.cluster_of_cell_ == k].min(axis=1) for k in range(2)], axis=1
    )
    np.testing.assert_allclose(model.transform(X), expected)
    own = every[np.arange(len(X)), model.cell_labels_]
    assert model.objective_ == pytest.approx(np.sum(own**2))
    assert -model.score(X) == pytest.approx(model.objective_)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 7])
def test_a_number_is_met_exactly(n_clusters):
    X, _ = ring_and_disc()
    model = DPMeans(cells=30, n_clusters=n_clusters, random_state=0).fit(X)
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))
    assert len(model.cell_centers_) == 30


def test_more_clusters_than_the_usual_cells():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    model = DPMeans(cells="auto", n_clusters=520, random_state=0).fit(X)
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(520))


def test_axes_of_weighted_rows_are_those_of_copies():
    rng = np.random.default_rng(0)
    Y, weights = rng.normal(size=(60, 2)), rng.integers(1, 5, 60)
    copies = np.repeat(Y, weights, axis=0)
    start = rng.normal(size=(6, 2))
    cells, _ = Cells.around(Y, weights.astype(float), start)
    one = TouchingCells.of(cells, Y, weights.astype(float)).axes
    other = TouchingCells.of(cells, copies, np.ones(len(copies))).axes
    np.testing.assert_array_equal(one.pairs, other.pairs)
    np.testing.assert_allclose(one.spreads, other.spreads, rtol=1e-12)


def test_sums_of_a_pass_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    Y, weights = rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, 60)
    C, var = rng.normal(size=(6, 3)), rng.uniform(0.5, 1.5, 6)
    counts = rng.uniform(5.0, 20.0, 6)
    cells = Cells(Scaling(np.zeros(3), 1.0), C, counts, var)
    model = TouchingCells.of(cells, Y, np.ones(len(Y)))
    source = ArrayBlocks(Y)
    found, _ = model.summarize(cells, Block(source, 0, 0, 60, weights), None)
    squared = cdist(Y, C) ** 2
    order = np.argsort(squared, axis=1)
    overlap, histograms = np.zeros((6, 6)), np.zeros_like(found.counts)
    score = np.log(counts) - 1.5 * np.log(var) - 0.5 * squared / var
    for i, (a, b) in enumerate(order[:, :2]):
        share = expit(score[i, b] - score[i, a])
        overlap[a, a] += weights[i] * (1.0 - share)
        overlap[b, a] += weights[i] * share
        assert [min(a, b), max(a, b)] in model.axes.pairs.tolist()
        for p, pair in enumerate(model.axes.pairs):
            low, high = model.axes.low[p], model.axes.high[p]
            line = C[pair[1]] - C[pair[0]]
            place = (Y[i] @ line / np.linalg.norm(line) - low) / (high - low)
            if a in pair and 0.0 <= place < 1.0:
                histograms[p, int(place * N_BINS)] += weights[i]
    np.testing.assert_allclose(found.overlap, overlap)
    np.testing.assert_allclose(found.counts, histograms)


def test_blocks_threads_and_offsets_do_not_matter(fitted):
    X, _, model = fitted
    again = DPMeans(cells="auto", random_state=0, batch_size=173, n_jobs=2).fit(X)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    far = DPMeans(cells="auto", random_state=0).fit(X + 1e7)
    assert adjusted_rand_score(far.labels_, model.labels_) == 1.0


def test_weights_of_two_are_rows_twice():
    X, _ = ring_and_disc(400)
    twice = DPMeans(cells=15, random_state=0).fit(np.repeat(X, 2, axis=0))
    heavy = DPMeans(cells=15, random_state=0).fit(X, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_array_equal(twice.labels_[::2], heavy.labels_)


def test_model_files_keep_cells(fitted, tmp_path):
    X, _, model = fitted
    kplus.save(model, tmp_path / "cells.kplus")
    loaded = kplus.load(tmp_path / "cells.kplus")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_array_equal(
        loaded.cluster_tree_.cut(5), model.cluster_tree_.cut(5)
    )
    np.testing.assert_array_equal(loaded.cluster_of_cell_, model.cluster_of_cell_)


def test_few_and_equal_rows():
    for X in (np.zeros((5, 2)), np.ones((1, 3)), np.repeat(np.eye(3), 60, axis=0)):
        model = DPMeans(cells="auto").fit(X)
        assert model.n_clusters_ == len(np.unique(X, axis=0))
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_fit_without_cells_forgets_them(fitted):
    X, _, _ = fitted
    model = DPMeans(cells=20, random_state=0).fit(X)
    model.set_params(cells=None, n_clusters=3).fit(X)
    assert not hasattr(model, "cell_centers_")
    assert model.predict(X).max() == 2


def test_warm_starts_begin_with_the_cells(fitted):
    X, _, _ = fitted
    model = DPMeans(cells=25, random_state=0, warm_start=True).fit(X)
    before = model.objective_
    assert model.fit(X).objective_ <= before * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"penalty": 3.0}, "a number as penalty"),
        ({"max_clusters": 3}, "max_clusters"),
        ({"collapsed": True, "n_clusters": 2}, "collapsed=True"),
        ({"cells": 4, "n_clusters": 5}, "n_clusters=5 is more than cells=4"),
        ({"cells": 0}, "cells"),
    ],
)
def test_settings_without_meaning_are_refused(settings, words):
    X, _ = ring_and_disc(100)
    with pytest.raises(ValueError, match=words):
        DPMeans(**({"cells": "auto"} | settings)).fit(X)


def test_more_clusters_than_rows_fill():
    X = np.repeat(np.eye(3), 5, axis=0)
    with pytest.raises(ValueError, match="more than the 3 cells"):
        DPMeans(cells="auto", n_clusters=4).fit(X)


def test_streams_are_refused(fitted):
    X, _, model = fitted
    with pytest.raises(ValueError, match="partial_fit does not go with cells"):
        model.partial_fit(X)
    with pytest.raises(ValueError, match="partial_fit does not go with cells"):
        DPMeans(cells="auto").partial_fit(X)
