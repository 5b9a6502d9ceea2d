"""Factors of rows in which values are missing, against matrices of all columns."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats as st
from scipy.integrate import quad

import kplus
from kplus import DPMixture
from kplus.dp_mixture.families.family import Columns
from kplus.observations import FactorGaussian

D = 6


def resolved(likelihood, X):
    names = tuple(f"column {j}" for j in range(X.shape[1]))
    return likelihood.resolve(X, None, Columns(names, (None,) * X.shape[1]))


def rows_with_gaps(n=40, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) * [1, 5, 0.2, 3, 1, 1]
    X += [0, 9, 1, 2, 1e3, -7]
    X[rng.random(X.shape) < share] = np.nan
    X[0], X[1, 1:] = np.nan, np.nan
    X[2] = 0.0, 9.0, 1.0, 2.0, 1e3, -7.0
    return X


@pytest.fixture(params=[1, 2, 5], ids=lambda q: f"{q} factors")
def fitted(request, gathered):
    """A family, rows, their shares in two components, and what these expect."""
    X = rows_with_gaps()
    family = resolved(FactorGaussian(request.param), X)
    R = np.random.default_rng(1).dirichlet(np.ones(2), size=len(X))
    N, S = R.sum(axis=0), family.sums(X, gathered(R))
    return family, X, R, family.expect(N, S)


def explicit(family, expected, k):
    """Mean and covariance of y under a component, and what scores are beside that."""
    inner, q = family.inner, family.inner.n_columns
    mean = inner.origin + expected.means[k] / inner.inv
    cov = np.linalg.inv(expected.precision[k] * np.outer(inner.inv, inner.inv))
    B, lam = family.basis, np.append(np.zeros(q), family.others)
    apart = np.eye(D) - B @ B.T + (B * lam) @ B.T
    total = B[:, :q] @ cov @ B[:, :q].T + apart
    scale = expected.const[k] + 0.5 * q * np.log(2 * np.pi)
    scale += 0.5 * np.linalg.slogdet(cov)[1] + inner.scaling.log_inv.sum()
    return B[:, :q] @ mean, total, scale


def test_scores_integrate_over_what_is_missing(fitted):
    family, X, _, expected = fitted
    Y = (X - family.origin) * family.inv
    found = family.scores(expected, X) + family.log_base(X)[:, None]
    for k in range(2):
        mean, total, scale = explicit(family, expected, k)
        for n, y in enumerate(Y):
            o = ~np.isnan(y)
            log_density = scale + np.log(family.inv[o]).sum()
            if o.any():
                normal = st.multivariate_normal(mean[o], total[np.ix_(o, o)])
                log_density += normal.logpdf(y[o])
            assert found[n, k] == pytest.approx(log_density, abs=1e-6)


def test_scores_of_candidates_are_the_same(fitted):
    family, X, _, expected = fitted
    candidates = np.array([[1, 0, -1]] * len(X), np.int32)
    found = family.scores(expected, X, candidates)
    np.testing.assert_allclose(found[:, [1, 0]], family.scores(expected, X), 1e-9)
    assert (found[:, 2] == -np.inf).all()


def test_sums_are_expectations(fitted, gathered):
    """Means and squares of scores by the conditional Gaussian of all columns."""
    family, X, R, expected = fitted
    inner, q = family.inner, family.inner.n_columns
    Y, A = (X - family.origin) * family.inv, family.basis[:, :q]
    by_hand = np.zeros((2, q + q * (q + 1) // 2))
    for k in range(2):
        mean, total, _ = explicit(family, expected, k)
        for y, r in zip(Y, R[:, k], strict=True):
            o, m = ~np.isnan(y), np.isnan(y)
            gain = total[np.ix_(m, o)] @ np.linalg.inv(total[np.ix_(o, o)])
            full, cov = y.copy(), np.zeros((D, D))
            full[m] = mean[m] + gain @ (y[o] - mean[o])
            cov[np.ix_(m, m)] = total[np.ix_(m, m)] - gain @ total[np.ix_(o, m)]
            s = (A.T @ full - inner.origin) * inner.inv
            square = np.outer(s, s) + (A.T @ cov @ A) * np.outer(inner.inv, inner.inv)
            by_hand[k] += r * np.concatenate([s, square[np.triu_indices(q)]])
    sums = family.sums(X, gathered(R), expected)
    np.testing.assert_allclose(sums[:, :-1], by_hand, rtol=1e-7, atol=1e-7)


def test_sums_add_up_scores(fitted, gathered):
    """Where the hidden parts are the best for q(φ): entropy and all."""
    family, X, R, expected = fitted
    S = family.sums(X, gathered(R), expected)
    total = (R * family.scores(expected, X)).sum(axis=0)
    np.testing.assert_allclose(expected.total(R.sum(axis=0), S), total, rtol=1e-8)


def test_better_hidden_parts_raise_the_evidence(fitted, gathered):
    family, X, R, expected = fitted
    N, before = R.sum(axis=0), -np.inf
    for _ in range(5):
        S = family.sums(X, gathered(R), expected)
        evidence = family.evidence(N, S).sum()
        assert evidence >= before - 1e-9 * abs(before)
        before, expected = evidence, family.expect(N, S)


def test_a_density_integrates_to_that_of_fewer_values(fitted, gathered):
    family, X, R, expected = fitted
    N, S = R.sum(axis=0), family.sums(X, gathered(R), expected)
    for n in (2, 5):
        row = np.where(np.isnan(X[n]), np.nanmean(X, axis=0), X[n])
        row[[1, 4]] = np.nan
        d = 3
        near = np.nanmean(X[:, d]) + np.nanstd(X[:, d]) * np.array([-9, -2, 0, 2, 9])

        def density(x, k, row=row, d=d):
            at = row.copy()
            at[d] = x
            return np.exp(family.log_predictive(N, S, at[None])[0, k])

        gone = row.copy()
        gone[d] = np.nan
        logs = family.log_predictive(N, S, gone[None])[0]
        for k in range(2):
            ends = [-np.inf, *near, np.inf]
            parts = pairwise(ends)
            whole = sum(quad(density, *part, args=(k,))[0] for part in parts)
            assert np.log(whole) == pytest.approx(logs[k], abs=1e-6)


def wide_groups(n=180, columns=60, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    z = np.arange(n) % 3
    u = rng.normal(size=(n, 4)) + 6.0 * rng.normal(size=(3, 4))[z]
    X = u @ rng.normal(size=(4, columns)) + rng.normal(size=(n, columns))
    whole = X * 10.0 ** rng.integers(-3, 4, columns) + 1e5
    return np.where(rng.random(X.shape) < share, np.nan, whole), whole, z


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_groups_are_found_and_gaps_filled(share, tmp_path):
    X, whole, z = wide_groups(share=share)
    model = DPMixture("factor_gaussian", random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert all(len(set(z[model.labels_ == k])) == 1 for k in range(3))
    bounds = np.asarray(model.lower_bound_history_)
    assert (np.diff(bounds) >= -1e-9 * abs(bounds[-1])).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    filled, gaps = model.impute(X), np.isnan(X)
    error = (filled - whole) / whole.std(axis=0)
    assert np.sqrt(np.mean(error[gaps] ** 2)) < 0.4
    np.testing.assert_array_equal(filled[~gaps], X[~gaps])
    kplus.save(model, tmp_path / "model.kplus")
    again = kplus.load(tmp_path / "model.kplus")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.impute(X), filled)


def test_auto_takes_factors_for_wide_tables_with_gaps():
    X, _, _ = wide_groups(n=90, columns=130)
    model = DPMixture(random_state=0).fit(X)
    assert model.choice_.startswith("factor_gaussian")
    assert model.n_clusters_ == 3


def test_gaps_that_come_later_and_in_batches():
    X, whole, z = wide_groups(n=240, columns=30)
    model = DPMixture("factor_gaussian", random_state=0)
    for part in (whole[:80], X[80:160], X[160:]):
        model.partial_fit(part)
    labels = model.predict(X)
    assert model.n_clusters_ == 3
    assert all(len(set(z[labels == k])) == 1 for k in range(3))


def test_threads_and_noise():
    X, _, _ = wide_groups(n=180, columns=30)
    one = DPMixture("factor_gaussian", random_state=0, batch_size=90).fit(X)
    model = DPMixture("factor_gaussian", random_state=0, batch_size=90, n_jobs=2)
    two = model.fit(X)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.lower_bound_ == two.lower_bound_
    noisy = DPMixture("factor_gaussian", noise=True, random_state=0).fit(X)
    assert noisy.n_clusters_ == 3


def test_a_column_without_values_is_named():
    X, _, _ = wide_groups(n=30)
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match=r"Column 3 has no value.*diag_gaussian"):
        DPMixture("factor_gaussian").fit(X)
