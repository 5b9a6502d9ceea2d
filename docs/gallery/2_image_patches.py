"""
Image patches: groups that differ in texture, not in position
=============================================================

Small patches cut from photographs, with their mean brightness taken off, all lie around
the same point: black, white and grey cancel. What tells them apart is *how* they vary:
which way an edge runs, how rough a surface is. A mixture of Gaussians with mean zero
finds such textures, and how many are worth telling apart.
"""

# %%
# 2,000 patches of 8 × 8 pixels from the two photographs that come with scikit-learn.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.feature_extraction.image import extract_patches_2d

from kplus import DPMixture

patches = np.concatenate(
    [
        extract_patches_2d(photo.mean(axis=2), (8, 8), max_patches=1000, random_state=i)
        for i, photo in enumerate(load_sample_images().images)
    ]
).reshape(-1, 64)
patches -= patches.mean(axis=1, keepdims=True)
patches += np.random.default_rng(0).normal(0, 1, patches.shape)  # whole grey levels

# %%
# The number of textures is open. ``n_clusters=None`` keeps every component as it is:
# Gaussians around one point overlap, so that there are no valleys to look for.

model = DPMixture("zero_mean_gaussian", n_clusters=None, tol=1e-3, random_state=0)
model.fit(patches)
print(f"{model.n_components_} textures, {model.n_iter_} passes")

# %%
# The ten largest ones. Above is a patch that belongs there, below the leading principal
# directions of its Gaussian: the strokes that such patches are made of.

fig, axes = plt.subplots(4, 10, figsize=(8, 3.4))
for k, column in enumerate(axes.T):
    rows = patches[model.labels_ == k]
    column[0].imshow(rows[len(rows) // 2].reshape(8, 8), cmap="gray")
    column[0].set_title(f"{model.weights_[k]:.0%}")
    _, directions = np.linalg.eigh(model.covariances_[k])
    for ax, direction in zip(column[1:], directions.T[::-1], strict=False):
        ax.imshow(direction.reshape(8, 8), cmap="gray")
for ax in axes.flat:
    ax.set_axis_off()
plt.show()

# %%
# See :doc:`/guide/observations` for the families, and :doc:`/benchmarks` for the fit to
# a million patches.
