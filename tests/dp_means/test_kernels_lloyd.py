"""The kernels of the assignment step, called as the model calls them."""

import numpy as np
import pytest

import reference
from kplus.dp_means.kernels_bounds import Sums, screen_rows
from kplus.dp_means.kernels_lloyd import meet_rows, visit_rows
from kplus.dp_means.kernels_tiles import Top, scan
from kplus.dp_means.model import DPMeansModel, RowState
from kplus.dp_means.params import Centers, Scaling

NO_WEIGHTS = np.empty(0)


class Visit:
    """One visit to rows, with all that the kernels return."""

    def __init__(self, X, params, state=None, weights=None, reach=np.inf, meet=False):
        self.state = RowState.fresh(len(X)) if state is None else state
        K, D = params.centers.shape
        self.counts, self.sums = np.zeros(K), np.zeros((K, D))
        self.squares, self.removal_cost = np.zeros(K), np.zeros(K)
        sums = Sums(self.counts, self.sums, self.squares, self.removal_cost)
        w = NO_WEIGHTS if weights is None else weights
        self.rows = np.arange(len(X), dtype=np.int32)
        if state is None:
            drift, frame = params.unknown_drift, params.frame(reach)
        else:
            drift = params.drift(state.travel)
            frame = params.frame(reach, params.halves)
            n = screen_rows(
                self.state.bounds(), w, drift, frame, self.removal_cost, self.rows
            )
            self.rows = self.rows[:n]
        self.costs = np.empty(len(self.rows))
        bounds = self.state.bounds()
        if meet:
            self.moved = meet_rows(X, w, drift, frame, bounds, sums, self.costs)
        else:
            self.moved = visit_rows(
                X, w, self.rows, drift, frame, bounds, sums, self.costs
            )
        self.state.travel = params.travel


def setting(seed, n=200, D=3, K=9, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, D)) * 5.0 + 3.0).astype(dtype)
    scaling = Scaling.fit(X)
    picked = scaling.transform(X[rng.choice(n, K, replace=n < K)].astype(np.float64))
    return X, Centers.start(scaling, picked + 0.01 * rng.normal(size=picked.shape)), rng


def check_labels(X, params, visit):
    Y = params.scaling.transform(X.astype(np.float64))
    expected, d2 = reference.nearest(Y, params.centers)
    np.testing.assert_array_equal(visit.state.labels, expected)
    return Y, expected, d2


def check_sums(Y, labels, params, visit, weights=None):
    expected = reference.statistics(Y, labels, params.K, weights, params.refs)
    found = (visit.counts, visit.sums, visit.squares)
    for some, truth in zip(found, expected, strict=True):
        np.testing.assert_allclose(some, truth, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("meet", [False, True])
@pytest.mark.parametrize("K", [1, 2, 3, 9, 65, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_first_visit(K, dtype, meet):
    X, params, rng = setting(K, K=K, dtype=dtype)
    for weights in (None, rng.uniform(0.0, 2.0, len(X))):
        visit = Visit(X, params, weights=weights, meet=meet, reach=0.5)
        Y, labels, d2 = check_labels(X, params, visit)
        check_sums(Y, labels, params, visit, weights)
        assert visit.moved == len(X)
        np.testing.assert_allclose(
            visit.costs, np.where(d2 > 0.25, d2, 0.0), rtol=1e-13, atol=0.0
        )


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 127, 128, 129, 257, 513])
@pytest.mark.parametrize("meet", [False, True])
def test_any_number_of_rows(n, meet):
    """Around the sizes of the tiles that rows are worked on in."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    params = Centers.start(Scaling(np.zeros(2), 1.0), rng.normal(size=(5, 2)))
    visit = Visit(X, params, meet=meet)
    assert visit.moved == n
    if n:
        Y, labels, _ = check_labels(X, params, visit)
        check_sums(Y, labels, params, visit)


@pytest.mark.parametrize("D", [1, 2, 7, 8, 9, 33])
@pytest.mark.parametrize("meet", [False, True])
def test_any_number_of_columns(D, meet):
    X, params, _ = setting(D, D=D)
    visit = Visit(X, params, meet=meet)
    Y, labels, _ = check_labels(X, params, visit)
    check_sums(Y, labels, params, visit)


@pytest.mark.parametrize("step", [0.0, 1e-9, 1e-3, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("K", [2, 9, 65, 300, 2100])
@pytest.mark.parametrize("meet", [False, True])
def test_later_visits_after_centres_moved(step, K, meet):
    """All move, or only some; what is booked is the change."""
    X, params, rng = setting(K, K=K)
    visit = Visit(X, params, meet=meet)
    for share in (1.0, 0.3, 0.05):
        before = visit.state.labels.copy()
        moves = rng.normal(size=params.centers.shape) * step
        moves *= rng.random((K, 1)) < share
        params = params.moved_to(params.centers + moves)
        visit = Visit(X, params, visit.state)
        Y, labels, _ = check_labels(X, params, visit)
        assert visit.moved >= np.sum(before != labels)
        new = reference.statistics(Y, labels, K, None, params.refs)
        old = reference.statistics(Y, before, K, None, params.refs)
        np.testing.assert_array_equal(visit.counts, new[0] - old[0])
        np.testing.assert_allclose(visit.sums, new[1] - old[1], atol=1e-10)
        np.testing.assert_allclose(visit.squares, new[2] - old[2], atol=1e-10)


def test_still_centres_need_no_rows():
    X, params, _ = setting(0)
    visit = Visit(X, params)
    again = Visit(X, params.moved_to(params.centers), visit.state)
    assert len(again.rows) < 0.1 * len(X)
    assert again.moved == 0


@pytest.mark.parametrize("seed", range(5))
def test_births_and_deaths(seed):
    """Renumber, drop and add centres; rows find their way."""
    X, params, rng = setting(seed, K=12)
    state = Visit(X, params).state
    for _ in range(4):
        K = params.K
        old_to_new = np.full(K, -1)
        kept = rng.permutation(K)[: max(1, K - 3)]
        old_to_new[kept] = np.arange(len(kept))
        born = params.scaling.transform(X[rng.choice(len(X), 4, replace=False)])
        params = params.moved_to(params.centers + 0.02 * rng.normal(size=(K, 3)))
        params = params.regroup(old_to_new).grown(born)
        state = DPMeansModel(1.0).regroup_local(state, old_to_new, params.K)
        check_labels(X, params, Visit(X, params, state))


@pytest.mark.parametrize("meet", [False, True])
def test_ties_go_to_the_lower_number(meet):
    X = np.array([[0.0, 0.0], [4.0, 4.0], [2.0, 2.0]] * 20)
    centers = np.array([[4.0, 4.0], [4.0, 4.0], [0.0, 0.0], [0.0, 0.0]])
    params = Centers.start(Scaling(np.zeros(2), 1.0), centers)
    visit = Visit(X, params, meet=meet)
    np.testing.assert_array_equal(visit.state.labels, [2, 0, 0] * 20)
    again = Visit(X, params.moved_to(centers), visit.state)
    np.testing.assert_array_equal(again.state.labels, [2, 0, 0] * 20)


@pytest.mark.parametrize("meet", [False, True])
def test_centres_closer_than_float32_can_tell(meet):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    centers = 1.0 + 1e-9 * rng.normal(size=(50, 3))
    params = Centers.start(Scaling(np.zeros(3), 1.0), centers)
    visit = Visit(X, params, meet=meet)
    check_labels(X, params, visit)
    params = params.moved_to(centers + 1e-9 * rng.normal(size=(50, 3)))
    check_labels(X, params, Visit(X, params, visit.state))


@pytest.mark.parametrize("meet", [False, True])
def test_rows_beyond_the_range_of_float32(meet):
    X = np.array([[1e30, 0.0], [-1e30, 0.0], [1e80, 1.0], [0.0, 0.0]] * 10)
    centers = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.5]])
    params = Centers.start(Scaling(np.zeros(2), 1.0), centers)
    visit = Visit(X, params, meet=meet)
    d2 = reference.square_distances(X, centers)
    own = d2[np.arange(len(X)), visit.state.labels]
    np.testing.assert_array_equal(own, d2.min(axis=1))


@pytest.mark.parametrize("meet", [False, True])
@pytest.mark.parametrize("later", [False, True])
def test_scores_that_are_not_numbers(meet, later):
    """Products and norms beyond float32 make ∞ - ∞; such centres may be the nearest."""
    centers = np.array(
        [[1e20, 0.0], [1e15, 0.0], [0.0, 0.0], [1e20, -1e20], [1e30, 0.0], [-1e20, 0.0]]
    )
    X = np.concatenate([centers, centers * 0.9, centers[:, ::-1], -centers])
    start = centers * 0.5 if later else centers
    params = Centers.start(Scaling(np.zeros(2), 1.0), start)
    visit = Visit(X, params, meet=meet)
    if later:
        params = params.moved_to(centers)
        visit = Visit(X, params, visit.state)
    check_labels(X, params, visit)


def test_a_score_that_is_not_a_number_hides_no_other():
    rng = np.random.default_rng(0)
    G = rng.normal(size=(9, 70)).astype(np.float32)
    G[rng.random(G.shape) < 0.3] = np.nan
    G[:, 0] = np.nan
    found = [np.empty(70, t) for t in (np.int32, np.int32, np.float32, np.float32)]
    scan(Top(G, *found), np.zeros(9, np.float32), 9, 70)
    ranked = np.sort(np.where(np.isnan(G), np.float32(-3e38), G), axis=0)
    np.testing.assert_array_equal(found[2], ranked[-1])
    np.testing.assert_array_equal(found[3], ranked[-2])
    assert np.all(G[found[0][1:], np.arange(1, 70)] == ranked[-1, 1:])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("meet", [False, True])
@pytest.mark.parametrize("D", [1, 3, 8, 17])
def test_a_row_that_is_not_finite_is_reported(value, meet, D):
    for row, column in ((0, 0), (70, D - 1), (149, D // 2)):
        X = np.random.default_rng(0).normal(size=(150, D))
        X[row, column] = value
        centers = np.repeat([[0.0], [1.0]], D, axis=1)
        params = Centers.start(Scaling(np.zeros(D), 1.0), centers)
        assert Visit(X, params, meet=meet).moved == -1 - row
