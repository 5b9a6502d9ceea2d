"""
A tabletop: rows that belong to several groups
==============================================

Pictures show a table with up to four things on it, in any combination. A clustering
would need a group for each of the sixteen combinations. :class:`kplus.BPMeans`
describes the same pictures by five features: the table, and each thing by itself.
"""

# %%
# 300 noisy pictures of 8 × 8 pixels.

import matplotlib.pyplot as plt
import numpy as np

from kplus import BPMeans

things = np.zeros((4, 8, 8))
things[0, 1:4, 1:4] = [[1, 1, 1], [1, 0, 1], [1, 1, 1]]  # a ring
things[1, 1:4, 4:7] = [[0, 1, 0], [1, 1, 1], [0, 1, 0]]  # a cross
things[2, 4:7, 1:4] = [[1, 0, 0], [1, 0, 0], [1, 1, 1]]  # an angle
things[3, 4:7, 4:7] = [[0, 0, 1], [0, 1, 0], [1, 0, 0]]  # a stroke
table = np.tile(np.linspace(0.1, 0.5, 8), 8)  # lit from the right
rng = np.random.default_rng(0)
shown = rng.random((300, 4)) < 0.4
pictures = shown @ things.reshape(4, 64) + table + rng.normal(0, 0.15, (300, 64))

# %%
# ``transform`` says which picture has which feature.

model = BPMeans(random_state=0).fit(pictures)
Z = model.transform(pictures)
print(f"{model.n_components_} features in {len(np.unique(Z, axis=0))} combinations")

# %%
# Above are five pictures, each with the features it has; below the features found. No
# picture shows a thing without the table, and yet each comes out by itself.

fig, axes = plt.subplots(2, 5, figsize=(8, 3.6), layout="constrained")
for ax, n in zip(axes[0], [1, 4, 5, 8, 0], strict=True):
    ax.imshow(pictures[n].reshape(8, 8), cmap="gray", vmin=-0.3, vmax=1.5)
    ax.set_title("".join(f"{bit:.0f}" for bit in Z[n]))
for ax, feature, count in zip(
    axes[1], model.components_, model.feature_counts_, strict=True
):
    ax.imshow(feature.reshape(8, 8), cmap="gray", vmin=-0.3, vmax=1.5)
    ax.set_title(f"in {count:.0f}")
for ax in axes.flat:
    ax.set_axis_off()
plt.show()

# %%
# Take a thing off the table: leave out its feature, and put the rest together again.

without = Z.copy()
without[:, 1] = 0
removed = model.inverse_transform(without)
fig, axes = plt.subplots(1, 2, figsize=(3.2, 1.7), layout="constrained")
n = np.flatnonzero(Z[:, 1])[0]
for ax, picture, words in zip(
    axes, (pictures[n], removed[n]), ("before", "after"), strict=True
):
    ax.imshow(picture.reshape(8, 8), cmap="gray", vmin=-0.3, vmax=1.5)
    ax.set_title(words)
    ax.set_axis_off()
plt.show()

# %%
# See :doc:`/guide/features`.
