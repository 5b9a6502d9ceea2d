"""Pictures made of parts, seen through gaps: as seen, filled in, and the parts."""

import matplotlib.pyplot as plt
import numpy as np

from kplus import MEIBP

parts = np.zeros((4, 6, 6))
parts[0, :3, :3] = [[0, 1, 0], [1, 1, 1], [0, 1, 0]]  # a cross
parts[1, :3, 3:] = [[1, 1, 1], [1, 0, 1], [1, 1, 1]]  # a ring
parts[2, 3:, :3] = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]  # stairs
parts[3, 3:, 3:] = [[1, 1, 1], [0, 1, 0], [0, 1, 0]]  # a hammer

rng = np.random.default_rng(0)
has_part = rng.random((200, 4)) < 0.5
clean = has_part @ parts.reshape(4, 36)
X = clean + rng.normal(0, 0.3, clean.shape)
hidden = rng.random(X.shape) < 0.3
seen = np.where(hidden, np.nan, X)

model = MEIBP(negative="noise", random_state=0).fit(seen)
Z, filled = model.transform(seen), model.impute(seen)

fig, axes = plt.subplots(3, 5, figsize=(6.4, 4.6))
gray = plt.get_cmap("gray").with_extremes(bad="#E69F00")  # gaps are orange
for n, (above, below) in enumerate(axes[:2].T):
    above.imshow(seen[n].reshape(6, 6), cmap=gray, vmin=-0.3, vmax=1.3)
    above.set_title("".join(f"{bit:.0f}" for bit in Z[n]))
    below.imshow(filled[n].reshape(6, 6), cmap=gray, vmin=-0.3, vmax=1.3)
for k, (ax, feature) in enumerate(zip(axes[2], model.components_, strict=False)):
    ax.imshow(feature.reshape(6, 6), cmap=gray, vmin=-0.3, vmax=1.3)
    ax.set_title(f"in {model.feature_counts_[k]:.0f} rows")
for ax in axes.flat:
    ax.set_axis_off()
for ax, words in zip(axes[:, 0], ["seen", "filled", "features"], strict=True):
    ax.text(-1.2, 2.5, words, rotation=90, ha="center", va="center")
