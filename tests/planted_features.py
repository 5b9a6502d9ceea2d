"""Rows with planted features, and what a fit of BPMeans and KFeatures must obey."""

import numpy as np
import pytest

TRUE_A = np.array([[4.0, 4, 0, 0, 0, 0], [0, 0, -3, 0, 3, 0], [0, 2, 0, 2, 0, 2]])


def planted(n=90, noise=0.1, seed=0):
    """Rows made of three features, of which they have any."""
    rng = np.random.default_rng(seed)
    Z = (rng.random((n, 3)) < (0.6, 0.45, 0.3)).astype(float)
    Z[:8] = np.unpackbits(np.arange(8, dtype=np.uint8)[:, None], axis=1)[:, -3:]
    return Z, Z @ TRUE_A + rng.normal(scale=noise, size=(n, 6))


def error_of(X, Z, A, weights=None):
    """Squared error over what was observed."""
    squares = np.nansum((X - Z @ A) ** 2, axis=1)
    return float(squares.sum() if weights is None else squares @ weights)


def same_columns(Z, other):
    """Whether the columns of Z are those of the other, in whatever order."""
    return sorted(map(tuple, Z.T)) == sorted(map(tuple, other.T))


def same_fit(one, other):
    for name in ("components_", "feature_counts_", "objective_history_", "penalty_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.objective_ == other.objective_


def check_consistent(model, X):
    K = model.n_components_
    assert model.components_.shape == (K, X.shape[1])
    assert np.all(np.isfinite(model.components_))
    assert model.feature_counts_.shape == (K,)
    assert np.isfinite(model.objective_)
    error = error_of(X, model.transform(X), model.components_)
    assert model.objective_ == pytest.approx(
        error + model.penalty_ * K, rel=1e-8, abs=1e-12
    )
