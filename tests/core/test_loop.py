"""The loop: when it stops, in which order moves are asked, what callbacks learn."""

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pytest

import reference
from kplus.core import loop
from kplus.core.types import Proposal
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.moves import DropEmpty, OpenClusters, RemoveCluster
from kplus.dp_means.params import Centers, Scaling
from kplus.engine import SerialEngine

X = np.random.default_rng(0).normal(size=(120, 2))
SCALING = Scaling.fit(X)
FIXED = DPMeansModel(np.inf)


def centers(K):
    return Centers.start(SCALING, SCALING.transform(X[:K]))


def run(model=FIXED, K=5, *, block_rows=16, groups=None, max_iter=200, tol=0.0, **more):
    with SerialEngine(ArrayBlocks(X, block_rows)) as engine:
        if groups == "each":
            groups = [[index] for index in range(engine.n_blocks)]
        result = loop.run(
            model, engine, centers(K),
            groups=groups, max_iter=max_iter, tol=tol, **more,
        )  # fmt: skip
        return result, np.concatenate([local.labels for local in engine.locals()])


class Sometimes:
    """A move that proposes nothing new, at the passes named."""

    def __init__(self, name, *passes, log):
        self.name, self.passes, self.log = name, passes, log
        self.asked = 0

    def propose(self, at):
        self.asked += 1
        self.log.append((self.name, self.asked, at.converged))
        if self.asked not in self.passes:
            return None
        return Proposal(at.updated, np.arange(at.params.K), at.params.K)


def test_ends_converged_with_labels_of_the_centres_returned():
    result, labels = run()
    assert result.converged
    assert result.n_iter == len(result.history) < 200
    expected, _ = reference.nearest(SCALING.transform(X), result.params.centers)
    np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_passes_run_out_right_after_a_sum(max_iter):
    result, labels = run(max_iter=max_iter)
    assert not result.converged
    assert result.n_iter == max_iter
    C = result.params.centers
    np.testing.assert_array_equal(labels, reference.nearest(SCALING.transform(X), C)[0])
    objective = reference.squared_error(SCALING.transform(X), labels, C)
    assert result.history[-1] == pytest.approx(objective, rel=1e-12)


@pytest.mark.parametrize("tol", [0.0, 1e-6, 1e-3, 1e-1])
def test_tolerance_is_a_share_of_the_objective(tol):
    result, _ = run(tol=tol)
    falls = -np.diff(result.history) / np.array(result.history[1:])
    assert np.all(falls[:-1] > tol)
    assert falls[-1] <= tol or result.total.moved == 0


def test_a_callback_sees_every_pass_and_may_end_it():
    seen = []

    def callback(info):
        seen.append((info.iteration, info.objective, info.params.K))
        return info.iteration == 3

    result, _ = run(callback=callback)
    assert [iteration for iteration, *_ in seen] == [1, 2, 3]
    assert [objective for _, objective, _ in seen] == result.history
    assert not result.converged


def test_moves_are_asked_in_order_and_the_first_proposal_is_taken():
    log = []
    first, second = Sometimes("a", 2, log=log), Sometimes("b", 1, log=log)
    run(moves=[first, second], max_iter=4)
    assert [name for name, *_ in log] == ["a", "b", "a", "a", "b"]


def test_a_proposal_keeps_the_fit_from_converging():
    log = []
    plain, _ = run()
    late = Sometimes("late", plain.n_iter, log=log)
    result, _ = run(moves=[late])
    assert result.n_iter == plain.n_iter + 1
    assert [converged for *_, converged in log] == [False] * (plain.n_iter - 1) + [
        True
    ] * 2
    assert result.history[-1] == plain.history[-1]


@pytest.mark.parametrize("groups", [None, "each", [[0, 1, 2], [3, 4, 5, 6, 7], []]])
def test_full_and_memoized_passes_both_descend(groups):
    """Memoized: parameters move between groups, statistics stay those of all rows."""
    result, labels = run(groups=groups)
    assert result.converged
    history = np.array(result.history)
    assert np.all(np.diff(history) <= 1e-12 * history[:-1])
    objective = reference.squared_error(
        SCALING.transform(X), labels, result.params.centers
    )
    assert history[-1] == pytest.approx(objective, rel=1e-10)
    assert result.total.counts.sum() == len(X)


def test_one_group_equals_full_data_bit_for_bit():
    plain, labels = run()
    grouped, again = run(groups=[range(8)])
    assert plain.history == grouped.history
    np.testing.assert_array_equal(labels, again)


def test_the_same_run_twice_gives_the_same_bits():
    moves = [DropEmpty(), OpenClusters(), RemoveCluster()]
    runs = [run(DPMeansModel(0.2), 1, moves=moves) for _ in range(2)]
    assert runs[0][0].history == runs[1][0].history
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert runs[0][0].params.K > 1


class TryWithout:
    """Removes the last cluster on trial, once."""

    state: int

    def __init__(self):
        self.state = 0

    def propose(self, at):
        self.state += 1
        if self.state != 2:
            return None
        old_to_new = np.append(np.arange(at.params.K - 1), -1)
        kept = at.updated.regroup(old_to_new)
        return Proposal(kept, old_to_new, kept.K, trial=True)


class Keep:
    """Keeps the state after every pass; starts from one."""

    def __init__(self, start=None):
        self.start, self.states = start, []

    def load(self, restore):
        return None if self.start is None else restore(self.start)

    def save(self, state):
        self.states.append(deepcopy(state()))  # as a file would hold it


@pytest.mark.parametrize("groups", [None, "each"])
def test_a_fit_resumes_in_the_middle_of_a_trial(groups):
    keep = Keep()
    whole, labels = run(K=4, groups=groups, moves=[TryWithout()], checkpointer=keep)
    on_trial = [
        s.pending is not None and bool(s.pending.snapshots) for s in keep.states
    ]
    assert on_trial.index(True) == 1
    assert len(whole.params.centers) == 4  # the trial failed
    for state in keep.states[:4]:
        again, same = run(
            K=4, groups=groups, moves=[TryWithout()], checkpointer=Keep(state)
        )
        assert again.history == whole.history
        np.testing.assert_array_equal(again.params.centers, whole.params.centers)
        np.testing.assert_array_equal(same, labels)


# ---------------------------------------------------------- proposals on a toy model


@dataclass
class Sums:
    """Counts, sums and squares of each group; `moved` reports the pass."""

    n: np.ndarray
    first: np.ndarray
    second: np.ndarray
    moved: int = 0

    def begin_pass(self):
        self.moved = 0

    def __iadd__(self, other):
        self.n = self.n + other.n
        self.first = self.first + other.first
        self.second = self.second + other.second
        self.moved += other.moved
        return self

    def __isub__(self, other):
        self.n = self.n - other.n
        self.first = self.first - other.first
        self.second = self.second - other.second
        return self

    def copy(self):
        return Sums(self.n, self.first, self.second, self.moved)

    def regroup(self, old_to_new, K):
        parts = [np.zeros(K) for _ in range(3)]
        for new, old in zip(parts, (self.n, self.first, self.second), strict=True):
            np.add.at(new, old_to_new[old_to_new >= 0], old[old_to_new >= 0])
        return Sums(*parts, self.moved)


@dataclass(frozen=True)
class Means:
    """Rows of one column go to the nearest mean; every mean costs `penalty`."""

    penalty: float = 0.0
    incremental = False

    def summarize(self, params, block, local):
        x = block.read()[:, 0]
        labels = np.argmin((x[:, None] - params) ** 2, axis=1)
        one = (labels[:, None] == np.arange(len(params))).astype(float)
        return Sums(one.sum(axis=0), x @ one, x**2 @ one, len(x)), labels

    def update(self, params, total):
        return np.where(total.n > 0.0, total.first / np.maximum(total.n, 1.0), params)

    def advance(self, params, total, latest):
        return self.update(params, total)

    def objective(self, params, total):
        cost = total.second - 2.0 * params * total.first + params**2 * total.n
        return float(cost.sum() + self.penalty * len(params))

    def converged(self, total):
        return False

    def regroup_local(self, local, old_to_new, K):
        return old_to_new[local]


ROWS = (
    np.random.default_rng(1).normal(size=(50, 1)) + np.repeat([0.0, 9.0], 25)[:, None]
)


class Once:
    """A move with one proposal, at a pass named, that remembers its outcomes."""

    def __init__(self, when, make):
        self.when, self.make, self.asked, self.outcomes = when, make, 0, []

    def propose(self, at):
        self.asked += 1
        self.seen = at.total.copy()
        if self.asked != self.when:
            return None
        return replace(self.make(at.updated, at.total), note="mine")

    def on_outcome(self, note, change, kept):
        assert note == "mine"
        self.outcomes.append((change, kept))


def play(params, *moves, model=None, groups=None, max_iter=20, **more):
    with SerialEngine(ArrayBlocks(ROWS, 10)) as engine:
        result = loop.run(
            model or Means(), engine, np.array(params, dtype=float),
            moves=moves, groups=groups, max_iter=max_iter, tol=0.0, **more,
        )  # fmt: skip
        return result, np.concatenate(list(engine.locals()))


def swap(updated, total, **more):
    old_to_new = np.arange(len(updated))[::-1]
    return Proposal(updated[::-1], old_to_new, len(updated), **more)


def drop_last(updated, total, **more):
    K = len(updated)
    old_to_new = np.where(np.arange(K) < K - 1, np.arange(K), -1)
    return Proposal(updated[:-1], old_to_new, K - 1, **more)


def test_moves_after_an_exact_proposal_are_asked_with_its_sums():
    first = Once(1, lambda *now: swap(*now, exact=True))
    second = Once(1, swap)
    third = Once(99, swap)
    play([-1.0, 8.0, 12.0], first, second, third, max_iter=2)
    assert (first.asked, second.asked, third.asked) == (1, 1, 0)
    np.testing.assert_array_equal(second.seen.n, first.seen.n[::-1])


def test_an_exact_proposal_keeps_the_fit_from_converging():
    plain, _ = play([-1.0, 8.0])
    late = Once(plain.n_iter, lambda *now: swap(*now, exact=True))
    result, labels = play([-1.0, 8.0], late)
    assert result.n_iter == plain.n_iter + 1
    assert result.history[-1] == pytest.approx(plain.history[-1])
    assert labels[0] == 1


@pytest.mark.parametrize("step", [0.0, 1.0, 30.0])
def test_rest_is_also_a_small_step(step):
    result, _ = play([-1.0, 0.0, 1.0, 8.0, 8.5], step=step)
    falls = -np.diff(result.history)
    assert np.all(falls[:-1] > step)
    assert falls[-1] <= step
    assert result.converged


@pytest.mark.parametrize("groups", [None, [[0, 1], [2, 3, 4], []]])
def test_earlier_rows_count_but_are_not_visited(groups):
    base = Sums(np.array([5.0, 0.0]), np.array([-50.0, 0.0]), np.array([520.0, 0.0]))
    result, labels = play([-1.0, 8.0], groups=groups, base=base)
    assert result.total.n.sum() == 55.0
    mean = (ROWS[labels == 0].sum() - 50.0) / (np.sum(labels == 0) + 5.0)
    assert result.params[0] == pytest.approx(mean)
    assert len(labels) == 50
    np.testing.assert_array_equal(base.n, [5.0, 0.0])


@pytest.mark.parametrize("groups", [None, [[0, 1], [2, 3, 4], []]])
def test_provisional_statistics_last_one_pass(groups):
    """Within it, groups after the first see it; the objective never does."""
    seen = []

    class Watched(Means):
        def advance(self, params, total, latest):
            seen.append(total.n.sum())
            return super().advance(params, total, latest)

    def add_provisional(updated, total):
        provisional = Sums(
            np.array([0.0, 7.0]), np.array([0.0, 63.0]), np.array([0.0, 567.0])
        )
        return Proposal(updated, np.arange(2), 2, provisional=provisional)

    move = Once(1, add_provisional)
    result, _ = play([-1.0, 8.0], move, model=Watched(), groups=groups, max_iter=2)
    assert result.total.n.sum() == 50.0
    if groups is not None:
        assert seen[-2:] == [57.0, 50.0]
    plain, _ = play([-1.0, 8.0], groups=groups, max_iter=2)
    assert move.outcomes[0][0] == pytest.approx(result.history[1] - result.history[0])
    assert result.history[-1] == pytest.approx(plain.history[-1], rel=0.2)


@pytest.mark.parametrize("groups", [None, [[0, 1], [2, 3, 4], []]])
def test_a_trial_that_fails_is_taken_back_bit_for_bit(groups):
    plain, labels = play([-1.0, 8.0], groups=groups)
    move = Once(plain.n_iter, lambda *now: drop_last(*now, trial=True))
    result, again = play([-1.0, 8.0], move, groups=groups)
    assert result.n_iter == plain.n_iter + 1
    assert result.history[-1] == result.history[-2] == plain.history[-1]
    np.testing.assert_array_equal(result.params, plain.params)
    np.testing.assert_array_equal(labels, again)
    for field in ("n", "first", "second"):
        one, other = getattr(result.total, field), getattr(plain.total, field)
        np.testing.assert_array_equal(one, other)
    assert len(move.outcomes) == 1
    change, kept = move.outcomes[0]
    assert change > 0.0
    assert not kept
    assert result.converged


@pytest.mark.parametrize("groups", [None, [[0, 1], [2, 3, 4], []]])
def test_a_trial_that_pays_stays(groups):
    start, model = [-1.0, 8.0, 9.5], Means(penalty=100.0)
    move = Once(2, lambda *now: drop_last(*now, trial=True))
    result, labels = play(start, move, model=model, groups=groups)
    assert len(result.params) == 2
    assert labels.max() == 1
    change, kept = move.outcomes[0]
    assert kept
    assert change == pytest.approx(result.history[2] - result.history[1])
    assert change < 0.0


def test_fits_continue_after_a_failed_trial():
    """Passes after it are those that would have come without it."""
    start = [-1.0, 0.0, 1.0, 8.0, 8.5]
    plain, labels = play(start)
    assert plain.n_iter > 3
    result, again = play(start, Once(2, lambda *now: drop_last(*now, trial=True)))
    assert result.history[:2] == plain.history[:2]
    assert result.history[-1] == plain.history[-1]
    np.testing.assert_array_equal(labels, again)


def test_a_move_learns_the_outcome_of_its_pass():
    move = Once(1, swap)
    result, _ = play([-1.0, 8.0, 12.0], move)
    change = result.history[1] - result.history[0]
    assert move.outcomes == [(pytest.approx(change), True)]
