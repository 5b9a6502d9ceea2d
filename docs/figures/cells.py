"""Two spirals and a disc: cells of a fine quantisation, and the clusters they make."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from kplus import DPMeans
from kplus.plots.style import COLORS

rng = np.random.default_rng(0)
turn = np.sqrt(rng.uniform(0.1, 1, (2, 1500))) * 3 * np.pi
arm = turn[..., None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
X = np.concatenate([arm[0], -arm[1], np.tile((15, 8), (500, 1))])
X += rng.normal(0, 0.4, X.shape)
model = DPMeans(cells="auto", random_state=0).fit(X)

fig, (left, right) = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(7, 3.1))
colors = ListedColormap(COLORS)
left.scatter(*X.T, c=model.cell_labels_ % 12, cmap=colors, s=3, linewidths=0)
left.plot(*model.cell_centers_.T, "k.", ms=3)
left.set(title=f"{len(model.cell_centers_)} cells", aspect="equal")
right.scatter(*X.T, c=model.labels_, cmap=colors, vmax=11, s=3, linewidths=0)
right.set(title=f"{model.n_clusters_} clusters", aspect="equal")
