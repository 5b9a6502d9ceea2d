"""Groups of five shapes: the components found, and the way there."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from kplus import DPMixture

groups = [  # rows, mean, covariance
    (900, (0, 0), [[8, 5.5], [5.5, 4.2]]),
    (500, (2, -5), [[5, -2.5], [-2.5, 1.6]]),
    (400, (-6, 4), [[2, 0], [0, 2]]),
    (300, (7, -2), [[0.4, 0.3], [0.3, 3]]),
    (100, (-5, -4), [[0.1, 0], [0, 0.1]]),
]
rng = np.random.default_rng(1)
X = np.concatenate([rng.multivariate_normal(m, C, size=n) for n, m, C in groups])
model = DPMixture(random_state=0).fit(X)

fig, (left, right) = plt.subplots(1, 2)
left.scatter(*X.T, c=model.labels_, cmap="tab10", vmax=9, s=4, linewidths=0)
for mean, covariance in zip(model.means_, model.covariances_, strict=True):
    variances, axes = np.linalg.eigh(covariance)
    width, height = 4 * np.sqrt(variances)  # two standard deviations either way
    tilt = np.degrees(np.arctan2(axes[1, 0], axes[0, 0]))
    left.add_patch(Ellipse(mean, width, height, angle=tilt, fill=False))
left.set(title=f"{model.n_components_} components", aspect="equal")

bounds, moves = model.lower_bound_history_, model.moves_[model.moves_["accepted"]]
right.plot(np.arange(1, len(bounds) + 1), bounds, color="gray")
for kind, marker in (("birth", "^"), ("merge", "v")):
    passes = np.unique(moves["pass"][moves["kind"] == kind])
    aside = -18 if kind == "birth" else 18  # so that both can be seen
    heights = bounds[passes - 1] + aside
    right.scatter(passes, heights, marker=marker, s=20, zorder=3, label=kind)
right.set(title="Lower bound by pass", xlabel="pass", ylabel="nats")
right.set_ylim(bounds[1] - 50, bounds.max() + 50)  # the first pass is far below
right.legend(title="after the pass", loc="lower right")
