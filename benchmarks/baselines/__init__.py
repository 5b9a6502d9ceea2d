"""Small implementations of methods that the papers compare with.

They serve the benchmarks only: their packages do not install, or there are none.
"""

from baselines.beam_ibp import Scales, beam_ibp
from baselines.bnmf import bnmf
from baselines.dp_rf import dp_means_rf, farthest_first, sequential_dp_means
from baselines.inmf import inmf
from baselines.kd_mixture import kd_mixture
from baselines.mcfs import mcfs, mcfs_scores
from baselines.ndfs import ndfs, ndfs_scores
from baselines.normal_wishart import NormalWishart
from baselines.plain_accelerated import PlainAccelerated

__all__ = [
    "NormalWishart",
    "PlainAccelerated",
    "Scales",
    "beam_ibp",
    "bnmf",
    "dp_means_rf",
    "farthest_first",
    "inmf",
    "kd_mixture",
    "mcfs",
    "mcfs_scores",
    "ndfs",
    "ndfs_scores",
    "sequential_dp_means",
]
