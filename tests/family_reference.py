"""Observation families by the textbook, in the units of the data.

Each takes rows and their shares (n, K), and returns E[log p(x | φ_k)] of each row under
the posterior given these shares (n, K), and its divergence from the prior (K,). Nothing
is shared with the package but the settings of the priors.
"""

import numpy as np
from scipy.special import digamma, gammaln

from reference import (
    divergence_dirichlet,
    divergence_gamma,
    divergence_wishart,
    mean_log_det,
)


def _gaussian(family, X, shares):
    D, n0, dof0 = family.n_columns, family.mean_strength, family.dof
    B0 = family.scatter / np.outer(family.inv, family.inv)
    logs, divergences = [], []
    for r in shares.T:
        n, dof = n0 + r.sum(), dof0 + r.sum()
        m = (n0 * family.origin + r @ X) / n
        off = family.origin - m
        B = B0 + ((X - m).T * r) @ (X - m) + n0 * np.outer(off, off)
        precision = dof * np.linalg.inv(B)
        squares = np.einsum("nd,de,ne->n", X - m, precision, X - m)
        level = mean_log_det(dof, B) - D * np.log(2.0 * np.pi) - D / n
        logs.append(0.5 * (level - squares))
        shift = D * (n0 / n - 1.0 - np.log(n0 / n)) + n0 * off @ precision @ off
        divergences.append(divergence_wishart(dof, B, dof0, B0) + 0.5 * shift)
    return np.array(logs).T, np.array(divergences)


def _zero_mean_gaussian(family, X, shares):
    D, dof0 = family.n_columns, family.dof
    B0 = family.scatter / np.outer(family.inv, family.inv)
    logs, divergences = [], []
    for r in shares.T:
        dof, B = dof0 + r.sum(), B0 + (X.T * r) @ X
        squares = dof * np.einsum("nd,de,ne->n", X, np.linalg.inv(B), X)
        level = mean_log_det(dof, B) - D * np.log(2.0 * np.pi)
        logs.append(0.5 * (level - squares))
        divergences.append(divergence_wishart(dof, B, dof0, B0))
    return np.array(logs).T, np.array(divergences)


def _column_posterior(family, x, r, d):
    """Of one column's mean: κ, m, m0 and by how much β grows."""
    seen = ~np.isnan(x)
    x, r = x[seen], r[seen]
    m0 = family.origin[d] + family.mean[d] / family.inv[d]
    n = family.mean_strength + r.sum()
    m = (family.mean_strength * m0 + r @ x) / n
    return n, m, m0, r @ (x - m) ** 2 + family.mean_strength * (m0 - m) ** 2


def _normal_logs(x, m, n, dof, beta):
    level = digamma(0.5 * dof) - np.log(0.5 * beta) - np.log(2.0 * np.pi) - 1.0 / n
    out = 0.5 * (level - dof / beta * (x - m) ** 2)
    return np.where(np.isnan(x), 0.0, out)


def _mean_divergence(n, m, n0, m0, precision):
    return 0.5 * (n0 / n - 1.0 - np.log(n0 / n) + n0 * precision * (m - m0) ** 2)


def _diag_gaussian(family, X, shares):
    logs, divergences = np.zeros((len(X), shares.shape[1])), np.zeros(shares.shape[1])
    n0, dof0 = family.mean_strength, family.dof
    for k, r in enumerate(shares.T):
        for d, x in enumerate(X.T):
            n, m, m0, more = _column_posterior(family, x, r, d)
            beta0 = family.scatter[d] / family.inv[d] ** 2
            dof, beta = dof0 + n - n0, beta0 + more
            logs[:, k] += _normal_logs(x, m, n, dof, beta)
            divergences[k] += divergence_gamma(dof / 2, beta / 2, dof0 / 2, beta0 / 2)
            divergences[k] += _mean_divergence(n, m, n0, m0, dof / beta)
    return logs, divergences


def _spherical_gaussian(family, X, shares):
    logs, divergences = np.zeros((len(X), shares.shape[1])), np.zeros(shares.shape[1])
    n0, dof0 = family.mean_strength, family.dof
    beta0 = family.scatter / family.inv[0] ** 2
    for k, r in enumerate(shares.T):
        found = [_column_posterior(family, x, r, d) for d, x in enumerate(X.T)]
        dof = dof0 + sum(n - n0 for n, *_ in found)
        beta = beta0 + sum(more for *_, more in found)
        divergences[k] = divergence_gamma(dof / 2, beta / 2, dof0 / 2, beta0 / 2)
        for x, (n, m, m0, _) in zip(X.T, found, strict=True):
            logs[:, k] += _normal_logs(x, m, n, dof, beta)
            divergences[k] += _mean_divergence(n, m, n0, m0, dof / beta)
    return logs, divergences


def _codes(X, shares, priors):
    """Columns of codes 0, 1, ... with Dirichlet priors."""
    logs, divergences = np.zeros((len(X), shares.shape[1])), np.zeros(shares.shape[1])
    for k, r in enumerate(shares.T):
        for x, prior in zip(X.T, priors, strict=True):
            counts = prior + [r[x == code].sum() for code in range(len(prior))]
            for code, a in enumerate(counts):
                logs[x == code, k] += digamma(a) - digamma(counts.sum())
            divergences[k] += divergence_dirichlet(counts, prior)
    return logs, divergences


def _bernoulli(family, X, shares):
    return _codes(X, shares, np.column_stack([family.zeros, family.ones]))


def _categorical(family, X, shares):
    priors = np.split(family.pseudo_counts, np.cumsum(family.levels)[:-1])
    return _codes(X, shares, priors)


def _poisson(family, X, shares):
    logs, divergences = np.zeros((len(X), shares.shape[1])), np.zeros(shares.shape[1])
    for k, r in enumerate(shares.T):
        for x, a0, b0 in zip(X.T, family.shape, family.rate, strict=True):
            seen = ~np.isnan(x)
            a, b = a0 + r[seen] @ x[seen], b0 + r[seen].sum()
            part = x * (digamma(a) - np.log(b)) - a / b - gammaln(x + 1.0)
            logs[:, k] += np.where(seen, part, 0.0)
            divergences[k] += divergence_gamma(a, b, a0, b0)
    return logs, divergences


def _negative_binomial(family, X, shares):
    """For each r by the textbook; then r as one more unknown, with equal chances."""
    logs, divergences = np.zeros((len(X), shares.shape[1])), np.zeros(shares.shape[1])
    for k, d in np.ndindex(shares.shape[1], X.shape[1]):
        x, seen = X[:, d], ~np.isnan(X[:, d])
        n, total = shares[seen, k].sum(), shares[seen, k] @ x[seen]
        found = []
        for r in 1.0 / family.dispersions[d]:
            a0, b0 = 1.0 + r * family.rows[d], family.counts[d]
            a, b = a0 + r * n, b0 + total
            part = gammaln(x + r) - gammaln(r) - gammaln(x + 1.0)
            part += r * digamma(a) + x * digamma(b) - (x + r) * digamma(a + b)
            part = np.where(seen, part, 0.0)
            divergence = divergence_dirichlet(np.array([a, b]), np.array([a0, b0]))
            found.append((part, divergence, shares[:, k] @ part - divergence))
        parts, inner, evidences = map(np.array, zip(*found, strict=True))
        q = np.exp(evidences - evidences.max())
        q /= q.sum()
        logs[:, k] += q @ parts
        divergences[k] += q @ inner + q @ np.log(np.maximum(q, 1e-300) * len(q))
    return logs, divergences


def _multinomial(family, X, shares):
    logs, divergences = [], []
    ways = gammaln(X.sum(axis=1) + 1.0) - gammaln(X + 1.0).sum(axis=1)
    for r in shares.T:
        counts = family.pseudo_counts + r @ X
        logs.append(X @ (digamma(counts) - digamma(counts.sum())) + ways)
        divergences.append(divergence_dirichlet(counts, family.pseudo_counts))
    return np.array(logs).T, np.array(divergences)


def _mixed(family, X, shares):
    found = [
        expectations(part, X[:, where], shares)
        for part, where in zip(family.parts, family.where, strict=True)
    ]
    return sum(logs for logs, _ in found), sum(part for _, part in found)


_BY_NAME = {
    "GaussianFamily": _gaussian,
    "ZeroMeanGaussianFamily": _zero_mean_gaussian,
    "DiagGaussianFamily": _diag_gaussian,
    "SphericalGaussianFamily": _spherical_gaussian,
    "BernoulliFamily": _bernoulli,
    "CategoricalFamily": _categorical,
    "PoissonFamily": _poisson,
    "NegativeBinomialFamily": _negative_binomial,
    "MultinomialFamily": _multinomial,
    "MixedFamily": _mixed,
}


def expectations(family, X, shares):
    """E[log p(x | φ_k)] (n, K) with log h, and divergences (K,); see above."""
    return _BY_NAME[type(family).__name__](family, np.asarray(X, float), shares)
