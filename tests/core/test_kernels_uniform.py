"""Random numbers by seed and row."""

import numpy as np
import pytest

from kplus.core.kernels_uniform import uniform, uniform_of_rows

MASK = 2**64 - 1


def splitmix64(state):
    """As published by Vigna, in whole numbers."""
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return (z ^ (z >> 31)) >> 11


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_rows_have_numbers_of_their_own(seed):
    rows = np.array([0, 1, 7, 10**12])
    out = np.empty(4)
    uniform_of_rows(rows, seed, out)
    expected = [
        splitmix64((int(r) + seed * 0x9E3779B97F4A7C15) & MASK) * 2.0**-53 for r in rows
    ]
    assert out.tolist() == expected


def test_a_stream_is_splitmix64():
    """The first numbers of the reference implementation for the seed 1234567."""
    first = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    found = [uniform(np.uint64(1234567), k) for k in range(3)]
    assert found == [(z >> 11) * 2.0**-53 for z in first]
