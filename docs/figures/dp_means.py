"""DP-means on eight round groups."""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from kplus import DPMeans

X, _ = make_blobs(n_samples=2000, centers=8, cluster_std=0.8, random_state=5)
model = DPMeans(penalty=25, random_state=0).fit(X)

fig, (left, right) = plt.subplots(1, 2, width_ratios=[3, 2])
left.scatter(*X.T, c=model.labels_, cmap="tab10", s=5, linewidths=0)
left.scatter(*model.cluster_centers_.T, c="black", marker="+", s=60)
left.set(title=f"K⁺ = {model.n_clusters_}", xticks=[], yticks=[], aspect="equal")

right.plot(model.objective_history_, "o-", markersize=3)
right.set(xlabel="pass", ylabel="objective", yscale="log")
