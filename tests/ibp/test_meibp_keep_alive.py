"""Features that must not lose their last row: where the prior's tangent is too high."""

import numpy as np
import pytest

from kplus.ibp.factors import TruncatedFactors
from kplus.ibp.meibp_model import IBPParams, MEIBPModel, sums_of
from kplus.ibp.prior import count_slopes, log_prior
from kplus.linear.gaps import whole


def updated(Z, alpha, D=3, seed=0):
    """Parameters for rows that have these features."""
    rng = np.random.default_rng(seed)
    K = Z.shape[1]
    A = rng.uniform(0.5, 2.0, (K, D))
    X = Z @ A + rng.uniform(0.0, 0.1, (len(Z), D))
    counts = Z.sum(axis=0).astype(float)
    params = IBPParams(
        TruncatedFactors.near(A, 1.0), 1.0, 1.0, alpha, count_slopes(counts, len(Z))
    )
    total = sums_of(X, None, whole(*X.shape), Z.astype(np.uint8), A)
    return MEIBPModel(infer_alpha=False).update(params, total)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_in_ordinary_tables_no_feature_must_last(alpha, seed):
    """Also features of one row, or of all."""
    rng = np.random.default_rng(seed)
    Z = (rng.random((100, 5)) < rng.uniform(0.05, 0.9, 5)).astype(int)
    Z[:, 0] = 1
    Z[:, 1] = np.arange(100) == 7
    assert updated(Z, alpha).keep_alive is None


@pytest.mark.parametrize("alpha", [0.1, 1.0, 20.0, 500.0])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 20])
@pytest.mark.parametrize("K", [1, 2, 4])
def test_features_last_whose_end_would_cost_more_than_rows_are_told(n, alpha, K):
    """What the prior loses with a feature, against its slope times its rows."""
    Z = (np.random.default_rng(n).random((n, K)) < 0.6).astype(int)
    Z[0] = 1
    counts = Z.sum(axis=0).astype(float)
    params = updated(Z, alpha)
    before = log_prior(counts, n, alpha)
    for k in range(K):
        lost = before - log_prior(np.delete(counts, k), n, alpha)
        if lost > counts[k] * params.slopes[k]:
            assert params.keep_alive is not None
            assert params.keep_alive[k]


def test_rows_keep_a_feature_that_must_last():
    """Two rows, neither of which wants the feature any more: one keeps it."""
    Z = np.array([[1], [1]])
    params = updated(Z, 500.0)
    assert params.keep_alive is not None
    assert params.keep_alive.all()
    X, bits = np.zeros((2, 3)), Z.astype(np.uint8)
    model = MEIBPModel()
    model.choose(params, X, whole(2, 3), free := bits.copy(), 0)
    assert not free.any()
    changed = model._visit(params, X, whole(2, 3), bits, 0)
    np.testing.assert_array_equal(bits, [[1], [0]])
    assert changed == 1
