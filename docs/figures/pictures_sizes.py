"""How many wines are in each group."""

from sklearn.datasets import load_wine

from kplus import DPMixture
from kplus.plots import SizeDisplay

wine = load_wine(as_frame=True).data
model = DPMixture(random_state=0).fit(wine)
SizeDisplay.from_estimator(model)
