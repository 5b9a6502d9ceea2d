"""The public estimators and the functions that go with them."""

from kplus.estimators._dp_means import DPMeans
from kplus.estimators._dp_mixture import DPMixture
from kplus.estimators._penalty import penalty_for, penalty_path
from kplus.search.path import PenaltyPath

__all__ = ["DPMeans", "DPMixture", "PenaltyPath", "penalty_for", "penalty_path"]
