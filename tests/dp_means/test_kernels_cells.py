"""Sums over cells by their definition."""

import numpy as np

from kplus.dp_means.cells import Cells, TouchingCells
from kplus.dp_means.kernels_cells import sum_cells, two_nearest
from kplus.dp_means.params import Scaling


def test_the_two_least_scores():
    scores = np.random.default_rng(0).integers(0, 4, (50, 6)).astype(float)
    found = np.empty((50, 2), np.intp)
    two_nearest(scores, found)
    expected = np.argsort(scores, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(found, expected)
    two_nearest(scores[:, :1].copy(), found)
    assert not found.any()


def test_sums_of_cells():
    rng = np.random.default_rng(0)
    Y, w, own = rng.normal(size=(40, 3)), rng.uniform(0, 2, 40), np.arange(40) % 4
    counts, means, errors = np.empty(4), np.empty((4, 3)), np.empty(4)
    sum_cells(Y, w, own, counts, means, errors)
    for k in range(4):
        rows, weights = Y[own == k], w[own == k]
        center = np.average(rows, axis=0, weights=weights)
        np.testing.assert_allclose(counts[k], weights.sum())
        np.testing.assert_allclose(means[k], center)
        np.testing.assert_allclose(errors[k], weights @ np.sum((rows - center) ** 2, 1))


def test_spreads_are_those_of_the_rows_on_the_line():
    rng = np.random.default_rng(0)
    Y, ones = rng.normal(size=(80, 2)), np.ones(80)
    C = np.array([[-1.0, 0.0], [1.0, 0.5], [0.0, 5.0]])
    cells = Cells(Scaling(np.zeros(2), 1.0), C, np.array([40.0, 38.0, 2.0]), np.ones(3))
    own = cells.nearest_one(Y)
    axes = TouchingCells.of(cells, Y, ones).axes
    for pair, spreads in zip(axes.pairs, axes.spreads, strict=True):
        line = C[pair[1]] - C[pair[0]]
        line /= np.linalg.norm(line)
        for k, spread in zip(pair, spreads, strict=True):
            rows = Y[own == k] @ line
            expected = rows.std() if len(rows) >= 5 else 1.0  # that of the cell
            np.testing.assert_allclose(spread, expected)
