"""DP-means as a model: against the obvious algorithm, and the parts it is made of."""

from dataclasses import replace

import numpy as np
import pytest

import reference
from kplus.core import loop
from kplus.core.errors import NotFiniteError
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means import model as fast
from kplus.dp_means.model import Candidates, ClusterSums, DPMeansModel, shortlist
from kplus.dp_means.moves import (
    DropEmpty,
    EndOverrelaxation,
    OpenClusters,
    RemoveCluster,
)
from kplus.dp_means.params import Centers, Scaling
from kplus.engine import SerialEngine

PLAIN = Scaling(np.zeros(2), 1.0)
MOVES = [DropEmpty(), OpenClusters(), RemoveCluster()]


@pytest.fixture(params=["measured", "bounded"])
def either_way(request, monkeypatch):
    """Few rows are measured afresh, many are held by bounds: both ways on few rows."""
    monkeypatch.setattr(fast, "_FEW", 10**9 if request.param == "measured" else 0)


def draw(seed):
    """Rows, weights, penalty and cap of one kind or another."""
    rng = np.random.default_rng(seed)
    n, D = int(rng.integers(2, 90)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, D)) * rng.integers(1, 4)
    weights = [None, rng.uniform(0.1, 2.0, n), rng.integers(1, 4, n) * 1.0][seed % 3]
    return X, weights, float(rng.uniform(0.2, 6.0)), [np.inf, 5][seed % 2]


def run(X, weights, model, *, moves=MOVES, relax=1.0, watch=None, block_rows=16):
    """From one cluster at the mean to convergence."""
    scaling = Scaling.fit(X)
    model = replace(model, penalty=model.penalty * scaling.inv**2)
    mean = np.average(scaling.transform(X), axis=0, weights=weights)[None]
    start = replace(Centers.start(scaling, mean), relax=relax)
    with SerialEngine(ArrayBlocks(X, block_rows), weights) as engine:

        def callback(info):
            if watch is not None:
                watch(info.params, engine, model)
            return False

        result = loop.run(
            model, engine, start,
            moves=moves, max_iter=400, tol=0.0, callback=callback,
        )  # fmt: skip
        labels = np.concatenate([local.labels for local in engine.locals()])
    return result, labels, scaling.inv**-2


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_obvious_algorithm(seed, either_way):
    """Bounds, tiers and float32 products change nothing but the time it takes."""
    X, weights, penalty, cap = draw(seed)
    expected, _, history = reference.dp_means(X, penalty, weights, cap)
    result, labels, unit = run(X, weights, DPMeansModel(penalty, cap))
    np.testing.assert_array_equal(
        reference.canonical(labels), reference.canonical(expected)
    )
    assert result.converged
    assert result.history[-1] * unit == pytest.approx(history[-1], rel=1e-10, abs=1e-12)


def test_an_emptied_cluster_of_fractions_is_empty(either_way):
    """Weights that do not cancel exactly must not leave a ghost behind."""
    rng = np.random.default_rng(46)
    n, D = int(rng.integers(2, 90)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, D)) * rng.integers(1, 4)
    weights = rng.uniform(0.0, 2.0, n)
    penalty = 1.0538282362220934
    expected, _, history = reference.dp_means(X, penalty, weights)
    result, labels, unit = run(X, weights, DPMeansModel(penalty))
    np.testing.assert_array_equal(
        reference.canonical(labels), reference.canonical(expected)
    )
    assert result.history[-1] * unit == pytest.approx(history[-1], rel=1e-10)


@pytest.mark.parametrize("relax", [1.0, 1.6, 1.95])
@pytest.mark.parametrize("seed", range(6))
def test_overshooting_never_raises_the_objective_and_ends_on_means(
    seed, relax, either_way
):
    X, weights, penalty, cap = draw(seed)
    moves = [DropEmpty(), OpenClusters(), EndOverrelaxation(), RemoveCluster()]
    model = DPMeansModel(penalty, cap)
    result, labels, _ = run(X, weights, model, moves=moves, relax=relax)
    history = np.array(result.history)
    assert np.all(np.diff(history) <= 1e-12 * history[:-1] + 1e-13)
    C = result.params.scaling.inverse_transform(result.params.centers)
    expected = reference.means(X, labels, result.params.K, weights)
    np.testing.assert_allclose(C, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_after_every_pass(seed, monkeypatch):
    """Upper bounds above, lower bounds below the truth, labels the nearest."""
    monkeypatch.setattr(fast, "_FEW", 0)
    X, weights, penalty, cap = draw(seed)
    passes = []

    def watch(params, engine, model):
        Y = params.scaling.transform(X)
        distances = np.sqrt(reference.square_distances(Y, params.centers))
        state = [
            np.concatenate([getattr(local, name) for local in engine.locals()])
            for name in ("labels", "seconds", "upper", "near", "lower")
        ]
        check_bounds(distances, *state)
        passes.append(params.K)

    run(X, weights, DPMeansModel(0.3 * penalty, cap), watch=watch)
    assert len(passes) > 2


def check_bounds(distances, labels, seconds, upper, near, lower):
    rows = np.arange(len(labels))
    slack = 1e-6 * distances.max() * 2.0**-20
    own = distances[rows, labels]
    np.testing.assert_allclose(own, distances.min(axis=1), rtol=1e-12, atol=1e-14)
    assert np.all(own <= upper * (1 + 1e-7) + slack)
    assert np.all(seconds != labels)
    rest = distances.copy()
    rest[rows, labels] = np.inf
    known = seconds >= 0
    assert np.all(near[known] <= rest[rows, seconds][known] * (1 + 1e-7) + slack)
    rest[rows[known], seconds[known]] = np.inf
    assert np.all(lower <= rest.min(axis=1) * (1 + 1e-7) + slack)


@pytest.mark.parametrize("seed", range(12))
def test_spare_never_promises_more_than_a_removal_costs(seed, either_way, monkeypatch):
    """It may be less, except after a recheck, when it is what a removal costs."""
    X, weights, penalty, _ = draw(seed)
    original = RemoveCluster.propose
    checked = []

    def propose(self, at):
        params, total = at.params, at.total
        costs = reference.removal_costs(
            params.scaling.transform(X), params.centers, weights
        )
        if params.K > 1:
            slack = 1e-6 * np.abs(costs) + 1e-9
            assert np.all(total.removal_cost <= costs + slack)
            if params.recheck is not None:
                again = params.recheck
                np.testing.assert_allclose(
                    total.removal_cost[again], costs[again], rtol=1e-4, atol=1e-5
                )
                checked.append(again.sum())
        return original(self, at)

    monkeypatch.setattr(RemoveCluster, "propose", propose)
    run(X, weights, DPMeansModel(0.2 * penalty))


@pytest.mark.parametrize("seed", range(6))
def test_candidates_are_the_rows_that_cost_more_than_a_cluster(seed, either_way):
    X, weights, penalty, _ = draw(seed)
    scaling = Scaling(np.zeros(X.shape[1]), 1.0)
    params = Centers.start(scaling, X[:2].copy())
    with SerialEngine(ArrayBlocks(X, 8), weights) as engine:
        total = engine.sweep(DPMeansModel(penalty), params, range(engine.n_blocks))
        reported = total.candidates
    labels, d2 = reference.nearest(X, X[:2])
    share = np.minimum(reference.weights_or_ones(X, weights), 1.0)
    expected = np.flatnonzero(share * d2 > penalty)
    np.testing.assert_array_equal(np.sort(reported.row), expected)
    np.testing.assert_allclose(reported.cost, (share * d2)[reported.row], rtol=1e-14)
    np.testing.assert_array_equal(reported.label, labels[reported.row])
    np.testing.assert_array_equal(reported.y, X[reported.row])
    assert np.all(np.diff(reported.cost) <= 0.0)


def test_costs_stay_exact_on_later_visits(either_way):
    """Bounds are rounded up; the cost that opens a cluster must not be."""
    X = np.array([[0.0], [2.0], [100.0], [102.0]])
    params = Centers.start(Scaling(np.zeros(1), 1.0), np.array([[1.0], [101.0]]))
    model = DPMeansModel(1.0)
    with SerialEngine(ArrayBlocks(X)) as engine:
        for _ in range(3):
            total = engine.sweep(model, params, [0])
            assert len(total.candidates) == 0


def test_a_row_that_is_not_finite_is_named(either_way):
    X = np.ones((50, 3))
    X[37, 1] = np.nan
    params = Centers.start(Scaling(np.zeros(3), 1.0), np.ones((1, 3)))
    with (
        SerialEngine(ArrayBlocks(X, 8)) as engine,
        pytest.raises(NotFiniteError, match="Row 37"),
    ):
        engine.sweep(DPMeansModel(1.0), params, range(engine.n_blocks))


@pytest.mark.parametrize("K", [1, 2, 3, 5, 17, 64, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearest_centre_for_any_number_of_centres(K, dtype, either_way):
    """First visit, then after every centre moved, against direct differences."""
    rng = np.random.default_rng(K)
    X = rng.normal(size=(300, 4)).astype(dtype)
    scaling = Scaling.fit(X)
    params = Centers.start(
        scaling, scaling.transform(X[rng.choice(300, K, replace=False)] * 1.0)
    )
    model = DPMeansModel(np.inf)
    with SerialEngine(ArrayBlocks(X, 100)) as engine:
        for step in (0.0, 0.01, 0.5, 3.0):
            moved = params.centers + step * rng.normal(size=params.centers.shape)
            params = params.moved_to(moved)
            engine.sweep(model, params, range(engine.n_blocks))
            labels = np.concatenate([local.labels for local in engine.locals()])
            expected, _ = reference.nearest(
                scaling.transform(X.astype(float)), params.centers
            )
            np.testing.assert_array_equal(labels, expected)


def test_ties_go_to_the_lower_number(either_way):
    X = np.array([[0.0, 0.0], [0.0, 5.0], [3.0, 0.0]])
    centers = np.array([[1.0, 0], [-1.0, 0], [1.0, 0], [0.0, 1.0]])
    params = Centers.start(Scaling(np.zeros(2), 1.0), centers)
    with SerialEngine(ArrayBlocks(X)) as engine:
        for _ in range(2):
            engine.sweep(DPMeansModel(np.inf), params, [0])
            labels = next(iter(engine.locals())).labels
            np.testing.assert_array_equal(labels, [0, 3, 0])


# ------------------------------------------------------------------------- parts


def candidates(cost, row):
    n = len(cost)
    zeros = np.zeros(n, dtype=np.int64)
    return Candidates(
        np.array(cost, dtype=float), np.array(row), zeros, np.ones(n),
        np.array(row, dtype=float)[:, None],
    )  # fmt: skip


def test_candidates_merge_in_any_order(monkeypatch):
    """The costliest few by cost, then row: the same however the parts are joined."""
    monkeypatch.setattr(fast, "_MOST_CANDIDATES", 4)
    parts = [
        candidates([5, 1], [0, 3]),
        candidates([5, 4], [7, 8]),
        candidates([5], [2]),
    ]
    orders = [(0, 1, 2), (2, 1, 0), (1, 0, 2)]
    for a, b, c in orders:
        merged = parts[a].merged(parts[b]).merged(parts[c])
        np.testing.assert_array_equal(merged.row, [0, 2, 7, 8])
        np.testing.assert_array_equal(merged.cost, [5, 5, 5, 4])


def test_a_shortlist_breaks_ties_by_row(monkeypatch):
    monkeypatch.setattr(fast, "_MOST_CANDIDATES", 2)
    row = np.array([4, 9, 2, 0])
    places = shortlist(np.array([1.0, 3.0, 3.0, 2.0]), row)
    np.testing.assert_array_equal(places, [2, 1, 3, 0])
    places = shortlist(np.array([1.0, 3.0, 4.0, 2.0]), row)
    np.testing.assert_array_equal(places, [2, 1])


def test_the_report_of_a_pass_is_forgotten_but_not_the_statistics():
    sums = ClusterSums(np.ones(2), np.ones((2, 1)), np.ones(2), np.ones(2), moved=3)
    sums.candidates = candidates([1.0], [0])
    sums.begin_pass()
    assert (sums.moved, len(sums.candidates), sums.removal_cost.sum()) == (0, 0, 0.0)
    assert sums.counts.sum() == 2.0


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
