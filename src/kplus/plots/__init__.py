"""Pictures, as display objects in the manner of scikit-learn.

They need matplotlib, which is imported when the first one is drawn.

- `display`: the base class, colours and markers.
- `clusters`: rows and their clusters.
- `penalty_path`: the number of clusters against the penalty.
- `craft`: clusters and their features.
- `features`: latent features, as a map or as pictures.
- `comparison`: how far models agree.
- `stability`: how far clusters or features come back in fits to other rows.
- `traces`: values after each sweep of a fit or a chain.
"""

from kplus.plots.clusters import ClusterDisplay
from kplus.plots.comparison import ComparisonDisplay
from kplus.plots.craft import CraftDisplay
from kplus.plots.features import FeatureDisplay
from kplus.plots.penalty_path import PenaltyPathDisplay
from kplus.plots.stability import StabilityDisplay
from kplus.plots.traces import TraceDisplay

__all__ = [
    "ClusterDisplay",
    "ComparisonDisplay",
    "CraftDisplay",
    "FeatureDisplay",
    "PenaltyPathDisplay",
    "StabilityDisplay",
    "TraceDisplay",
]
