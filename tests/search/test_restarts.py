"""Several starts: the best is kept, and all heed the end of a fit."""

import threading

import numpy as np

from kplus.search.job import Job
from kplus.search.restarts import best_of


def job(**options):
    return Job(None, None, np.random.default_rng(0), **options)


def test_the_first_of_the_best_is_kept():
    costs = {False: 2.0, True: 1.0}
    found = best_of(
        3, job(), lambda part, again: (part, costs[again]), lambda one: one[1]
    )
    again = best_of(3, job(), lambda part, again: part, lambda part: 0.0)
    assert found[1] == 1.0
    assert found[0].rng.random() == np.random.default_rng(0).spawn(2)[1].random()
    assert again.rng.random() == np.random.default_rng(0).spawn(1)[0].random()


def test_only_the_first_is_told_and_all_are_ended():
    """Starts under way stop after their pass; no other begins."""
    asked = threading.Event()
    begun = threading.Barrier(2)
    told, seen = [], []

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
        told.append(info)
        return asked.is_set()

    watched = job(callback=callback, ended=asked.is_set, n_threads=2)
    best_of(6, watched, fit, float)
    assert told == [1, 2, 3]
    assert sorted(seen) == [False, True]
