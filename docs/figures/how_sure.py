"""Two groups that are there, and a third that was cut in two because somebody asked."""

import matplotlib.pyplot as plt
import numpy as np

from kplus import DPMeans, stability
from kplus.plots import ClusterDisplay, StabilityDisplay

rng = np.random.default_rng(3)
centers = np.repeat([[0.0, 0.0], [9.0, 1.0], [4.0, 8.0]], [300, 150, 150], axis=0)
X = centers + rng.normal(size=(600, 2))
model = DPMeans(n_clusters=4, random_state=0).fit(X)
result = stability(model, X, random_state=0)

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
ClusterDisplay.from_estimator(model, X, ax=left)
StabilityDisplay.from_stability(result, ax=right)
