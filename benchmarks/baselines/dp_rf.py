"""DP-means from a random row, with the feature selection of CRAFT.

The comparators DP-means, DP-means(R) and DP-RF of Garg, Rudin & Jaakkola (AISTATS
2016): the sequential algorithm of Kulis & Jordan (2012), squared Euclidean distances.
"""

from dataclasses import dataclass

import numpy as np

from baselines.graph import n_selected

MAX_PASSES = 100


def dp_means_rf(
    X: np.ndarray, n_clusters: int, fraction: float, random_state: int
) -> np.ndarray:
    """DP-RF: λ and the first centre from a random row, m·D features a cluster.

    Simplified: the paper does not say how the farthest-first λ knows of features that
    are not yet selected; here it is m times the distance over all features.
    """
    rng = np.random.default_rng(random_state)
    first = X[rng.integers(len(X))]
    penalty = fraction * farthest_first(X, n_clusters, first)
    return sequential_dp_means(X, penalty, first, fraction, rng)


def farthest_first(X: np.ndarray, n_clusters: int, first: np.ndarray) -> float:
    """Squared distance of the last of so many rows, each farthest from those before.

    Kulis & Jordan begin with the mean of the rows, DP-means(R) with a random row.
    """
    nearest = ((X - first) ** 2).sum(axis=1)
    distance = 0.0
    for _ in range(n_clusters):
        farthest = int(nearest.argmax())
        distance = float(nearest[farthest])
        nearest = np.minimum(nearest, ((X - X[farthest]) ** 2).sum(axis=1))
    return distance


@dataclass
class Shapes:
    """Charges of the paper's Eq. 1 for a feature that is selected, and for one not."""

    charge: float
    step: float
    a: float
    total: float

    @classmethod
    def of(cls, m: float) -> "Shapes":
        if m >= 1.0:
            return cls(0.0, 0.0, 1.0, 1.0)
        rho = max(0.01, m * (1 - m) - 0.01)
        a, b = m * m * (1 - m) / rho - m, m * (1 - m) ** 2 / rho + m

        def f(a: float, b: float) -> float:
            return (a + b) * np.log(a + b) - a * np.log(a) - b * np.log(b)

        return cls(f(a, b), f(a + 1, b - 1) - f(a, b), a, a + b)

    def chances(self, chosen: np.ndarray) -> np.ndarray:
        """How likely each feature is selected in a new cluster."""
        return np.asarray((self.a + chosen.mean(axis=0)) / self.total)


def sequential_dp_means(
    X: np.ndarray,
    penalty: float,
    first: np.ndarray,
    fraction: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Rows one after the other; a row too far from all centres opens a cluster.

    With ``fraction=1`` all features count and this is plain DP-means.
    """
    shapes = Shapes.of(fraction)
    limit = penalty + X.shape[1] * shapes.charge
    chosen = rng.uniform(size=(1, X.shape[1])) < fraction
    centres, labels = first[None, :].astype(float), np.full(len(X), -1)
    for _ in range(MAX_PASSES):
        found, centres, chosen = one_pass(X, centres, chosen, limit, shapes, rng)
        used, found = np.unique(found, return_inverse=True)
        if np.array_equal(found, labels):
            break
        labels = found
        groups = [X[labels == k] for k in range(len(used))]
        centres = np.array([rows.mean(axis=0) for rows in groups])
        chosen = np.array([steadiest(rows, fraction) for rows in groups])
    return labels


def one_pass(
    X: np.ndarray,
    centres: np.ndarray,
    chosen: np.ndarray,
    limit: float,
    shapes: Shapes,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of all rows, in their order, and the clusters with those that opened."""
    labels = np.empty(len(X), dtype=np.int64)
    for n, row in enumerate(X):
        costs = (chosen * (row - centres) ** 2).sum(axis=1)
        costs += chosen.sum(axis=1) * shapes.step
        labels[n] = costs.argmin()
        if costs.min() > limit:
            new = rng.uniform(size=len(row)) < shapes.chances(chosen)
            centres, chosen = np.vstack([centres, row]), np.vstack([chosen, new])
            labels[n] = len(centres) - 1
    return labels, centres, chosen


def steadiest(rows: np.ndarray, fraction: float) -> np.ndarray:
    """The m·D features with the lowest variance."""
    best = np.argsort(rows.var(axis=0), kind="stable")
    chosen = np.zeros(rows.shape[1], dtype=bool)
    chosen[best[: n_selected(rows.shape[1], fraction)]] = True
    return chosen
