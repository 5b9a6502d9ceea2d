"""What the papers claim, checked on DPMeans; the names carry the claims' ids.

MB-1: the limit of the CRP Gaussian mixture. MB-5: collapsed equals uncollapsed.
MB-7: at most K clusters.
"""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import reference
from kplus import DPMeans

VARIANCES = [1e-1, 1e-2, 1e-4, 1e-6, 1e-8]


def fitted(seed, n=60, D=2, penalty=3.0):
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=3.0, size=(4, D))
    X = centers[rng.integers(0, 4, n)] + 0.5 * rng.normal(size=(n, D))
    return X, DPMeans(penalty, algorithm="rows", tol=0.0).fit(X)


def scaled_log_joint(X, model, variance):
    """-2σ² log P(x, z, μ) with θ = exp(-λ²/2σ²), at the clusters of a fit."""
    return (
        -2.0
        * variance
        * reference.log_joint(
            X, model.labels_, model.cluster_centers_, model.penalty_, variance
        )
    )


@pytest.mark.parametrize("seed", range(5))
def test_MB_1_log_joint_tends_to_the_objective(seed):
    X, model = fitted(seed)
    assert model.n_clusters_ > 1
    ratios = [scaled_log_joint(X, model, v) / model.objective_ for v in VARIANCES]
    gaps = np.abs(np.array(ratios) - 1.0)
    assert np.all(np.diff(gaps[1:]) < 0.0)
    assert gaps[-1] < 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_MB_1_remainder_is_of_order_variance_times_its_log(seed):
    """The gap over σ² |log σ²| stays bounded, and converges."""
    X, model = fitted(seed)
    gaps = [
        (scaled_log_joint(X, model, v) - model.objective_) / (v * abs(np.log(v)))
        for v in VARIANCES
    ]
    n, D = X.shape
    # the only part that grows like log σ² is that of the Gaussian's norm
    assert np.all(np.abs(gaps) < 10 * n * D)
    assert gaps[-1] == pytest.approx(-n * D, rel=0.3)


def test_MB_1_prior_alone_tends_to_the_penalty():
    """-2σ² log of Eq. 1 is λ² for each cluster after the first, nothing for one."""
    for sizes in ([7], [3, 4], [1, 2, 4]):
        for variance, rel in ((1e-3, 0.05), (1e-6, 1e-4), (1e-9, 1e-7)):
            prior = reference.log_eppf(sizes, -2.0 / (2.0 * variance))
            expected = 2.0 * (len(sizes) - 1)
            assert -2.0 * variance * prior == pytest.approx(expected, rel=rel, abs=rel)


@pytest.mark.parametrize("theta", [1e-6, 0.1, 1.0, 10.0, 1e3])
def test_MB_1_eppf_sums_to_one_over_all_partitions(theta):
    logs = [
        reference.log_eppf(np.bincount(labels), np.log(theta))
        for labels in reference.partitions(6)
    ]
    assert len(logs) == 203
    assert logsumexp(logs) == pytest.approx(0.0, abs=1e-10)


def test_MB_1_eppf_is_the_product_of_the_seating_steps():
    theta = 0.7
    for labels in reference.partitions(5):
        product, sizes = 1.0, []
        for n, k in enumerate(labels):
            if k == len(sizes):
                product *= theta / (n + theta)
                sizes.append(1)
            else:
                product *= sizes[k] / (n + theta)
                sizes[k] += 1
        eppf = np.exp(reference.log_eppf(sizes, np.log(theta)))
        assert eppf == pytest.approx(product, rel=1e-12)


def expected_clusters(theta, n):
    """Expected number of clusters among n rows: Σ θ/(θ + i)."""
    return float(np.sum(theta / (theta + np.arange(n))))


def test_MB_1_expected_number_is_not_linear_in_theta():
    """The paper says that θ varies linearly with it; that holds only as θ → 0."""
    at_one, at_ten = expected_clusters(1.0, 100), expected_clusters(10.0, 100)
    assert at_one == pytest.approx(5.19, abs=0.01)
    assert at_ten == pytest.approx(24.0, abs=0.5)
    slope = float(np.sum(1.0 / np.arange(1, 100)))
    assert (1.0 + slope * 1.0, 1.0 + slope * 10.0) == pytest.approx(
        (6.18, 52.8), abs=0.1
    )
    small = [expected_clusters(theta, 100) for theta in (1e-6, 2e-6)]
    assert (small[1] - 1.0) / (small[0] - 1.0) == pytest.approx(2.0, rel=1e-5)


def test_MB_1_expected_number_agrees_with_the_eppf():
    theta = 1.7
    total = sum(
        (labels.max() + 1)
        * np.exp(reference.log_eppf(np.bincount(labels), np.log(theta)))
        for labels in reference.partitions(6)
    )
    assert total == pytest.approx(expected_clusters(theta, 6), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_MB_1_charging_the_first_cluster_too_changes_no_minimiser(seed):
    X = np.random.default_rng(seed).normal(size=(6, 2))
    best = []
    for charge in (0, 1):
        values = []
        for labels in reference.partitions(6):
            K = labels.max() + 1
            C = reference.means(X, labels, K)
            values.append(
                reference.squared_error(X, labels, C) + 0.8 * (K - 1 + charge)
            )
        best.append(int(np.argmin(values)))
    assert best[0] == best[1]


def test_MB_1_without_scaling_theta_every_row_is_its_own_cluster():
    """Fixed θ: the best partition of the exact joint, means free, as σ² → 0."""
    X = np.random.default_rng(0).normal(size=(5, 1))
    best = []
    for variance in (1.0, 1e-6):
        values = []
        for labels in reference.partitions(5):
            mu = reference.means(X, labels, labels.max() + 1)
            values.append(
                reference.log_gaussian(X, mu[labels], variance)
                + reference.log_eppf(np.bincount(labels), np.log(1.0))
                + reference.log_gaussian(mu, np.zeros_like(mu), 1.0)
            )
        best.append(list(reference.partitions(5))[int(np.argmax(values))].max() + 1)
    assert best[0] < 5
    assert best[1] == 5


# --------------------------------------------------------------------------- MB-5


@pytest.mark.parametrize(
    "how",
    [
        {"penalty": 0.7},
        {"penalty": 3.0},
        {"penalty": 3.0, "collapsed": True},
        {"n_clusters": 6},
        {},
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_MB_5_collapsed_objectives_equal_the_uncollapsed(how, seed):
    """Eq. 8 = Eq. 9 = Eq. 3 at the means, on the clusters of a fit."""
    X, _ = fitted(seed)
    model = DPMeans(**how, tol=0.0).fit(X)
    trace = reference.collapsed_trace(X, model.labels_, model.penalty_)
    empirical = reference.collapsed_means(X, model.labels_, model.penalty_)
    centres = reference.objective(
        X, model.labels_, model.cluster_centers_, model.penalty_
    )
    assert trace == pytest.approx(model.objective_, rel=1e-10)
    assert empirical == pytest.approx(model.objective_, rel=1e-10)
    assert centres == pytest.approx(model.objective_, rel=1e-10)


def collapsed_log_likelihood(X, labels, variance, prior_variance=1.0):
    """Log of Eq. 7, with the K × K identity that the printed one lacks."""
    n, D = X.shape
    Z = (np.unique(labels) == labels[:, None]).astype(float)
    K = Z.shape[1]
    inner = Z.T @ Z + variance / prior_variance * np.eye(K)
    residual = X.T @ (np.eye(n) - Z @ np.linalg.inv(inner) @ Z.T) @ X
    return (
        -np.trace(residual) / (2.0 * variance)
        - 0.5 * n * D * np.log(2.0 * np.pi * variance)
        - 0.5 * K * D * np.log(prior_variance / variance)
        - 0.5 * D * np.linalg.slogdet(inner)[1]
    )


@pytest.mark.parametrize("seed", range(3))
def test_MB_5_collapsed_log_joint_tends_to_the_objective(seed):
    X, model = fitted(seed)
    sizes = np.bincount(model.labels_)
    gaps = []
    for variance in (1e-2, 1e-4, 1e-6, 1e-8):
        log_theta = -model.penalty_ / (2.0 * variance)
        joint = collapsed_log_likelihood(X, model.labels_, variance)
        joint += reference.log_eppf(sizes, log_theta)
        gaps.append(abs(-2.0 * variance * joint / model.objective_ - 1.0))
    assert np.all(np.diff(gaps) < 0.0)
    assert gaps[-1] < 1e-5


def test_MB_5_collapsed_likelihood_is_the_integral_over_the_means():
    """Eq. 7 against a sum over a grid of means, one cluster, one column."""
    X = np.array([[0.3], [0.9], [-0.2]])
    grid = np.linspace(-8.0, 8.0, 20_001)
    log_prior = -0.5 * grid**2 - 0.5 * np.log(2.0 * np.pi)
    log_rows = sum(
        -0.5 * (x - grid) ** 2 / 0.25 - 0.5 * np.log(2.0 * np.pi * 0.25)
        for x in X[:, 0]
    )
    integral = logsumexp(log_prior + log_rows) + np.log(grid[1] - grid[0])
    labels = np.zeros(3, dtype=int)
    assert collapsed_log_likelihood(X, labels, 0.25) == pytest.approx(
        integral, rel=1e-9
    )


# --------------------------------------------------------------------------- MB-7


def log_eq_11(sizes, K, log_theta):
    """Dirichlet-multinomial of a clustering, at most K clusters."""
    theta, N = np.exp(log_theta), np.sum(sizes)
    return (
        gammaln(K * theta) - gammaln(N + K * theta)
        + np.sum(gammaln(np.asarray(sizes) + theta) - gammaln(theta))
    )  # fmt: skip


def test_MB_7_limits_of_the_bounded_prior():
    """θ fixed: nothing remains. θ = exp(-λ²/2σ²): λ² for each cluster but one."""
    sizes, K, penalty = [5, 3, 9], 6, 2.0
    for variance in (1e-2, 1e-4, 1e-6):
        assert abs(2.0 * variance * log_eq_11(sizes, K, 0.0)) < 100.0 * variance
    for variance in (1e-1, 1e-2, 2e-3):  # below that θ itself underflows
        value = -2.0 * variance * log_eq_11(sizes, K, -penalty / (2.0 * variance))
        assert abs(value - penalty * (len(sizes) - 1)) < 50.0 * variance


def test_MB_7_without_penalty_a_cap_is_k_means(blobs):
    """Penalty 0 with cap K: a fixed point of k-means, no cluster opened or emptied."""
    model = DPMeans(n_clusters=5, collapsed=True, tol=0).fit(blobs)
    means = reference.means(blobs, model.labels_, 5)
    np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-12)
    np.testing.assert_array_equal(reference.nearest(blobs, means)[0], model.labels_)
    sse = reference.squared_error(blobs, model.labels_, means)
    np.testing.assert_allclose(model.objective_, sse, rtol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [{}, {"algorithm": "serial"}, {"collapsed": True}, {"covariance": "full"}],
    ids=str,
)
def test_MB_7_a_cap_above_the_free_number_changes_nothing(blobs, settings):
    free = DPMeans(30.0, **settings).fit(blobs)
    capped = DPMeans(30.0, max_clusters=free.n_clusters_ + 1, **settings).fit(blobs)
    np.testing.assert_array_equal(free.labels_, capped.labels_)
    np.testing.assert_array_equal(free.objective_history_, capped.objective_history_)
    tight = DPMeans(30.0, max_clusters=2, **settings).fit(blobs)
    assert tight.n_clusters_ == 2
