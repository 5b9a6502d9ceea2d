"""Groups of five shapes: the components found, and the way there."""

import matplotlib.pyplot as plt
import numpy as np

from kplus import DPMixture
from kplus.plots import ClusterDisplay

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

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
ClusterDisplay.from_estimator(model, X, ax=left)
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
