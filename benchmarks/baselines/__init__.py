"""Small implementations of methods that the papers compare with.

They serve the benchmarks only: their packages do not install, or there are none.
"""

from baselines.bnmf import bnmf
from baselines.dp_rf import dp_means_rf, farthest_first, sequential_dp_means
from baselines.mcfs import mcfs, mcfs_scores
from baselines.ndfs import ndfs, ndfs_scores
from baselines.plain_accelerated import PlainAccelerated

__all__ = [
    "PlainAccelerated",
    "bnmf",
    "dp_means_rf",
    "farthest_first",
    "mcfs",
    "mcfs_scores",
    "ndfs",
    "ndfs_scores",
    "sequential_dp_means",
]
