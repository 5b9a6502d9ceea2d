"""The obvious way for CRAFT as published, Algorithms 1 to 3, and for DP-means.

Nothing here is quick or clever. Rows are lists; None is a missing value. A cluster is a
dict: `v` a list of bool, `zeta` and `sigma2` lists, `eta` a list of lists. `levels` has
the number of categories of each column, None for numbers.
"""

from math import floor, inf, log

import numpy as np


def plain(X):
    """Rows as lists, with None for NaN."""
    return [[None if x != x else float(x) for x in row] for row in X]


# ------------------------------------------------------------------ the whole table


def whole_table(rows, weights, levels):
    """η0 of categories, mean and variance of numbers; see `constant`."""
    table = {"levels": levels, "eta0": [], "mean": [], "variance": []}
    for d, level in enumerate(levels):
        there = [
            (r[d], w) for r, w in zip(rows, weights, strict=True) if r[d] is not None
        ]
        total = sum(w for _, w in there)
        if level is not None:
            shares = [sum(w for x, w in there if x == t) for t in range(level)]
            table["eta0"].append([s / total if total else 0.0 for s in shares])
            table["mean"].append(None)
            table["variance"].append(None)
        else:
            mean = sum(w * x for x, w in there) / total if total else 0.0
            squares = sum(w * (x - mean) ** 2 for x, w in there)
            table["eta0"].append(None)
            table["mean"].append(mean)
            table["variance"].append(squares / total if total else 0.0)
    return table


def unit(table, d):
    """σ² that counts as 1: the column's variance, 1 where it has none."""
    return 1.0 if constant(table, d) else table["variance"][d]


def constant(table, d):
    return table["variance"][d] <= 1e-24 * table["mean"][d] ** 2


# ---------------------------------------------------------------------- Algorithm 2


def surprise(eta):
    return -log(eta) if eta > 0.0 else inf


def row_cost(row, cluster, table, F_delta):
    """d_nk of Algorithm 2."""
    cost = 0.0
    for d, level in enumerate(table["levels"]):
        if row[d] is None:
            continue
        if level is not None:
            eta = cluster["eta"] if cluster["v"][d] else table["eta0"]
            cost += surprise(eta[d][int(row[d])])
        elif cluster["v"][d]:
            cost += (row[d] - cluster["zeta"][d]) ** 2 / (2.0 * cluster["sigma2"][d])
    return cost + sum(cluster["v"]) * F_delta


def objective(rows, weights, labels, clusters, table, penalty, constants):
    """As printed: F_Δ once for each chosen feature of a cluster."""
    F0, F_delta = constants[:2]
    total = 0.0
    for row, w, k in zip(rows, weights, labels, strict=True):
        total += w * row_cost(row, clusters[k], table, 0.0)
    total += (penalty + len(table["levels"]) * F0) * len(clusters)
    return total + sum(sum(c["v"]) for c in clusters) * F_delta


def smoothed(counts, eta0, smoothing):
    total = sum(counts)
    if total == 0.0:
        return list(eta0)
    return [
        (c + smoothing * e) / (total + smoothing)
        for c, e in zip(counts, eta0, strict=True)
    ]


def moments(rows, weights, table, smoothing):
    """ζ, the plain σ² (None where nothing was seen), η and counts of some rows."""
    zeta, sigma2, eta, counts = [], [], [], []
    for d, level in enumerate(table["levels"]):
        there = [
            (r[d], w) for r, w in zip(rows, weights, strict=True) if r[d] is not None
        ]
        total = sum(w for _, w in there)
        mean = variance = None
        held = shares = None
        if level is not None:
            held = [sum(w for x, w in there if x == t) for t in range(level)]
            shares = smoothed(held, table["eta0"][d], smoothing)
        elif total:
            mean = sum(w * x for x, w in there) / total
            variance = sum(w * (x - mean) ** 2 for x, w in there) / total
        else:
            mean = table["mean"][d]
        zeta.append(mean)
        sigma2.append(variance)
        eta.append(shares)
        counts.append(held)
    return zeta, sigma2, eta, counts


def budget(m, n):
    return max(1, floor(m * n + 0.5)) if n else 0


def gains(eta, counts, table, d):
    """G_d and G_kd."""
    pairs = [(c, t) for t, c in enumerate(counts[d]) if c > 0.0]
    return (
        sum(c * surprise(table["eta0"][d][t]) for c, t in pairs),
        sum(c * surprise(eta[d][t]) for c, t in pairs),
    )


def choose_numbers(sigma2, table, spec):
    numbers = [d for d, level in enumerate(table["levels"]) if level is None]

    def spread(d):
        if sigma2[d] is None or constant(table, d):
            return inf
        return sigma2[d] / unit(table, d)

    ranked = sorted(numbers, key=spread)  # stable: ties to the left
    if spec.variance_threshold is None:
        return ranked[: budget(spec.fraction, len(numbers))]
    seen = [d for d in numbers if sigma2[d] is not None]
    return [d for d in seen if sigma2[d] < spec.variance_threshold] or ranked[:1]


def ranking_gain(G_d, G_kd):
    """Less than rounding is nothing."""
    return G_d - G_kd if G_d - G_kd > 1e-12 * G_d else 0.0


def choose_categories(eta, counts, table, spec):
    columns = [d for d, level in enumerate(table["levels"]) if level is not None]
    G = {d: gains(eta, counts, table, d) for d in columns}
    if spec.category_threshold is None:
        ranked = sorted(columns, key=lambda d: -ranking_gain(*G[d]))
        return ranked[: budget(spec.fraction, len(columns))]
    return [d for d in columns if G[d][0] - G[d][1] > spec.category_threshold * G[d][0]]


def updated(rows, weights, table, spec):
    """A cluster from its rows."""
    zeta, sigma2, eta, counts = moments(rows, weights, table, spec.smoothing)
    chosen = choose_numbers(sigma2, table, spec)
    chosen += choose_categories(eta, counts, table, spec)
    floored = []
    for d, level in enumerate(table["levels"]):
        if level is not None:
            floored.append(None)
        elif spec.fixed_variance is not None:
            floored.append(spec.fixed_variance)
        else:
            plain = unit(table, d) if sigma2[d] is None else sigma2[d]
            floored.append(max(plain, spec.variance_floor * unit(table, d)))
    v = [d in chosen for d in range(len(table["levels"]))]
    return {"v": v, "zeta": zeta, "sigma2": floored, "eta": eta}


def opened(row, v, table, spec):
    """A cluster centred at a row, σ = 1."""
    zeta, _, eta, _ = moments([row], [1.0], table, spec.smoothing)
    sigma2 = []
    for d, level in enumerate(table["levels"]):
        fixed = spec.fixed_variance
        sigma2.append(None if level is not None else fixed or unit(table, d))
    return {"v": list(v), "zeta": zeta, "sigma2": sigma2, "eta": eta}


def draw(chances, rng):
    v = [bool(u < p) for u, p in zip(rng.random(len(chances)), chances, strict=True)]
    if not any(v):
        chances = np.array(chances)
        v[rng.choice(len(chances), p=chances / chances.sum())] = True
    return v


def one_pass(rows, weights, clusters, table, spec, penalty, constants, rng):
    """Labels after one pass, and the clusters as they are then, opened ones last."""
    F0, F_delta, a0, b0, a1, b1 = constants
    clusters, labels = list(clusters), []
    for row, w in zip(rows, weights, strict=True):
        costs = [row_cost(row, c, table, F_delta) for c in clusters]
        best = costs.index(min(costs))
        if min(w, 1.0) * costs[best] > penalty + len(row) * F0:
            above = [
                sum(a1 if c["v"][d] else a0 for c in clusters) for d in range(len(row))
            ]
            below = [
                sum(a1 + b1 if c["v"][d] else a0 + b0 for c in clusters)
                for d in range(len(row))
            ]
            chances = [a / b for a, b in zip(above, below, strict=True)]
            clusters.append(opened(row, draw(chances, rng), table, spec))
            best = len(clusters) - 1
        labels.append(best)
    return labels, clusters


def refit(rows, weights, labels, table, spec):
    """Labels without empty clusters, and the clusters."""
    names = sorted(set(labels))
    labels = [names.index(k) for k in labels]
    clusters = []
    for k in range(len(names)):
        mine = [n for n, label in enumerate(labels) if label == k]
        clusters.append(
            updated([rows[n] for n in mine], [weights[n] for n in mine], table, spec)
        )
    return labels, clusters


def iterations(X, weights, spec, start, penalty, constants, rng, n):
    """Labels, clusters and objective after each of n iterations, from a given row."""
    rows, weights = plain(X), [float(w) for w in weights]
    table = whole_table(rows, weights, spec.levels)
    first = draw([spec.fraction] * len(spec.levels), rng)
    clusters = [opened(plain([start])[0], first, table, spec)]
    for _ in range(n):
        labels, clusters = one_pass(
            rows, weights, clusters, table, spec, penalty, constants, rng
        )
        labels, clusters = refit(rows, weights, labels, table, spec)
        value = objective(rows, weights, labels, clusters, table, penalty, constants)
        yield labels, clusters, value


def farthest_first(X, weights, spec, start, k, constants):
    """λ: the distance of the k-th row that is taken, averaged over v ~ Bernoulli(m)."""
    rows = plain(X)
    table = whole_table(rows, weights, spec.levels)
    taken, D, m = [plain([start])[0]], len(spec.levels), spec.fraction

    def apart(row, center):
        all_of, none = (opened(center, [v] * D, table, spec) for v in (True, False))
        return (1.0 - m) * row_cost(row, none, table, constants[1]) + m * row_cost(
            row, all_of, table, constants[1]
        )

    for _ in range(k):
        nearest = [min(apart(row, t) for t in taken) for row in rows]
        penalty = max(nearest)
        taken.append(rows[nearest.index(penalty)])
    return max(penalty, 0.0)


# -------------------------------------------------------------------- special cases


def binary_entropy(p):
    return sum(-q * log(q) for q in (p, 1.0 - p) if q > 0.0)


def entropy_objective(X, labels, penalty):
    """Eq. 11: Σ_k n_k Σ_d H(μ_kd) + λ K."""
    total = 0.0
    for k in np.unique(labels):
        mine = X[labels == k]
        total += len(mine) * sum(binary_entropy(p) for p in mine.mean(axis=0)) + penalty
    return total


def dp_means(X, center, penalty, max_iter=100):
    """Kulis & Jordan (2012), Algorithm 1: labels and Eq. 2."""
    centers, before = [np.array(center, float)], None
    for _ in range(max_iter):
        labels = np.empty(len(X), int)
        for n, x in enumerate(X):
            apart = [np.sum((x - c) ** 2) for c in centers]
            labels[n] = int(np.argmin(apart))
            if min(apart) > penalty:
                labels[n] = len(centers)
                centers.append(x)
        labels = np.unique(labels, return_inverse=True)[1]
        centers = [X[labels == k].mean(axis=0) for k in range(labels.max() + 1)]
        if before is not None and np.array_equal(labels, before):
            break
        before = labels
    error = sum(np.sum((X[labels == k] - c) ** 2) for k, c in enumerate(centers))
    return labels, error + penalty * len(centers)
