"""The public estimators and the functions that go with them."""

from kplus.estimators._bp_means import BPMeans
from kplus.estimators._craft import CRAFT
from kplus.estimators._dp_means import DPMeans
from kplus.estimators._dp_mixture import DPMixture
from kplus.estimators._ibp_gibbs import IBPGibbs
from kplus.estimators._ibp_variational import IBPVariational
from kplus.estimators._k_features import KFeatures
from kplus.estimators._meibp import MEIBP
from kplus.estimators._penalty import penalty_for, penalty_path
from kplus.search.dp_means.path import PenaltyPath

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
