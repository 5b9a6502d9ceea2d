"""What a worker remembers of the states it wrote."""

import numpy as np
import pytest

from kplus.engine.remote_tasks import Remembered


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / f"{name}.rows" for name in "abc"]
    for path in found:
        path.touch()
    return found


def states(n_bytes):
    return [np.zeros(n_bytes // 2, np.uint8), None, (np.zeros(n_bytes // 2, np.uint8),)]


def test_is_taken_once(paths):
    """Models may change states in place; after that only the file is right."""
    remembered, kept = Remembered(100), states(10)
    remembered.keep(paths[0], kept)
    assert remembered.take(paths[1]) is None
    assert remembered.take(paths[0]) is kept
    assert remembered.take(paths[0]) is None


def test_forgets_the_oldest_when_full(paths):
    remembered = Remembered(100)
    for path in paths:
        remembered.keep(path, states(40))
    assert remembered.take(paths[0]) is None
    assert remembered.take(paths[1]) is not None
    remembered.keep(paths[1], states(200))
    assert remembered.take(paths[1]) is None


def test_lasts_no_longer_than_the_file(paths):
    remembered = Remembered(100)
    remembered.keep(paths[0], states(10))
    paths[0].unlink()
    remembered.keep(paths[1], states(10))
    assert remembered.take(paths[0]) is None


def test_forgets_a_folder(paths, tmp_path):
    remembered = Remembered(100)
    remembered.keep(paths[0], states(10))
    remembered.forget(tmp_path / "other")
    remembered.forget(tmp_path)
    assert remembered.take(paths[0]) is None
