"""Pictures, as display objects in the manner of scikit-learn.

They need matplotlib, which is imported when the first one is drawn.

- `style`: colours, markers, names and cells, the same in all pictures.
- `display`: the base class, and some rows of any table.
- `coordinates`, `labels`, `clusters`: a map of rows and their clusters.
- `profiles`: clusters column by column beside the whole table.
- `sizes`: how large groups are.
- `tree`: how clusters are joined from pieces, and the cut.
- `belonging`, `sureness`, `membership`: how far rows belong to groups.
- `comparison`: how far models agree.
- `stability`: how far clusters or features come back in fits to other rows.
- `penalty_path`, `numbers`: other numbers of groups.
- `traces`: values after each pass of a fit or a chain, and its moves.
- `craft`: clusters and their features.
- `features`, `combinations`: latent features, as a map or as pictures; which of them
  rows have together.
"""

from kplus.plots.clusters import ClusterDisplay
from kplus.plots.combinations import CombinationDisplay
from kplus.plots.comparison import ComparisonDisplay
from kplus.plots.craft import CraftDisplay
from kplus.plots.features import FeatureDisplay
from kplus.plots.membership import MembershipDisplay
from kplus.plots.numbers import NumberDisplay
from kplus.plots.penalty_path import PenaltyPathDisplay
from kplus.plots.profiles import ProfileDisplay
from kplus.plots.sizes import SizeDisplay
from kplus.plots.stability import StabilityDisplay
from kplus.plots.sureness import SurenessDisplay
from kplus.plots.traces import TraceDisplay
from kplus.plots.tree import TreeDisplay

__all__ = [
    "ClusterDisplay",
    "CombinationDisplay",
    "ComparisonDisplay",
    "CraftDisplay",
    "FeatureDisplay",
    "MembershipDisplay",
    "NumberDisplay",
    "PenaltyPathDisplay",
    "ProfileDisplay",
    "SizeDisplay",
    "StabilityDisplay",
    "SurenessDisplay",
    "TraceDisplay",
    "TreeDisplay",
]
