"""
Faces: parts in any amount, and pixels that are missing
=======================================================

A face is a sum of parts: eyes, a mouth, perhaps glasses, a beard, a hat, each more or
less dark. :class:`kplus.MEIBP` with ``weights="nonnegative"`` finds such parts and how
many there are, as :class:`~sklearn.decomposition.NMF` would if somebody gave it the
number; and it fills in what is missing.
"""

# %%
# 300 faces of 20 × 20 pixels, drawn by a program. Each part is there or not, and in
# some strength. A fifth of the pixels is hidden.

import matplotlib.pyplot as plt
import numpy as np

from kplus import MEIBP

y, x = np.mgrid[0:20, 0:20]


def disc(row, column, radius):
    return ((y - row) ** 2 + (x - column) ** 2 <= radius**2).astype(float)


parts = np.zeros((6, 20, 20))
parts[0] = np.abs(np.hypot(y - 10.5, x - 9.5) - 8.5) < 0.7  # the outline
parts[1] = disc(8, 6.5, 1) + disc(8, 12.5, 1)  # eyes
parts[2, 14, 7:13] = parts[2, 13, [6, 13]] = 1  # a smile
parts[3] = np.clip(
    disc(8, 6.5, 3) - disc(8, 6.5, 2) + disc(8, 12.5, 3) - disc(8, 12.5, 2), 0, 1
)
parts[4, 16:18, 5:15] = 1  # a beard
parts[5, 0:4, 4:16] = 1  # a hat
rng = np.random.default_rng(0)
has = rng.random((300, 6)) < [0.9, 0.8, 0.6, 0.4, 0.4, 0.3]
strength = has * rng.gamma(8, 1 / 8, has.shape)
clean = strength @ parts.reshape(6, -1)
faces = clean + rng.normal(0, 0.1, clean.shape)
hidden = rng.random(faces.shape) < 0.2
seen = np.where(hidden, np.nan, faces)

# %%
# Neither the number of parts nor the noise is given.

model = MEIBP(weights="nonnegative", negative="noise", tol=1e-4, random_state=0)
model.fit(seen)
filled = model.impute(seen)
print(f"{model.n_components_} parts, noise {model.noise_scale_:.2f}")
print(f"error of hidden pixels: {np.abs(filled - clean)[hidden].mean():.3f}")

# %%
# Six faces as seen, with gaps in orange; the same filled in; and the parts found.

fig, axes = plt.subplots(3, 6, figsize=(8, 4.2), layout="constrained")
gray = plt.get_cmap("gray_r").with_extremes(bad="#E69F00")
for n, column in enumerate(axes.T):
    column[0].imshow(seen[n].reshape(20, 20), cmap=gray, vmin=0, vmax=1.5)
    column[1].imshow(filled[n].reshape(20, 20), cmap=gray, vmin=0, vmax=1.5)
for ax, part in zip(axes[2], model.components_, strict=False):
    ax.imshow(part.reshape(20, 20), cmap=gray)
for ax in axes.flat:
    ax.set_axis_off()
plt.show()

# %%
# See :doc:`/guide/ibp`. For parts that are only there or not, :doc:`/guide/features` is
# simpler and faster.
