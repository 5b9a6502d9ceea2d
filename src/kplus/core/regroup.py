"""Renumbering of groups: ``into[k_old] = k_new``, -1 drops a group."""

import numpy as np

from kplus.core.types import IntArray

__all__ = ["without"]


def without(K: int, drop: IntArray) -> IntArray:
    """Renumber K groups without some of them; the others keep their order."""
    kept = np.ones(K, np.bool_)
    kept[drop] = False
    return np.where(kept, np.cumsum(kept) - 1, -1)
