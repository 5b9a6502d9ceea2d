"""Observation families by the textbook, in the units of the data.

Each takes rows and their shares (n, K), and returns E[log p(x | φ_k)] of each row under
the posterior given these shares (n, K), and its divergence from the prior (K,). Nothing
is shared with the package but the settings of the priors. Values that were rounded are
means over an interval; see `_rounding`.
"""

import numpy as np
from scipy import stats as st
from scipy.special import digamma, gammaln

from reference import (
    divergence_dirichlet,
    divergence_gamma,
    divergence_wishart,
    mean_log_det,
)

GUESS_OF_STRENGTH = 0.01  # mean of the hyperprior of a prior mean's strength


def _rounding(family):
    """E[(u - x)²] of each column, where u is a value that was rounded to x."""
    return family.resolution * np.ones(family.n_columns) / family.inv**2


def _prior_mean(family):
    return family.origin + family.mean * np.ones(family.n_columns) / family.inv


def _gaussian(family, X, shares):
    D, n0, dof0 = family.n_columns, family.mean_strength, family.dof
    B0 = family.scatter / np.outer(family.inv, family.inv)
    m0, rounding = _prior_mean(family), np.diag(_rounding(family))
    logs, divergences = [], []
    for r in shares.T:
        n, dof = n0 + r.sum(), dof0 + r.sum()
        m = (n0 * m0 + r @ X) / n
        off = m0 - m
        B = B0 + ((X - m).T * r) @ (X - m) + r.sum() * rounding
        B += n0 * np.outer(off, off)
        precision = dof * np.linalg.inv(B)
        squares = np.einsum("nd,de,ne->n", X - m, precision, X - m)
        squares += np.trace(precision @ rounding)
        level = mean_log_det(dof, B) - D * np.log(2.0 * np.pi) - D / n
        logs.append(0.5 * (level - squares))
        shift = D * (n0 / n - 1.0 - np.log(n0 / n)) + n0 * off @ precision @ off
        divergences.append(divergence_wishart(dof, B, dof0, B0) + 0.5 * shift)
    return np.array(logs).T, np.array(divergences)


def _zero_mean_gaussian(family, X, shares):
    D, dof0 = family.n_columns, family.dof
    B0 = family.scatter / np.outer(family.inv, family.inv)
    rounding = np.diag(_rounding(family))
    logs, divergences = [], []
    for r in shares.T:
        dof, B = dof0 + r.sum(), B0 + (X.T * r) @ X + r.sum() * rounding
        precision = dof * np.linalg.inv(B)
        squares = np.einsum("nd,de,ne->n", X, precision, X)
        squares += np.trace(precision @ rounding)
        level = mean_log_det(dof, B) - D * np.log(2.0 * np.pi)
        logs.append(0.5 * (level - squares))
        divergences.append(divergence_wishart(dof, B, dof0, B0))
    return np.array(logs).T, np.array(divergences)


def _factor_gaussian(family, X, shares):
    """All axes of the rows: those of the factors, and one Gaussian for the others."""
    D, q = family.n_columns, family.inner.n_columns
    more = np.linalg.svd(family.basis)[0][:, family.basis.shape[1] :]
    Z = (X - family.origin) * family.inv @ np.hstack([family.basis, more])
    logs, divergences = _gaussian(family.inner, Z[:, :q], shares)
    variances = np.concatenate([family.others, np.ones(more.shape[1])])
    left = -0.5 * (Z[:, q:] ** 2 / variances + np.log(2.0 * np.pi * variances))
    assert left.shape[1] == D - q
    base = left.sum(axis=1) + np.log(family.inv).sum()
    return logs + base[:, None], divergences


def _column_posterior(family, x, r, d):
    """Of one column's mean: κ0, κ, m, m0 and by how much β grows."""
    seen = ~np.isnan(x)
    x, r = x[seen], r[seen]
    n0, m0 = _column(family.mean_strength, d), _prior_mean(family)[d]
    n = n0 + r.sum()
    m = (n0 * m0 + r @ x) / n
    more = r @ ((x - m) ** 2 + _rounding(family)[d]) + n0 * (m0 - m) ** 2
    return n0, n, m, m0, more


def _column(setting, d):
    """Of one column, where a setting is one number or one for each."""
    values = np.ravel(setting)
    return float(values[d if len(values) > 1 else 0])


def _normal_logs(x, m, n, dof, beta, rounding):
    level = digamma(0.5 * dof) - np.log(0.5 * beta) - np.log(2.0 * np.pi) - 1.0 / n
    out = 0.5 * (level - dof / beta * ((x - m) ** 2 + rounding))
    return np.where(np.isnan(x), 0.0, out)


def _mean_divergence(n, m, n0, m0, precision):
    return 0.5 * (n0 / n - 1.0 - np.log(n0 / n) + n0 * precision * (m - m0) ** 2)


def _diag_gaussian(family, X, shares):
    logs, divergences = np.zeros((len(X), shares.shape[1])), np.zeros(shares.shape[1])
    for k, r in enumerate(shares.T):
        for d, x in enumerate(X.T):
            n0, n, m, m0, more = _column_posterior(family, x, r, d)
            dof0 = _column(family.dof, d)
            beta0 = family.scatter[d] / family.inv[d] ** 2
            dof, beta = dof0 + n - n0, beta0 + more
            logs[:, k] += _normal_logs(x, m, n, dof, beta, _rounding(family)[d])
            divergences[k] += divergence_gamma(dof / 2, beta / 2, dof0 / 2, beta0 / 2)
            divergences[k] += _mean_divergence(n, m, n0, m0, dof / beta)
    return logs, divergences


def _spherical_gaussian(family, X, shares):
    logs, divergences = np.zeros((len(X), shares.shape[1])), np.zeros(shares.shape[1])
    dof0 = float(np.squeeze(family.dof))
    beta0 = float(np.squeeze(family.scatter)) / family.inv[0] ** 2
    for k, r in enumerate(shares.T):
        found = [_column_posterior(family, x, r, d) for d, x in enumerate(X.T)]
        dof = dof0 + sum(n - n0 for n0, n, *_ in found)
        beta = beta0 + sum(more for *_, more in found)
        divergences[k] = divergence_gamma(dof / 2, beta / 2, dof0 / 2, beta0 / 2)
        for d, (n0, n, m, m0, _) in enumerate(found):
            rounding = _rounding(family)[d]
            logs[:, k] += _normal_logs(X[:, d], m, n, dof, beta, rounding)
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


def _transformed(family, X, shares):
    """By the formula of densities in other units, with slopes by differences."""
    step = 1e-6 * np.abs(X)
    up, down = (family.units.transform(X + s) for s in (step, -step))
    slopes = (up - down) / np.where(step > 0.0, 2.0 * step, 1.0)
    slopes = np.where(np.isnan(X) | (step == 0.0), 1.0, slopes)
    Y = family.units.transform(X)
    logs, divergences = expectations(family.inner, Y, shares)
    return logs + np.log(slopes).sum(axis=1)[:, None], divergences


def _spiked(family, X, shares):
    """Numbers that are missing at the spikes, and bits that are so where X is."""
    numbers, bits = X.copy(), np.zeros((len(X), len(family.where)))
    for i, (d, value) in enumerate(zip(family.where, family.values, strict=True)):
        for n, x in enumerate(X[:, d]):
            bits[n, i] = np.nan if np.isnan(x) else x == value
            numbers[n, d] = np.nan if x == value else x
    return expectations(family.inner, np.hstack([numbers, bits]), shares)


_BY_NAME = {
    "SpikedFamily": _spiked,
    "TransformedFamily": _transformed,
    "GaussianFamily": _gaussian,
    "ZeroMeanGaussianFamily": _zero_mean_gaussian,
    "FactorGaussianFamily": _factor_gaussian,
    "DiagGaussianFamily": _diag_gaussian,
    "SphericalGaussianFamily": _spherical_gaussian,
    "BernoulliFamily": _bernoulli,
    "CategoricalFamily": _categorical,
    "PoissonFamily": _poisson,
    "NegativeBinomialFamily": _negative_binomial,
    "MultinomialFamily": _multinomial,
    "MixedFamily": _mixed,
}


# ----------------------------------------------------------------- hyperpriors


def _wishart_hyperprior(family):
    """V = B0/ν0 by a Wishart about the guess, up to what does not depend on it."""
    D, out = family.n_columns, 0.0
    if "covariance" in family.learns:
        ratio = family.scatter / family.dof / (family.guess * np.ones(D))
        values = np.linalg.eigvals(ratio).real
        out += 0.5 * (D + 2) * np.sum(np.log(values) - values)
    if "dof" in family.learns:
        out += np.log(1.0 / family.dof**2)
    if "mean" in family.learns:
        out += np.log(np.exp(-0.5 * family.mean @ (family.mean / family.guess)))
    if "mean_strength" in family.learns:
        out -= D * family.mean_strength / 2.0 / GUESS_OF_STRENGTH
    return out


def _gamma_hyperprior(family):
    """The same column by column; those that share a variance have one between them."""
    dof, scatter, out = np.ravel(family.dof), np.ravel(family.scatter), 0.0
    n_sharing = family.n_columns // len(scatter)
    if "variance" in family.learns:
        for v, c in np.broadcast(scatter / dof, family.guess):
            out += 0.5 * (n_sharing + 2) * (np.log(v / c) - v / c)
    if "dof" in family.learns:
        out += np.sum(np.log(1.0 / dof**2))
    for d in range(family.n_columns):
        if "mean" in family.learns:
            out -= 0.5 * family.mean[d] ** 2 / _column(family.guess, d)
        if "mean_strength" in family.learns:
            out -= 0.5 * _column(family.mean_strength, d) / GUESS_OF_STRENGTH
    return out


def _pseudo_count_hyperprior(values, modes):
    """Gamma densities of rate 1 with these modes, 0 where a mode is no pseudo-count."""
    return sum(a * np.log(x / a) - x for x, a in zip(values, modes, strict=True))


def _log_normal_hyperprior(values, medians):
    return sum(-0.5 * np.log(x / a) ** 2 for x, a in zip(values, medians, strict=True))


def _profile_hyperprior(values, guess):
    """Pseudo-counts as a strength and shares of it, in their logarithms.

    The shares are Dirichlet(guess); one over the root of the strength, in units of the
    guessed one's, has half a t distribution with 2 degrees of freedom. Constants that
    are left out: of the Dirichlet its density at the guess, of the t that at 0.
    """
    strength, usual = values.sum(), guess.sum()
    shares, usual_shares = values / strength, guess / usual
    out = sum(guess * (np.log(shares) - np.log(usual_shares)))
    root = np.sqrt(usual / strength)  # d root / d log strength = -root / 2
    return out + st.t.logpdf(root, 2) - st.t.logpdf(0.0, 2) + np.log(root)


_LEARNED = {  # the parameters of the prior, in the order of their guess
    "BernoulliFamily": ("ones", "zeros"),
    "CategoricalFamily": ("pseudo_counts",),
    "PoissonFamily": ("shape", "rate"),
    "NegativeBinomialFamily": ("rows", "counts"),
}


def log_hyperprior(family):
    """log density of what is learned; 0 where all of the prior is given."""
    name = type(family).__name__
    if name in ("TransformedFamily", "SpikedFamily"):
        return log_hyperprior(family.inner)
    if name == "MixedFamily":
        return sum(map(log_hyperprior, family.parts))
    if name == "FactorGaussianFamily":
        return log_hyperprior(family.inner)
    if name in ("GaussianFamily", "ZeroMeanGaussianFamily"):
        return _wishart_hyperprior(family)
    if name in ("DiagGaussianFamily", "SphericalGaussianFamily"):
        return _gamma_hyperprior(family)
    if np.size(family.guess) == 0 or family.guess is None:
        return 0.0
    if name == "MultinomialFamily":
        return _profile_hyperprior(family.pseudo_counts, family.guess)
    values = np.concatenate([getattr(family, part) for part in _LEARNED[name]])
    counted = name not in ("PoissonFamily", "NegativeBinomialFamily")
    density = _pseudo_count_hyperprior if counted else _log_normal_hyperprior
    return density(values, np.ravel(family.guess))


def expectations(family, X, shares):
    """E[log p(x | φ_k)] (n, K) with log h, and divergences (K,); see above."""
    return _BY_NAME[type(family).__name__](family, np.asarray(X, float), shares)
