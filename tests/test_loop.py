"""The loop: when it stops, in which order moves are asked, what callbacks learn."""

import numpy as np
import pytest

import reference
from kplus import loop
from kplus.core.types import Proposal
from kplus.engine import SerialEngine
from kplus.engine.blocks import ArrayBlocks
from kplus.models.dp_means.fast import DPMeansModel
from kplus.models.dp_means.params import Centers, Lens
from kplus.moves.open import OpenClusters
from kplus.moves.remove import DropEmpty, RemoveCluster

X = np.random.default_rng(0).normal(size=(120, 2))
LENS = Lens.on(X)
FIXED = DPMeansModel(np.inf)


def centers(K):
    return Centers.start(LENS, LENS.view(X[:K]))


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

    def propose(self, model, params, total, updated, resting):
        self.asked += 1
        self.log.append((self.name, self.asked, resting))
        if self.asked not in self.passes:
            return None
        return Proposal(updated, np.arange(params.K), params.K)


def test_ends_at_rest_with_labels_of_the_centres_returned():
    result, labels = run()
    assert result.converged
    assert result.n_iter == len(result.history) < 200
    expected, _ = reference.nearest(LENS.view(X), result.params.centers)
    np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_passes_run_out_right_after_a_sum(max_iter):
    result, labels = run(max_iter=max_iter)
    assert not result.converged
    assert result.n_iter == max_iter
    C = result.params.centers
    np.testing.assert_array_equal(labels, reference.nearest(LENS.view(X), C)[0])
    objective = reference.squared_error(LENS.view(X), labels, C)
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


def test_a_proposal_keeps_the_fit_from_resting():
    log = []
    plain, _ = run()
    late = Sometimes("late", plain.n_iter, log=log)
    result, _ = run(moves=[late])
    assert result.n_iter == plain.n_iter + 1
    assert [resting for *_, resting in log] == [False] * (plain.n_iter - 1) + [True] * 2
    assert result.history[-1] == plain.history[-1]


@pytest.mark.parametrize("groups", [None, "each", [[0, 1, 2], [3, 4, 5, 6, 7], []]])
def test_full_and_memoized_passes_both_descend(groups):
    """Memoized: parameters move between groups, statistics stay those of all rows."""
    result, labels = run(groups=groups)
    assert result.converged
    history = np.array(result.history)
    assert np.all(np.diff(history) <= 1e-12 * history[:-1])
    objective = reference.squared_error(LENS.view(X), labels, result.params.centers)
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
