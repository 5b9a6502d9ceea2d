"""Multi-cluster feature selection (Cai, Zhang & He, KDD 2010)."""

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.linear_model import lars_path

from baselines.graph import cluster_on_best, n_selected, normalised_affinity


def mcfs(
    X: np.ndarray, n_clusters: int, fraction: float, random_state: int
) -> np.ndarray:
    """Cluster by k-means on the m·D features that MCFS ranks highest.

    Simplified: always five neighbours and weights 0 and 1, where the authors offer
    several; the sparse regressions are on standardised columns, as else units would
    decide, and end when the lasso has as many features as are asked for.
    """
    scores = mcfs_scores(X, n_clusters, fraction, random_state)
    return cluster_on_best(X, scores, n_clusters, fraction, random_state)


def mcfs_scores(
    X: np.ndarray, n_clusters: int, fraction: float, random_state: int
) -> np.ndarray:
    """The largest |coefficient| of each feature over regressions on the embedding."""
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    wanted = n_selected(X.shape[1], fraction)
    scores = np.zeros(X.shape[1])
    for y in embedding(X, n_clusters, random_state).T:
        coefficients = lars_path(Z, y, max_iter=wanted, method="lasso")[2][:, -1]
        scores = np.maximum(scores, np.abs(coefficients))
    return scores


def embedding(X: np.ndarray, n_axes: int, random_state: int) -> np.ndarray:
    """The smoothest vectors over the graph, but for the constant one."""
    affinity, degrees = normalised_affinity(X)
    constant = np.sqrt(degrees / degrees.sum())

    def without_constant(v: np.ndarray) -> np.ndarray:
        v = v.ravel()
        return np.asarray(affinity @ v - constant * (constant @ v))

    operator = LinearOperator(affinity.shape, without_constant, dtype=np.float64)
    start = np.random.default_rng(random_state).uniform(size=len(X))
    # Near 1 eigenvalues crowd where the graph falls apart: ask for little accuracy.
    _, vectors = eigsh(operator, n_axes, which="LA", v0=start, tol=1e-4)
    vectors /= np.sqrt(degrees)[:, None]
    return np.asarray(vectors - vectors.mean(axis=0))
