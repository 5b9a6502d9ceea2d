"""One data set at three penalties."""

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap

from kplus import DPMeans
from kplus.datasets import make_spherical_mixture
from kplus.plots.style import COLORS

X, truth = make_spherical_mixture(2000, 2, 8, separation=8, random_state=1)
colors = ListedColormap(COLORS)
fig, axes = plt.subplots(1, 3, sharex=True, sharey=True)
for ax, radius in zip(axes, [15, 7, 3.5], strict=True):
    model = DPMeans(penalty=radius**2, algorithm="rows", random_state=0).fit(X)
    ax.scatter(
        *X.T, c=model.labels_ % 12, cmap=colors, vmin=0, vmax=11, s=4, linewidths=0
    )
    ax.scatter(*model.cluster_centers_.T, c="black", marker="+", s=40)
    ax.set_title(f"λ = {radius}:  K⁺ = {model.n_clusters_}")
    ax.set_aspect("equal")
    ax.axis("off")
