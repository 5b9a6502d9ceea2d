"""A ring, a disc and a banana: the components of a mixture, and its clusters."""

import matplotlib.pyplot as plt
import numpy as np

from kplus import DPMixture
from kplus.plots import ClusterDisplay

rng = np.random.default_rng(0)
around, along = rng.uniform(0, 2 * np.pi, 800), rng.uniform(0, np.pi, 500)
ring = 5 * np.column_stack([np.cos(around), np.sin(around)])
banana = (12, 2) + 4 * np.column_stack([np.cos(along), -np.sin(along)])
X = np.concatenate([ring, banana, np.zeros((300, 2))])
X += rng.normal(0, 0.4, X.shape)
model = DPMixture(random_state=0).fit(X)

fig, axes = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(8, 3))
pieces = model.component_labels_
ClusterDisplay.from_predictions(X, pieces, components=pieces, ax=axes[0])
ClusterDisplay.from_estimator(model, X, ellipses=False, ax=axes[1])
for ax, words in zip(axes, ["components", "clusters"], strict=True):
    ax.set(title=words, aspect="equal")
    ax.get_legend().remove()
