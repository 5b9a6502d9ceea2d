"""The objective of CRAFT by its definition, row by row and in no hurry."""

from itertools import product

import numpy as np
from scipy.stats import norm

__all__ = ["background_of", "gains_of", "objective_of", "statistics_of", "value_of"]


def _mean(x, w):
    """Without the digits that an offset would cost."""
    return x[0] + np.average(x - x[0], weights=w)


def background_of(X, weights, levels):
    """Mean and variance of numbers, frequencies of categories, of all rows.

    The variance of a constant column is exactly 0.
    """
    out = []
    for d, n_levels in enumerate(levels):
        there = ~np.isnan(X[:, d]) & (weights > 0)
        x, w = X[there, d].astype(float), weights[there]
        if n_levels is None:
            mean = _mean(x, w) if len(x) else 0.0
            var = np.average((x - mean) ** 2, weights=w) if len(x) else 0.0
            out.append((mean, var if np.sqrt(var) > 1e-14 * abs(mean) else 0.0))
        else:
            counts = np.array([w[x == t].sum() for t in range(n_levels)])
            out.append(counts / max(counts.sum(), 1e-300))
    return out


def gains_of(X, weights, levels, labels, K, smoothing=1.0):
    """Gain of each feature in each cluster, and its number of parameters."""
    background = background_of(X, weights, levels)
    gains, parameters = np.zeros((K, len(levels))), np.zeros(len(levels))
    for d, n_levels in enumerate(levels):
        if n_levels is None:
            parameters[d] = 2
        else:
            parameters[d] = max(np.count_nonzero(background[d]) - 1, 1)
        for k in range(K):
            mine = (labels == k) & ~np.isnan(X[:, d]) & (weights > 0)
            x, w = X[mine, d].astype(float), weights[mine]
            if not len(x):
                continue
            if n_levels is None:
                gains[k, d] = _number_gain(x, w, *background[d], smoothing)
            else:
                gains[k, d] = _category_gain(x, w, background[d], smoothing)
    return gains, parameters


def _number_gain(x, w, mean0, var0, a):
    if var0 == 0.0:
        return 0.0
    mean = _mean(x, w)
    var = (w @ (x - mean) ** 2 + a * var0) / (w.sum() + a)
    sd, sd0 = np.sqrt(var), np.sqrt(var0)
    rows = norm.logpdf(x - mean, 0.0, sd) - norm.logpdf(x - mean0, 0.0, sd0)
    # The prior: `a` rows at distance √var0 from the mean, against the background's.
    prior = -0.5 * a * (np.log(var / var0) + var0 / var - 1.0)
    return w @ rows + prior


def _category_gain(x, w, base, a):
    counts = np.array([w[x == t].sum() for t in range(len(base))])
    eta = (counts + a * base) / (counts.sum() + a)
    used = base > 0
    logs = np.log(eta[used] / base[used])
    return counts[used] @ logs + a * base[used] @ logs


def value_of(worth, present, budget, sharing):
    """Σ w_kd (G_kd − c_d) with the best features; `worth` is G − c.

    By trying every choice, a feature at a time, where any number may count. With a
    budget each cluster takes what is worth most, to itself and to the others.
    """
    worth = worth[present]
    K, D = worth.shape
    if budget < 0:
        return sum(
            max(
                ((1.0 - sharing) * np.array(v) + sharing * np.mean(v)) @ worth[:, d]
                for v in product((0, 1), repeat=K)
            )
            for d in range(D)
        )
    shared = (1.0 - sharing) * worth + sharing * worth.mean(axis=0)
    return np.sort(shared, axis=1)[:, D - budget :].sum()


def objective_of(
    X,
    weights,
    levels,
    labels,
    K,
    *,
    smoothing=1.0,
    penalty=None,
    budget=-1,
    sharing=0.0,
):
    """J with the best features: those worth their cost, or `budget` of them."""
    total = weights.sum()
    half = 0.5 * np.log(max(total, 1.0))
    gains, parameters = gains_of(X, weights, levels, labels, K, smoothing)
    counts = np.array([weights[labels == k].sum() for k in range(K)])
    present = counts > 0.0
    n = counts[present]
    J = len(n) * (half if penalty is None else penalty) - n @ np.log(n / total)
    return J - value_of(gains - half * parameters, present, budget, sharing)


def statistics_of(rows, labels, K, n_sums):
    """Sums of encoded rows, cluster by cluster; rows labelled -1 are in none."""
    width = rows.numbers.shape[1]
    onehot = np.zeros((len(rows), n_sums - width))
    for q in range(rows.codes.shape[1]):
        onehot[np.arange(len(rows)), rows.codes[:, q]] += 1.0
    sums, counts = np.zeros((K, n_sums)), np.zeros(K)
    for k in range(K):
        w = np.where(labels == k, rows.weights, 0.0)
        sums[k], counts[k] = w @ np.hstack([rows.numbers, onehot]), w.sum()
    return sums, counts
