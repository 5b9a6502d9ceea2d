"""What families say of missing values, against sums and integrals of the predictive."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from kplus.dp_mixture.families.mixed import MixedFamily


def columns_of(family):
    """For each column, the name of the family that it belongs to."""
    if not isinstance(family, MixedFamily):
        return [type(family).__name__] * family.n_columns
    names = np.empty(family.n_columns, dtype=object)
    for part, j in zip(family.parts, family.where, strict=True):
        names[j] = type(part).__name__
    return list(names)


def two_components(case, stats):
    family = case.family()
    X = case.rows(14, seed=3, missing=False)
    R = np.random.default_rng(1).dirichlet(np.ones(2), len(X))
    return (family, *stats(family, X, R))


def density(family, N, S, row, d, k, values):
    """p(x_d, observed values | rows of k) for some x_d."""
    X = np.repeat(row[None], len(values), axis=0)
    X[:, d] = values
    return np.exp(family.log_predictive(N, S, X)[:, k])


def moments(family, N, S, row, d, k):
    """∫ p, ∫ x p and ∫ x² p of a missing x_d, by brute force; None for categories."""
    kind = columns_of(family)[d]
    if "Categorical" in kind:
        return None
    if "Gaussian" not in kind and "Student" not in kind:
        support = np.arange(2 if "Bernoulli" in kind else 20_000)
        p = density(family, N, S, row, d, k, support)
        return [float(p @ support.astype(float) ** i) for i in range(3)]

    def integrand(x, i):
        return x**i * density(family, N, S, row, d, k, [x])[0]

    some = family.draw(N, S, np.array([50, 50]), np.random.default_rng(0))[:, d]
    parts = list(pairwise([-np.inf, *np.quantile(some, [0.1, 0.5, 0.9]), np.inf]))
    return [
        sum(quad(integrand, *part, args=(i,), limit=200)[0] for part in parts)
        for i in range(3)
    ]


def test_fill_is_the_conditional_mean(filled_case, stats):
    family, N, S = two_components(filled_case, stats)
    shares = np.array([[0.3, 0.7]])
    for d in range(family.n_columns):
        row = filled_case.rows(1, seed=11, missing=False)[0]
        found = [moments(family, N, S, row, d, k) for k in range(2)]
        if None in found:
            continue
        means = [first / total for total, first, _ in found]
        row[d] = np.nan
        filled = family.fill(N, S, row[None], shares)
        assert filled[0, d] == pytest.approx(float(shares[0] @ means), rel=1e-5)
        others = np.arange(family.n_columns) != d
        assert np.array_equal(filled[0, others], row[others])


def test_fill_is_the_likeliest_category(cases, stats):
    for name in ("categorical", "mixed"):
        family, N, S = two_components(cases[name], stats)
        for d, levels in enumerate(cases[name].levels):
            if levels is None:
                continue
            row = cases[name].rows(1, seed=11, missing=False)[0]
            shares = np.array([[0.8, 0.2]])
            codes = np.arange(levels)
            p = [density(family, N, S, row, d, k, codes) for k in range(2)]
            p = np.array(p) / np.sum(p, axis=1, keepdims=True)
            row[d] = np.nan
            filled = family.fill(N, S, row[None], shares)
            assert filled[0, d] == np.argmax(shares[0] @ p)


def test_draws_have_the_moments_given_what_is_observed(filled_case, stats):
    family, N, S = two_components(filled_case, stats)
    n, rng = 4000, np.random.default_rng(5)
    for d in range(family.n_columns):
        row = filled_case.rows(1, seed=11, missing=False)[0]
        expected = moments(family, N, S, row, d, 1)
        row[d] = np.nan
        X = np.repeat(row[None], n, axis=0)
        drawn = family.draw_missing(N, S, X, np.ones(n, np.int64), rng)
        others = np.arange(family.n_columns) != d
        assert np.array_equal(drawn[:, others], X[:, others])
        if expected is None:
            p = np.bincount(drawn[:, d].astype(int)) / n
            at = density(family, N, S, row, d, 1, np.arange(len(p)))
            np.testing.assert_allclose(p, at / at.sum(), atol=0.04)
            continue
        mean = expected[1] / expected[0]
        variance = expected[2] / expected[0] - mean**2
        assert abs(drawn[:, d].mean() - mean) < 5 * np.sqrt(variance / n)
        assert drawn[:, d].var() == pytest.approx(variance, rel=0.25)


def test_values_are_drawn_jointly(filled_case, stats):
    """One value less what it should be given the other says nothing of the other."""
    family, N, S = two_components(filled_case, stats)
    if "Categorical" in " ".join(columns_of(family)):
        pytest.skip("a mean is asked for")
    n, rng = 4000, np.random.default_rng(6)
    row = filled_case.rows(1, seed=11, missing=False)[0]
    row[:2] = np.nan
    X = np.repeat(row[None], n, axis=0)
    drawn = family.draw_missing(N, S, X, np.zeros(n, np.int64), rng)
    given = drawn.copy()
    given[:, 1] = np.nan
    one = np.tile([1.0, 0.0], (n, 1))
    rest = drawn[:, 1] - family.fill(N, S, given, one)[:, 1]
    product = rest * (drawn[:, 0] - drawn[:, 0].mean())
    assert abs(product.mean()) < 5 * product.std() / np.sqrt(n)


def test_rows_without_any_value(filled_case, stats):
    family, N, S = two_components(filled_case, stats)
    X = np.full((5, family.n_columns), np.nan)
    filled = family.fill(N, S, X, np.full((5, 2), 0.5))
    k = np.array([0, 1, 0, 1, 1])
    drawn = family.draw_missing(N, S, X, k, np.random.default_rng(0))
    for rows in (filled, drawn):
        assert np.all(np.isfinite(rows))
    family.check(drawn)


def test_float32_and_rows_that_cannot_be_written(filled_case, stats):
    family, N, S = two_components(filled_case, stats)
    X = filled_case.rows(6, seed=2, missing=False).astype(np.float32)
    X[::2, 0], X[1, 1:] = np.nan, np.nan
    X.flags.writeable = False
    shares = np.full((6, 2), 0.5)
    seen = ~np.isnan(X)
    k, rng = np.zeros(6, np.int64), np.random.default_rng(0)
    for rows in (family.fill(N, S, X, shares), family.draw_missing(N, S, X, k, rng)):
        assert np.array_equal(rows[seen], X[seen])
        assert np.all(np.isfinite(rows))
