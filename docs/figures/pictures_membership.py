"""Groups that touch: which rows lie between which."""

from sklearn.datasets import make_blobs

from kplus import DPMixture
from kplus.plots import MembershipDisplay

X, _ = make_blobs(2500, centers=9, cluster_std=1.4, random_state=3)
model = DPMixture(random_state=0).fit(X)
MembershipDisplay.from_estimator(model, X)
