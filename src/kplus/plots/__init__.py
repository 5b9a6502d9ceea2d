"""Pictures, as display objects in the manner of scikit-learn.

They need matplotlib, which is imported when the first one is drawn.
"""

from kplus.plots.clusters import ClusterDisplay
from kplus.plots.craft import CraftDisplay
from kplus.plots.features import FeatureDisplay
from kplus.plots.penalty_path import PenaltyPathDisplay
from kplus.plots.traces import TraceDisplay

__all__ = [
    "ClusterDisplay",
    "CraftDisplay",
    "FeatureDisplay",
    "PenaltyPathDisplay",
    "TraceDisplay",
]
