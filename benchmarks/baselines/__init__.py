"""Small implementations of methods that the paper of CRAFT compares with.

They serve the benchmarks only: their packages do not install, or there are none.
"""

from baselines.dp_rf import dp_means_rf, farthest_first, sequential_dp_means
from baselines.mcfs import mcfs, mcfs_scores
from baselines.ndfs import ndfs, ndfs_scores

__all__ = [
    "dp_means_rf",
    "farthest_first",
    "mcfs",
    "mcfs_scores",
    "ndfs",
    "ndfs_scores",
    "sequential_dp_means",
]
