"""The model of MEIBP written out entry by entry, and its evidence by enumeration."""

import math
from itertools import product

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import multivariate_normal

# t, then mean, variance and entropy of a standard Gaussian beyond t, less t: computed
# with 60 digits or more.
BEYOND = [
    (-1e6, 1e6, 1.0, 1.4189385332046727),
    (-1e3, 1e3, 1.0, 1.4189385332046727),
    (-50.0, 50.0, 1.0, 1.4189385332046727),
    (-10.0, 10.0, 1.0, 1.4189385332046727),
    (-3.0, 3.0044378390421257, 0.98666678845825919, 1.4109309646767361),
    (-1.0, 1.2875999709391784, 0.6296862857766054, 1.1023847687116337),
    (-1e-3, 0.79824805005643311, 0.3635982986311587, 0.72619029490695628),
    (0.0, 0.79788456080286536, 0.36338022763241866, 0.72579135264472743),
    (1e-3, 0.79752128956291138, 0.36316227140434795, 0.72539241038248902),
    (0.5, 0.64107777036806448, 0.26848040715587895, 0.52829621420307025),
    (1.0, 0.52513527616098121, 0.19909766557034879, 0.34048452627589984),
    (3.0, 0.28309865493043651, 0.070559186785268117, -0.26413970591002204),
    (5.0, 0.18650396712584212, 0.032696434617112225, -0.67979994296944771),
    (10.0, 0.098093233962511963, 0.0094453778256562612, -1.321880447495238),
    (20.0, 0.049753068527850542, 0.0024632616150521636, -2.0006861526140858),
    (35.0, 0.02852497059668787, 0.00081235516838263269, -2.556975743275803),
    (49.99, 0.019988023133845703, 0.00039920247025413151, -2.9126221077108851),
    (50.0, 0.019984031905639809, 0.00039904318680389955, -2.9128218085742333),
    (50.01, 0.019980042269792168, 0.00039888399859101198, -2.9130214696286259),
    (100.0, 0.0099980009992607052, 9.994004994826345e-5, -3.6053701110373806),
    (1e3, 0.00099999800000999993, 9.9999400004999948e-7, -5.9077572789746371),
    (1e5, 9.999999998e-6, 9.999999994e-11, -10.512925465170228),
    (1e6, 9.99999999998e-7, 9.99999999994e-13, -12.815510557966274),
]


def truncated(mu, variance):
    """Mean, variance and entropy of N(mu, variance | a >= 0), by quadrature."""
    sigma = math.sqrt(variance)
    top = max(mu, 0.0)
    span = (max(0.0, mu - 12 * sigma), top + 12 * sigma)
    peak = -0.5 * (top - mu) ** 2 / variance

    def density(a):
        return math.exp(-0.5 * (a - mu) ** 2 / variance - peak)

    def over(f):
        return quad(f, *span, points=[top], epsabs=0, epsrel=1e-12, limit=200)[0]

    mass = over(density)
    mean = over(lambda a: a * density(a)) / mass
    spread = over(lambda a: (a - mean) ** 2 * density(a)) / mass
    squares = spread + (mean - mu) ** 2
    entropy = math.log(mass) + peak + 0.5 * squares / variance
    return mean, spread, entropy


def log_prior(Z, alpha):
    """Eq. 1 by its factorials; columns without rows do not count."""
    N = len(Z)
    counts = [int(m) for m in Z.sum(axis=0) if m > 0]
    total = -alpha * sum(1.0 / i for i in range(1, N + 1))
    for number, m in enumerate(counts, start=1):
        share = math.factorial(N - m) * math.factorial(m - 1)
        total += math.log(alpha) - math.log(number)
        total += math.log(share) - math.log(math.factorial(N))
    return total


def expected_likelihood(X, Z, mean, covariance, noise):
    """E[log p(X | Z, A)], one entry after another; covariance is (D, K, K)."""
    total = 0.0
    for n, d in product(range(len(X)), range(X.shape[1])):
        if math.isnan(X[n, d]):
            continue
        z = Z[n].astype(float)
        square = (X[n, d] - z @ mean[:, d]) ** 2 + z @ covariance[d] @ z
        total -= 0.5 * (math.log(2.0 * math.pi * noise) + square / noise)
    return total


def bound_truncated(X, Z, mu, variance, noise, spread, alpha):
    """E[log p(X, Z, A)] + H(q(A)) for independent truncated Gaussians."""
    used = np.flatnonzero(Z.any(axis=0))
    D = X.shape[1]
    mean, covariance = np.zeros((len(used), D)), np.zeros((D, len(used), len(used)))
    total = log_prior(Z, alpha)
    for k, d in product(range(len(used)), range(D)):
        m, v, entropy = truncated(float(mu[used[k], d]), float(variance[used[k], d]))
        mean[k, d], covariance[d, k, k] = m, v
        # log p(a) of the half-normal prior, expected, and the entropy
        total += 0.5 * math.log(2.0 / (math.pi * spread)) - 0.5 * (m * m + v) / spread
        total += entropy
    return total + expected_likelihood(X, Z[:, used], mean, covariance, noise)


def bound_gaussian(X, Z, mean, covariance, noise, spread, alpha):
    """The same for Gaussian columns of A; covariance is (D, K, K)."""
    used = np.flatnonzero(Z.any(axis=0))
    mean, K = mean[used], len(used)
    covariance = covariance[:, used[:, None], used]
    total = log_prior(Z, alpha)
    for d in range(X.shape[1]):
        squares = mean[:, d] @ mean[:, d] + np.trace(covariance[d])
        total -= 0.5 * (K * math.log(2.0 * math.pi * spread) + squares / spread)
        if K:
            total += multivariate_normal(mean[:, d], covariance[d]).entropy()
    return total + expected_likelihood(X, Z[:, used], mean, covariance, noise)


# ---------------------------------------------------------------------- evidence


def all_classes(N, K):
    """All classes with K features and none empty: the order of columns counts."""
    columns = [c for c in product((0, 1), repeat=N) if any(c)]
    for chosen in product(columns, repeat=K):
        yield np.array(chosen, np.uint8).reshape(K, N).T


def log_evidence_given(X, Z, noise, spread, nonnegative):
    """log p(X | Z), A integrated out; exact, for up to two features where a >= 0."""
    total, K = 0.0, Z.shape[1]
    for x in X.T:
        seen = ~np.isnan(x)
        z, x = Z[seen].astype(float), x[seen]
        if not len(x):
            continue
        covariance = noise * np.eye(len(x)) + spread * z @ z.T
        total += multivariate_normal(np.zeros(len(x)), covariance).logpdf(x)
        if nonnegative and K:
            total += math.log(2.0**K * _positive(x, z, noise, spread))
    return total


def _positive(x, z, noise, spread):
    """P(a >= 0 | x) under a Gaussian prior."""
    K = z.shape[1]
    C = np.linalg.inv(z.T @ z / noise + np.eye(K) / spread)
    m = C @ z.T @ x / noise
    if K == 1:
        return float(ndtr(m[0] / math.sqrt(C[0, 0])))
    return float(multivariate_normal(np.zeros(K), C).cdf(m))


def log_joint(X, Z, noise, spread, alpha, nonnegative):
    """log p(X, Z)."""
    return log_prior(Z, alpha) + log_evidence_given(X, Z, noise, spread, nonnegative)
