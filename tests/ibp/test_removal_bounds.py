"""What dropping a feature may gain, told from sums and by doing it."""

import numpy as np
import pytest

from kplus.core.regroup import without
from kplus.ibp.factors import GaussianFactors
from kplus.ibp.meibp_model import (
    IBPParams,
    MEIBPModel,
    removal_upper_bounds,
    renumbered,
    sums_of,
)
from kplus.linear.gaps import whole

FIXED = MEIBPModel(infer_noise=False, infer_spread=False, infer_alpha=False)


def fitted(X, Z, noise):
    """The best Gaussian factors for given bits."""
    K, D = Z.shape[1], X.shape[1]
    start = GaussianFactors.near(np.ones((K, D)), 0.1)
    params = IBPParams(start, noise, 1.0, 1.0, np.zeros(K))
    total = sums_of(X, None, whole(*X.shape), Z, start.mean)
    params = FIXED.update(params, total)
    return params, total.about(params.factors.mean)


def gain_of_dropping(params, total, k):
    """All else refitted, rows keep their other features, scales stay."""
    K = total.K
    old_to_new = without(K, np.array([k]))
    fewer = renumbered(params, old_to_new, K - 1, params.factors.mean[:0])
    sums = total.regroup(old_to_new, K - 1)
    return FIXED.bound(FIXED.update(fewer, sums), sums) - FIXED.bound(params, total)


@pytest.mark.parametrize("size", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_removal_upper_bounds_are_gains_but_for_the_uncertainty_of_the_factor(
    size, seed
):
    """Which is at most half a nat a column; a feature of nothing tells it all."""
    rng = np.random.default_rng(seed)
    Z = (rng.random((60, 3)) < 0.4).astype(np.uint8)
    A = rng.uniform(1.0, 2.0, (3, 5))
    A[2] *= size
    X = Z @ A + 0.3 * rng.normal(size=(60, 5))
    params, total = fitted(X, Z, 0.09)
    gains = [gain_of_dropping(params, total, k) for k in range(3)]
    left = removal_upper_bounds(params, total) - gains
    assert np.all(left >= -2.5)
    if size == 0.0:
        assert left[2] <= 0.0
