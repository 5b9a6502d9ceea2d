"""Search for latent features: seeds, local search, how many."""

from kplus.search.features.driver import FeatureFit, allocate, fit, stream
from kplus.search.features.spec import FeatureSpec

__all__ = ["FeatureFit", "FeatureSpec", "allocate", "fit", "stream"]
