"""A caution where more features than columns are found."""

import warnings

import pytest

from kplus import BPMeans, KFeatures
from kplus.datasets import make_binary_features


def test_more_features_than_columns_are_named():
    X, _, _ = make_binary_features(600, 4, 7, noise=0.02, random_state=0)
    with pytest.warns(UserWarning, match="found 5 features in 4 columns.*penalty"):
        model = BPMeans(random_state=0).fit(X)
    assert model.n_components_ == 5
    with warnings.catch_warnings():  # who gives a number or a penalty asks for it
        warnings.simplefilter("error")
        KFeatures(n_components=5, random_state=0).fit(X)
        BPMeans(penalty=model.penalty_, random_state=0).fit(X)
