"""Groups that touch: how surely each row belongs to its own."""

from sklearn.datasets import make_blobs

from kplus import DPMixture
from kplus.plots import SurenessDisplay

X, _ = make_blobs(2500, centers=9, cluster_std=1.4, random_state=3)
model = DPMixture(random_state=0).fit(X)
SurenessDisplay.from_estimator(model, X)
