"""Where rows of variational inference begin, and which of two ways they keep."""

from dataclasses import replace

import numpy as np
import pytest

from kplus.core.types import Block
from kplus.data.blocks import ArrayBlocks
from kplus.ibp.factors import GaussianFactors
from kplus.ibp.prior import FiniteIBP, InfiniteIBP
from kplus.ibp.variational_model import MeanField, VariationalModel

both_kinds = pytest.mark.parametrize("kind", [FiniteIBP, InfiniteIBP])
noises = pytest.mark.parametrize("noise", [0.05, 0.5, 4.0])


def setting(kind, noise, gaps, n=25, K=5, D=4, seed=0):
    """Features that overlap, so that rows have more than one way to be explained."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(K, D)) + 1.0
    X = (rng.random((n, K)) < 0.5) @ mean + np.sqrt(noise) * rng.normal(size=(n, D))
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    counts = rng.uniform(0.2, 0.8, K) * n
    factors = GaussianFactors.uncoupled(mean, 0.02)
    params = MeanField(factors, kind.fitted(counts, n, 1.0), noise, 1.0)
    return X, params, rng


def visit(model, params, X, local=None):
    block = Block(ArrayBlocks(X, len(X)), 0, 0, len(X))
    return model.summarize(params, block, local)[1]


def row_bounds(params, X, nu):
    """The bound of a table that has but this row, for each row."""
    model, rows = VariationalModel(), [slice(n, n + 1) for n in range(len(X))]
    sums = (model.sums(params, X[row], nu[row]) for row in rows)
    return np.array([model.bound(params, one) for one in sums])


@both_kinds
@noises
@pytest.mark.parametrize("gaps", [False, True])
def test_rows_begin_where_no_flip_of_a_bit_helps(kind, noise, gaps):
    X, params, _ = setting(kind, noise, gaps)
    z = visit(VariationalModel(most_sweeps=0), params, X)
    assert set(np.unique(z)) <= {0.0, 1.0}
    best = row_bounds(params, X, z)
    for k in range(z.shape[1]):
        flipped = z.copy()
        flipped[:, k] = 1.0 - z[:, k]
        assert np.all(row_bounds(params, X, flipped) <= best + 1e-9 * np.abs(best))


@both_kinds
@pytest.mark.parametrize("noise", [0.05, 0.3])
@pytest.mark.parametrize("gaps", [False, True])
def test_fresh_rows_keep_the_better_of_two_ways(kind, noise, gaps):
    """From the last probabilities, or from nothing; each row for itself."""
    X, params, rng = setting(kind, noise, gaps, n=60)
    model = VariationalModel()
    before = rng.random((60, 5)) ** 4  # any probabilities, mostly poor ones
    before[::2] = 1.0 - before[::2]
    old, new = visit(model, params, X, before), visit(model, params, X)
    kept = visit(model, replace(params, fresh=True), X, before)
    bounds = [row_bounds(params, X, nu) for nu in (old, new, kept)]
    np.testing.assert_allclose(bounds[2], np.maximum(*bounds[:2]), rtol=1e-9)
    assert np.any(bounds[0] > bounds[1] + 1e-6)
    assert np.any(bounds[1] > bounds[0] + 1e-6)
