"""The number of clusters for every penalty."""

from sklearn.datasets import make_blobs

from kplus import DPMeans, penalty_path
from kplus.plots import PenaltyPathDisplay

X, _ = make_blobs(n_samples=2000, centers=8, cluster_std=0.8, random_state=5)
path = penalty_path(DPMeans(random_state=0), X)
PenaltyPathDisplay.from_path(path)
