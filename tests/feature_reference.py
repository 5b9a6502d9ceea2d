"""The obvious way for latent features X ≈ ZA: enumeration, least squares, definitions.

Nothing here is quick or clever. NaN marks a missing entry; equation numbers are those
of MAD-Bayes (Broderick, Kulis & Jordan 2013).
"""

from itertools import combinations, product

import numpy as np
from scipy.special import betaln, gammaln

from reference import log_gaussian, weights_or_ones


def patterns(K):
    """All 2^K rows that Z may have."""
    return np.array(list(product((0, 1), repeat=K)), np.uint8).reshape(-1, K)


def row_errors(X, Z, A):
    """‖x − zA‖² of each row, over what was observed of it."""
    return np.nansum((np.asarray(X, np.float64) - Z @ A) ** 2, axis=1)


def pattern_errors(X, A):
    """‖x − zA‖² of each row under each of `patterns`."""
    return np.column_stack([row_errors(X, z, A) for z in patterns(len(A))])


def best_errors(X, A):
    """The least ‖x − zA‖² of each row, of all 2^K."""
    return pattern_errors(X, A).min(axis=1)


def best_rows(X, A):
    """Z with the least error, by enumeration."""
    return patterns(len(A))[np.argmin(pattern_errors(X, A), axis=1)]


def flip_errors(X, Z, A):
    """Errors of each row after each single flip, (N, K)."""
    out = np.empty(Z.shape)
    for k in range(Z.shape[1]):
        flipped = Z.copy()
        flipped[:, k] ^= 1
        out[:, k] = row_errors(X, flipped, A)
    return out


def features(X, Z, weights=None):
    """The shortest least-squares A, each column on its observed rows."""
    roots = np.sqrt(weights_or_ones(X, weights))
    A = np.zeros((Z.shape[1], X.shape[1]))
    for d, column in enumerate(np.asarray(X, np.float64).T):
        seen = ~np.isnan(column)
        left, right = Z[seen] * roots[seen, None], column[seen] * roots[seen]
        A[:, d] = np.linalg.lstsq(left, right, rcond=None)[0]
    return A


def error(X, Z, A, weights=None):
    """Eq. 14: the weighted squared error."""
    return float(row_errors(X, Z, A) @ weights_or_ones(X, weights))


def objective(X, Z, A, penalty, weights=None):
    """Eq. 6."""
    return error(X, Z, A, weights) + penalty * Z.shape[1]


def collapsed(X, Z, penalty=0.0, weights=None):
    """Eq. 10: tr X'(I − Z(Z'Z)⁻¹Z')X + Kλ², weighted."""
    roots = np.sqrt(weights_or_ones(X, weights))[:, None]
    X, ZZ = np.asarray(X, np.float64) * roots, Z * roots
    left = X - ZZ @ np.linalg.pinv(ZZ) @ X
    return float(np.trace(X.T @ left)) + penalty * Z.shape[1]


def sums(X, Z, A, weights=None):
    """ZᵀWZ (column by column where X has gaps), ZᵀW(X − ZA), error, counts."""
    X, w = np.asarray(X, np.float64), weights_or_ones(X, weights)
    seen = ~np.isnan(X)
    Z = Z.astype(np.float64)
    S = np.stack([(Z * (w * seen[:, d])[:, None]).T @ Z for d in range(X.shape[1])])
    T = (Z * w[:, None]).T @ np.where(seen, X - Z @ A, 0.0)
    return S[0] if seen.all() else S, T, error(X, Z, A, w), w @ Z


def best_allocations(X, most):
    """The least error of K = 0 .. `most` features, of all Z there are.

    Equal columns and empty ones explain nothing that fewer would not, and so do columns
    that depend on each other: these are left out.
    """
    columns = patterns(len(X))[1:].astype(np.float64)
    gram, products, total = columns @ columns.T, columns @ X, float(np.vdot(X, X))
    errors = [total]
    for K in range(1, most + 1):
        chosen = np.array(list(combinations(range(len(columns)), K)))
        S = gram[chosen[:, :, None], chosen[:, None, :]]
        T = products[chosen]
        full = np.linalg.det(S) > 0.5  # determinants of whole numbers
        explained = np.sum(T[full] * np.linalg.solve(S[full], T[full]), axis=(1, 2))
        errors.append(min(errors[-1], total - float(explained.max(initial=0.0))))
    return np.maximum(errors, 0.0)


def best_row(X, Z, n, locked=0, weights=None):
    """The least Eq. 10 over all rows that Z may have in place n."""
    found = []
    for z in patterns(Z.shape[1]):
        if np.all(z[:locked] == 1):
            other = Z.copy()
            other[n] = z
            found.append(collapsed(X, other, weights=weights))
    return min(found)


# ---------------------------------------------------------------- the Bayesian models


def log_ibp(Z, log_gamma):
    """Eq. 4, the log probability of a feature allocation without empty features."""
    N, K = Z.shape
    gamma = np.exp(log_gamma)
    _, copies = np.unique(Z.T, axis=0, return_counts=True) if K else (None, [])
    sizes = Z.sum(axis=0, dtype=np.int64)
    log_choose = gammaln(N + 1) - gammaln(sizes + 1) - gammaln(N - sizes + 1)
    return (
        K * log_gamma
        - gamma * np.sum(1.0 / np.arange(1, N + 1))
        - np.sum(gammaln(np.asarray(copies) + 1.0))
        - np.sum(np.log(sizes) + log_choose)
    )


def log_beta_bernoulli(Z, log_gamma):
    """Eq. 13, the log probability of Z with a given number of columns."""
    N, _ = Z.shape
    gamma, sizes = np.exp(log_gamma), Z.sum(axis=0, dtype=np.int64)
    used = betaln(sizes + gamma, N - sizes + 1.0)
    # B(γ, N + 1) is 1/γ but for a factor that tends to 1; γ itself may underflow
    empty = gammaln(1.0 + gamma) + gammaln(N + 1.0) - gammaln(gamma + N + 1.0)
    return float(np.sum(np.where(sizes > 0, log_gamma + used, empty)))


def log_features(X, Z, A, variance, prior_variance=1.0):
    """Log of Eq. 5 and of the prior on A."""
    prior = log_gaussian(A, 0.0, prior_variance)
    return prior + log_gaussian(X - Z @ A, 0.0, variance)


def log_collapsed(X, Z, variance, prior_variance=1.0):
    """Log of Eq. 7 (with I_K): A integrated out."""
    N, D = X.shape
    K = Z.shape[1]
    ratio = variance / prior_variance
    M = Z.T.astype(float) @ Z + ratio * np.eye(K)
    inner = X.T @ (X - Z @ np.linalg.solve(M, Z.T @ X))
    return (
        -0.5 * np.trace(inner) / variance
        - 0.5 * N * D * np.log(2.0 * np.pi * variance)
        + 0.5 * K * D * np.log(ratio)
        - 0.5 * D * np.linalg.slogdet(M)[1]
    )


# ------------------------------------------------------------------------- made data


def planted(n, D, K, seed=0, noise=0.2, offset=0.0, share=0.5):
    """Rows made of K features, Z and A."""
    rng = np.random.default_rng(seed)
    A = 2.0 * rng.normal(size=(K, D))
    Z = (rng.random((n, K)) < share).astype(np.uint8)
    X = offset + Z @ A + noise * rng.normal(size=(n, D))
    return np.ascontiguousarray(X), Z, A


def with_gaps(X, share, seed=0):
    """The same with entries missing; every column keeps its first row."""
    gaps = np.random.default_rng(seed).random(X.shape) < share
    gaps[0] = False
    return np.where(gaps, np.nan, X)


def awkward(kind, K, D, seed):
    """Features of one kind or another."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(K, D))
    if kind == "dependent":
        A[K // 2 :] = (
            rng.integers(-1, 2, (K - K // 2, max(K // 2, 1))) @ A[: K // 2 or 1]
        )
    elif kind == "equal":
        A[K // 2 :] = A[0]
    elif kind == "zero":
        A[K // 2 :] = 0.0
    elif kind == "opposite":
        A[K // 2 :] = -A[0]
    elif kind == "uneven":
        A *= 10.0 ** rng.integers(-3, 4, (K, 1))
    return A
