"""Nonnegative discriminative feature selection (Li et al., AAAI 2012)."""

import numpy as np
from scipy import linalg
from sklearn.cluster import KMeans

from baselines.graph import cluster_on_best, normalised_affinity

ORTHOGONALITY = 1e8  # γ: how strictly the columns of F exclude each other
TINY = 1e-16


def ndfs(
    X: np.ndarray, n_clusters: int, fraction: float, random_state: int
) -> np.ndarray:
    """Cluster by k-means on the m·D features that NDFS ranks highest.

    Simplified: α = β = 1, which the authors choose by the labels from a grid, weights
    of the graph 0 and 1, and at most 100 rounds.
    """
    scores = ndfs_scores(X, n_clusters, random_state)
    return cluster_on_best(X, scores, n_clusters, fraction, random_state)


def ndfs_scores(
    X: np.ndarray,
    n_clusters: int,
    random_state: int,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    max_iter: int = 100,
) -> np.ndarray:
    """Lengths of the rows of W, the weights of features.

    Minimises tr(FᵀLF) + α(‖F − XW‖² + β‖W‖₂₁) over W and F ≥ 0 with FᵀF = I, by
    turns: W has a closed form given F and its own lengths of rows, F a multiplicative
    step. The N × N matrix that the authors write down is never formed.
    """
    X = X - X.mean(axis=0)
    affinity, _ = normalised_affinity(X)
    F = first_indicator(X, n_clusters, random_state)
    gram, lengths = X.T @ X, np.ones(X.shape[1])
    before = np.inf
    for _ in range(max_iter):
        ridge = gram + np.diag(beta / (2 * np.maximum(lengths, TINY)))
        W = linalg.solve(ridge, X.T @ F, assume_a="pos")
        lengths = np.linalg.norm(W, axis=1)
        smooth = F - affinity @ F
        residual = F - X @ W
        down = smooth + alpha * residual + ORTHOGONALITY * F @ (F.T @ F)
        F = F * (ORTHOGONALITY * F) / np.maximum(down, TINY)
        F /= np.maximum(np.linalg.norm(F, axis=0), TINY)
        objective = (F * smooth).sum() + alpha * (
            (residual**2).sum() + beta * lengths.sum()
        )
        if abs(before - objective) < 1e-6 * abs(objective):
            break
        before = objective
    return lengths


def first_indicator(X: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Clusters of one k-means start as a positive matrix with columns of length 1."""
    labels = KMeans(n_clusters, n_init=1, random_state=seed).fit(X).labels_
    F = np.eye(n_clusters)[labels] + 0.2
    return np.asarray(F / np.linalg.norm(F, axis=0))
