"""What each number of features would cost."""

from kplus import KFeatures
from kplus.datasets import make_binary_features
from kplus.plots import NumberDisplay

X, Z, A = make_binary_features(300, 20, 6, random_state=0)
model = KFeatures(random_state=0).fit(X)
NumberDisplay.from_estimator(model)
