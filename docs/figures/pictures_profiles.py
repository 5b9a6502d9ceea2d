"""What three groups of wines are like, substance by substance."""

from sklearn.datasets import load_wine

from kplus import DPMixture
from kplus.plots import ProfileDisplay

wine = load_wine(as_frame=True).data
model = DPMixture(random_state=0).fit(wine)
ProfileDisplay.from_estimator(model, wine)
