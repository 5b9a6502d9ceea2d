"""The number of clusters for every penalty."""

from kplus import DPMeans, penalty_path
from kplus.datasets import make_spherical_mixture
from kplus.plots import PenaltyPathDisplay

X, truth = make_spherical_mixture(2000, 2, 8, separation=8, random_state=1)
path = penalty_path(DPMeans(random_state=0), X)
PenaltyPathDisplay.from_path(path)
