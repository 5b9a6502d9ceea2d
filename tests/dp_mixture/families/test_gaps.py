"""Gaussians with full covariances where values are missing."""

import numpy as np
import pytest
from scipy import stats as st
from scipy.integrate import quad

from kplus import DPMixture
from kplus.dp_mixture.families.family import Columns
from kplus.observations import Gaussian, ZeroMeanGaussian

D = 4


def rows_with_gaps(n=30, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) * [1, 5, 0.2, 3]
    X += [0, 9, 1, 2]
    X[rng.random(X.shape) < share] = np.nan
    return X


@pytest.fixture(params=[Gaussian(), ZeroMeanGaussian()], ids=["gaussian", "zero_mean"])
def fitted(request, gathered):
    """A family, rows, their shares in two components, and what these expect."""
    X = rows_with_gaps()
    names = tuple(f"column {j}" for j in range(D))
    family = request.param.resolve(X, None, Columns(names, (None,) * D))
    R = np.random.default_rng(1).dirichlet(np.ones(2), size=len(X))
    N, S = R.sum(axis=0), family.sums(X, gathered(R))
    return family, X, R, family.expect(N, S)


def conditional(y, mean, precision):
    """Mean and covariance of what is missing, by the covariance instead."""
    o, m = ~np.isnan(y), np.isnan(y)
    cov = np.linalg.inv(precision)
    gain = cov[np.ix_(m, o)] @ np.linalg.inv(cov[np.ix_(o, o)])
    return mean[m] + gain @ (y[o] - mean[o]), cov[np.ix_(m, m)] - gain @ cov[
        np.ix_(o, m)
    ]


def test_scores_integrate_over_what_is_missing(fitted):
    """log ∫ exp E[log p(y | φ)] dy_m is a Gaussian of the observed, but for scale."""
    family, X, _, expected = fitted
    Y, scores = family.scaling.transform(X), family.scores(expected, X)
    for n, y in enumerate(Y):
        o = ~np.isnan(y)
        for k in range(2):
            cov = np.linalg.inv(expected.precision[k])
            scale = expected.const[k] + 0.5 * (
                D * np.log(2 * np.pi) + np.linalg.slogdet(cov)[1]
            )
            normal = st.multivariate_normal(expected.means[k][o], cov[np.ix_(o, o)])
            log_density = normal.logpdf(y[o]) if o.any() else 0.0
            assert scores[n, k] == pytest.approx(scale + log_density, abs=1e-8)


def test_scores_of_candidates_are_the_same(fitted):
    family, X, _, expected = fitted
    candidates = np.array([[1, 0, -1]] * len(X), np.int32)
    found = family.scores(expected, X, candidates)
    np.testing.assert_allclose(found[:, [1, 0]], family.scores(expected, X), 1e-9)
    assert (found[:, 2] == -np.inf).all()


def test_sums_are_expectations(fitted, gathered):
    family, X, R, expected = fitted
    Y = family.scaling.transform(X)
    triangle, offset = np.triu_indices(D), D if family.linear else 0
    by_hand = np.zeros((2, family.n_stats))
    for k in range(2):
        for y, r in zip(Y, R[:, k], strict=True):
            m = np.isnan(y)
            full, squares, entropy = y.copy(), np.zeros((D, D)), 0.0
            if m.any():
                normal = conditional(y, expected.means[k], expected.precision[k])
                full[m], squares[np.ix_(m, m)] = normal
                entropy = st.multivariate_normal(*normal).entropy()
            squares += np.outer(full, full)
            t = np.concatenate([full[:offset], squares[triangle], [entropy]])
            by_hand[k] += r * t
    sums = family.sums(X, gathered(R), expected)
    np.testing.assert_allclose(sums, by_hand, rtol=1e-9, atol=1e-9)


def test_sums_add_up_scores(fitted, gathered):
    """Where the hidden parts are the best for q(φ), which scores say."""
    family, X, R, expected = fitted
    S = family.sums(X, gathered(R), expected)
    total = (R * family.scores(expected, X)).sum(axis=0)
    np.testing.assert_allclose(expected.total(R.sum(axis=0), S), total, rtol=1e-9)


def test_better_hidden_parts_raise_the_evidence(fitted, gathered):
    family, X, R, expected = fitted
    N, before = R.sum(axis=0), -np.inf
    for _ in range(5):
        S = family.sums(X, gathered(R), expected)
        evidence = family.evidence(N, S).sum()
        assert evidence > before
        before, expected = evidence, family.expect(N, S)


def test_evidence_is_a_lower_bound(gathered):
    """Against the evidence with the one missing value integrated out numerically."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5, 2)) @ [[1, 0.8], [0, 0.6]]
    X[2, 1] = np.nan
    likelihood = Gaussian(1.0, mean=[0, 0], mean_strength=0.5, dof=5.0)
    family = likelihood.resolve(X, None, Columns(("a", "b"), (None, None)))
    members, N = gathered(np.ones((5, 1))), np.array([5.0])

    def whole(value):
        filled = np.where(np.isnan(X), value, X)
        S = family.features(filled).sum(axis=0)[None]
        return np.exp(family.evidence(N, S)[0] + family.log_base(filled).sum())

    exact, bound, expected = np.log(quad(whole, -30, 30)[0]), -np.inf, None
    for _ in range(50):
        S = family.sums(X, members, expected)
        bound = family.evidence(N, S)[0] + family.log_base(X).sum()
        expected = family.expect(N, S)
    assert exact - 0.3 < bound < exact


def test_predictive_of_what_is_observed(fitted, gathered):
    family, X, R, expected = fitted
    N, S = R.sum(axis=0), family.sums(X, gathered(R), expected)
    logs, q = family.log_predictive(N, S, X), family._posterior(N, S)
    Y = family.scaling.transform(X)
    for n, y in enumerate(Y):
        o = ~np.isnan(y)
        for k in range(2):
            t = 0.0
            if o.any():
                shape = q.shape[k][np.ix_(o, o)]
                t = st.multivariate_t(q.means[k][o], shape, q.free[k]).logpdf(y[o])
                t += family.scaling.log_inv[o].sum()
            assert logs[n, k] == pytest.approx(t, abs=1e-8)


def test_filled_rows_are_draws(fitted):
    family, X, _, expected = fitted
    y = np.full(D, np.nan)
    y[1] = X[~np.isnan(X[:, 1]), 1][0]
    rows = np.repeat(y[None], 20_000, axis=0)
    rows[:, 1] += np.linspace(0, 1e-6, len(rows))  # equal rows have equal draws
    Y = family.filled(expected, rows, np.ones(len(rows), np.int64))
    scaled = family.scaling.transform(y[None])[0]
    mean, cov = conditional(scaled, expected.means[1], expected.precision[1])
    sd = np.sqrt(np.diag(cov))
    np.testing.assert_allclose(Y[:, [0, 2, 3]].mean(axis=0), mean, atol=0.05 * sd.max())
    found, unit = np.cov(Y[:, [0, 2, 3]].T), np.outer(sd, sd)
    np.testing.assert_allclose(found / unit, cov / unit, atol=0.05)
    again = family.filled(expected, rows[::-1], np.ones(len(rows), np.int64))
    np.testing.assert_array_equal(again[::-1], Y)


def two_groups(n=400, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) + 12.0 * y[:, None]
    X[rng.random(X.shape) < share] = np.nan
    return X, y


def test_a_fit_finds_groups_and_its_bound_never_falls():
    X, y = two_groups()
    model = DPMixture("gaussian", random_state=0).fit(X)
    assert model.n_clusters_ == 2
    seen = ~np.isnan(X).all(axis=1)
    agreement = np.mean((model.labels_ == y)[seen])
    assert max(agreement, 1 - agreement) > 0.98
    bounds = np.asarray(model.lower_bound_history_)
    assert (np.diff(bounds) >= -1e-9 * abs(bounds[-1])).all()
    assert np.isfinite(model.score_samples(X)).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_column_without_values_is_named():
    X, _ = two_groups()
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match=r"Column 3 has no value.*diag_gaussian"):
        DPMixture("gaussian").fit(X)


def test_gaps_that_come_later():
    X, _ = two_groups(share=0.0)
    model = DPMixture("gaussian", random_state=0).fit(X)
    late = X[:20].copy()
    late[:, 0] = np.nan
    np.testing.assert_array_equal(model.predict(late), model.labels_[:20])
    model.partial_fit(late)
    assert model.n_clusters_ == 2


def test_the_order_of_rows_does_not_matter():
    X, _ = two_groups()
    order = np.random.default_rng(5).permutation(len(X))
    one = DPMixture("gaussian", random_state=0).fit(X)
    two = DPMixture("gaussian", random_state=0).fit(X[order])
    np.testing.assert_array_equal(one.labels_[order], two.labels_)
