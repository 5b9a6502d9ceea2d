"""The number of clusters for every penalty."""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from kplus import DPMeans, penalty_path

X, _ = make_blobs(n_samples=2000, centers=8, cluster_std=0.8, random_state=5)
path = penalty_path(DPMeans(random_state=0), X)

fig, ax = plt.subplots()
ax.step(path.penalty, path.n_clusters, where="post")
ax.set(xscale="log", yscale="log", xlabel="λ² (of the objective)", ylabel="best K")
