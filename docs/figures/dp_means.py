"""DP-means on eight round groups."""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from kplus import DPMeans
from kplus.plots import ClusterDisplay

X, _ = make_blobs(n_samples=2000, centers=8, cluster_std=0.8, random_state=5)
model = DPMeans(penalty=25, random_state=0).fit(X)

fig, (left, right) = plt.subplots(1, 2, width_ratios=[3, 2])
ClusterDisplay.from_estimator(model, X, ax=left)
right.plot(model.objective_history_, "o-", markersize=3)
right.set(xlabel="pass", ylabel="objective", yscale="log")
