"""The way of a fit: its bound, its births and its merges."""

from sklearn.datasets import make_blobs

from kplus import DPMixture
from kplus.plots import TraceDisplay

X, _ = make_blobs(2500, centers=9, cluster_std=1.4, random_state=3)
model = DPMixture(random_state=0).fit(X)
TraceDisplay.from_estimator(model)
