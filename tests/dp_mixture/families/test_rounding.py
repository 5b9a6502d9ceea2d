"""Columns that were rounded: values stand for intervals, which the bound averages over.

E over an interval of a squared distance is that of its middle and δ²/12. So the bound
is below the probability of the intervals, and does not grow without limit where values
repeat.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as st

from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.learning import resolutions
from kplus.observations import (
    DiagGaussian,
    Gaussian,
    SphericalGaussian,
    ZeroMeanGaussian,
)
from prior_reference import converged, worth

STEPS = np.array([1.0, 0.5, 2.0])
FAMILIES = [Gaussian(), ZeroMeanGaussian(), DiagGaussian(), SphericalGaussian()]
NODES = np.array([-1.0, 1.0]) / np.sqrt(12.0)  # the mean of a square is exact on these


def rounded(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return np.round(rng.normal([3.0, -2.0, 0.0], 2.0, (n, 3)) / STEPS) * STEPS


def resolved(likelihood, X):
    names = tuple(f"column {j}" for j in range(X.shape[1]))
    return likelihood.resolve(X, None, Columns(names, (None,) * X.shape[1]))


def corners(X):
    """Rows moved to the nodes of their cells: eight for each."""
    grid = np.stack(np.meshgrid(NODES, NODES, NODES), axis=-1).reshape(-1, 3)
    return X[:, None] + grid * STEPS


@pytest.mark.parametrize("likelihood", FAMILIES, ids=repr)
def test_scores_are_means_over_the_interval(likelihood):
    X = rounded()
    family = resolved(likelihood, X)
    np.testing.assert_allclose(
        family.resolution * np.ones(3), STEPS**2 / 12.0 * family.inv**2, rtol=1e-12
    )
    plain = replace(family, resolution=0.0)
    points = corners(X)
    N, S = np.array([40.0]), family.features(X).sum(axis=0)[None]
    spread = plain.features(points.reshape(-1, 3)).reshape(40, 8, -1).mean(axis=1)
    q, same = family.expect(N, S), plain.expect(N, spread.sum(axis=0)[None])
    scores = plain.scores(same, points.reshape(-1, 3)).reshape(40, 8).mean(axis=1)
    np.testing.assert_allclose(family.scores(q, X)[:, 0], scores, rtol=1e-10)
    evidence = plain.evidence(N, spread.sum(axis=0)[None])
    np.testing.assert_allclose(family.evidence(N, S), evidence, rtol=1e-12)


@pytest.mark.parametrize("step", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(
    "likelihood", [DiagGaussian(), Gaussian(), SphericalGaussian()], ids=repr
)
def test_the_evidence_is_below_the_probability_of_the_intervals(likelihood, step):
    """Of one column: ∫∫ Π P(interval | μ, λ) p(μ, λ), over the length of each."""
    x = np.round(np.array([0.3, 0.4, 1.2, -0.4, 0.9]) / step) * step
    X = x[:, None]
    if np.ptp(x) == 0.0:
        X = np.append(x, x[0] + step)[:, None]
    family = resolved(likelihood, X)
    N, S = np.array([float(len(X))]), family.features(X).sum(axis=0)[None]
    found = family.evidence(N, S)[0] + family.log_base(X).sum()
    dof, inv = float(np.squeeze(family.dof)), family.inv[0]
    scatter = float(np.squeeze(family.scatter)) / inv**2
    precision = st.gamma(0.5 * dof, scale=2.0 / scatter)
    strength = float(np.squeeze(family.mean_strength))

    grid = (np.arange(200) + 0.5) / 200
    lam = precision.ppf(grid)[:, None, None]
    mu = st.norm.ppf((np.arange(1500) + 0.5) / 1500)[None, :, None]
    mu = family.origin[0] + mu / np.sqrt(strength * lam)
    high, low = (
        st.norm.cdf((X[:, 0] + s * step / 2 - mu) * np.sqrt(lam)) for s in (1, -1)
    )
    exact = np.log(np.prod((high - low) / step, axis=2).mean())
    assert found < exact + 1e-3
    if step == 0.1:  # and hardly so where intervals are short
        assert found == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize("likelihood", FAMILIES, ids=repr)
def test_the_bound_of_repeated_values_has_a_limit(likelihood):
    """Components of equal rows, ever narrower: a density has no largest value here."""
    X = np.repeat(rounded(6), 50, axis=0)
    family = resolved(likelihood, X)
    R = np.repeat(np.eye(6), 50, axis=0)
    N, S = R.sum(axis=0), R.T @ family.features(X)
    end = converged(family, N, S)
    most = -np.log(STEPS).sum() * 300  # the density of rows that surely are in a cell
    assert worth(end, N, S) + family.log_base(X).sum() < most
    plain = converged(replace(family, resolution=0.0), N, S)
    assert worth(plain, N, S) > worth(end, N, S)


def test_the_least_step_of_a_column():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.integers(0, 5, 50), 0.25 * rng.integers(0, 9, 50), np.full(50, 3.0),
            rng.normal(size=50), np.where(rng.random(50) < 0.5, np.nan, 10.0),
        ]
    )  # fmt: skip
    X[7, 0] = np.nan
    found = resolutions(X)
    np.testing.assert_allclose(found[:2], np.array([1.0, 0.25]) ** 2 / 12.0)
    assert found[2] == found[4] == 0.0
    assert 0.0 < found[3] < 1e-4


def test_rounding_of_float32_is_no_step():
    """0.1 and the next number of float32 are the same value."""
    x = np.float32(0.1) + np.arange(3, dtype=np.float32) * np.float32(7.5e-9)
    X = np.append(x, [np.float32(0.9), np.float32(0.5)])[:, None]
    assert resolutions(X)[0] == pytest.approx(0.4**2 / 12.0, rel=1e-5)
