"""Renumbering of groups: ``old_to_new[k_old] = k_new``, -1 drops a group."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import IntArray

__all__ = ["joined", "relabelled", "without"]


def without(K: int, drop: NDArray[Any] | int) -> IntArray:
    """Renumber K groups without some of them; the others keep their order.

    `drop` is a number, numbers or a mask.
    """
    kept = np.ones(K, np.bool_)
    kept[drop] = False
    return np.where(kept, np.cumsum(kept) - 1, -1)


def joined(K: int, first: int, second: int) -> IntArray:
    """Renumber K groups of which the second becomes part of the first."""
    old_to_new = without(K, second)
    old_to_new[second] = old_to_new[first]
    return old_to_new


def relabelled(labels: IntArray, old_to_new: IntArray) -> IntArray:
    """The labels of rows after a renumbering; -1, no group, stays -1."""
    return np.append(old_to_new, -1).astype(labels.dtype)[labels]
