"""A ring, a disc and a banana: the components of a mixture, and its clusters."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from kplus import DPMixture

rng = np.random.default_rng(0)
around, along = rng.uniform(0, 2 * np.pi, 800), rng.uniform(0, np.pi, 500)
ring = 5 * np.column_stack([np.cos(around), np.sin(around)])
banana = (12, 2) + 4 * np.column_stack([np.cos(along), -np.sin(along)])
X = np.concatenate([ring, banana, np.zeros((300, 2))])
X += rng.normal(0, 0.4, X.shape)
model = DPMixture(random_state=0).fit(X)

fig, (left, right) = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(7, 2.6))
left.scatter(*X.T, c=model.component_labels_, cmap="tab20", s=4, linewidths=0)
for mean, covariance in zip(model.means_, model.covariances_, strict=True):
    variances, axes = np.linalg.eigh(covariance)
    width, height = 4 * np.sqrt(variances)  # two standard deviations either way
    tilt = np.degrees(np.arctan2(axes[1, 0], axes[0, 0]))
    left.add_patch(Ellipse(mean, width, height, angle=tilt, fill=False, lw=0.6))
left.set(title=f"{model.n_components_} components", aspect="equal")
right.scatter(*X.T, c=model.labels_, cmap="tab10", vmax=9, s=4, linewidths=0)
right.set(title=f"{model.n_clusters_} clusters", aspect="equal")
