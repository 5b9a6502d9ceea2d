"""The graph of near rows, which both spectral methods start from."""

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.neighbors import kneighbors_graph

N_NEIGHBOURS = 5


def normalised_affinity(X: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """D^(-1/2) S D^(-1/2) of a symmetric graph of the five nearest rows, and D.

    All weights are 1: where units differ, a kernel cuts rows far out off.
    """
    near = min(N_NEIGHBOURS, len(X) - 1)
    graph = kneighbors_graph(X, near)
    graph = sparse.csr_array(graph.maximum(graph.T))
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    scale = sparse.dia_array((1 / np.sqrt(degrees)[None, :], [0]), shape=graph.shape)
    return sparse.csr_array(scale @ graph @ scale), degrees


def cluster_on_best(
    X: np.ndarray, scores: np.ndarray, n_clusters: int, fraction: float, seed: int
) -> np.ndarray:
    """K-means, the best of ten starts, on the features with the highest scores."""
    best = np.argsort(-scores, kind="stable")[: n_selected(X.shape[1], fraction)]
    model = KMeans(n_clusters, n_init=10, random_state=seed).fit(X[:, best])
    return np.asarray(model.labels_)


def n_selected(n_features: int, fraction: float) -> int:
    """So many features are m·D, at least one."""
    return max(1, round(fraction * n_features))
