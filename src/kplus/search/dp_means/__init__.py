"""Clusters by a price or a number: samples first, splits and swaps, the path of λ²."""

from kplus.search.dp_means.driver import (
    assign,
    by_number,
    by_penalty,
    distances,
    farthest_first,
    find_path,
    stream,
)
from kplus.search.dp_means.fitted import Fitted

__all__ = [
    "Fitted",
    "assign",
    "by_number",
    "by_penalty",
    "distances",
    "farthest_first",
    "find_path",
    "stream",
]
