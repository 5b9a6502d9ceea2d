"""Files hurt at random: an error of ours or the very same model, nothing else."""

import random

import numpy as np
import pytest

from kplus.core.errors import ModelFormatError
from kplus.persist import inspect, load, save


@pytest.fixture
def small(stubs, tmp_path):
    """A file of two small arrays and a few scalars."""
    model = stubs.StubModel()
    model.cluster_centers_ = np.array([[1.0, 2.0], [3.0, 4.0]])
    model.feature_names_in_ = np.array(["a", "bc"], dtype=object)
    model.penalty_ = 2.5
    path = tmp_path / "small.npz"
    save(model, path)
    return path


def outcome(path, content):
    """Loads `content`; says "refused" or gives all of the model."""
    path.write_bytes(content)
    for read in (inspect, load):
        try:
            model = read(path)
        except ModelFormatError:
            return "refused"
    parts = {
        k: v.tolist() if isinstance(v, np.ndarray) else v
        for k, v in vars(model).items()
    }
    return type(model), model.cluster_centers_.tobytes(), parts


def test_every_truncation_is_refused(small):
    content = small.read_bytes()
    assert outcome(small, content) != "refused"
    for length in range(len(content)):
        assert outcome(small, content[:length]) == "refused", length


def test_flipped_bytes(small):
    content = small.read_bytes()
    intact = outcome(small, content)
    rng = random.Random(0)
    harmless = set()
    for place in range(len(content)):
        for value in (content[place] ^ (1 << rng.randrange(8)), rng.randrange(256)):
            hurt = bytearray(content)
            hurt[place] = value
            result = outcome(small, bytes(hurt))
            assert result in ("refused", intact), place
            if result == intact and value != content[place]:
                harmless.add(place)
    # Dates, versions and permissions in the headers of three members.
    assert len(harmless) < 150


def test_garbage(small):
    content = small.read_bytes()
    intact = outcome(small, content)
    rng = random.Random(1)
    for _ in range(2000):
        hurt = bytearray(content)
        length = rng.choice([2, 4, 16, 200])
        start = rng.randrange(len(content))
        action = rng.randrange(4)
        if action == 0:
            hurt[start : start + length] = rng.randbytes(length)
        elif action == 1:
            del hurt[start : start + length]
        elif action == 2:
            hurt[start:start] = rng.randbytes(length)
        else:
            other = rng.randrange(len(content))
            hurt[start : start + length] = content[other : other + length]
        assert outcome(small, bytes(hurt)) in ("refused", intact)


def test_bytes_from_nowhere(small):
    rng = random.Random(2)
    for length in [*range(60), 1000, 100_000]:
        noise = rng.randbytes(length)
        assert outcome(small, noise) == "refused"
        assert outcome(small, b"PK\x03\x04" + noise) == "refused"
        assert outcome(small, b"PK\x05\x06" + noise) == "refused"
