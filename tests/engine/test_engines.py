"""Engines: every block once, results in block order, per-row state replayed."""

import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from kplus.data.blocks import ArrayBlocks
from kplus.engine import SerialEngine, ThreadEngine, make_engine

X = np.arange(2000.0).reshape(1000, 2)


class Log:
    """A model that notes what it is asked, slowly in an order of its own."""

    def __init__(self, sleepy=False, broken=None):
        self.sleepy, self.broken = sleepy, broken
        self.calls, self.lock = [], threading.Lock()

    def summarize(self, params, block, local):
        if self.sleepy:
            time.sleep(0.001 * ((block.index * 7) % 5))
        if block.index == self.broken:
            raise ArithmeticError(f"block {block.index}")
        with self.lock:
            self.calls.append(block.index)
        weight = None if block.weights is None else block.weights.sum()
        return [(block.index, block.n_rows, weight)], (local or 0) + params

    def regroup_local(self, local, old_to_new, K):
        return local * K + old_to_new


def engines():
    blocks = ArrayBlocks(X, 7)
    return [
        SerialEngine(blocks),
        *(ThreadEngine(blocks, n_threads=n) for n in (1, 2, 3, 8)),
    ]


@pytest.mark.parametrize("engine", engines(), ids=lambda e: f"{type(e).__name__}")
def test_every_block_once_and_in_order(engine):
    with engine:
        model = Log(sleepy=True)
        parts = engine.sweep(model, 1, range(engine.n_blocks))
    assert sorted(model.calls) == list(range(143))
    assert [index for index, *_ in parts] == list(range(143))
    assert sum(rows for _, rows, _ in parts) == 1000


@pytest.mark.parametrize("engine", engines(), ids=lambda e: f"{type(e).__name__}")
def test_some_blocks_only(engine):
    with engine:
        parts = engine.sweep(Log(), 1, [3, 4, 9])
        assert [index for index, *_ in parts] == [3, 4, 9]
        assert [local for local in engine.locals() if local] == [1, 1, 1]


def test_tasks_do_not_depend_on_the_engine():
    one, *others = engines()
    for ids in (range(143), range(5), [1, 5, 9]):
        tasks = [list(task) for task in one.tasks(ids)]
        assert [index for task in tasks for index in task] == list(ids)
        assert len(tasks) <= 128
        for other in others:
            assert [list(task) for task in other.tasks(ids)] == tasks


def test_weights_are_cut_like_the_rows():
    weights = np.arange(1000.0)
    with SerialEngine(ArrayBlocks(X, 300), weights) as engine:
        parts = engine.sweep(Log(), 1, range(engine.n_blocks))
    sums = [weight for *_, weight in parts]
    assert sums == [weights[i : i + 300].sum() for i in range(0, 1000, 300)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_error_in_a_block_comes_out(threads):
    engine = make_engine(ArrayBlocks(X, 7), n_threads=threads)
    with engine, pytest.raises(ArithmeticError, match="block 50"):
        engine.sweep(Log(broken=50), 1, range(engine.n_blocks))


def test_threads_hold_only_few_summaries():
    """A slow reader: no more than two tasks per thread are done ahead of it."""
    engine, model = ThreadEngine(ArrayBlocks(X, 10), n_threads=2), Log()
    with engine:
        portions = engine.portions(model, 1, engine.tasks(range(engine.n_blocks)))
        next(portions)
        time.sleep(0.05)
        assert len(model.calls) <= 5
        assert len(list(portions)) == 99


def test_state_is_kept_and_missed_renumberings_replayed_in_order():
    with SerialEngine(ArrayBlocks(X, 500)) as engine:
        engine.sweep(Log(), 1, [0, 1])
        engine.regroup(3, 10)
        engine.sweep(Log(), 1, [0])
        engine.regroup(5, 100)
        engine.sweep(Log(), 0, [0, 1])
        assert list(engine.locals()) == [
            (1 * 10 + 3 + 1) * 100 + 5,
            (1 * 10 + 3) * 100 + 5,
        ]


def test_a_block_never_visited_misses_nothing():
    with SerialEngine(ArrayBlocks(X, 500)) as engine:
        engine.regroup(3, 10)
        engine.sweep(Log(), 1, [0, 1])
        assert list(engine.locals()) == [1, 1]


def test_one_block_needs_no_threads():
    assert type(make_engine(ArrayBlocks(X), n_threads=4)) is SerialEngine
    assert type(make_engine(ArrayBlocks(X, 10), n_threads=1)) is SerialEngine
    assert type(make_engine(ArrayBlocks(X, 10), n_threads=4)) is ThreadEngine


# ------------------------------------------------------------------ BLAS threads


def blas_threads():
    pools = threadpool_info()
    return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]


@pytest.fixture
def two_blas_threads():
    from threadpoolctl import threadpool_limits

    with threadpool_limits(2, "blas"):
        if set(blas_threads()) != {2}:
            pytest.skip("this BLAS has one thread only")
        yield


@pytest.mark.parametrize("threads", [1, 2])
def test_blas_has_one_thread_meanwhile(two_blas_threads, threads):
    with make_engine(ArrayBlocks(X, 10), n_threads=threads):
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_blas_threads_come_back_after_an_error(two_blas_threads):
    with pytest.raises(ZeroDivisionError), SerialEngine(ArrayBlocks(X)):
        raise ZeroDivisionError
    assert set(blas_threads()) == {2}


def test_blas_threads_come_back_however_engines_overlap(two_blas_threads):
    """As with starts side by side: the first to begin is the first to end."""
    first, second = SerialEngine(ArrayBlocks(X)), SerialEngine(ArrayBlocks(X))
    with ExitStack() as one, ExitStack() as other:
        one.enter_context(first)
        other.enter_context(second)
        one.close()
        assert set(blas_threads()) == {1}, "the second engine still runs"
        other.close()
    assert set(blas_threads()) == {2}
