"""Wines of three kinds, in the coordinates that tell them apart."""

from sklearn.datasets import load_wine

from kplus import DPMixture
from kplus.plots import ClusterDisplay

wine = load_wine(as_frame=True).data
model = DPMixture(random_state=0).fit(wine)
ClusterDisplay.from_estimator(model, wine)
