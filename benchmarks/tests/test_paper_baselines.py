"""What the papers on mixtures and buffets compare with, against brute force."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import multivariate_normal, truncnorm
from sklearn.metrics import adjusted_rand_score

# --------------------------------------------------------------- splits of a kd-tree


@pytest.fixture
def blobs():
    """Four round groups of 60 rows in two columns, and a prior for them."""
    from baselines import NormalWishart

    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3], 60)
    corners = 8.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    X = corners[labels] + rng.standard_normal((240, 2))
    return X, labels, NormalWishart(X.mean(axis=0), 0.05, 4.0, np.eye(2))


def partitions(n):
    """All partitions of n rows as labels 0, 1, ... in order of appearance."""
    for labels in product(range(n), repeat=n):
        seen = list(dict.fromkeys(labels))
        if seen == sorted(seen) and seen == list(range(len(seen))):
            yield np.array(labels)


def sums_by(X, labels):
    from baselines.normal_wishart import Nodes

    return Nodes.rows(X).sums(np.eye(labels.max() + 1)[labels])


def exact_log_evidence(X, prior):
    """Of the Dirichlet process mixture, by its sum over all partitions."""
    alpha, terms = prior.concentration, []
    for labels in partitions(len(X)):
        sizes = np.bincount(labels)
        chance = gammaln(alpha) - gammaln(alpha + len(X)) + np.sum(gammaln(sizes))
        chance += len(sizes) * np.log(alpha)
        terms.append(chance + prior.evidence(sums_by(X, labels)).sum())
    return float(logsumexp(terms))


@pytest.mark.parametrize("strength", [0.5, np.inf])
def test_the_bound_of_splits_is_below_the_evidence(strength):
    from baselines import NormalWishart, kd_mixture

    X = np.random.default_rng(1).standard_normal((5, 2)) * [3.0, 1.0]
    prior = NormalWishart(np.zeros(2), strength, 4.0, np.eye(2))
    exact = exact_log_evidence(X, prior)
    found = kd_mixture(X, prior, depth=None, tol=1e-9)
    assert exact - 5.0 < found.bound < exact


@pytest.mark.parametrize("strength", [0.5, np.inf])
def test_evidence_is_a_product_of_predictives(strength):
    """Student's t of one row given those before, from the textbook."""
    from scipy.stats import multivariate_t

    from baselines import NormalWishart

    X = np.random.default_rng(0).standard_normal((6, 2))
    prior = NormalWishart(np.array([0.3, -0.2]), strength, 5.0, np.diag([1.0, 2.0]))
    total = 0.0
    for n, x in enumerate(X):
        before = sums_by(X[:n], np.zeros(n, int)) if n else prior_sums()
        q = prior.posterior(before)
        scale = q.factors[0] @ q.factors[0].T
        free = q.dof[0] - 1.0
        ratio = 1.0 if np.isinf(strength) else 1.0 + 1.0 / q.strength[0]
        total += multivariate_t(q.means[0], scale * ratio / free, free).logpdf(x)
    whole = prior.evidence(sums_by(X, np.zeros(6, int)))[0]
    assert whole == pytest.approx(total)


def prior_sums():
    from baselines.normal_wishart import Sums

    return Sums.none(1, 2)


def test_nodes_know_what_their_rows_say(blobs):
    """Sums and scores of nodes are those of their rows, one by one."""
    from baselines.kd_mixture import grown, nodes_of
    from baselines.normal_wishart import Nodes

    X, labels, prior = blobs
    trees = grown(X, 3)
    nodes, rows = nodes_of(trees), Nodes.rows(X)
    owner = np.empty(len(X), int)
    for i, tree in enumerate(trees):
        owner[tree.rows] = i
    assert len(trees) == 8
    assert np.bincount(owner).sum() == len(X)
    shares = np.random.default_rng(0).dirichlet(np.ones(3), len(trees))
    one, other = nodes.sums(shares), rows.sums(shares[owner])
    for part in ("N", "first", "second"):
        np.testing.assert_allclose(getattr(one, part), getattr(other, part))
    q = prior.posterior(sums_by(X, labels))
    by_row = q.scores(rows)
    means = [by_row[owner == i].mean(axis=0) for i in range(len(trees))]
    np.testing.assert_allclose(q.scores(nodes), means)
    np.testing.assert_allclose(
        q.expected(sums_by(X, labels)), [by_row[labels == k, k].sum() for k in range(4)]
    )


def test_shares_of_all_components_beyond_the_first_make_a_series(blobs):
    """The closed form of the tail is the sum over a few thousand components."""
    from baselines.kd_mixture import Posterior
    from baselines.normal_wishart import Nodes

    X, labels, prior = blobs
    q, rows = Posterior(prior, sums_by(X, labels), 2.5), Nodes.rows(X[:3])
    a, b = q.sticks
    left = digamma(b) - digamma(a + b)
    alpha = prior.concentration
    first = digamma(1.0) - digamma(1.0 + alpha)
    logs = left.sum() + first - np.arange(5000) / alpha
    expected = prior.unseen.scores(rows)[:, 0] + logsumexp(logs)
    np.testing.assert_allclose(q.log_shares(rows)[:, -1], expected)


@pytest.mark.parametrize("depth", [None, 2, 6])
def test_splits_find_blobs_and_raise_the_bound(blobs, depth):
    from baselines import kd_mixture

    X, labels, prior = blobs
    found = kd_mixture(X, prior, depth=depth)
    assert found.n_components == 4
    assert adjusted_rand_score(labels, found.labels) == 1.0
    bounds = [bound for _, bound in found.history]
    assert bounds == sorted(bounds)
    # Rows on their own can only do better than rows that share.
    assert found.bound >= bounds[-1] - 1e-6


def test_the_bound_of_splits_is_that_of_kplus(blobs):
    """With one prior, up to what the two ways to truncate differ by."""
    from baselines import kd_mixture
    from kplus import DPMixture
    from kplus.observations import Gaussian

    X, _, prior = blobs
    ours = DPMixture(
        Gaussian(covariance=1.0, mean_strength=0.05, learn=False),
        concentration=1.0, n_clusters=None, n_active=None, tol=1e-9, random_state=0,
    ).fit(X)  # fmt: skip
    found = kd_mixture(X, prior, depth=None, tol=1e-9)
    assert found.bound == pytest.approx(ours.lower_bound_, abs=0.01)


def test_splits_stop_where_they_are_told_to(blobs):
    from baselines import kd_mixture

    assert kd_mixture(blobs[0], blobs[2], max_components=2).n_components == 2


def test_equal_rows_are_not_split():
    from baselines import NormalWishart, kd_mixture

    X = np.ones((20, 2))
    prior = NormalWishart(np.ones(2), 0.1, 4.0, np.eye(2))
    assert kd_mixture(X, prior, depth=3).n_components == 1


# ----------------------------------------------------------- beam search for buffets


def log_joint(X, Z, scales):
    """log p(X, Z) of rows that enter one by one; the factors are integrated out."""
    total, counts = 0.0, np.zeros(Z.shape[1])
    for n_seen, z in enumerate(Z, start=1):
        old = counts > 0
        shares = counts[old] / n_seen
        total += np.sum(np.log(np.where(z[old] > 0, shares, 1.0 - shares)))
        new, rate = z[~old].sum(), scales.alpha / n_seen
        total += new * np.log(rate) - rate - gammaln(new + 1)
        counts += z
    covariance = scales.noise**2 * np.eye(len(X)) + scales.factor**2 * Z @ Z.T
    flat = multivariate_normal(np.zeros(len(X)), covariance)
    return total + sum(flat.logpdf(column) for column in X.T)


def classes(n, K):
    """Matrices of n rows with up to K features, up to their order; two new a row."""
    columns = sorted(product((0, 1), repeat=n), reverse=True)[:-1]
    for k in range(K + 1):
        for chosen in combinations_with_replacement(columns, k):
            Z = np.array(chosen, float).reshape(k, n).T
            if np.all(np.bincount(Z.argmax(axis=0), minlength=n) <= 2):
                yield Z


def test_a_wide_beam_finds_the_best_of_all_matrices():
    from baselines import Scales, beam_ibp

    rng = np.random.default_rng(3)
    A = 3.0 * rng.standard_normal((2, 4))
    X = np.array([[1, 0], [0, 1], [1, 1]]) @ A
    X += 0.4 * rng.standard_normal(X.shape)
    scales = Scales(noise=0.5, factor=2.0, alpha=1.5)
    best = max(log_joint(X, Z, scales) for Z in classes(3, 6))
    wide = beam_ibp(X, scales, beam=10_000, most_new=2)
    assert wide.score == pytest.approx(log_joint(X, wide.Z, scales))
    assert wide.score == pytest.approx(best)
    narrow = beam_ibp(X, scales, beam=1)
    assert narrow.score == pytest.approx(log_joint(X, narrow.Z, scales))
    assert narrow.score <= best + 1e-9


def test_beam_search_finds_planted_features():
    from baselines import Scales, beam_ibp

    rng = np.random.default_rng(0)
    Z = (rng.uniform(size=(40, 3)) < 0.5).astype(float)
    X = Z @ rng.normal(scale=2.0, size=(3, 15)) + 0.3 * rng.standard_normal((40, 15))
    found = beam_ibp(X, Scales(0.3, 2.0, 1.0), beam=20).Z
    same = (found.T @ Z + (1 - found).T @ (1 - Z)) / 40
    assert same.max(axis=0).min() > 0.95


# --------------------------------------------- infinite nonnegative factorisation


def test_moments_of_a_gaussian_above_0():
    from baselines.inmf import moments_above_0

    means, deviation = np.array([-20.0, -1.0, 0.0, 3.0]), 1.5
    found = moments_above_0(means, np.full(4, deviation**2))
    truth = truncnorm(-means / deviation, np.inf, means, deviation)
    np.testing.assert_allclose(found[0], truth.mean(), rtol=1e-6)
    np.testing.assert_allclose(found[1], truth.var(), rtol=1e-4)


def test_expectation_propagation_is_exact_for_one_factor_and_near_for_two():
    """Against the density on a grid."""
    from baselines.inmf import propagate

    grid = np.linspace(0.0, 12.0, 1201)
    for precision, shift, rtol in (
        (np.array([[2.0]]), np.array([-1.0]), 1e-6),
        (np.array([[2.0, 0.8], [0.8, 1.0]]), np.array([1.0, -0.5]), 0.03),
    ):
        K = len(shift)
        sites = np.array([np.full(K, 1 / 4.0), np.zeros(K)])
        mean, covariance = propagate(precision, shift, 4.0, sites)
        points = np.stack(np.meshgrid(*[grid] * K, indexing="ij"), -1).reshape(-1, K)
        full = precision + np.eye(K) / 4.0
        logs = points @ shift - 0.5 * np.einsum("ni,ij,nj->n", points, full, points)
        weights = np.exp(logs - logs.max())
        weights *= np.where(points == 0, 0.5, 1.0).prod(axis=1)  # trapezes
        weights /= weights.sum()
        expected = weights @ points
        spread = (points - expected).T @ ((points - expected) * weights[:, None])
        np.testing.assert_allclose(mean, expected, rtol=max(rtol, 1e-4))
        np.testing.assert_allclose(np.diag(covariance), np.diag(spread), rtol=0.03)


def test_odds_of_a_bit_are_near_their_mean_over_all_other_bits():
    from baselines.inmf import log_odds

    others, share = np.array([0.9, 0.2, 0.6, 0.8, 0.1, 0.95, 0.4, 0.5]), 0.5
    exact = 0.0
    for bits in product((0, 1), repeat=len(others)):
        chance = np.prod(np.where(bits, others, 1 - others))
        exact += chance * np.log((sum(bits) + share) / (len(others) + 1 - sum(bits)))
    unsure = np.sum(others * (1 - others))
    found = log_odds(others.sum(), unsure, len(others) + 1, share)
    assert found == pytest.approx(exact, abs=0.02)
    assert log_odds(4.0, 0.0, 9, share) == pytest.approx(np.log((4 + share) / 5))


@pytest.fixture
def parts():
    """Rows that are sums of three factors, mostly apart; the last columns half seen."""
    rng = np.random.default_rng(0)
    Z = (rng.uniform(size=(60, 3)) < 0.5).astype(float)
    A = 0.3 * rng.exponential(size=(3, 27)) + 4.0 * np.kron(np.eye(3), np.ones(9))
    full = (Z @ A)[:, rng.permutation(27)]
    X = full + 0.5 * rng.standard_normal(full.shape)
    X[30:, 22:] = np.nan
    return X, full, Z


def test_inmf_finds_planted_factors_and_predicts_what_is_hidden(parts):
    from baselines import inmf

    X, full, Z = parts
    ends = [
        inmf(X, 3, noise_scale=0.5, factor_scale=2.0, random_state=seed)
        for seed in range(4)
    ]
    errors = [np.sqrt(np.mean((q.Z @ q.A - full)[30:, 22:] ** 2)) for q in ends]
    assert min(errors) < 0.25
    best = ends[int(np.argmin(errors))]
    found = best.Z.round()
    same = (found.T @ Z + (1 - found).T @ (1 - Z)) / 60
    assert same.max(axis=0).min() > 0.95
    assert best.A.min() >= 0


def test_inmf_never_looks_at_missing_entries_and_bits_are_at_rest(parts):
    """At the end each bit has the odds of its row alone, written out."""
    from baselines import inmf
    from baselines.inmf import log_odds

    X, _, _ = parts
    q = inmf(X, 3, noise_scale=0.5, factor_scale=2.0, alpha=3.0, tol=1e-8)
    for n in (0, 45):
        seen = ~np.isnan(X[n])
        means = q.means[seen]
        for k in range(3):
            z, others = q.Z[n].copy(), np.delete(q.Z[:, k], n)
            unsure = np.sum(others * (1 - others))
            odds = log_odds(others.sum(), unsure, 60, 1.0)
            scores = []
            for bit in (0.0, 1.0):
                z[k] = bit
                spread = q.covariances[seen, k, k].sum() * bit
                spread += (
                    2
                    * bit
                    * sum(
                        z[j] * q.covariances[seen, k, j].sum()
                        for j in range(3)
                        if j != k
                    )
                )
                fit = np.sum((X[n, seen] - means @ z) ** 2) + spread
                scores.append(-0.5 * fit / 0.25)
            expected = 1 / (1 + np.exp(scores[0] - scores[1] - odds))
            assert q.Z[n, k] == pytest.approx(
                np.clip(expected, 1e-4, 1 - 1e-4), abs=1e-3
            )
