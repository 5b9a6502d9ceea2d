"""Samples of rows, and the best of several starts."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from jobs import make_job
from kplus.core.job import best_of, draw
from kplus.data.blocks import ArrayBlocks


def rows(seed=0, n=150, D=2):
    return np.random.default_rng(seed).normal(scale=3.0, size=(n, D))


def job(X, weights=None, seed=0, **more):
    source = ArrayBlocks(X, 32)
    return make_job(source, weights, np.random.default_rng(seed), **more)


# ----------------------------------------------------------------------- samples


def test_few_rows_are_all_taken():
    X, weights = rows(n=20), np.arange(1.0, 21.0)
    sample = draw(ArrayBlocks(X, 8), weights, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(sample.rows, X)
    np.testing.assert_array_equal(sample.weights, weights)
    assert sample.share == 1.0


def test_a_sample_is_rows_in_order_each_once():
    X = np.arange(1000.0)[:, None]
    weights = X[:, 0] + 1.0
    sample = draw(ArrayBlocks(X, 64), weights, 100, np.random.default_rng(0))
    assert sample.n_rows == 100
    assert sample.share == 0.1
    assert np.all(np.diff(sample.rows[:, 0]) > 0)
    np.testing.assert_array_equal(sample.weights, sample.rows[:, 0] + 1.0)
    again = draw(ArrayBlocks(X, 7), weights, 100, np.random.default_rng(0))
    np.testing.assert_array_equal(sample.rows, again.rows)


def test_rows_of_no_weight_are_not_drawn():
    X = np.arange(1000.0)[:, None]
    weights = (X[:, 0] >= 900).astype(float)
    for size, share in ((50, 0.5), (100, 1.0), (500, 1.0)):
        sample = draw(ArrayBlocks(X, 64), weights, size, np.random.default_rng(0))
        assert sample.n_rows == min(size, 100)
        assert sample.rows.min() >= 900
        assert sample.share == share


def test_samples_are_even():
    X = np.arange(200.0)[:, None]
    hits = np.zeros(200)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        hits[draw(ArrayBlocks(X), None, 50, rng).rows[:, 0].astype(int)] += 1
    assert abs(hits / 300 - 0.25).max() < 0.12


# ------------------------------------------------------------------------ restarts


@pytest.mark.parametrize("threads", [1, 3])
def test_the_best_start_wins_and_the_first_among_equals(threads):
    fits = [SimpleNamespace(objective=value) for value in (3.0, 1.0, 2.0, 1.0)]
    calls = []

    def fit(part, again):
        calls.append((again, part.n_threads, part.callback))
        return fits[int(part.rng.bit_generator.seed_seq.spawn_key[-1])]

    whole = job(rows(), n_threads=threads, callback=lambda info: False)
    assert best_of(4, whole, fit) is fits[1]
    assert [again for again, *_ in sorted(calls, key=lambda c: c[0])] == [
        False,
        *[True] * 3,
    ]
    assert all(n == 1 for _, n, _ in calls)
    assert sum(callback is whole.callback for *_, callback in calls) == 1


class Counts:
    """A callback that keeps how many groups there were."""

    def __init__(self):
        self.groups = []

    def __call__(self, info):
        self.groups.append(info.params.K)
        return False


@pytest.mark.parametrize("best", range(3))
def test_numbers_of_groups_are_those_of_the_best_start(best):
    """Though passes of the first one only are told."""
    passes = [[1, 2, 2], [1, 5, 5], [3]]

    def fit(part, again):
        start = int(part.rng.bit_generator.seed_seq.spawn_key[-1])
        for K in passes[start]:
            part.callback(SimpleNamespace(params=SimpleNamespace(K=K)))
        return float(start != best)

    callback = Counts()
    best_of(3, job(rows(), n_threads=1, callback=callback), fit, float)
    assert callback.groups == passes[best]


def test_a_single_start_uses_all_threads():
    whole = job(rows(), n_threads=3)
    assert best_of(1, whole, lambda part, again: (part, again)) == (whole, False)


def test_only_the_first_start_reports_and_all_are_ended():
    """Starts under way stop after their pass; no other begins."""
    asked = threading.Event()
    begun = threading.Barrier(2)
    reported, seen = [], []

    def fit(part, again):
        begun.wait(10)  # the first two
        passes = 1
        while not part.callback(passes):
            passes += 1
            if not again and passes == 3:
                asked.set()
        seen.append(again)
        return passes

    def callback(info):
        reported.append(info)
        return asked.is_set()

    rng = np.random.default_rng(0)
    watched = make_job(
        None, None, rng, callback=callback, ended=asked.is_set, n_threads=2
    )
    best_of(6, watched, fit, float)
    assert reported == [1, 2, 3]
    assert sorted(seen) == [False, True]
