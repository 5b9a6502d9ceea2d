"""What a pass of DP-means reports: rows moved, rows that want a cluster, none empty."""

from dataclasses import replace

import numpy as np
import pytest

from kplus.data.blocks import ArrayBlocks
from kplus.dp_means import model as fast
from kplus.dp_means.model import Candidates, ClusterSums, DPMeansModel
from kplus.dp_means.params import Centers, Scaling
from kplus.dp_means.sequential import Tally
from kplus.engine import SerialEngine

PLAIN = Scaling(np.zeros(2), 1.0)


@pytest.mark.parametrize("few", [0, 10**6], ids=["bounded", "measured"])
def test_a_second_look_at_the_same_centres_moves_no_row(few, monkeypatch):
    """Also where the bounds say that not a single row need be read."""
    monkeypatch.setattr(fast, "_FEW", few)
    X = np.random.default_rng(0).normal((20.0, 0.0), size=(60, 2))
    X[:30] *= -1.0
    model = DPMeansModel(np.inf)
    params = Centers.start(PLAIN, np.array([[20.0, 0.0], [-20.0, 0.0]]))
    with SerialEngine(ArrayBlocks(X, 16)) as engine:
        first, second = (engine.sweep(model, params, range(4)) for _ in "ab")
        assert first.moved == 60
        assert not model.converged(first)
        assert second.moved == 0
        assert model.converged(second)
        np.testing.assert_array_equal(second.counts, [0.0, 0.0])  # the change


def some_candidates(cost, y):
    n = len(cost)
    return Candidates(
        np.asarray(cost, float),
        np.arange(n),
        np.zeros(n, int),
        np.ones(n),
        np.asarray(y, float)[:, None],
    )


def test_many_copies_of_a_row_do_not_crowd_out_others():
    """One far row, 600 copies of a nearer one, then a hundred others."""
    values = np.concatenate([[50.0], np.full(600, 40.0), 30.0 - 0.1 * np.arange(100)])
    kept = some_candidates(values**2, values).ranked()
    assert len(kept) == 102
    np.testing.assert_allclose(kept.y[:, 0], np.unique(values)[::-1])
    np.testing.assert_array_equal(kept.weight[:3], [1.0, 600.0, 1.0])
    halves = (np.arange(0, 701, 2), np.arange(1, 701, 2))
    parts = [some_candidates(values**2, values).at(half) for half in halves]
    joined = parts[0].merged(parts[1])
    np.testing.assert_array_equal(joined.row, kept.row)
    np.testing.assert_array_equal(joined.weight, kept.weight)


def test_without_copies_the_costliest_are_kept():
    cost = np.random.default_rng(1).permutation(2000).astype(float)
    kept = some_candidates(cost, cost).ranked()
    np.testing.assert_array_equal(kept.cost, np.arange(1999.0, 1999.0 - 512, -1.0))
    np.testing.assert_array_equal(cost[kept.row], kept.cost)


def test_where_no_cluster_has_rows_all_are_empty():
    sums, model = ClusterSums.zeros(3, 2), DPMeansModel(1.0)
    centers = np.arange(6.0).reshape(3, 2)
    start = Centers.start(PLAIN, centers)
    assert model.empty(start, sums).all()
    np.testing.assert_array_equal(model.means(start, sums), centers)
    sums.counts[1] = 5.0
    sums.counts[2] = 1e-15  # weights that came and went
    np.testing.assert_array_equal(model.empty(start, sums), [True, False, True])
    earlier = replace(start, mass=np.array([0.0, 0.0, 1.0]))
    np.testing.assert_array_equal(model.empty(earlier, sums), [True, False, False])


def test_reports_of_rows_one_by_one_begin_anew_with_each_pass():
    total, part = Tally.zeros(2, 3), Tally.zeros(3, 3)
    part.counts[2], part.moved, part.born = 5.0, 4, np.ones((2, 3))
    for n in (1, 2):
        total += part
        assert (total.moved, len(total.born)) == (4 * n, 2 * n)
    total.begin_pass()
    assert (total.moved, len(total.born)) == (0, 0)
    np.testing.assert_array_equal(total.counts, [0.0, 0.0, 10.0])
