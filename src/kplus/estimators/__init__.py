"""The public estimators and the functions that go with them."""

from kplus.craft.estimator import CRAFT
from kplus.dp_means.estimator import DPMeans
from kplus.dp_means.penalty import penalty_for, penalty_path
from kplus.dp_means.penalty_path import PenaltyPath
from kplus.dp_mixture.estimator import DPMixture
from kplus.features.bp_means import BPMeans
from kplus.features.k_features import KFeatures
from kplus.ibp.gibbs.estimator import IBPGibbs
from kplus.ibp.ibp_variational import IBPVariational
from kplus.ibp.meibp import MEIBP

__all__ = [
    "CRAFT",
    "MEIBP",
    "BPMeans",
    "DPMeans",
    "DPMixture",
    "IBPGibbs",
    "IBPVariational",
    "KFeatures",
    "PenaltyPath",
    "penalty_for",
    "penalty_path",
]
