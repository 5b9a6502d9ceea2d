"""Pictures with up to four objects: some of them, and the features found in all."""

import matplotlib.pyplot as plt
import numpy as np

from kplus import BPMeans

objects = np.zeros((4, 8, 8))
objects[0, 1:4, 1:4] = [[1, 1, 1], [1, 0, 1], [1, 1, 1]]  # a ring
objects[1, 1:4, 4:7] = [[0, 1, 0], [1, 1, 1], [0, 1, 0]]  # a cross
objects[2, 4:7, 1:4] = [[1, 0, 0], [1, 0, 0], [1, 1, 1]]  # an angle
objects[3, 4:7, 4:7] = [[0, 0, 1], [0, 1, 0], [1, 0, 0]]  # a stroke
table = np.tile(np.linspace(0.1, 0.5, 8), 8)  # lit from the right

rng = np.random.default_rng(0)
shown = rng.random((300, 4)) < 0.4
X = shown @ objects.reshape(4, 64) + table + rng.normal(0, 0.15, (300, 64))

model = BPMeans(random_state=0).fit(X)
Z = model.transform(X)

fig, axes = plt.subplots(2, 5, figsize=(7.0, 3.4))
for ax, n in zip(axes[0], [1, 4, 5, 8, 0], strict=True):
    ax.imshow(X[n].reshape(8, 8), cmap="gray", vmin=-0.3, vmax=1.5)
    ax.set_title("".join(f"{bit:.0f}" for bit in Z[n]))
for ax, feature, count in zip(
    axes[1], model.components_, model.feature_counts_, strict=True
):
    ax.imshow(feature.reshape(8, 8), cmap="gray", vmin=-0.3, vmax=1.5)
    ax.set_title(f"in {count:.0f} rows")
for ax in axes.flat:
    ax.set_axis_off()
