"""MEIBP written out plainly: the bound of Eq. 10 and what follows from it."""

import math
from itertools import product

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm

from kplus.ibp.kernels_factors import Factors, Sums
from kplus.ibp.kernels_objective import value
from kplus.ibp.kernels_rows import Table, row_objective

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def all_bits(K):
    """All 2^K rows of bits."""
    return np.array(list(product((0, 1), repeat=K)), np.uint8).reshape(-1, K)


def all_matrices(N, K):
    """All 2^(NK) matrices of bits."""
    for bits in product((0, 1), repeat=N * K):
        yield np.array(bits, np.uint8).reshape(N, K)


def planted(N, D, K, seed, noise=0.5, gaps=0.0):
    """Rows X = ZA + noise with A ≥ 0, some entries missing; also Z and A."""
    rng = np.random.default_rng([seed, N, D, K])
    Z = (rng.random((N, K)) < 0.5).astype(np.uint8)
    A = np.abs(rng.normal(size=(K, D)))
    X = Z @ A + noise * rng.normal(size=(N, D))
    hidden = rng.random((N, D)) < gaps
    hidden[:, 0] = False
    hidden[0] = False
    X[hidden] = np.nan
    return X, Z, A


def moments(mu, scale, nonnegative=True):
    """Mean, variance and entropy of the factors, if cut off at zero by quadrature."""
    sigma = np.sqrt(scale)
    if not nonnegative:
        return mu, scale, norm.entropy(mu, sigma)
    t = -mu / sigma
    low = np.maximum(-t - 14.0, 0.0)  # in units of sigma; no mass is further out
    high = np.where(t > 1.0, 45.0 / np.maximum(t, 1.0), np.maximum(-t, 0.0) + 14.0)
    half = 0.5 * (high - low)[..., None]
    x = low[..., None] + half * (NODES + 1.0)
    log_q = -0.5 * x * (x + 2.0 * t[..., None])
    top = log_q.max(axis=-1, keepdims=True)
    mass = half * WEIGHTS * np.exp(log_q - top)
    total = mass.sum(axis=-1)
    mean = (mass * x).sum(axis=-1) / total
    variance = (mass * (x - mean[..., None]) ** 2).sum(axis=-1) / total
    log_q = log_q - top - np.log(total)[..., None]
    entropy = -(mass * log_q).sum(axis=-1) / total + np.log(sigma)
    return sigma * mean, scale * variance, entropy


def log_prior(counts, N, alpha):
    """Eq. 1, as printed."""
    K = len(counts)
    total = K * math.log(alpha) - math.log(math.factorial(K))
    total -= alpha * sum(1.0 / n for n in range(1, N + 1))
    for m in np.asarray(counts, int):
        total += gammaln(N - m + 1) + gammaln(m) - gammaln(N + 1)
    return float(total)


def log_prior_left_ordered(counts, Z, alpha):
    """With the repeats of columns in place of K₊!."""
    _, copies = np.unique(Z, axis=1, return_counts=True)
    shifted = log_prior(counts, len(Z), alpha)
    return float(shifted + gammaln(Z.shape[1] + 1) - gammaln(copies + 1.0).sum())


def expected_error(X, Z, mean, variance):
    """E‖X − ZA‖² over the observed entries, one entry after another."""
    total = 0.0
    for n, d in zip(*np.nonzero(~np.isnan(X)), strict=True):
        total += (X[n, d] - Z[n] @ mean[:, d]) ** 2 + Z[n] @ variance[:, d]
    return float(total)


def bound(X, Z, mu, scale, model, nonnegative=True, left_ordered=False):
    """E[ln p(X, Z, A)] + H(q(A)); features without rows are left out.

    `model` is (noise, spread, alpha): two variances and α.
    """
    noise, spread, alpha = model
    used = Z.any(axis=0)
    Z, mu, scale = Z[:, used], mu[used], scale[used]
    counts = Z.sum(axis=0, dtype=int)
    observed = np.count_nonzero(~np.isnan(X))
    total = -0.5 * observed * np.log(2.0 * np.pi * noise)
    if left_ordered and used.any():
        total += log_prior_left_ordered(counts, Z, alpha)
    else:
        total += log_prior(counts, len(Z), alpha)
    if not used.any():
        return float(total - 0.5 * np.nansum(X**2) / noise)
    mean, variance, entropy = moments(mu, scale, nonnegative)
    total -= 0.5 * expected_error(X, Z, mean, variance) / noise
    constant = np.log(2.0) if nonnegative else 0.0
    prior = constant - 0.5 * np.log(2.0 * np.pi * spread)
    total += np.sum(prior - 0.5 * (mean**2 + variance) / spread + entropy)
    return float(total)


def bounds_of_rows(X, Z, n, *rest, **more):
    """The bound for each of the 2^K rows in place of row n."""
    found = []
    for z in all_bits(Z.shape[1]):
        changed = Z.copy()
        changed[n] = z
        found.append(bound(X, changed, *rest, **more))
    return np.array(found)


def set_function(lin, Q, fresh, base):
    """f of `ibp/kernels_objective.py` for all 2^K sets."""
    off = Q - np.diag(np.diag(Q))
    found = []
    for z in all_bits(len(lin)):
        c = int(np.sum(z * fresh))
        price = gammaln(base + c + 1.0) - gammaln(base + 1.0)
        found.append(z @ lin - 0.5 * z @ off @ z - price)
    return np.array(found)


def share_of_range(found, values):
    """Where between the worst and the best of all sets a value is, from 0 to 1."""
    span = values.max() - values.min()
    return (found - values.min()) / span if span > 0.0 else 1.0


def one_by_one(X):
    """X for `ibp/kernels_rows.py` with a group a column and a pattern a row."""
    N, D = X.shape
    seen = ~np.isnan(X)
    filled = np.where(seen, X, 0.0)
    return Table(filled, np.arange(N), seen.astype(np.uint8), np.arange(D + 1))


def sums_of(table, Z):
    """T = ZᵀX, ZᵀZ of each group of columns, and counts."""
    ones = Z.astype(float)
    seen = table.observed[table.pattern].astype(float)
    S = np.einsum("nk,nj,ng->gkj", ones, ones, seen)
    return Sums(ones.T @ table.X, np.ascontiguousarray(S), ones.sum(axis=0))


def some_factors(K, D, seed, nonnegative=True, scale=0.1):
    """A q(A) that fits nothing in particular."""
    rng = np.random.default_rng([seed, 99])
    mu = rng.normal(size=(K, D))
    width = scale * rng.uniform(0.5, 2.0, size=(K, D))
    mean, variance, _ = moments(mu, width, nonnegative)
    return Factors(mu, width, np.array(mean), np.array(variance))


def row_values(table, Z, n, sums, factors, model):
    """Eq. 19 for each of the 2^K rows in place of row n, by the kernels; and itself."""
    f = row_objective(n, table, Z, sums.counts, factors, model)
    found = np.array([value(f, z) for z in all_bits(Z.shape[1])])
    return found, (np.array(f.lin), np.array(f.Q), np.array(f.fresh), f.base)
