"""Clusters of mixed tables: rows as numbers, the scores of clusters, what sums say.

A row is `numbers`, for each number column 1, z, z² (all 0 where it is missing), and
`codes`, for each category column the place of its value in one list of all categories
of all columns; a missing value has a place of its own, which never counts. The score
of a row in a cluster, the logarithm of how much likelier it is there than in the whole
table, is then linear: products with the numbers, and a look-up for each code.
"""

from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, inlined, kernel

__all__ = [
    "Categories",
    "Choice",
    "Columns",
    "Encoded",
    "Numbers",
    "Penalties",
    "add_up",
    "assign_rows",
    "choose_features",
    "converge",
    "cost_clusters",
    "cross_sums",
    "distances_to",
    "encode_rows",
    "fit_clusters",
    "score_rows",
    "weigh_tables",
    "yeo_johnson",
]

_TILE = 256  # rows whose scores stay in the cache


class Numbers(NamedTuple):
    """How the P number columns are read; NaN in `powers`: not transformed."""

    at: np.ndarray  # (P,) column of the table
    powers: np.ndarray  # (P,) exponent of Yeo and Johnson
    origins: np.ndarray  # (P,)
    scales: np.ndarray  # (P,)


class Categories(NamedTuple):
    """How the Q category columns are read."""

    at: np.ndarray  # (Q,) column of the table
    starts: np.ndarray  # (Q,) first place of the column's categories
    widths: np.ndarray  # (Q,) how many there are; the place after them: missing
    edges: np.ndarray  # (Q, most) where a column of numbers is cut, NaN: nowhere


class Columns(NamedTuple):
    """Where the sums of the columns are: 3P for numbers, then one for each place."""

    P: int
    scored: int  # the first so many numbers count
    starts: np.ndarray  # (Q,) as in `Categories`
    widths: np.ndarray  # (Q,)


class Encoded(NamedTuple):
    """Rows, see above."""

    numbers: np.ndarray  # (n, 3P)
    codes: np.ndarray  # (n, Q)
    weights: np.ndarray  # (n,)


class Penalties(NamedTuple):
    """What features and clusters cost, given the sums of all rows."""

    whole: np.ndarray  # (F,) sums of all rows, which give the background
    total: float  # their weight
    costs: np.ndarray  # (D,) of each feature
    penalty: float  # of each cluster


class Choice(NamedTuple):
    """How clusters are smoothed and choose features, see `choose_features`."""

    smoothing: float
    budget: int
    sharing: float


@kernel
def _yeo_johnson(x, power):
    """((1 + x)^p − 1)/p for x ≥ 0, −((1 − x)^(2−p) − 1)/(2 − p) below."""
    sign = 1.0
    if x < 0.0:
        sign, x, power = -1.0, -x, 2.0 - power
    if power == 0.0:
        return sign * np.log1p(x)
    return sign * np.expm1(power * np.log1p(x)) / power


@kernel
def yeo_johnson(x, power, out):
    """Numbers with the transformation of Yeo and Johnson (not in the paper)."""
    for n in range(len(x)):
        out[n] = _yeo_johnson(x[n], power)


@kernel
def encode_rows(X, plain, coded, numbers, codes):
    """Fill `numbers` (n, 3P) from the columns of `plain`, `codes` from `coded`.

    z = (x − origin)/scale.
    """
    at, powers, origins, scales = plain
    P = len(at)
    inverse = 1.0 / scales
    for n in range(len(X)):
        for p in range(P):
            x = X[n, at[p]]
            if np.isnan(x):
                numbers[n, p] = numbers[n, P + p] = numbers[n, 2 * P + p] = 0.0
                continue
            if not np.isnan(powers[p]):
                x = _yeo_johnson(x, powers[p])
            z = (x - origins[p]) * inverse[p]
            numbers[n, p] = 1.0
            numbers[n, P + p] = z
            numbers[n, 2 * P + p] = z * z
        for q in range(len(coded.at)):
            x = X[n, coded.at[q]]
            if np.isnan(x):
                code = coded.widths[q]
            elif np.isnan(coded.edges[q, 0]):
                code = np.int64(x)
            else:
                code = 0
                for e in range(coded.widths[q] - 1):
                    code += x > coded.edges[q, e]
            codes[n, q] = coded.starts[q] + code


@fast_kernel
def _add_row(numbers, codes, n, w, total):
    """total += w·[numbers_n, indicators of codes_n]."""
    width = numbers.shape[1]
    for f in range(width):
        total[f] += w * numbers[n, f]
    for q in range(codes.shape[1]):
        total[width + codes[n, q]] += w


@fast_kernel
def add_up(numbers, codes, weights, labels, sums, counts):
    """sums_k += Σ w·[numbers, indicators of codes], counts_k += Σ w, rows of k."""
    for n in range(len(labels)):
        k, w = labels[n], weights[n]
        counts[k] += w
        _add_row(numbers, codes, n, w, sums[k])


@fast_kernel
def _score_tile(numbers, codes, tables, shares, scores):
    """scores = shares + numbers·(first rows of tables) + looked-up rows of tables."""
    width, K = numbers.shape[1], len(shares)
    if width > 0:
        np.dot(numbers, tables[:width], scores)
    else:
        scores[:] = 0.0
    for n in range(len(scores)):
        line = scores[n]
        for k in range(K):
            line[k] += shares[k]
        for q in range(codes.shape[1]):
            entry = tables[width + codes[n, q]]
            for k in range(K):
                line[k] += entry[k]


@kernel
def score_rows(numbers, codes, tables, shares, scores):
    """scores_nk = log(n_k/N) + Σ_d w_kd log[p(x_nd | k)/p(x_nd)].

    Not in the paper.
    """
    for start in range(0, len(scores), _TILE):
        stop = min(start + _TILE, len(scores))
        _score_tile(
            numbers[start:stop], codes[start:stop], tables, shares, scores[start:stop]
        )


@kernel
def assign_rows(numbers, codes, tables, shares, labels):
    """labels_n = argmax_k scores_nk, ties to the lower number; count changes."""
    K = len(shares)
    scores = np.empty((_TILE, K))
    changed = 0
    for start in range(0, len(labels), _TILE):
        stop = min(start + _TILE, len(labels))
        tile = scores[: stop - start]
        _score_tile(numbers[start:stop], codes[start:stop], tables, shares, tile)
        for n in range(stop - start):
            best = 0
            for k in range(1, K):
                if tile[n, k] > tile[n, best]:
                    best = k
            changed += labels[start + n] != best
            labels[start + n] = best
    return changed


@kernel
def fit_clusters(sums, whole, columns, smoothing, gains, tables):
    """Parameters of clusters from their sums, as `tables`, and what features gain.

    Not in the paper: its objective (section 2) without log σ is degenerate; G_kd = log
    p(x | k)/p(x) summed over the rows of k. `whole` are the sums of all rows, which
    give the background. A cluster's variance and frequencies are pulled towards it as
    by `smoothing` rows. The gain is the log-likelihood ratio of the cluster's rows,
    cluster against background, with the logarithm of that prior.
    """
    P, scored, starts, widths = columns
    K, Q = len(sums), len(starts)
    tables[:] = 0.0
    a = smoothing
    for p in range(scored):
        n0 = whole[p]
        mean0 = whole[P + p] / n0 if n0 > 0.0 else 0.0
        var0 = whole[2 * P + p] / n0 - mean0 * mean0 if n0 > 0.0 else 0.0
        constant = var0 <= 1e-14 * (1.0 + mean0 * mean0)
        for k in range(K):
            n = sums[k, p]
            gains[k, p] = 0.0
            if constant or n <= 0.0:
                continue
            mean = sums[k, P + p] / n
            spread = max(sums[k, 2 * P + p] - n * mean * mean, 0.0)
            var = (spread + a * var0) / (n + a)
            if var <= 0.0:  # no smoothing, no spread
                var = 1e-12 * var0
            off = mean - mean0
            log = np.log(var / var0)
            gains[k, p] = (
                -0.5 * (n + a) * log
                - 0.5 * (spread + a * var0) / var
                + 0.5 * a
                + 0.5 * (spread + n * off * off) / var0
            )
            tables[p, k] = 0.5 * (mean0 * mean0 / var0 - mean * mean / var - log)
            tables[P + p, k] = mean / var - mean0 / var0
            tables[2 * P + p, k] = 0.5 / var0 - 0.5 / var
    for q in range(Q):
        first = 3 * P + starts[q]
        n0 = 0.0
        for t in range(first, first + widths[q]):
            n0 += whole[t]
        for k in range(K):
            gains[k, scored + q] = 0.0
            n = 0.0
            for t in range(first, first + widths[q]):
                n += sums[k, t]
            if n <= 0.0:
                continue
            gain = 0.0
            for t in range(first, first + widths[q]):
                if whole[t] <= 0.0:
                    continue
                base = whole[t] / n0
                seen = sums[k, t] + a * base
                if seen <= 0.0:  # no smoothing, never seen
                    seen = 1e-12
                log = np.log(seen / ((n + a) * base))
                gain += (sums[k, t] + a * base) * log
                tables[t, k] = log
            gains[k, scored + q] = gain


@inlined
def _choose_best(worth, budget, chosen):
    """Mark the `budget` features that are worth most, ties to the lower number.

    The m·D largest G_kd − c_d. By hand, as numba takes two seconds to compile a sort.
    """
    for _ in range(min(budget, len(worth))):
        best = -1
        for d in range(len(worth)):
            if not chosen[d] and (best < 0 or worth[d] > worth[best]):
                best = d
        chosen[best] = True


@kernel
def choose_features(gains, costs, present, budget, sharing, chosen, weights):
    """Which features count in which cluster, and with what weight.

    Stands for the choice of v_k in CRAFT Algorithm 2; c_d = ½ p_d log N is not in the
    paper. A feature is worth its gain less its cost, and, by the share `sharing`, what
    it is worth to the average cluster. Chosen are those worth more than nothing (budget
    < 0) or the `budget` that are worth most. Its weight in a cluster is 1 − sharing if
    chosen there, and the share of the clusters in which it is chosen times sharing.
    """
    K, D = gains.shape
    alive = 0
    for k in range(K):
        alive += present[k]
    common = np.empty(D)
    common[:] = 0.0
    if sharing > 0.0:
        for k in range(K):
            if present[k]:
                for d in range(D):
                    common[d] += (gains[k, d] - costs[d]) * (sharing / alive)
    worth = np.empty(D)
    for k in range(K):
        chosen[k] = False
        weights[k] = 0.0
        if not present[k]:
            continue
        for d in range(D):
            worth[d] = (1.0 - sharing) * (gains[k, d] - costs[d]) + common[d]
        if budget < 0:
            for d in range(D):
                chosen[k, d] = worth[d] > 0.0
        else:
            _choose_best(worth, budget, chosen[k])
        for d in range(D):
            weights[k, d] = (1.0 - sharing) * chosen[k, d]
    if sharing > 0.0:
        for d in range(D):
            n_chosen = 0
            for k in range(K):
                n_chosen += chosen[k, d]
            for k in range(K):
                weights[k, d] += sharing * n_chosen / alive


@kernel
def cost_clusters(gains, weights, counts, penalties, cluster_costs):
    """λ − n_k log(n_k/N) − Σ_d w_kd (G_kd − c_d) of each cluster.

    Not in the paper.
    """
    K, D = gains.shape
    for k in range(K):
        cluster_costs[k] = 0.0
        if counts[k] <= 0.0:
            continue
        cost = penalties.penalty - counts[k] * np.log(counts[k] / penalties.total)
        for d in range(D):
            cost -= weights[k, d] * (gains[k, d] - penalties.costs[d])
        cluster_costs[k] = cost


@kernel
def weigh_tables(tables, weights, columns):
    """Multiply each feature's part of the tables by its weight w_kd."""
    P, scored, starts, widths = columns
    K = tables.shape[1]
    for p in range(scored):
        for k in range(K):
            w = weights[k, p]
            tables[p, k] *= w
            tables[P + p, k] *= w
            tables[2 * P + p, k] *= w
    for q in range(len(starts)):
        first = 3 * P + starts[q]
        for t in range(first, first + widths[q]):
            for k in range(K):
                tables[t, k] *= weights[k, scored + q]


@kernel
def _shares(counts, total, out):
    """out_k = log(n_k/N), −∞ for an empty cluster."""
    for k in range(len(counts)):
        out[k] = np.log(counts[k] / total) if counts[k] > 0.0 else -np.inf


@kernel
def converge(rows, columns, penalties, choice, warm, most_passes, labels, out):
    """Assign rows and fit clusters in turn until no row changes; return the objective.

    Repeats the steps of CRAFT Algorithm 2 on another objective, which none of them
    raises. Starts from `labels` and overwrites them; `out` are the arrays of sums,
    counts and costs. In the first `warm` rounds every feature counts.
    """
    sums, counts, cluster_costs = out
    K, F = sums.shape
    D = len(penalties.costs)
    gains, weights = np.empty((K, D)), np.empty((K, D))
    tables, shares = np.empty((F, K)), np.empty(K)
    chosen, present = np.empty((K, D), np.bool_), np.empty(K, np.bool_)
    for passes in range(most_passes + 1):
        sums[:] = 0.0
        counts[:] = 0.0
        add_up(rows.numbers, rows.codes, rows.weights, labels, sums, counts)
        for k in range(K):
            present[k] = counts[k] > 0.0
        fit_clusters(sums, penalties.whole, columns, choice.smoothing, gains, tables)
        if passes < warm:
            weights[:] = 1.0
        else:
            choose_features(
                gains, penalties.costs, present, choice.budget, choice.sharing, chosen,
                weights,
            )  # fmt: skip
        if passes == most_passes:
            break
        weigh_tables(tables, weights, columns)
        _shares(counts, penalties.total, shares)
        moved = assign_rows(rows.numbers, rows.codes, tables, shares, labels)
        if moved == 0 and passes >= warm:
            break
    cost_clusters(gains, weights, counts, penalties, cluster_costs)
    objective = 0.0
    for k in range(K):
        objective += cluster_costs[k]
    return objective


@fast_kernel
def cross_sums(rows, columns, middles, place, sums, counts):
    """Sums of the rows on one side of every cut along a single feature.

    Not in the paper. The first `scored` cuts take the rows with z above `middles`; the
    others those with one category, `place[code]` being the number of the cut, or -1.
    """
    numbers, codes, weights = rows
    P, scored = columns.P, columns.scored
    for n in range(len(numbers)):
        w = weights[n]
        for cut in range(scored + codes.shape[1]):
            if cut < scored:
                at = cut
                if numbers[n, cut] == 0.0 or numbers[n, P + cut] <= middles[cut]:
                    continue
            else:
                at = place[codes[n, cut - scored]]
                if at < 0:
                    continue
            counts[at] += w
            _add_row(numbers, codes, n, w, sums[at])


@fast_kernel
def distances_to(rows, columns, row, out):
    """How far rows are from a row: half the squared z distance, 1 per category.

    ½Σ(z − z')² + Σ[t ≠ t']. What either of them lacks does not count.
    """
    numbers, codes, P = rows.numbers, rows.codes, columns.P
    for n in range(len(out)):
        distance = 0.0
        for p in range(columns.scored):
            gap = numbers[n, P + p] - numbers[row, P + p]
            distance += numbers[n, p] * numbers[row, p] * gap * gap
        distance *= 0.5
        for q in range(codes.shape[1]):
            mine, other = codes[row, q], codes[n, q]
            missing = columns.starts[q] + columns.widths[q]
            if mine != other and mine != missing and other != missing:
                distance += 1.0
        out[n] = distance
