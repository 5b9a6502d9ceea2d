"""Gaussian families at any offset and scale, and on columns that hardly vary."""

import numpy as np
import pytest

from kplus.core.errors import DataError
from kplus.dp_mixture.families.columns import VARIANCE_SHARE
from kplus.dp_mixture.families.family import Columns
from kplus.observations import (
    DiagGaussian,
    Gaussian,
    Mixed,
    SphericalGaussian,
    ZeroMeanGaussian,
)

COLUMNS = Columns(("a", "b"), (None, None))
FREE = [Gaussian(), DiagGaussian(), Mixed()]  # each column has its own scale
CENTRED = [*FREE, SphericalGaussian()]


def outcome(likelihood, X):
    """Everything that should not depend on units, and log densities."""
    family = likelihood.resolve(X, None, COLUMNS)
    family.check(X)
    R = np.random.default_rng(1).dirichlet([1, 1], size=len(X))
    N, S = R.sum(axis=0), R.T @ family.features(X)
    scores = family.scores(family.expect(N, S), X)
    return (
        scores - scores[:, :1],
        family.dissimilarity(X, X[0], N[:1], S[:1]),
        family.log_predictive(N, S, X),
        family.evidence(N, S).sum() + family.log_base(X).sum(),
    )


def rows():
    # Eighths, which survive any offset used here.
    return np.round(np.random.default_rng(0).normal(size=(40, 2)) * [8, 80]) / 8


@pytest.mark.parametrize("likelihood", CENTRED)
@pytest.mark.parametrize("offset", [1e8, -1e12])
def test_offsets_change_nothing(likelihood, offset):
    moved = outcome(likelihood, rows() + np.array([offset, 0]))
    for ours, theirs in zip(moved, outcome(likelihood, rows()), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("likelihood", FREE)
@pytest.mark.parametrize("scale", [1e-150, 3.0, 1e150])
def test_the_scale_of_a_column_moves_densities_alone(likelihood, scale):
    ours = outcome(likelihood, rows() * [scale, 1])
    theirs = outcome(likelihood, rows())
    for one, two in zip(ours[:2], theirs[:2], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours[2] + np.log(scale), theirs[2], rtol=1e-9)
    assert ours[3] + 40 * np.log(scale) == pytest.approx(theirs[3], rel=1e-9)


@pytest.mark.parametrize("likelihood", [ZeroMeanGaussian(), SphericalGaussian()])
@pytest.mark.parametrize("scale", [1e-150, 3.0, 1e150])
def test_the_scale_of_all_columns_moves_densities_alone(likelihood, scale):
    ours, theirs = outcome(likelihood, rows() * scale), outcome(likelihood, rows())
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours[2] + 2 * np.log(scale), theirs[2], rtol=1e-9)


@pytest.mark.parametrize("likelihood", CENTRED)
@pytest.mark.parametrize("value", [0.0, 5.0, -1e150, 1e-150])
def test_constant_columns(likelihood, value):
    X = rows()
    X[:, 0] = value
    for part in outcome(likelihood, X):
        assert np.isfinite(part).all()


@pytest.mark.parametrize("likelihood", CENTRED)
def test_a_table_of_one_value(likelihood):
    for part in outcome(likelihood, np.full((5, 2), 3.0)):
        assert np.isfinite(part).all()


def test_a_constant_column_does_not_set_the_scale_of_spheres():
    X = rows()
    X[:, 0] = 1e6
    family = SphericalGaussian(variance_share=1.0).resolve(X, None, COLUMNS)
    N, S = np.zeros(1), np.zeros((1, family.n_stats))
    variance = family.attributes(N, S)["covariances_"][0]
    assert variance == pytest.approx(X[:, 1].var() / 2)


@pytest.mark.parametrize("likelihood", [DiagGaussian(), SphericalGaussian(), Mixed()])
def test_columns_without_any_value(likelihood):
    X = rows()
    X[:, 0] = np.nan
    for part in outcome(likelihood, X):
        assert np.isfinite(part).all()


def test_default_priors_follow_the_columns():
    X = rows()
    for likelihood, expected in (
        (DiagGaussian(), VARIANCE_SHARE * X.var(axis=0)),
        (SphericalGaussian(), VARIANCE_SHARE * X.var(axis=0).mean()),
    ):
        family = likelihood.resolve(X, None, COLUMNS)
        prior = family.attributes(np.zeros(1), np.zeros((1, family.n_stats)))
        np.testing.assert_allclose(prior["means_"][0], X.mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(prior["covariances_"][0], expected, rtol=1e-10)


@pytest.mark.parametrize("likelihood", [DiagGaussian(), SphericalGaussian(), Mixed()])
def test_values_out_of_reach_are_refused(likelihood):
    X = rows()
    family = likelihood.resolve(X, None, COLUMNS)
    for value in (np.inf, -np.inf, 1e300):
        X[3, 1] = value
        with pytest.raises(DataError, match="'b' holds"):
            family.check(X)
    X[3, 1] = -np.inf
    with pytest.raises(DataError, match="'b' holds -inf"):
        likelihood.resolve(X, None, COLUMNS)
