"""Rows with heavy tails, against integrals over their scales."""

import numpy as np
import pytest
from scipy import stats as st
from scipy.integrate import quad
from scipy.special import digamma

from kplus import DPMixture
from kplus.dp_mixture.families.family import Columns
from kplus.observations import Gaussian, StudentT

D = 3


def heavy_rows(n=40, share=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = st.t(3).rvs(size=(n, D), random_state=rng) @ rng.normal(size=(D, D)) + 5.0
    X[rng.random(X.shape) < share] = np.nan
    return X


def columns(n=D):
    return Columns(tuple(f"column {j}" for j in range(n)), (None,) * n)


@pytest.fixture(params=[0.0, 0.3], ids=["whole", "gaps"])
def fitted(request, gathered):
    """A family, rows, their shares in two components, and what these expect."""
    X = heavy_rows(share=request.param)
    family = StudentT().resolve(X, None, columns())
    R = np.random.default_rng(1).dirichlet(np.ones(2), size=len(X))
    R[R < 0.1] = 0.0
    S = family.sums(X, gathered(R))
    return family, X, R, family.expect(R.sum(axis=0), S)


def of_observed(family, expected, k, y):
    """Squared distance of what is observed, and log |Λ_mm|, by the covariance."""
    o, m = ~np.isnan(y), np.isnan(y)
    cov = np.linalg.inv(expected.precision[k])
    apart = (y - expected.means[k])[o]
    far = apart @ np.linalg.inv(cov[np.ix_(o, o)]) @ apart
    return far, np.linalg.slogdet(expected.precision[k][np.ix_(m, m)])[1]


def test_scores_integrate_over_scales(fitted):
    family, X, _, expected = fitted
    Y, scores = family.scaling.transform(X), family.scores(expected, X)
    for n in range(8):
        n_seen = np.sum(~np.isnan(Y[n]))
        for k in range(2):
            far, log_det = of_observed(family, expected, k, Y[n])
            far, tau = far + expected.spread[k], expected.tails[k]

            def density(u, far=far, tau=tau, n_seen=n_seen):
                normal = u ** (n_seen / 2) * np.exp(-0.5 * u * far)
                return normal * st.gamma(tau / 2, scale=2 / tau).pdf(u)

            integral = np.log(quad(density, 0, np.inf)[0])
            missing = 0.5 * ((D - n_seen) * np.log(2 * np.pi) - log_det)
            value = expected.const[k] + integral + missing
            assert scores[n, k] == pytest.approx(value, abs=1e-6)


def test_scores_of_candidates_are_the_same(fitted):
    family, X, _, expected = fitted
    found = family.scores(expected, X, np.array([[1, -1, 0]] * len(X), np.int32))
    np.testing.assert_allclose(found[:, [2, 0]], family.scores(expected, X), 1e-8)
    assert (found[:, 1] == -np.inf).all()


def test_sums_add_up_scores(fitted, gathered):
    """Where the hidden parts are the best for q(φ), which scores say."""
    family, X, R, expected = fitted
    S = family.sums(X, gathered(R), expected)
    total = (R * family.scores(expected, X)).sum(axis=0)
    np.testing.assert_allclose(expected.total(R.sum(axis=0), S), total, rtol=1e-9)


def test_sums_of_whole_rows_are_expectations(gathered):
    X = heavy_rows(6)
    family = StudentT().resolve(X, None, columns())
    members = gathered(np.ones((6, 1)))
    expected = family.expect(np.full(1, 6.0), family.sums(X, members))
    tau, by_hand = expected.tails[0], np.zeros(family.n_stats)
    for y in family.scaling.transform(X):
        far, _ = of_observed(family, expected, 0, y)
        a, b = 0.5 * (tau + D), 0.5 * (tau + far + expected.spread[0])
        u, log_u = a / b, digamma(a) - np.log(b)
        hidden = st.gamma(a, scale=1 / b).entropy() - log_u
        squares = u * np.outer(y, y)[np.triu_indices(D)]
        by_hand += np.concatenate([u * y, squares, [hidden, u, log_u]])
    np.testing.assert_allclose(family.sums(X, members, expected)[0], by_hand, 1e-9)


def test_better_hidden_parts_raise_the_evidence(fitted, gathered):
    family, X, R, expected = fitted
    N, before = R.sum(axis=0), -np.inf
    for _ in range(6):
        S = family.sums(X, gathered(R), expected)
        evidence = family.evidence(N, S).sum()
        assert evidence > before
        before, expected = evidence, family.expect(N, S)


def test_the_tail_is_the_likeliest(fitted, gathered):
    family, X, R, expected = fitted
    N, S = R.sum(axis=0), family.sums(X, gathered(R), expected)
    tails, best = family.attributes(N, S)["tail_dof_"], family.evidence(N, S)
    for factor in (0.9, 1.1):
        for k in range(2):
            other = StudentT(tail_dof=factor * tails[k]).resolve(X, None, columns())
            prior = st.gamma(2, scale=10)
            change = other.evidence(N, S)[k] + prior.logpdf(factor * tails[k])
            assert change - prior.logpdf(10.0) < best[k]


def test_an_empty_component_has_no_evidence():
    family = StudentT().resolve(heavy_rows(), None, columns())
    empty = family.evidence(np.zeros(2), np.zeros((2, family.n_stats)))
    np.testing.assert_array_equal(empty, 0.0)


def test_evidence_is_a_lower_bound(gathered):
    """Of one row, whose evidence is its density under the prior."""
    X = heavy_rows(20)
    for row in (X[:1], X[:1] + 40.0):
        family = StudentT(tail_dof=3).resolve(X, None, columns())
        nothing = np.zeros(1), np.zeros((1, family.n_stats))
        exact = family.log_predictive(*nothing, row)[0, 0]
        members, expected = gathered(np.ones((1, 1))), None
        for _ in range(200):
            S = family.sums(row, members, expected)
            expected = family.expect(np.ones(1), S)
        bound = family.evidence(np.ones(1), S)[0] + family.log_base(row)[0]
        assert exact - 1.5 < bound < exact


def test_predictive_densities_are_integrals(fitted, gathered):
    family, X, R, expected = fitted
    N, S = R.sum(axis=0), family.sums(X, gathered(R), expected)
    q, tails = family._posterior(N, S), family.attributes(N, S)["tail_dof_"]
    rows = np.concatenate([X[:5], X[:2] + 200.0])
    logs, Y = family.log_predictive(N, S, rows), family.scaling.transform(rows)
    for n, y in enumerate(Y):
        o = ~np.isnan(y)
        for k in range(2):
            B = q.scatter[k][np.ix_(o, o)] / q.free[k]

            def density(v, k=k, y=y, o=o, B=B):
                u = np.exp(v)  # in which the integrand is wide
                shape = B * (1 / u + 1 / q.strength[k])
                t = st.multivariate_t(q.means[k][o], shape, q.free[k]).pdf(y[o])
                return u * t * st.gamma(tails[k] / 2, scale=2 / tails[k]).pdf(u)

            value = np.log(quad(density, -25, 6, limit=200, epsabs=0)[0])
            value += family.scaling.log_inv[o].sum()
            assert logs[n, k] == pytest.approx(value, abs=1e-6)


def test_draws_follow_the_predictive(gathered):
    X = heavy_rows(60)
    family = StudentT().resolve(X, None, columns())
    N = np.full(1, 60.0)
    S = family.sums(X, gathered(np.ones((60, 1))))
    two = np.concatenate([N / 8, N]), np.concatenate([S / 8, S])
    draws = family.draw(*two, np.array([20_000, 0]), np.random.default_rng(5))
    logs = family.log_predictive(*two, draws)
    ratio = np.exp(logs[:, 1] - logs[:, 0])
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1.0) < 5 * error < 0.3


def groups_with_tails(n, tau, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    scale = np.sqrt(rng.chisquare(tau, n) / tau)
    X = rng.normal(size=(n, 2)) / scale[:, None] + 12.0 * np.eye(3, 2)[y]
    return X, y


def test_tails_make_no_components_and_are_learned():
    X, y = groups_with_tails(1500, 3.0)
    model = DPMixture("student_t", n_init=1, random_state=0).fit(X)
    assert model.n_components_ == 3
    np.testing.assert_allclose(model.tail_dof_, 3.0, rtol=0.35)
    light = DPMixture(Gaussian(), n_init=1, random_state=0).fit(X)
    assert light.n_components_ > 3
    assert model.lower_bound_history_[-1] > light.lower_bound_
    pairs = set(zip(model.labels_[np.abs(X).max(axis=1) < 15], y, strict=False))
    assert len({label for label, _ in pairs}) == 3


def test_a_given_tail_stays_and_bad_ones_are_refused():
    X, _ = groups_with_tails(300, 3.0)
    model = DPMixture(StudentT(tail_dof=7), random_state=0).fit(X)
    np.testing.assert_array_equal(model.tail_dof_, 7.0)
    with pytest.raises(ValueError, match="tail_dof"):
        DPMixture(StudentT(tail_dof=0)).fit(X)


def test_without_moves_the_bound_never_falls():
    X, _ = groups_with_tails(500, 2.0)
    X[::7, 0] = np.nan
    model = DPMixture("student_t", n_components=4, moves=(), random_state=0)
    for algorithm in ("full", "memoized"):
        model.set_params(algorithm=algorithm, batch_size=100).fit(X)
        bounds = model.lower_bound_history_
        assert (np.diff(bounds) >= -1e-9 * abs(bounds[-1])).all()


def test_streams():
    X, _ = groups_with_tails(3000, 4.0)
    model = DPMixture("student_t", random_state=0)
    for part in np.array_split(X, 5):
        model.partial_fit(part)
    assert model.n_clusters_ == 3
