"""Nine groups, of which some touch: the tree of their components, and its cut."""

from sklearn.datasets import make_blobs

from kplus import DPMixture
from kplus.plots import TreeDisplay

X, _ = make_blobs(2500, centers=9, cluster_std=1.4, random_state=3)
model = DPMixture(random_state=0).fit(X)
TreeDisplay.from_estimator(model)
