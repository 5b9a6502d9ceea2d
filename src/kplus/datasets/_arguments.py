"""Types and checks of arguments that the generators share."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["Floats", "Ints", "Seed", "check_sizes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Seed = int | Generator | None


def check_sizes(least: int = 1, /, **sizes: int) -> None:
    """Refuse numbers of rows, columns and the like, given by name, below `least`."""
    for name, size in sizes.items():
        if size < least:
            raise ValueError(f"{name} must be at least {least}, got {size}.")
