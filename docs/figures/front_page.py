"""One data set at three penalties."""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from kplus import DPMeans

X, _ = make_blobs(n_samples=1200, centers=9, cluster_std=0.7, random_state=8)
fig, axes = plt.subplots(1, 3, sharex=True, sharey=True)
for ax, penalty in zip(axes, [150, 20, 3], strict=True):
    model = DPMeans(penalty, random_state=0).fit(X)
    ax.scatter(*X.T, c=model.labels_, cmap="tab20", s=4, linewidths=0)
    ax.scatter(*model.cluster_centers_.T, c="black", marker="+", s=40)
    ax.set_aspect("equal")
    ax.axis("off")
    ax.set_title(f"λ² = {penalty}:  K⁺ = {model.n_clusters_}")
