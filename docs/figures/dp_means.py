"""DP-means on eight round groups; circles of radius λ around the centres."""

import matplotlib.pyplot as plt

from kplus import DPMeans
from kplus.datasets import make_spherical_mixture
from kplus.plots import ClusterDisplay

X, truth = make_spherical_mixture(2000, 2, 8, separation=8, random_state=1)
model = DPMeans(penalty=49, algorithm="rows", random_state=0).fit(X)

ax = ClusterDisplay.from_estimator(model, X).ax_
for center in model.cluster_centers_:
    ax.add_patch(plt.Circle(center, 7, fill=False, linestyle=":"))
ax.set_aspect("equal", adjustable="datalim")
ax.autoscale_view()
