"""Brute force for the Gibbs samplers: every Z of a small table, and its probability."""

from itertools import combinations_with_replacement, product
from math import factorial

import numpy as np
from scipy.stats import chi2, multivariate_normal

__all__ = [
    "allocations",
    "class_of",
    "log_evidence",
    "log_prior",
    "posterior",
    "surprise",
]


def allocations(N, most):
    """All Z of N rows and at most so many features, but for the order of columns."""
    columns = [c for c in product((0, 1), repeat=N) if any(c)]
    found = []
    for K in range(most + 1):
        for chosen in combinations_with_replacement(columns, K):
            found.append(np.array(chosen, dtype=np.uint8).reshape(K, N).T)
    return found


def class_of(Z):
    """Z without the order of its columns."""
    return tuple(sorted(map(tuple, np.asarray(Z).T.tolist())))


def log_prior(Z, alpha):
    """Griffiths and Ghahramani's probability of a left-ordered class."""
    N, K = Z.shape
    columns = class_of(Z)
    value = K * np.log(alpha) - alpha * sum(1.0 / n for n in range(1, N + 1))
    for column in set(columns):
        value -= np.log(factorial(columns.count(column)))
    for column in columns:
        m = sum(column)
        value += np.log(factorial(N - m) * factorial(m - 1) / factorial(N))
    return value


def log_evidence(X, Z, noise, factor, nonnegative=False):
    """log p(X | Z), column by column, over what was observed; variances are given."""
    total = 0.0
    for x in X.T:
        seen = ~np.isnan(x)
        if not seen.any():
            continue
        x, z = x[seen], Z[seen].astype(float)
        cov = noise * np.eye(len(x)) + factor * z @ z.T
        total += multivariate_normal(cov=cov).logpdf(x)
        if nonnegative and z.shape[1]:
            total += _log_orthant(x, z, noise, factor)
    return total


def _log_orthant(x, z, noise, factor):
    """What it adds that factors are half-normal, not normal."""
    K = z.shape[1]
    cov = np.linalg.inv(z.T @ z / noise + np.eye(K) / factor)
    mean = cov @ z.T @ x / noise
    inside = multivariate_normal(mean=-mean, cov=cov).cdf(np.zeros(K))
    return K * np.log(2.0) + np.log(inside)


def posterior(X, alpha, noise, factor, most, nonnegative=False):
    """All allocations and their posterior probabilities, scales given."""
    found = allocations(len(X), most)
    logs = np.array(
        [
            log_prior(Z, alpha) + log_evidence(X, Z, noise, factor, nonnegative)
            for Z in found
        ]
    )
    p = np.exp(logs - logs.max())
    return found, p / p.sum()


def surprise(counts, expected, least=8.0):
    """Probability of a worse fit of counts (chi-squared); rare cases are pooled."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    rare = expected < least
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    statistic = np.sum((counts - expected) ** 2 / np.maximum(expected, 1e-9))
    return float(chi2.sf(statistic, len(counts) - 1))
