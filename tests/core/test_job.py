"""Several starts: all heed the end of a fit."""

import threading

import numpy as np

from jobs import make_job
from kplus.core.job import best_of


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

    rng = np.random.default_rng(0)
    watched = make_job(
        None, None, rng, callback=callback, ended=asked.is_set, n_threads=2
    )
    best_of(6, watched, fit, float)
    assert told == [1, 2, 3]
    assert sorted(seen) == [False, True]
