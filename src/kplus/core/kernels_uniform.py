"""Uniform numbers that depend on a seed and a number alone (splitmix64).

What is drawn for a row is then the same however the table is cut into blocks.
"""

import numpy as np

from kplus.core.kernels import kernel

__all__ = ["scramble", "uniform", "uniform_of_rows"]


@kernel
def scramble(x):
    """Scatter the bits of a 64-bit number: the last step of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def uniform(start, k):
    """Number k of the stream of splitmix64 that begins at `start`, in [0, 1)."""
    step = np.uint64(k + 1) * np.uint64(0x9E3779B97F4A7C15)
    return float(scramble(start + step) >> np.uint64(11)) * 2.0**-53


@kernel
def uniform_of_rows(rows, seed, out):
    """out_i = a number in [0, 1) that depends on rows_i and the seed alone."""
    for i in range(len(rows)):
        out[i] = uniform(np.uint64(rows[i]), seed - 1)
