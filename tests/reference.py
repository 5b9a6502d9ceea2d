"""The obvious way, in numpy: what every kernel, model and search is held against.

Nothing here is quick or clever. Equation numbers are those of MAD-Bayes (Broderick,
Kulis & Jordan 2013).
"""

from itertools import combinations

import numpy as np
from scipy.special import betaln, digamma, gammaln, multigammaln


def weights_or_ones(X, weights=None):
    if weights is None:
        return np.ones(len(X))
    return np.asarray(weights, dtype=np.float64)


def square_distances(X, C):
    """Squared distance of each row to each centre, by direct differences."""
    X, C = np.asarray(X, dtype=np.float64), np.asarray(C, dtype=np.float64)
    out = np.empty((len(X), len(C)))
    for k, c in enumerate(C):
        out[:, k] = np.sum((X - c) ** 2, axis=1)
    return out


def nearest(X, C):
    """Nearest centre of each row, ties to the lower number, and squared distance."""
    d2 = square_distances(X, C)
    labels = np.argmin(d2, axis=1)
    return labels, d2[np.arange(len(d2)), labels]


def statistics(X, labels, K, weights=None, refs=None):
    """Σw, Σw(x - ref) and Σw|x - ref|² of each cluster; refs default to 0."""
    X, w = np.asarray(X, dtype=np.float64), weights_or_ones(X, weights)
    refs = np.zeros((K, X.shape[1])) if refs is None else refs
    counts, sums, squares = np.zeros(K), np.zeros((K, X.shape[1])), np.zeros(K)
    for x, k, weight in zip(X, labels, w, strict=True):
        counts[k] += weight
        sums[k] += weight * (x - refs[k])
        squares[k] += weight * np.sum((x - refs[k]) ** 2)
    return counts, sums, squares


def means(X, labels, K, weights=None):
    """Weighted mean of each cluster; NaN where it weighs nothing."""
    X, w = np.asarray(X, dtype=np.float64), weights_or_ones(X, weights)
    out = np.full((K, X.shape[1]), np.nan)
    for k in range(K):
        mine = (labels == k) & (w > 0.0)
        if mine.any():
            first = X[mine][0]
            out[k] = first + np.average(X[mine] - first, axis=0, weights=w[mine])
    return out


def squared_error(X, labels, C, weights=None):
    """Σ w |x - c|², each row against the centre of its cluster."""
    X, C = np.asarray(X, dtype=np.float64), np.asarray(C, dtype=np.float64)
    w = weights_or_ones(X, weights)
    return float(np.sum(w * np.sum((X - C[labels]) ** 2, axis=1)))


def objective(X, labels, C, penalty, weights=None, cap=np.inf):
    """Eq. 3; with a cap Eq. 12."""
    charged = min(len(C), cap) - 1
    return squared_error(X, labels, C, weights) + penalty * charged


def collapsed_trace(X, labels, penalty):
    """Eq. 8: tr(Xᵀ(I - Z(ZᵀZ)⁻¹Zᵀ)X) + (K - 1)λ²."""
    X = np.asarray(X, dtype=np.float64)
    Z = (np.unique(labels) == np.asarray(labels)[:, None]).astype(np.float64)
    hat = Z @ np.linalg.inv(Z.T @ Z) @ Z.T
    return float(np.trace(X.T @ (np.eye(len(X)) - hat) @ X)) + penalty * (
        Z.shape[1] - 1
    )


def collapsed_means(X, labels, penalty):
    """Eq. 9: squared distances to the empirical means + (K - 1)λ²."""
    names, labels = np.unique(labels, return_inverse=True)
    return objective(X, labels, means(X, labels, len(names)), penalty)


# ------------------------------------------------------------------ partitions


def partitions(n):
    """Every partition of n rows, as labels in order of first appearance."""

    def grow(labels, K):
        if len(labels) == n:
            yield np.array(labels)
            return
        for k in range(K + 1):
            yield from grow([*labels, k], max(K, k + 1))

    yield from grow([0], 1)


def best_partition(X, penalty, weights=None):
    """The lowest value of Eq. 3 over all partitions, and one that has it."""
    best, chosen = np.inf, None
    for labels in partitions(len(X)):
        K = labels.max() + 1
        C = means(X, labels, K, weights)
        value = objective(X, labels, np.nan_to_num(C), penalty, weights)
        if value < best:
            best, chosen = value, labels
    return best, chosen


def best_sse(X, K):
    """The lowest squared error of any partition of the rows into K clusters."""
    found = (labels for labels in partitions(len(X)) if labels.max() + 1 == K)
    return min(squared_error(X, labels, means(X, labels, K)) for labels in found)


def canonical(labels):
    """Renumber clusters in order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def log_eppf(sizes, log_theta):
    """Log of Eq. 1: θ^(K-1) Γ(θ+1)/Γ(θ+N) Π (S_k - 1)!.

    Takes log θ, since θ itself underflows long before σ² reaches its limit.
    """
    sizes, theta = np.asarray(sizes), np.exp(log_theta)
    return (
        (len(sizes) - 1) * log_theta
        + gammaln(theta + 1.0)
        - gammaln(theta + sizes.sum())
        + gammaln(sizes).sum()
    )


def log_gaussian(X, mu, variance):
    """Σ log N(x | μ, variance·I)."""
    D = X.shape[1]
    square = np.sum((X - mu) ** 2, axis=1)
    return float(
        np.sum(-0.5 * square / variance - 0.5 * D * np.log(2.0 * np.pi * variance))
    )


def log_joint(X, labels, mu, penalty, variance, prior_variance=1.0):
    """log P(x, z, μ) of the CRP Gaussian mixture with θ = exp(-λ²/2σ²)."""
    sizes = np.bincount(labels, minlength=len(mu))
    return (
        log_gaussian(X, mu[labels], variance)
        + log_eppf(sizes, -penalty / (2.0 * variance))
        + log_gaussian(mu, np.zeros_like(mu), prior_variance)
    )


# ------------------------------------------------------------------ algorithms


def farthest_first(X, K, weights=None):
    """Squared distance of the K-th farthest row, taken in turn from the mean on."""
    X, w = np.asarray(X, dtype=np.float64), weights_or_ones(X, weights)
    X, w = X[w > 0.0], w[w > 0.0]
    chosen = [X[0] + np.average(X - X[0], axis=0, weights=w)]
    for _ in range(K):
        _, d2 = nearest(X, chosen)
        chosen.append(X[np.argmax(d2)])
    return float(d2.max())


def wants_cluster(X, C, penalty, weights=None):
    """The row rule: which rows cost more than a cluster does, w counted up to 1."""
    share = np.minimum(weights_or_ones(X, weights), 1.0)
    return share * nearest(X, C)[1] > penalty


def removal_costs(X, C, weights=None):
    """How much the squared error rises when each cluster's rows take their second."""
    d2 = square_distances(X, C)
    labels, own = nearest(X, C)
    w = weights_or_ones(X, weights)
    d2[np.arange(len(d2)), labels] = np.inf
    rise = w * (d2.min(axis=1) - own)
    return np.array([rise[labels == k].sum() for k in range(len(C))])


def dp_means(X, penalty, weights=None, cap=np.inf, max_iter=300):
    """Order-free DP-means: many clusters open at once, poor ones are removed.

    Returns labels, centres and the objective after each pass.
    """
    X, w = np.asarray(X, dtype=np.float64), weights_or_ones(X, weights)
    C = means(X, np.zeros(len(X), dtype=int), 1, w)
    labels, history = None, []
    for _ in range(max_iter):
        before, (labels, _) = labels, nearest(X, C)
        history.append(objective(X, labels, C, penalty, w))
        resting = before is not None and np.array_equal(
            canonical(before), canonical(labels)
        )
        sizes = np.bincount(labels, weights=w, minlength=len(C))
        opened = _rows_to_open(X, C, penalty, w, min(len(C) // 8 or 1, cap - len(C)))
        if np.any(sizes == 0.0):
            C = means(X, labels, len(C), w)[sizes > 0.0]
        elif len(opened):
            costs = nearest(X, C)[1]
            leaves = np.minimum(w, 1.0) * costs > penalty
            leaves &= nearest(X, X[opened])[1] < costs
            left = np.where(leaves, 0.0, w)
            moved = means(X, labels, len(C), left)
            C = np.concatenate([np.where(np.isnan(moved), C, moved), X[opened]])
        else:
            costs = removal_costs(X, C, w)
            if not resting:
                C = means(X, labels, len(C), w)
            elif len(C) > 1 and costs.min() < penalty:
                C = np.delete(C, np.argmin(costs), axis=0)
            else:
                break
    return labels, C, np.array(history)


def _rows_to_open(X, C, penalty, w, most):
    """Costliest rows first, each too costly against those before it as well."""
    share = np.minimum(w, 1.0)
    costs = share * nearest(X, C)[1]
    chosen = []
    for row in np.lexsort((np.arange(len(X)), -costs)):
        if len(chosen) >= most or costs[row] <= penalty:
            break
        others = [np.sum((X[row] - X[i]) ** 2) for i in chosen]
        if not others or share[row] * min(others) > penalty:
            chosen.append(row)
    return np.array(chosen, dtype=int)


def best_split_1d(x, weights=None):
    """Largest fall of the squared error by cutting the sorted numbers in two."""
    order = np.argsort(x)
    x, w = np.asarray(x)[order][:, None], weights_or_ones(x, weights)[order]
    whole = np.zeros(len(x), dtype=int)
    before = squared_error(x, whole, means(x, whole, 1, w), w)
    best = 0.0
    for cut in range(1, len(x)):
        labels = (np.arange(len(x)) >= cut).astype(int)
        C = np.nan_to_num(means(x, labels, 2, w))
        best = max(best, before - squared_error(x, labels, C, w))
    return best


def best_sse_1d(x, K):
    """The lowest squared error of K clusters of numbers: all ways to cut them."""
    x = np.sort(x)[:, None]
    best = np.inf
    for cuts in combinations(range(1, len(x)), K - 1):
        labels = np.searchsorted(cuts, np.arange(len(x)), side="right")
        best = min(best, squared_error(x, labels, means(x, labels, K)))
    return best


# ---------------------------------------------------------------- penalty path


def best_penalties(K, sse):
    """Between which penalties each K has the lowest SSE + penalty·K, or None."""
    out = []
    for k, error in zip(K, sse, strict=True):
        low = max(
            [
                0.0,
                *((error - e) / (j - k) for j, e in zip(K, sse, strict=True) if j > k),
            ]
        )
        high = min(
            [
                np.inf,
                *((e - error) / (k - j) for j, e in zip(K, sse, strict=True) if j < k),
            ]
        )
        out.append((low, high) if low < high else None)
    return out


def longest_plateau(K, sse):
    """K whose interval of penalties is longest in log λ², the two ends left out."""
    found = [
        (np.log(both[1]) - np.log(both[0]), k)
        for k, both in zip(K, best_penalties(K, sse), strict=True)
        if both is not None and np.isfinite(both[1]) and both[0] > 0.0
    ]
    return max(found, key=lambda pair: (pair[0], -pair[1]))[1] if found else None


# --------------------------------------------------------------- divergences
# Of a posterior from its prior. Equation numbers are those of Hughes & Sudderth (2013).


def divergence_beta(a, b, a0, b0):
    """KL of Beta(a, b) from Beta(a0, b0)."""
    return (
        betaln(a0, b0) - betaln(a, b)
        + (a - a0) * digamma(a) + (b - b0) * digamma(b)
        + (a0 - a + b0 - b) * digamma(a + b)
    )  # fmt: skip


def divergence_dirichlet(a, a0):
    out = gammaln(a.sum()) - gammaln(a0.sum()) - np.sum(gammaln(a) - gammaln(a0))
    return out + np.sum((a - a0) * (digamma(a) - digamma(a.sum())))


def divergence_gamma(a, b, a0, b0):
    """KL of Gamma(a, rate b) from Gamma(a0, rate b0)."""
    return (
        (a - a0) * digamma(a) - gammaln(a) + gammaln(a0)
        + a0 * (np.log(b) - np.log(b0)) + a * (b0 - b) / b
    )  # fmt: skip


def log_det(B):
    return np.linalg.slogdet(B)[1]


def mean_log_det(dof, B):
    """E[log |Λ|] under a Wishart whose scale matrix is the inverse of B (Eq. 20)."""
    D = len(B)
    halves = 0.5 * (dof + 1.0 - np.arange(1, D + 1))
    return np.sum(digamma(halves)) + D * np.log(2.0) - log_det(B)


def log_wishart_norm(dof, B):
    D = len(B)
    out = 0.5 * dof * D * np.log(2.0) - 0.5 * dof * log_det(B)
    return out + multigammaln(0.5 * dof, D)


def divergence_wishart(dof, B, dof0, B0):
    spread = np.trace((B - B0) @ np.linalg.inv(B))
    return (
        0.5 * (dof - dof0) * mean_log_det(dof, B) - 0.5 * dof * spread
        - log_wishart_norm(dof, B) + log_wishart_norm(dof0, B0)
    )  # fmt: skip
