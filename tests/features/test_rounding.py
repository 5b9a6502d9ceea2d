"""What rounding leaves of a row is not worth a feature."""

import numpy as np
import pytest

from kplus.data.blocks import ArrayBlocks
from kplus.engine import SerialEngine
from kplus.features.model import FeatureModel, Features


def candidates(X, A, penalty):
    model = FeatureModel(penalty, most=len(A) + 3)
    params = Features(A, exact=True)
    with SerialEngine(ArrayBlocks(X, 10)) as engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
    return total.candidates


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("penalty", [0.0, 1e-12])
def test_rows_that_features_explain_but_for_rounding_want_none(size, penalty):
    rng = np.random.default_rng(0)
    A = size * rng.normal(size=(4, 5))
    X = rng.integers(0, 2, (40, 4)) @ A
    X *= 1.0 + 1e-16 * rng.integers(-1, 2, X.shape)  # a last digit here and there
    assert len(candidates(X, A, penalty * size**2).rows) == 0
    X[7, 2] += 1e-3 * size
    found = candidates(X, A, penalty * size**2)
    np.testing.assert_array_equal(found.rows, [7])
    assert found.costs[0] == pytest.approx(1e-6 * size**2, rel=1e-3)


def test_without_features_rows_cost_their_squares():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 2.0]])
    found = candidates(X, np.empty((0, 2)), 1.0)
    np.testing.assert_array_equal(found.rows, [0, 2])
    np.testing.assert_allclose(found.costs, [25.0, 4.0])
    np.testing.assert_allclose(found.residuals, [[3.0, 4.0], [0.0, 2.0]])
