"""Splits along axes: where they cut, and that births find what only they show."""

import numpy as np
import pytest

import mixture_reference as mixture
from jobs import make_job
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture.directions import (
    as_numbers,
    directional_splits,
    standardised,
    valleys,
)
from kplus.dp_mixture.families.categorical import Categorical
from kplus.dp_mixture.families.diag_gaussian import DiagGaussian
from kplus.dp_mixture.families.gaussian import Gaussian
from kplus.dp_mixture.families.poisson import Poisson
from kplus.dp_mixture.fresh import create
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.search import Spec, fit
from mixture_reference import CASES


def two_groups(seed, n, D, apart):
    """Gaussian rows in two groups that differ in one column."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, D)), rng.random(n) < 0.5
    X[groups, rng.integers(D)] += apart
    return X, groups


def family_of(likelihood, X, levels=None):
    names = tuple(f"column {j}" for j in range(X.shape[1]))
    levels = (levels,) * X.shape[1]
    return likelihood.resolve(X, None, mixture.Columns(names, levels))


def agreement(found, groups):
    return max(np.mean(found == groups), np.mean(found != groups))


def test_valleys_are_where_two_gaussians_meet():
    rng = np.random.default_rng(0)
    two = np.concatenate([rng.normal(0, 1, 600), rng.normal(9, 1, 400)])
    P = np.column_stack([rng.normal(size=1000), two])
    (gains, places), (large, _) = valleys(P, np.ones(1000), [0.0, 0.45])
    assert 3.0 < places[1] < 6.0
    # Half the log of variances 20.4 and 1, less the entropy of .4.
    assert gains[1] == pytest.approx(0.5 * np.log(20.4) - 0.673, abs=0.05)
    assert gains[0] < 0.05
    assert large[1] < gains[1]


def test_rows_of_weight_two_are_rows_twice():
    rng = np.random.default_rng(0)
    P, w = rng.normal(size=(80, 3)), rng.integers(1, 3, 80)
    one = valleys(P, w.astype(float))[0]
    other = valleys(np.repeat(P, w, axis=0), np.ones(w.sum()))[0]
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_columns_of_few_values_have_no_valley():
    P = np.column_stack([np.arange(20) % 2, np.arange(20) % 3, np.zeros(20)])
    gains, _ = valleys(P.astype(float), np.ones(20))[0]
    assert np.all(gains == -np.inf)


@pytest.mark.parametrize("name", CASES)
def test_every_family_has_numbers(name):
    X = CASES[name].rows(90)
    Z = standardised(as_numbers(CASES[name].model(X).family, X), np.ones(90))
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(Z.std(axis=0), 1.0, rtol=1e-9)
    for split in directional_splits(Z, np.ones(90)):
        assert 0 < split.side(Z).sum() < 90


def test_no_splits_of_equal_rows():
    Z = standardised(np.tile([3.0, 1e9, 0.0], (20, 1)), np.ones(20))
    assert directional_splits(Z, np.ones(20)) == []


def test_a_valley_across_all_columns_is_found():
    """Not along a column, nor the axis of the largest variance."""
    rng = np.random.default_rng(0)
    groups = np.arange(2000) % 5 < 2
    Y = rng.normal(size=(2000, 6)) * [9.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    Y[groups, 3] += 7.0
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    Z = standardised(Y @ turn, np.ones(2000))
    sides = [split.side(Z) for split in directional_splits(Z, np.ones(2000))]
    assert max(agreement(side, groups) for side in sides) > 0.95


CREATED = {
    "full": (Gaussian(), 20, 10.0, 1500),
    "diagonal": (DiagGaussian(), 40, 6.0, 1500),
    "diagonal, wide": (DiagGaussian(), 100, 10.0, 1000),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CREATED)
def test_groups_that_differ_in_one_column_are_born(case, seed):
    likelihood, D, apart, n = CREATED[case]
    X, groups = two_groups(seed, n, D, apart)
    model = DPMixtureModel(family_of(likelihood, X))
    rng = np.random.default_rng(seed)
    stats = create(model, X, np.ones(n), 1.0, 10, 8, rng)
    assert stats.K == 2
    expected = np.sort([groups.sum(), (~groups).sum()])
    np.testing.assert_allclose(np.sort(stats.N), expected, atol=0.01 * n)


def tables(seed, n=1000, D=40):
    """Categories and counts of two groups that differ in two, or one, of D columns."""
    rng = np.random.default_rng(seed)
    groups = rng.random(n) < 0.5
    codes = rng.integers(0, 3, size=(n, D)).astype(float)
    for j in rng.choice(D, 2, replace=False):
        usual = np.where(groups, 2, 0)
        codes[:, j] = np.where(rng.random(n) < 0.97, usual, codes[:, j])
    rates = np.full((n, D), 5.0)
    rates[:, rng.integers(D)] = np.where(groups, 25.0, 3.0)
    return groups, codes, rng.poisson(rates).astype(float)


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_categories_and_counts_in_few_columns_are_found(seed):
    """Where the prior is learned, a few odd rows may have a component of their own."""
    groups, codes, counts = tables(seed)
    for likelihood, X, levels in (
        (Categorical(learn=False), codes, 3),
        (Categorical(), codes, 3),
        (Poisson(learn=False), counts, None),
        (Poisson(), counts, None),
    ):
        model = DPMixtureModel(family_of(likelihood, X, levels))
        job = make_job(ArrayBlocks(X, 500), None, np.random.default_rng(seed))
        fitted = fit(job, Spec(model, n_batches=1))
        assert np.sum((5.0 if likelihood.learn else 0.0) < fitted.params.N) == 2
        assert agreement(fitted.labels == 0, groups) > 0.95


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("likelihood", [Gaussian(), DiagGaussian()])
def test_one_wide_group_stays_one(likelihood, seed):
    X = np.random.default_rng(seed).normal(size=(800, 15))
    model = DPMixtureModel(family_of(likelihood, X))
    rng = np.random.default_rng(seed)
    assert create(model, X, np.ones(800), 5.0, 10, 8, rng).K == 1


def test_fewer_rows_than_columns_twice_in_any_order():
    # Whitened they are a simplex, whose axes only rounding could tell.
    rng = np.random.default_rng(42)
    X, w = rng.random((15, 30)), rng.integers(1, 5, 15)
    order = rng.permutation(15)
    repeated, weights = np.repeat(X[order], w[order], axis=0), np.ones(w.sum())

    def sides(Z, weights, first):
        splits = directional_splits(standardised(Z, weights), weights)
        return {tuple(split.side(standardised(Z, weights))[first]) for split in splits}

    once = sides(X, w.astype(float), np.arange(15))
    first = np.concatenate([[0], np.cumsum(w[order])[:-1]])[np.argsort(order)]
    twice = sides(repeated, weights, first)
    flipped = {tuple(1 - np.array(side)) for side in twice}
    assert once <= twice | flipped
